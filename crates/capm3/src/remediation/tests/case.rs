//! The facts of one remediation, and a plan in words.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use metal3_api::cluster::{Cluster, Machine};
use metal3_api::infrastructure::v1beta2::{Metal3Machine, Metal3Remediation};
use metal3_api::meta::{Condition, Time};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::workload::{Drained, LiveNode, NodeChange, NodeState};
use metal3_runtime::patch::apply;
use metal3_runtime::plan::Observed;
use metal3_runtime::work::Next;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::remediation::action::{Action, HostChange, Plan, Reads};
use crate::remediation::facts::{Facts, Node};
use crate::remediation::plan::plan;

pub(super) const POWER_OFF: &str = "reboot.metal3.io/metal3-remediation-r-uid";
pub(super) const PROGRESS: &str = "remediation.metal3.io/progress";
pub(super) const FINALIZER: &str = "metal3remediation.infrastructure.cluster.x-k8s.io";

pub(super) fn read<K: DeserializeOwned>(document: Value) -> K {
    serde_json::from_value(document).unwrap()
}

/// An object of the facts.
fn object<K: DeserializeOwned>(name: &str, rest: Value) -> K {
    let mut document = rest;
    let meta = document["metadata"].as_object_mut().unwrap();
    meta.insert("name".to_owned(), json!(name));
    meta.insert("namespace".to_owned(), json!("metal"));
    meta.insert("resourceVersion".to_owned(), json!("7"));
    read(document)
}

/// The text of the annotation for a status.
fn progress(status: &Value) -> String {
    let mut text = json!({ "phase": status["phase"] });
    if !status["retryCount"].is_null() {
        text["retryCount"] = status["retryCount"].clone();
    }
    text.to_string()
}

/// The facts of a remediation that repairs a machine with host `h0` and Node `n0`. `phase` is empty for none.
pub(super) struct Case {
    pub(super) facts: Facts,
}

impl Case {
    pub(super) fn new(phase: &str) -> Self {
        let mut begun = json!({ "metadata": { "uid": "r-uid" } });
        if !phase.is_empty() {
            begun["status"] = json!({ "lastRemediated": "1970-01-01T00:00:00Z", "phase": phase });
            begun["metadata"]["finalizers"] = json!([FINALIZER]);
            begun["metadata"]["annotations"] = json!({ PROGRESS: progress(&begun["status"]) });
        }
        begun["spec"] = json!({ "strategy": { "type": "Reboot", "retryLimit": 1, "timeoutSeconds": 600 } });
        let remediation = object::<Metal3Remediation>("w-0", begun);
        let machine = object::<Machine>(
            "w-0",
            json!({
                "metadata": { "uid": "m-uid" },
                "spec": { "clusterName": "edge" },
                "status": { "nodeRef": { "name": "n0" } },
            }),
        );
        let metal3_machine = object::<Metal3Machine>(
            "w-0",
            json!({
                "metadata": { "annotations": { "metal3.io/BareMetalHost": "metal/h0" } },
                "spec": { "providerID": "metal3://metal/h0/w-0" },
            }),
        );
        let host = object::<BareMetalHost>(
            "h0",
            json!({
                "metadata": { "uid": "h-uid" },
                "spec": {
                    "online": true,
                    "consumerRef": {
                        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Metal3Machine",
                        "namespace": "metal", "name": "w-0",
                    },
                },
                "status": { "poweredOn": true, "operationalStatus": "OK", "errorMessage": "", "provisioning": { "state": "provisioned", "ID": "node", "image": { "url": "" } } },
            }),
        );
        let cluster = object::<Cluster>("edge", json!({ "metadata": {}, "spec": {} }));
        let facts = Facts {
            remediation: Arc::new(remediation),
            is_confirmed: true,
            machine: Observed::Present(Arc::new(machine)),
            cluster: Observed::Present(Arc::new(cluster)),
            metal3_machine: Observed::Present(Arc::new(metal3_machine)),
            host: Observed::Present(Arc::new(host)),
            held: Vec::new(),
            node: Node::NotRead,
            drained: None,
            changed: None,
            elapsed: Duration::from_secs(10),
            off: Duration::ZERO,
            on: Duration::from_secs(600),
            awaited: Duration::ZERO,
            now: Time::new(DateTime::from_timestamp(10, 0).unwrap()),
        };
        Self { facts }
    }

    /// Before its host is off.
    pub(super) fn running() -> Self {
        Self::new("Running")
    }

    /// The host is off.
    pub(super) fn off() -> Self {
        Self::running().held().host(|host| host.status.powered_on = false)
    }

    pub(super) fn waiting() -> Self {
        Self::new("Waiting")
    }

