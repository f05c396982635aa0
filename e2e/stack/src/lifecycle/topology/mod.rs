//! A Cluster of the release's ClusterClass, driven by the topology controller of Cluster API: three zones, another class, changed
//! variables, upgrades, an address of a pool, workers from zero, and a group of workers that boot with Ignition.

mod changes;
mod class;
mod end;
mod endpoint;
mod flavours;
mod from_zero;
mod ignition;
mod rebase;
mod upgrades;
mod zones;

pub(super) use changes::{changed, dry_run};
pub(super) use end::deleted;
pub(super) use endpoint::assigned;
pub(super) use flavours::admitted;
pub(super) use from_zero::grown;
pub(super) use ignition::written;
pub(super) use rebase::rebased;
pub(super) use upgrades::{chained, upgraded};
pub(super) use zones::{lost, spread};
