//! The plan for one Metal3Data: wait, claim addresses, create Secrets, or release what it claimed.
//!
//! Absence in a cache proves nothing: before claims on pools are released, a live read confirms that the claim, or the
//! Metal3Data itself, does not exist.

mod addresses;
mod release;
mod render;
mod waiting;

use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::v1beta2::Metal3Data;
use metal3_api::kind::Kind as _;
use metal3_capi::{owner, pause};
use metal3_runtime::plan::Observed;
use metal3_runtime::work::Next;

use super::action::{Plan, only};
use super::facts::Facts;
use crate::data::reason;

pub use addresses::wanted;
pub use render::{is_complete, is_named, render};
#[cfg(test)]
pub(in crate::data) use waiting::Waiting;

/// The plan for a Metal3Data.
#[must_use]
pub fn plan(facts: &Facts<'_>) -> Plan {
    let Some(data) = facts.data else {
        return release::orphans(facts);
    };
    if pause::is_reconcile_skipped(&data.metadata) {
        return Plan::default();
    }
    if let Some(next) = cluster_wait(facts, data) {
        return only(&next);
    }
    if is_deleting(data) {
        release::plan(facts, data)
    } else {
        render::plan(facts, data)
    }
}

/// The result when the Cluster is paused or its state is unknown.
fn cluster_wait(facts: &Facts<'_>, data: &Metal3Data) -> Option<Next> {
    let key = facts.key.sibling(owner::cluster_of(&data.metadata)?);
    match &facts.cluster {
        Observed::Present(cluster) => pause::is_cluster_paused(Some(cluster)).then_some(Next::Done),
        // A deletion does not need the Cluster.
        Observed::Absent if is_deleting(data) => None,
        Observed::Absent => Some(Next::waiting(
            reason::CLUSTER_NOT_FOUND,
            format!("waiting for Cluster {key}"),
        )),
        Observed::Unknown(why) => Some(reason::unreadable(Cluster::KIND, &key, why)),
    }
}

fn is_deleting(data: &Metal3Data) -> bool {
    data.metadata.deletion_timestamp.is_some()
}
