//! Hosts that are brought along, as recorded: a cluster that is ready as soon as somebody owns it, machines that take one
//! of the hosts there are, and agents on those hosts. The provider speaks the older contract, and no newer one.
//!
//! Users make the hosts' objects. A machine labels one of them and says where its bootstrap data are; the agent there runs
//! them ([`agent`]); once its Node is there the machine gives that an ID and is ready. A machine that goes marks its host
//! and does not wait: the agent clears it, and a host without an agent is never free again.
//!
//! What is not here: installers, registration, and the growing pauses between looks for a host.

pub mod agent;
mod cluster;
mod machine;

use metal3_api::cluster::names::{CLUSTER_NAME_LABEL, PAUSED_ANNOTATION};
use serde_json::{Map, Value, json};

use crate::view::{Object, World};
use crate::write::Write;

/// Label of a host: the machine that has it.
const TAKEN_BY: &str = "byoh.infrastructure.cluster.x-k8s.io/byomachine-name";
/// Annotation of a host whose machine goes.
const LEAVES: &str = "byoh.infrastructure.cluster.x-k8s.io/unregistering";
/// What else a machine tells its host.
const ENDPOINT: &str = "byoh.infrastructure.cluster.x-k8s.io/endpointip";
const VERSION: &str = "byoh.infrastructure.cluster.x-k8s.io/k8sversion";
const REGISTRY: &str = "byoh.infrastructure.cluster.x-k8s.io/bundle-registry";

/// Every write of the provider that is due.
pub(crate) fn writes(world: &World) -> Vec<Write> {
    let mut due = cluster::writes(world);
    due.extend(machine::writes(world));
    due
}

/// What the agent on a host has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errand<'a> {
    /// Nothing.
    Nothing,
    /// Run the bootstrap data in this Secret, unless it does.
    Run(&'a str),
    /// Clear the host: its machine goes.
    Leave,
}

/// What the agent on this host has to do.
#[must_use]
pub fn errand(host: &Object) -> Errand<'_> {
    let secret = host.text("/spec/bootstrapSecret/name");
    if host.annotation(LEAVES).is_some() {
        Errand::Leave
    } else if secret.is_empty() || host.annotation(PAUSED_ANNOTATION).is_some() {
        Errand::Nothing
    } else {
        Errand::Run(secret)
    }
}

/// What the agent's template engine knows of the host with this name.
#[must_use]
pub fn known_of(host: &str) -> Map<String, Value> {
    [("local-hostname", host), ("DefaultNetworkInterfaceName", "eth0")]
        .map(|(key, value)| (key.to_owned(), value.into()))
        .into_iter()
        .collect()
}

/// The merge patches that make a host as it was before it had a machine: of its status, and of the rest.
#[must_use]
pub fn cleared() -> [Value; 2] {
    let rest = json!({
        "metadata": {
            "labels": { TAKEN_BY: null, CLUSTER_NAME_LABEL: null },
            "annotations": { ENDPOINT: null, VERSION: null, REGISTRY: null, LEAVES: null, PAUSED_ANNOTATION: null },
        },
        "spec": { "bootstrapSecret": null },
    });
    [json!({ "status": { "machineRef": null } }), rest]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_runs_what_it_is_told_rests_while_paused_and_leaves_whatever_else_it_is_told() {
        let told = json!({ "secret": { "name": "s" } });
        let host = |annotations: Value| {
            Object(json!({ "metadata": { "annotations": annotations }, "spec": { "bootstrapSecret": told["secret"] } }))
        };
        assert_eq!(errand(&Object::default()), Errand::Nothing);
        assert_eq!(errand(&host(json!({}))), Errand::Run("s"));
        assert_eq!(errand(&host(json!({ PAUSED_ANNOTATION: "" }))), Errand::Nothing);
        assert_eq!(
            errand(&host(json!({ PAUSED_ANNOTATION: "", LEAVES: "" }))),
            Errand::Leave
        );
    }
}
