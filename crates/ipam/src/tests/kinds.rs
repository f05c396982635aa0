//! The kinds that an API server must know before the controller can run. The program that counts requests uses this
//! file too, so it knows nothing of this crate.

use metal3_api::crd::Definition;

/// Ours, and those of Cluster API that we read.
pub(crate) fn kinds() -> Vec<Definition> {
    let mut kinds = metal3_api::ipam::definitions();
    kinds.extend(metal3_sim_cluster::cluster_api());
    kinds
}
