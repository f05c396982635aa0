//! What a viewer can do about a host: what it does, how it is typed, and the change of the object. Pure.

use metal3_api::kind::Kind as _;
use metal3_api::metal3::names::{DETACHED_ANNOTATION, INSPECT_ANNOTATION, PAUSED_ANNOTATION, REBOOT_ANNOTATION};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::objects::text;

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

/// What can be done about a host as it is.
pub(crate) fn of(host: &Value) -> Vec<Action> {
    let (namespace, name) = (text(host, "/metadata/namespace"), text(host, "/metadata/name"));
    let user = user(host);
    let row = |action, what, consequence: &str, is_interrupted: bool, change: Change| {
        let user = user.as_deref().filter(|_| is_interrupted);
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
    };
    let pause = if has(host, PAUSED_ANNOTATION) {
        let change = Change::Remove(PAUSED_ANNOTATION);
        row("resume", "Resume", "controllers serve the host again", false, change)
    } else {
        let change = Change::Annotate(PAUSED_ANNOTATION);
        row("pause", "Pause", "controllers leave the host alone", false, change)
    };
    // A host that is being deleted is on its way out, and can only be stopped there.
    if host.pointer("/metadata/deletionTimestamp").is_some() {
        return vec![pause];
    }
    let is_online = host.pointer("/spec/online").and_then(Value::as_bool) == Some(true);
    let mut all = vec![match is_online {
        true => row(
            "power-off",
            "Power off",
            "what runs on the machine stops",
            true,
            Change::Online(false),
        ),
        false => row("power-on", "Power on", "the machine boots", false, Change::Online(true)),
    }];
    let state = text(host, "/status/provisioning/state");
    if is_online && ["provisioned", "externally provisioned"].contains(&state) {
        let what = "what runs on the machine is interrupted";
        all.push(row("reboot", "Reboot", what, true, Change::Annotate(REBOOT_ANNOTATION)));
    }
    if state == "available" {
        let what = "the machine boots the agent, which reads its hardware";
        let change = Change::Annotate(INSPECT_ANNOTATION);
        all.push(row("inspect", "Inspect again", what, false, change));
    }
    all.push(pause);
    all.push(match has(host, DETACHED_ANNOTATION) {
        true => {
            let change = Change::Remove(DETACHED_ANNOTATION);
            row("attach", "Attach", "Ironic manages the machine again", false, change)
        }
        false => {
            let what = "Ironic no longer manages the machine, which keeps running";
            row("detach", "Detach", what, true, Change::Annotate(DETACHED_ANNOTATION))
        }
    });
    all
}

/// The change of a host as it is now, or why there is none. It holds for this version of this host only.
pub(crate) fn patch(host: &Value, wanted: &Wanted) -> Result<Value, Refusal> {
    if text(host, "/metadata/uid") != wanted.uid {
        return Err(Refusal::Replaced);
    }
    let all = of(host);
    let action = all.iter().find(|action| action.action == wanted.action);
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

fn has(host: &Value, annotation: &str) -> bool {
    let annotations = host.pointer("/metadata/annotations").and_then(Value::as_object);
    annotations.is_some_and(|all| all.contains_key(annotation))
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

    fn wanted(action: &str, typed: &str) -> Wanted {
        let text = json!({ "namespace": "lab", "name": "h", "uid": "u", "action": action, "typed": typed });
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
                    ("resume", false),
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
    fn patch_is_of_this_version_of_this_host_and_of_what_the_page_offered() {
        let used = json!({ "online": true, "consumerRef": { "kind": "Metal3Machine", "name": "m" } });
        let used = host(used, "provisioned", json!({}));
        let own = json!({ "uid": "u", "resourceVersion": "7" });
        assert_eq!(
            patch(&used, &wanted("power-off", "h")),
            Ok(json!({ "spec": { "online": false }, "metadata": own }))
        );
        let annotated =
            json!({ "metadata": { "annotations": { REBOOT_ANNOTATION: "" }, "uid": "u", "resourceVersion": "7" } });
        assert_eq!(patch(&used, &wanted("reboot", "h")), Ok(annotated));
        let removed =
            json!({ "metadata": { "annotations": { PAUSED_ANNOTATION: null }, "uid": "u", "resourceVersion": "7" } });
        let paused = host(json!({}), "available", json!({ PAUSED_ANNOTATION: "" }));
        assert_eq!(patch(&paused, &wanted("resume", "")), Ok(removed));
        let other = Wanted {
            uid: "v".to_owned(),
            ..wanted("power-off", "h")
        };
        for (wanted, refusal) in [
            (wanted("power-off", ""), Refusal::NotConfirmed),
            (wanted("power-off", "i"), Refusal::NotConfirmed),
            (wanted("power-on", "h"), Refusal::NotNow),
            (wanted("delete", "h"), Refusal::NotNow),
            (other, Refusal::Replaced),
        ] {
            assert_eq!(patch(&used, &wanted), Err(refusal), "{wanted:?}");
            assert!(refusal.text().contains("Nothing was changed"));
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
