//! The kinds that the API server must serve. The program that counts requests includes this file, so it has no imports
//! from this crate.

use metal3_api::crd::Definition;

/// The kinds of this project, of hosts and addresses, and those of Cluster API that are read.
pub(crate) fn kinds() -> Vec<Definition> {
    let mut kinds = metal3_api::infrastructure::definitions();
    kinds.extend(metal3_api::metal3::definitions());
    kinds.extend(metal3_api::ipam::definitions());
    kinds.extend(metal3_sim_cluster::cluster_api());
    kinds
}
