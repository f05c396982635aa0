//! Listings, and the change feed.

use std::collections::BTreeSet;

use anyhow::{bail, ensure};
use metal3_domain::ids::NodeUuid;
use metal3_ironic::calls::node::Order;
use metal3_ironic::calls::patch::Patch;
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::calls::{self, NodeRef};
use metal3_ironic::feed::{ChangeTracker, Feed, FeedEvent, Step};
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState;
use tokio::sync::mpsc;

use super::life::deploy;
use crate::lab::Lab;

async fn listed(lab: &Lab, order: Order) -> anyhow::Result<BTreeSet<NodeUuid>> {
    let (mut seen, mut behind) = (BTreeSet::new(), None);
    loop {
        let page = lab.send(&calls::node::list::<Node>(order, 1, behind.as_ref())).await?;
        ensure!(page.unreadable.is_empty(), "{:?}", page.unreadable);
        seen.extend(page.items.into_iter().map(|node| node.uuid));
        match page.next {
            Some(next) => behind = Some(next),
            None => return Ok(seen),
        }
    }
}

pub(crate) async fn pages_by_update_time_omit_nodes_that_never_changed_and_pages_by_creation_do_not(
    lab: &Lab,
) -> anyhow::Result<()> {
    let mut all = Vec::new();
    for _ in 0..4 {
        all.push(lab.node().await?);
    }
    let (changed, untouched) = all.split_at(2);
    for uuid in changed {
        let patch = Patch::new().set(&["extra", "k"], 1);
        lab.client.send(&calls::node::patch(&uuid.into(), patch)?).await?;
    }
    let by_time = listed(lab, Order::NewestChange).await?;
    let by_creation = listed(lab, Order::Created).await?;
    ensure!(
        changed.iter().all(|uuid| by_time.contains(uuid)),
        "a changed node is missing"
    );
    ensure!(!untouched.iter().all(|uuid| by_time.contains(uuid)), "none vanished");
    ensure!(
        all.iter().all(|uuid| by_creation.contains(uuid)),
        "missing in order of creation"
    );
    for uuid in &all {
        lab.remove(uuid).await?;
    }
    Ok(())
}

/// So a listing by fields cannot set the feed's watermark.
pub(crate) async fn the_update_time_cannot_be_selected_by_fields(lab: &Lab) -> anyhow::Result<()> {
    // Ironic validates the fields only when it shows a node.
    let uuid = lab.node().await?;
    for (field, status) in [("updated_at", 400), ("created_at", 400), ("provision_updated_at", 200)] {
        let answer = lab
            .raw("GET", &format!("/v1/nodes?limit=1&fields={field}"), "1.94", None)
            .await?;
        ensure!(answer.status == status, "{field}: {} {}", answer.status, answer.body);
    }
    lab.remove(&uuid).await
}

pub(crate) async fn a_full_page_has_a_next_link(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    let count = u16::try_from(listed(lab, Order::Created).await?.len())?;
    for (limit, more) in [(count, true), (count.saturating_add(1), false)] {
        let page = lab
            .send(&calls::node::list::<Node>(Order::Created, limit, None))
            .await?;
        ensure!(page.next.is_some() == more, "limit {limit} of {count}: {:?}", page.next);
    }
    lab.remove(&uuid).await
}

pub(crate) async fn the_feed_follows_a_node_to_active_without_reading_it(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    let feed = Feed::new(lab.client.clone(), lab.clock.clone());
    feed.manage(uuid.clone());
    let (sender, mut wakes) = mpsc::channel(64);
    let follow = async {
        for (transition, state) in [
            (Transition::Manage, ProvisionState::Manageable),
            (Transition::Provide, ProvisionState::Available),
            (deploy(), ProvisionState::Active),
            (Transition::Delete, ProvisionState::Available),
        ] {
            lab.ask(&uuid, transition).await?;
            feed.poll_soon();
            wait_for(&feed, &mut wakes, &uuid, &state).await?;
        }
        drop(wakes);
        anyhow::Ok(())
    };
    let ((), followed) = tokio::join!(feed.run(sender), follow);
    followed?;
    lab.remove(&uuid).await
}

async fn wait_for(
    feed: &Feed,
    wakes: &mut mpsc::Receiver<FeedEvent>,
    uuid: &NodeUuid,
    state: &ProvisionState,
) -> anyhow::Result<()> {
    // More events than a transition sends, one a second.
    for _ in 0..60 {
        let Some(wake) = wakes.recv().await else {
            bail!("the feed ended")
        };
        let there = |node: &Node| node.provision_state == *state && node.reservation.is_none();
        if wake == FeedEvent::Changed(uuid.clone()) && feed.node(uuid).is_some_and(|node| there(&node)) {
            return Ok(());
        }
    }
    bail!("{state} was not seen")
}

/// Sends the requests of the tracker until it is idle.
pub(super) async fn round(
    lab: &Lab,
    tracker: &mut ChangeTracker,
    at: metal3_domain::clock::Monotonic,
) -> anyhow::Result<Vec<FeedEvent>> {
    let mut woken = Vec::new();
    while let Step::Fetch(ask) = tracker.next(at) {
        let answered = lab.client.send(&ask.call()).await?;
        woken.extend(tracker.answered(at, answered.value, answered.server_time));
    }
    Ok(woken)
}

pub(crate) async fn an_idle_round_is_one_request(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    lab.go(&uuid, Transition::Manage, &ProvisionState::Manageable).await?;
    let mut tracker = ChangeTracker::new();
    let start = lab.clock.monotonic();
    round(lab, &mut tracker, start).await?;
    let before = lab.client.requests_sent();
    let woken = round(lab, &mut tracker, start.after(std::time::Duration::from_secs(10))).await?;
    let sent = lab.client.requests_sent().saturating_sub(before);
    ensure!(sent == 1 && woken.is_empty(), "{sent} requests, {woken:?}");
    lab.remove(&uuid).await
}

pub(crate) async fn a_full_listing_reports_a_deleted_node(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    let mut tracker = ChangeTracker::new();
    let start = lab.clock.monotonic();
    let woken = round(lab, &mut tracker, start).await?;
    ensure!(
        woken.contains(&FeedEvent::Changed(uuid.clone())),
        "the new node was not reported"
    );
    lab.remove(&uuid).await?;
    let later = start.after(std::time::Duration::from_secs(600));
    let woken = round(lab, &mut tracker, later).await?;
    ensure!(woken.contains(&FeedEvent::Deleted(uuid)), "{woken:?}");
    Ok(())
}

pub(crate) async fn a_rejected_change_sets_the_update_time_and_a_read_does_not(lab: &Lab) -> anyhow::Result<()> {
    let uuid = lab.node().await?;
    let node = NodeRef::from(&uuid);
    lab.go(&uuid, Transition::Manage, &ProvisionState::Manageable).await?;
    lab.go(&uuid, Transition::Adopt, &ProvisionState::Active).await?;
    let before = lab.read(&uuid).await?.updated_at;
    lab.client.send(&calls::node::validate(&node)).await?;
    lab.client.send(&calls::node::history(&node)).await?;
    lab.client.send(&calls::hardware::bios(&node)).await?;
    lab.client.send(&calls::state::get(&node)).await?;
    ensure!(lab.read(&uuid).await?.updated_at == before, "a read moved it");
    let delete = calls::node::delete(&node);
    lab.refused(&delete, "wrong_state").await?;
    ensure!(lab.read(&uuid).await?.updated_at > before, "it did not move");
    lab.remove(&uuid).await
}
