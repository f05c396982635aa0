//! The watches that fill the hubs.

use std::sync::Arc;

use metal3_domain::clock::Clock;
use metal3_runtime::watch::{Fleet, Scope};
use tokio_util::sync::CancellationToken;

use super::hubs::Hubs;
use crate::needs::Ipam;

/// The watches of all kinds that IP address management reads: to be run beside the controller, until `stop`.
#[must_use]
pub fn watches(
    hubs: &Hubs,
    client: &kube::Client,
    scope: &Scope,
    clock: &Arc<dyn Clock>,
    stop: &CancellationToken,
) -> Fleet<Ipam> {
    Fleet::new(client.clone(), scope.clone(), Arc::clone(clock), stop.clone())
        .whole(&hubs.pools)
        .whole(&hubs.claims)
        .whole(&hubs.addresses)
        .whole(&hubs.cluster_claims)
        .whole(&hubs.cluster_addresses)
        .whole(&hubs.clusters)
}
