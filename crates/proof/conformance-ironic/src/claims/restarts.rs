//! Restarts of Ironic, with and without its database.

use anyhow::ensure;
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::feed::{ChangeTracker, FeedEvent};
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::{PowerState, ProvisionState as S};
use metal3_sim_bmc::fault::Fault;
use serde_json::Map;

use super::feed::round;
use super::life::deploy;
use super::machines::{set, uncleaned};
use super::record::is_in_history;
use crate::lab::Lab;

/// Long enough to observe the work in progress.
const SLOW: Fault = Fault::SlowBmc(4);
/// More than the interval of full listings.
const LATER: std::time::Duration = std::time::Duration::from_secs(600);

pub(crate) async fn a_restart_fails_work_in_progress_except_work_that_waits_for_a_ramdisk(
    lab: &Lab,
) -> anyhow::Result<()> {
    let (waiting, working) = (lab.machine()?, lab.machine()?);
    let waits = waiting.node(uncleaned()).await?;
    waiting.set_faults(&[Fault::NoBoot]).await?;
    waiting.go(&waits, Transition::Inspect, &S::InspectWait).await?;
    let works = working.node(uncleaned()).await?;
    working.go(&works, Transition::Provide, &S::Available).await?;
    set(lab, &works, "instance_info", lab.image()?).await?;
    working.set_faults(&[SLOW]).await?;
    lab.ask(&works, deploy()).await?;
    let deploys = |node: &Node| node.provision_state == S::Deploying;
    working.until(&works, "at work", deploys).await?;
    lab.restart().await?;
    working.set_faults(&[]).await?;
    let failed = |node: &Node| node.provision_state == S::DeployFailed && node.reservation.is_none();
    working.until(&works, "failed", failed).await?;
    is_in_history(lab, &works, "can't be resumed by conductor").await?;
    let kept = lab.read(&waits).await?;
    ensure!(kept.provision_state == S::InspectWait, "it is {}", kept.provision_state);
    lab.remove(&works).await?;
    lab.remove(&waits).await
}

pub(crate) async fn a_lost_database_is_reported_as_deleted_nodes(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    let mut tracker = ChangeTracker::new();
    let start = lab.clock.monotonic();
    let woken = round(lab, &mut tracker, start).await?;
    let reported = FeedEvent::Changed(uuid.clone());
    ensure!(woken.contains(&reported), "the new node was not reported: {woken:?}");
    lab.lose_database().await?;
    let woken = round(lab, &mut tracker, start.after(LATER)).await?;
    ensure!(woken.contains(&FeedEvent::Deleted(uuid)), "{woken:?}");
    Ok(())
}

pub(crate) async fn a_machine_keeps_power_and_disk_when_the_database_is_lost(lab: &Lab) -> anyhow::Result<()> {
    let machine = lab.machine()?;
    let uuid = machine.node(uncleaned()).await?;
    machine.go(&uuid, Transition::Provide, &S::Available).await?;
    set(lab, &uuid, "instance_info", lab.image()?).await?;
    machine.go(&uuid, deploy(), &S::Active).await?;
    let before = machine.read_state().await?;
    ensure!(before.is_on && before.is_written, "{before:?}");
    lab.lose_database().await?;
    let after = machine.read_state().await?;
    ensure!(after == before, "{after:?}");
    // The next node finds this state.
    let again = machine.node(Map::new()).await?;
    let on = |node: &Node| node.power_state == Some(PowerState::On);
    machine.until(&again, "known to be on", on).await?;
    lab.remove(&again).await
}
