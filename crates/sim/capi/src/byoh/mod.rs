//! Bring-your-own hosts, as recorded: a cluster that is ready as soon as it has an owner, machines that claim one of
//! the hosts, and agents on those hosts. The provider implements the v1beta1 contract only.
//!
//! Users create the host objects. A machine labels a host and sets its bootstrap Secret; the agent there runs it
//! ([`agent`]); once its Node exists the machine sets the provider ID and is ready. A deleted machine marks its host
//! and does not wait: the agent resets the host, and a host without an agent never becomes free.
//!
//! Not simulated: installers, registration, and the growing pauses between searches for a host.

pub mod agent;
pub(crate) mod cluster;
pub(crate) mod machine;

use metal3_api::cluster::names::{CLUSTER_NAME_LABEL, PAUSED_ANNOTATION};
use serde_json::{Map, Value, json};

use crate::view::Object;

/// Label of a host: the machine that claims it.
const MACHINE_LABEL: &str = "byoh.infrastructure.cluster.x-k8s.io/byomachine-name";
/// Annotation of a host whose machine is being deleted.
const CLEANUP_ANNOTATION: &str = "byoh.infrastructure.cluster.x-k8s.io/unregistering";
/// Further annotations that a machine sets on its host.
const ENDPOINT: &str = "byoh.infrastructure.cluster.x-k8s.io/endpointip";
const VERSION: &str = "byoh.infrastructure.cluster.x-k8s.io/k8sversion";
const REGISTRY: &str = "byoh.infrastructure.cluster.x-k8s.io/bundle-registry";

/// A task for the agent on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentTask<'a> {
    /// No task.
    Idle,
    /// Run the bootstrap data in this Secret, unless it runs already.
    Run(&'a str),
    /// Reset the host: its machine is being deleted.
    CleanUp,
}

/// The task for the agent on this host.
#[must_use]
pub fn agent_task(host: &Object) -> AgentTask<'_> {
    let secret = host.text("/spec/bootstrapSecret/name");
    if host.annotation(CLEANUP_ANNOTATION).is_some() {
        AgentTask::CleanUp
    } else if secret.is_empty() || host.annotation(PAUSED_ANNOTATION).is_some() {
        AgentTask::Idle
    } else {
        AgentTask::Run(secret)
    }
}

/// Template variables of the agent on the host with this name.
#[must_use]
pub fn template_variables(host: &str) -> Map<String, Value> {
    [("local-hostname", host), ("DefaultNetworkInterfaceName", "eth0")]
        .map(|(key, value)| (key.to_owned(), value.into()))
        .into_iter()
        .collect()
}

/// Merge patches that reset a host: of its status, and of the rest.
#[must_use]
pub fn reset_patches() -> [Value; 2] {
    let rest = json!({
        "metadata": {
            "labels": { MACHINE_LABEL: null, CLUSTER_NAME_LABEL: null },
            "annotations": { ENDPOINT: null, VERSION: null, REGISTRY: null, CLEANUP_ANNOTATION: null, PAUSED_ANNOTATION: null },
        },
        "spec": { "bootstrapSecret": null },
    });
    [json!({ "status": { "machineRef": null } }), rest]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_runs_its_secret_idles_while_paused_and_always_cleans_up() {
        let host = |annotations: Value| {
            Object(
                json!({ "metadata": { "annotations": annotations }, "spec": { "bootstrapSecret": { "name": "s" } } }),
            )
        };
        assert_eq!(agent_task(&Object::default()), AgentTask::Idle);
        assert_eq!(agent_task(&host(json!({}))), AgentTask::Run("s"));
        assert_eq!(agent_task(&host(json!({ PAUSED_ANNOTATION: "" }))), AgentTask::Idle);
        assert_eq!(
            agent_task(&host(json!({ PAUSED_ANNOTATION: "", CLEANUP_ANNOTATION: "" }))),
            AgentTask::CleanUp
        );
    }
}
