//! What a viewer can do about a host: what it does, how it is typed, and the change of the object. Pure.

use metal3_api::kind::Kind as _;
use metal3_api::metal3::names::{DETACHED_ANNOTATION, INSPECT_ANNOTATION, PAUSED_ANNOTATION, REBOOT_ANNOTATION};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::objects::text;

/// The pause that a paused Cluster gives its hosts.
const PAUSED_BY_CLUSTER: &str = "metal3.io/capm3";

/// One thing that can be done, as pages get it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Action {
    /// Its name in requests.
    action: &'static str,
    what: &'static str,
    consequence: String,
    /// The same in a terminal.
    command: String,
    /// Whether it interrupts what runs on the machine: the viewer types the host's name.
    harms: bool,
    #[serde(skip)]
    change: Change,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Online(bool),
    Annotate(&'static str),
    Remove(&'static str),
}

/// What a page asks for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The UID of the host that the page showed.
    pub(crate) uid: String,
    pub(crate) action: String,
    /// What the page said would happen: it holds for that only.
    #[serde(default)]
    pub(crate) consequence: String,
    /// What the viewer typed to confirm.
    #[serde(default)]
    pub(crate) typed: String,
}

/// Why an action is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Another host has the name now.
    Replaced,
    /// The host is in another state than the page showed.
    NotNow,
    /// The typed name is another one.
    NotConfirmed,
}

impl Refusal {
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Replaced => "Another host has this name now. Nothing was changed: look at it first.",
            Self::NotNow => {
                "The host has changed, and this cannot be done to it now. Nothing was changed: look at it again."
            }
            Self::NotConfirmed => "The name that you typed is not that of the host. Nothing was changed.",
        }
    }
}

impl Change {
    fn patch(self) -> Value {
        match self {
            Self::Online(online) => json!({ "spec": { "online": online } }),
            Self::Annotate(annotation) => json!({ "metadata": { "annotations": { annotation: "" } } }),
            Self::Remove(annotation) => json!({ "metadata": { "annotations": { annotation: null } } }),
        }
    }

    fn command(self, namespace: &str, name: &str) -> String {
        let plural = BareMetalHost::PLURAL;
        match self {
            Self::Online(_) => {
                let patch = self.patch();
                format!("kubectl patch {plural} {name} -n {namespace} --type merge -p '{patch}'")
            }
            Self::Annotate(annotation) => format!("kubectl annotate {plural} {name} -n {namespace} {annotation}="),
            Self::Remove(annotation) => format!("kubectl annotate {plural} {name} -n {namespace} {annotation}-"),
        }
    }
}

/// A host, and who uses its machine.
struct Host<'a> {
    object: &'a Value,
    user: Option<String>,
    is_deleted: bool,
    /// Whether the machine is to be on.
    online: Option<bool>,
}

