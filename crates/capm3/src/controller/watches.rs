//! The watches that fill the hubs.

use std::sync::Arc;

use metal3_domain::clock::Clock;
use metal3_runtime::watch::{Fleet, Scope};
use tokio_util::sync::CancellationToken;

use super::hubs::Hubs;
use crate::needs::Machines;

/// The watches of all kinds that clusters and machines are decided on: to be run beside the controllers, until `stop`.
#[must_use]
pub fn watches(
    hubs: &Hubs,
    client: &kube::Client,
    scope: &Scope,
    clock: &Arc<dyn Clock>,
    stop: &CancellationToken,
) -> Fleet<Machines> {
    Fleet::new(client.clone(), scope.clone(), Arc::clone(clock), stop.clone())
        .whole(&hubs.clusters)
        .whole(&hubs.machines)
        .whole(&hubs.metal3_clusters)
        .whole(&hubs.metal3_machines)
        .whole(&hubs.claims)
        .whole(&hubs.data)
        .whole(&hubs.hosts)
}
