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

use crate::view::World;
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