    pub(super) fn host(mut self, change: impl FnOnce(&mut BareMetalHost)) -> Self {
        if let Observed::Present(host) = &mut self.facts.host {
            change(Arc::make_mut(host));
            let annotations = host.metadata.annotations.iter().flatten();
            let is_held = annotations.into_iter().any(|(key, _)| key == POWER_OFF);
            self.facts.held = is_held.then(|| Arc::clone(host)).into_iter().collect();
        }
        self
    }

    /// The host is kept off.
    pub(super) fn held(self) -> Self {
        self.host(|host| {
            let annotations = host.metadata.annotations.get_or_insert_default();
            annotations.insert(POWER_OFF.to_owned(), r#"{"mode":"hard","force":false}"#.to_owned());
        })
    }

    /// A changed phase or count is recorded as before.
    pub(super) fn remediation(mut self, change: impl FnOnce(&mut Metal3Remediation)) -> Self {
        let remediation = Arc::make_mut(&mut self.facts.remediation);
        let of = |one: &Metal3Remediation| progress(&serde_json::to_value(&one.status).unwrap());
        let before = of(remediation);
        change(remediation);
        let after = of(remediation);
        let annotations = remediation.metadata.annotations.as_mut();
        if let Some(recorded) = annotations
            .and_then(|all| all.get_mut(PROGRESS))
            .filter(|text| **text == before)
        {
            *recorded = after;
        }
        self
    }

    /// The object that is decoded with this strategy, merged into its own.
    pub(super) fn strategy(self, patch: Value) -> Self {
        self.remediation(|one| {
            let mut document = serde_json::to_value(&*one).unwrap();
            apply(&json!({ "spec": { "strategy": patch } }), &mut document);
            *one = read(document);
        })
    }

    pub(super) fn deleted(self) -> Self {
        self.remediation(|one| one.metadata.deletion_timestamp = Some(read(json!("1970-01-01T00:00:05Z"))))
    }

    pub(super) fn annotated(self, key: &str, value: &str) -> Self {
        self.remediation(|one| {
            let annotations = one.metadata.annotations.get_or_insert_default();
            annotations.insert(key.to_owned(), value.to_owned());
        })
    }

    pub(super) fn machine(mut self, change: impl FnOnce(&mut Machine)) -> Self {
        if let Observed::Present(machine) = &mut self.facts.machine {
            change(Arc::make_mut(machine));
        }
        self
    }

    pub(super) fn metal3_machine(mut self, change: impl FnOnce(&mut Metal3Machine)) -> Self {
        if let Observed::Present(machine) = &mut self.facts.metal3_machine {
            change(Arc::make_mut(machine));
        }
        self
    }

    pub(super) fn facts(mut self, change: impl FnOnce(&mut Facts)) -> Self {
        change(&mut self.facts);
        self
    }

    pub(super) fn node(self, node: NodeState) -> Self {
        self.facts(|facts| facts.node = Node::Read(node))
    }

    pub(super) fn drained(self, left: Drained) -> Self {
        self.facts(|facts| facts.drained = Some(left))
    }

    pub(super) fn after(self, seconds: u64) -> Self {
        self.facts(|facts| facts.elapsed = Duration::from_secs(seconds))
    }

    /// The host has been off for a while.
    pub(super) fn off_for(self, seconds: u64) -> Self {
        self.facts(|facts| facts.off = Duration::from_secs(seconds))
    }

    /// The host has been on for a while.
    pub(super) fn on_for(self, seconds: u64) -> Self {
        self.facts(|facts| facts.on = Duration::from_secs(seconds))
    }

    /// Its Node has been awaited in deletion for a while.
    pub(super) fn awaited(self, seconds: u64) -> Self {
        self.facts(|facts| facts.awaited = Duration::from_secs(seconds))
    }

    pub(super) fn unconfirmed(self) -> Self {
        self.facts(|facts| facts.is_confirmed = false)
    }

    pub(super) fn plan(&self) -> Plan {
        plan(&self.facts)
    }

    /// The plan in words.
    pub(super) fn outline(&self) -> String {
        outline(&self.facts, &self.plan())
    }
}

/// A Node of this kubelet.
pub(super) fn live(kubelet: &str) -> LiveNode {
    LiveNode {
        name: "n0".to_owned(),
        uid: "n-uid".to_owned(),
        version: "3".to_owned(),
        kubelet_version: kubelet.to_owned(),
        provider_id: "metal3://metal/h0/w-0".to_owned(),
        labels: BTreeMap::from([("rack".to_owned(), "a".to_owned())]),
        annotations: BTreeMap::from([("note".to_owned(), "x".to_owned())]),
        ..LiveNode::default()
    }
}

pub(super) fn tainted() -> LiveNode {
    let taint = json!({ "key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute" });
    LiveNode {
        taints: vec![read(taint)],
        ..live("v1.31.0")
    }
}

pub(super) fn present(node: LiveNode) -> NodeState {
    NodeState::Present(Box::new(node))
}

pub(super) fn unreachable_cluster() -> NodeState {
    NodeState::Unknown("it cannot be reached".to_owned())
}

fn action(action: &Action) -> String {
    match action {
        Action::PatchRemediation(patch) => {
            let document = patch.clone().into_document();
            let meta = &document["metadata"];
            match (meta.get("finalizers"), meta.get("annotations")) {
                (Some(Value::Array(all)), _) if !all.is_empty() => "hold".to_owned(),
                (Some(_), Some(_)) => "release with backup".to_owned(),
                (Some(_), None) => "release".to_owned(),
                (None, _) => "backup".to_owned(),
            }
        }
        Action::PatchHost { host, change, .. } => match change {
            HostChange::PowerOff => format!("power off {host}"),
            HostChange::PowerOn => format!("power on {host}"),
            HostChange::Exclude => format!("exclude {host}"),
            HostChange::Orphan => format!("release {host}"),
        },
        Action::ChangeNode(NodeChange::Taints(taints)) => format!("{} taints", taints.len()),
        Action::ChangeNode(NodeChange::Add {
            annotations,
            labels,
            provider_id,
        }) => {
            let id = provider_id.as_ref().map_or("", |_| " and the ID");
            format!("add {} annotations and {} labels{id}", annotations.len(), labels.len())
        }
        Action::ChangeNode(NodeChange::Delete) => "delete Node".to_owned(),
        Action::PatchMachineStatus(_) => "give the Machine up".to_owned(),
    }
}

/// The text of the annotation that a plan has to write, and whether the status had no phase.
fn recorded(facts: &Facts, plan: &Plan) -> Option<(Value, bool)> {
    let (before, after) = (&facts.remediation.status, plan.status.as_ref()?);
    if (&before.phase, before.retry_count) == (&after.phase, after.retry_count) {
        return None;
    }
    let text = json!(progress(&serde_json::to_value(after).unwrap()));
    let annotations = facts.remediation.metadata.annotations.as_ref();
    let is_recorded = annotations.and_then(|all| all.get(PROGRESS)).map(String::as_str) == text.as_str();
    (!is_recorded).then_some((text, before.phase.is_none()))
}

fn outline(facts: &Facts, plan: &Plan) -> String {
    match plan.reads {
        Reads::Nothing => {}
        Reads::Node => return "read Node".to_owned(),
        Reads::Drained => return "read Pods".to_owned(),
        Reads::Everything => return "read everything".to_owned(),
    }
    let mut actions = plan.actions.as_slice();
    if let Some(recorded) = recorded(facts, plan) {
        // A change of the status is recorded in the annotation first, by a write of its own or with the finalizer.
        let (Some(Action::PatchRemediation(first)), is_first) = (actions.first(), recorded.1) else {
            panic!("{plan:?}")
        };
        let meta = first.clone().into_document()["metadata"].take();
        assert_eq!(meta["annotations"][PROGRESS], recorded.0, "{plan:?}");
        if !is_first || meta.get("finalizers").is_none() {
            actions = &actions[1..];
        }
    }
    let mut parts: Vec<String> = actions.iter().map(action).collect();
    if let Some(status) = &plan.status {
        let before = &facts.remediation.status;
        if status.phase != before.phase {
            let phase = serde_json::to_value(&status.phase).unwrap();
            parts.push(format!("phase {}", phase.as_str().unwrap()));
        }
        if status.retry_count != before.retry_count {
            parts.push(format!("retry {}", status.retry_count.unwrap()));
        }
        if status.last_remediated != before.last_remediated {
            parts.push("new time".to_owned());
        }
        let reason = |one: &Condition| format!("{}={:?} {}", one.type_, one.status, one.reason);
        let stated = status.conditions.iter().filter(|one| one.reason != "NotPaused");
        parts.extend(stated.map(reason));
    }
    parts.push(match &plan.next {
        Next::Done => "done".to_owned(),
        Next::Requeue => "again".to_owned(),
        Next::RequeueAfter(after) => format!("in {} s", after.as_secs()),
        Next::Waiting(on) => match on.recheck {
            Some(after) => format!("waits {} s", after.as_secs()),
            None => "waits".to_owned(),
        },
    });
    parts.join(", ")
}

/// Compares the plans of cases with their expected outlines.
pub(super) fn check(rows: Vec<(&str, Case, &str)>) {
    let mut wrong = Vec::new();
    for (name, case, expected) in rows {
        let found = case.outline();
        if found != expected {
            wrong.push(format!("{name}:\n  expected {expected}\n  found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
