//! Explanations of what waits while a script waits. Pure: objects in, chains without a cause out.
//!
//! Each object that waits or failed has a chain to a cause. While a host of a machine that is not provisioned reports
//! an error, that is the cause of the machine too.

use std::fmt;

use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::kind::Kind as _;
use metal3_explain::offline::explain_objects;
use metal3_explain::{Explanation, KINDS, ObjectId};
use serde_json::Value;

/// Number of chains shown.
const SHOWN: usize = 10;

/// Explanations so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Explained {
    chains: usize,
    without_cause: Vec<String>,
}

impl Explained {
    /// Explains each object of a namespace.
    pub(super) fn check(&mut self, objects: &[Value]) {
        for object in objects {
            let Some(id) = id_of(object) else { continue };
            let explanation = explain_objects(&id, objects);
            self.count(&explanation, explanation.names_a_cause());
            let machine = failed_machine(object).filter(|machine| !is_provisioned(machine, objects));
            if let Some(machine) = machine {
                let explanation = explain_objects(&machine, objects);
                let names_host = explanation.chain.iter().any(|link| link.object == id);
                self.count(&explanation, names_host);
            }
        }
    }

    fn count(&mut self, explanation: &Explanation, is_complete: bool) {
        if explanation.chain.is_empty() && is_complete {
            return;
        }
        self.chains = self.chains.saturating_add(1);
        if !is_complete {
            let links = explanation
                .chain
                .iter()
                .map(|link| format!("{}: {}", link.object, link.title));
            let links: Vec<String> = links.collect();
            self.without_cause
                .push(format!("{}: {}", explanation.object, links.join(" -> ")));
        }
    }

    /// Adds those of a script.
    pub(super) fn add(&mut self, script: &str, other: &Self) {
        self.chains = self.chains.saturating_add(other.chains);
        let named = other.without_cause.iter().map(|chain| format!("{script}: {chain}"));
        self.without_cause.extend(named);
    }

    /// Whether each chain names a cause.
    pub(super) const fn is_complete(&self) -> bool {
        self.without_cause.is_empty()
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.chains.saturating_sub(self.without_cause.len());
        let share = named.saturating_mul(100).checked_div(self.chains).unwrap_or(100);
        write!(f, "{named} of {} waits explained to a cause ({share} %)", self.chains)?;
        let mut shown = self.without_cause.iter().take(SHOWN);
        shown.try_for_each(|chain| write!(f, "\n  without a cause: {chain}"))
    }
}

/// An object of a kind that is explained.
fn id_of(object: &Value) -> Option<ObjectId> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let (group, _) = text("/apiVersion")?.split_once('/')?;
    let id = ObjectId::foreign(group, text("/kind")?, text("/metadata/name")?);
    KINDS
        .iter()
        .any(|known| known.group == id.group && known.kind == id.kind)
        .then_some(id)
}

/// The machine of a host that reports an error.
fn failed_machine(host: &Value) -> Option<ObjectId> {
    let text = |pointer: &str| {
        host.pointer(pointer)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    text("/status/errorMessage").filter(|_| text("/kind") == Some("BareMetalHost"))?;
    let consumer = text("/spec/consumerRef/name")?;
    (text("/spec/consumerRef/kind") == Some(Metal3Machine::KIND)).then(|| ObjectId::of::<Metal3Machine>(consumer))
}

/// Whether a machine has its deployed host already: an error of the host is then nothing that it waits for.
fn is_provisioned(machine: &ObjectId, objects: &[Value]) -> bool {
    let is_true = |object: &Value| object.pointer("/status/initialization/provisioned") == Some(&Value::Bool(true));
    let is_deleting = |object: &Value| object.pointer("/metadata/deletionTimestamp").is_some();
    let mut found = objects.iter().filter(|object| id_of(object).as_ref() == Some(machine));
    found.any(|object| is_true(object) && !is_deleting(object))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn host(status: Value) -> Value {
        json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": { "name": "h0" },
            "spec": { "online": true, "consumerRef": { "kind": "Metal3Machine", "name": "m0" } }, "status": status })
    }

    fn machine(reason: &str) -> Value {
        json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Machine",
            "metadata": { "name": "m0", "annotations": { "metal3.io/BareMetalHost": "lab/h0" } },
            "status": { "conditions": [{ "type": "AssociateMetal3MachineMetaData", "status": "False", "reason": reason,
                "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }] } })
    }

    /// How many chains there are, and how many of them name no cause.
    fn checked(objects: &[Value]) -> (usize, usize) {
        let mut explained = Explained::default();
        explained.check(objects);
        assert_eq!(explained.is_complete(), explained.without_cause.is_empty());
        (explained.chains, explained.without_cause.len())
    }

    #[test]
    fn chain_without_a_cause_is_counted() {
        let error = json!({ "operationalStatus": "error", "errorType": "provisioning error", "errorMessage": "no",
            "errorCount": 1, "poweredOn": false, "provisioning": { "state": "provisioning", "ID": "", "image": { "url": "" } } });
        assert_eq!(checked(&[host(error.clone()), machine("CreateError")]), (3, 0));
        let runs = json!({ "operationalStatus": "OK", "errorMessage": "", "errorCount": 0, "poweredOn": true,
            "provisioning": { "state": "provisioned", "ID": "", "image": { "url": "" } } });
        assert_eq!(checked(&[host(runs), machine("ReasonOfTomorrow")]), (1, 1));
        // The error of the host is not on the way.
        let mut other = [machine("CreateError"), host(error.clone())];
        other[0]["metadata"]["annotations"] = json!({});
        assert_eq!(checked(&other), (3, 1));
        // A running machine does not wait for its host.
        let mut running = [machine("Known"), host(error)];
        running[0]["status"]["conditions"][0]["status"] = json!("True");
        assert_eq!(checked(&running).1, 0);
        running[0]["status"]["initialization"] = json!({ "provisioned": true });
        assert_eq!(checked(&running), (1, 0));
    }

    #[test]
    fn share_and_the_chains_without_a_cause_are_shown() {
        let mut all = Explained::default();
        assert_eq!(all.to_string(), "0 of 0 waits explained to a cause (100 %)");
        let without_cause = vec!["Machine/m0: nothing".to_owned()];
        all.add(
            "01",
            &Explained {
                chains: 200,
                without_cause,
            },
        );
        let shown = "199 of 200 waits explained to a cause (99 %)\n  without a cause: 01: Machine/m0: nothing";
        assert_eq!(all.to_string(), shown);
    }
}