impl Host<'_> {
    /// An action; one that interrupts the user of the machine names him, and is confirmed.
    fn action(
        &self,
        (action, what): (&'static str, &'static str),
        consequence: &str,
        is_interruption: bool,
        change: Change,
    ) -> Action {
        let user = self.user.as_deref().filter(|_| is_interruption);
        let [namespace, name] = ["/metadata/namespace", "/metadata/name"].map(|at| text(self.object, at));
        Action {
            action,
            what,
            consequence: match user {
                Some(user) => format!("{consequence}: it is used by {user}"),
                None => consequence.to_owned(),
            },
            command: change.command(namespace, name),
            harms: user.is_some(),
            change,
        }
    }

    /// Whether the annotation is there. A request that is says more than a new one: how, or never.
    fn has(&self, name: &str) -> bool {
        annotation(self.object, name).is_some()
    }

    fn pause(&self) -> Option<Action> {
        // What waited begins then.
        let again = match (self.is_deleted, self.online) {
            (true, _) => "controllers serve the host again, and go on with its deletion: its disks may be erased",
            (false, Some(false)) => "controllers serve the host again, and switch its machine off",
            (false, _) => "controllers serve the host again",
        };
        match annotation(self.object, PAUSED_ANNOTATION) {
            // It ends with the pause of the Cluster: during a move, two managers would serve one machine.
            Some(PAUSED_BY_CLUSTER) => None,
            Some(_) => {
                let mut resume = self.action(("resume", "Resume"), again, true, Change::Remove(PAUSED_ANNOTATION));
                resume.harms |= self.is_deleted;
                Some(resume)
            }
            None => {
                let what = "controllers leave the host alone";
                Some(self.action(("pause", "Pause"), what, false, Change::Annotate(PAUSED_ANNOTATION)))
            }
        }
    }

    fn power(&self) -> Action {
        match self.online {
            Some(true) => {
                let what = "what runs on the machine stops";
                self.action(("power-off", "Power off"), what, true, Change::Online(false))
            }
            _ => self.action(
                ("power-on", "Power on"),
                "the machine boots",
                false,
                Change::Online(true),
            ),
        }
    }

    fn detachment(&self) -> Action {
        if self.has(DETACHED_ANNOTATION) {
            let what = match self.online {
                Some(false) => "Ironic manages the machine again, and switches it off",
                _ => "Ironic manages the machine again",
            };
            return self.action(("attach", "Attach"), what, true, Change::Remove(DETACHED_ANNOTATION));
        }
        let what = "Ironic no longer manages the machine, which keeps running";
        self.action(("detach", "Detach"), what, true, Change::Annotate(DETACHED_ANNOTATION))
    }
}

/// What can be done about a host as it is.
pub(crate) fn of(object: &Value) -> Vec<Action> {
    let host = Host {
        object,
        user: user(object),
        is_deleted: object.pointer("/metadata/deletionTimestamp").is_some(),
        online: object.pointer("/spec/online").and_then(Value::as_bool),
    };
    // A host that is being deleted is on its way out, and can only be stopped there.
    if host.is_deleted {
        return host.pause().into_iter().collect();
    }
    let mut all = vec![host.power()];
    let state = text(object, "/status/provisioning/state");
    let runs = host.online == Some(true) && ["provisioned", "externally provisioned"].contains(&state);
    if runs && !host.has(REBOOT_ANNOTATION) {
        let what = "what runs on the machine is interrupted";
        all.push(host.action(("reboot", "Reboot"), what, true, Change::Annotate(REBOOT_ANNOTATION)));
    }
    if state == "available" && !host.has(INSPECT_ANNOTATION) {
        let what = "the machine boots the agent, which reads its hardware";
        all.push(host.action(
            ("inspect", "Inspect again"),
            what,
            false,
            Change::Annotate(INSPECT_ANNOTATION),
        ));
    }
    all.extend(host.pause());
    all.push(host.detachment());
    all
}

/// The change of a host as it is now, or why there is none. It holds for this version of this host only.
pub(crate) fn patch(host: &Value, wanted: &Wanted) -> Result<Value, Refusal> {
    if text(host, "/metadata/uid") != wanted.uid {
        return Err(Refusal::Replaced);
    }
    let all = of(host);
    let action = all.iter().find(|action| action.action == wanted.action);
    let action = action.filter(|action| action.consequence == wanted.consequence);
    let action = action.ok_or(Refusal::NotNow)?;
    if action.harms && wanted.typed != wanted.name {
        return Err(Refusal::NotConfirmed);
    }
    let mut patch = action.change.patch();
    let own = json!({ "uid": wanted.uid, "resourceVersion": text(host, "/metadata/resourceVersion") });
    if let Some(members) = patch.as_object_mut() {
        let metadata = members.entry("metadata").or_insert_with(|| json!({}));
        if let (Some(metadata), Value::Object(own)) = (metadata.as_object_mut(), own) {
            metadata.extend(own);
        }
    }
    Ok(patch)
}

fn annotation<'a>(host: &'a Value, name: &str) -> Option<&'a str> {
    host.pointer("/metadata/annotations")?.get(name)?.as_str()
}

