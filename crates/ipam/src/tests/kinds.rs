//! The kinds that the controller requires. The example that counts requests includes this file too, so it uses nothing
//! of this crate.

use metal3_api::crd::Definition;

/// The kinds of this group, and those of Cluster API.
pub(crate) fn kinds() -> Vec<Definition> {
    let mut kinds = metal3_api::ipam::definitions();
    kinds.extend(metal3_sim_cluster::cluster_api());
    kinds
}