/// Who uses the machine; `None` if nothing runs on it that a person misses.
fn user(host: &Value) -> Option<String> {
    let (kind, name) = (
        text(host, "/spec/consumerRef/kind"),
        text(host, "/spec/consumerRef/name"),
    );
    if !name.is_empty() {
        return Some(format!("{kind} {name}").trim().to_owned());
    }
    let is_external = host.pointer("/spec/externallyProvisioned").and_then(Value::as_bool) == Some(true);
    let has_system = [
        "/status/provisioning/image/url",
        "/status/provisioning/customDeploy/method",
        "/spec/image/url",
        "/spec/customDeploy/method",
    ];
    let has_system = has_system.iter().any(|at| !text(host, at).is_empty());
    (is_external || has_system).then(|| "the system on its disk".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(spec: Value, state: &str, annotations: Value) -> Value {
        json!({
            "metadata": { "namespace": "lab", "name": "h", "uid": "u", "resourceVersion": "7", "annotations": annotations },
            "spec": spec, "status": { "provisioning": { "state": state } },
        })
    }

    /// As a page asks that showed this host.
    fn asked(host: &Value, action: &str, typed: &str) -> Wanted {
        let shown = of(host).into_iter().find(|one| one.action == action);
        let consequence = shown.map(|one| one.consequence).unwrap_or_default();
        let text = json!({ "namespace": "lab", "name": "h", "uid": "u", "action": action, "typed": typed, "consequence": consequence });
        serde_json::from_value(text).unwrap()
    }

    fn names(host: &Value) -> Vec<(&'static str, bool)> {
        of(host).iter().map(|action| (action.action, action.harms)).collect()
    }

    #[test]
    fn actions_follow_the_state_of_the_host_and_those_that_interrupt_its_user_are_confirmed() {
        let used = json!({ "online": true, "consumerRef": { "kind": "Metal3Machine", "name": "m" } });
        let deleted = {
            let mut deleted = host(used.clone(), "provisioned", json!({}));
            deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            deleted
        };
        let external = json!({ "online": true, "externallyProvisioned": true });
        for (host, expected) in [
            (
                host(json!({ "online": true }), "available", json!({})),
                vec![
                    ("power-off", false),
                    ("inspect", false),
                    ("pause", false),
                    ("detach", false),
                ],
            ),
            (
                host(used.clone(), "provisioned", json!({})),
                vec![
                    ("power-off", true),
                    ("reboot", true),
                    ("pause", false),
                    ("detach", true),
                ],
            ),
            (
                host(external, "externally provisioned", json!({ PAUSED_ANNOTATION: "" })),
                vec![
                    ("power-off", true),
                    ("reboot", true),
                    ("resume", true),
                    ("detach", true),
                ],
            ),
            (
                host(
                    json!({ "online": false }),
                    "provisioned",
                    json!({ DETACHED_ANNOTATION: "{}" }),
                ),
                vec![("power-on", false), ("pause", false), ("attach", false)],
            ),
            (
                host(json!({}), "", json!({})),
                vec![("power-on", false), ("pause", false), ("detach", false)],
            ),
            (deleted, vec![("pause", false)]),
        ] {
            assert_eq!(names(&host), expected, "{host}");
        }
        let off = &of(&host(used, "provisioned", json!({})))[0];
        assert_eq!(
            off.consequence,
            "what runs on the machine stops: it is used by Metal3Machine m"
        );
    }

    #[test]
    fn patch_is_of_this_version_of_this_host_and_of_what_the_page_said() {
        let used_by = |name: &str| {
            let spec = json!({ "online": true, "consumerRef": { "kind": "Metal3Machine", "name": name } });
            host(spec, "provisioned", json!({}))
        };
        let used = used_by("m");
        let own = json!({ "uid": "u", "resourceVersion": "7" });
        assert_eq!(
            patch(&used, &asked(&used, "power-off", "h")),
            Ok(json!({ "spec": { "online": false }, "metadata": own }))
        );
        let annotated =
            json!({ "metadata": { "annotations": { REBOOT_ANNOTATION: "" }, "uid": "u", "resourceVersion": "7" } });
        assert_eq!(patch(&used, &asked(&used, "reboot", "h")), Ok(annotated));
        let removed =
            json!({ "metadata": { "annotations": { PAUSED_ANNOTATION: null }, "uid": "u", "resourceVersion": "7" } });
        let paused = host(json!({}), "available", json!({ PAUSED_ANNOTATION: "" }));
        assert_eq!(patch(&paused, &asked(&paused, "resume", "")), Ok(removed));
        let other = Wanted {
            uid: "v".to_owned(),
            ..asked(&used, "power-off", "h")
        };
        for (wanted, refusal) in [
            (asked(&used, "power-off", ""), Refusal::NotConfirmed),
            (asked(&used, "power-off", "i"), Refusal::NotConfirmed),
            (asked(&used_by("another"), "power-off", "h"), Refusal::NotNow),
            (asked(&paused, "power-on", "h"), Refusal::NotNow),
            (asked(&used, "delete", "h"), Refusal::NotNow),
            (other, Refusal::Replaced),
        ] {
            assert_eq!(patch(&used, &wanted), Err(refusal), "{wanted:?}");
            assert!(refusal.text().contains("Nothing was changed"));
        }
    }

    #[test]
    fn what_goes_on_after_a_pause_is_said_and_confirmed_and_that_of_a_cluster_is_not_ended() {
        let used = || json!({ "online": false, "consumerRef": { "kind": "Metal3Machine", "name": "m" } });
        let resume = |host: &Value| of(host).into_iter().find(|one| one.action == "resume");
        let stopped = resume(&host(used(), "provisioned", json!({ PAUSED_ANNOTATION: "" }))).unwrap();
        assert!(
            stopped.harms && stopped.consequence.contains("switch its machine off"),
            "{stopped:?}"
        );
        let mut deleted = host(json!({}), "available", json!({ PAUSED_ANNOTATION: "" }));
        deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let deleted = resume(&deleted).unwrap();
        assert!(deleted.harms && deleted.consequence.contains("erased"), "{deleted:?}");
        assert_eq!(
            resume(&host(
                used(),
                "provisioned",
                json!({ PAUSED_ANNOTATION: PAUSED_BY_CLUSTER })
            )),
            None
        );
        let attach = of(&host(used(), "provisioned", json!({ DETACHED_ANNOTATION: "" })));
        let attach = attach.iter().find(|one| one.action == "attach").unwrap();
        assert!(
            attach.harms && attach.consequence.contains("switches it off"),
            "{attach:?}"
        );
    }

    /// Its value says how to reboot, or that the host is never to be inspected.
    #[test]
    fn request_that_is_there_is_not_replaced() {
        let forced = host(
            json!({ "online": true }),
            "provisioned",
            json!({ REBOOT_ANNOTATION: "{}" }),
        );
        let never = host(
            json!({ "online": true }),
            "available",
            json!({ INSPECT_ANNOTATION: "disabled" }),
        );
        for host in [forced, never] {
            assert!(
                names(&host)
                    .iter()
                    .all(|(name, _)| !["reboot", "inspect"].contains(name)),
                "{host}"
            );
        }
    }

    #[test]
    fn each_action_has_the_command_that_does_the_same() {
        let commands = |host: &Value| of(host).into_iter().map(|action| action.command).collect::<Vec<_>>();
        assert_eq!(
            commands(&host(
                json!({ "online": true }),
                "available",
                json!({ DETACHED_ANNOTATION: "" })
            )),
            [
                r#"kubectl patch baremetalhosts h -n lab --type merge -p '{"spec":{"online":false}}'"#,
                "kubectl annotate baremetalhosts h -n lab inspect.metal3.io=",
                "kubectl annotate baremetalhosts h -n lab baremetalhost.metal3.io/paused=",
                "kubectl annotate baremetalhosts h -n lab baremetalhost.metal3.io/detached-",
            ]
        );
    }
}
