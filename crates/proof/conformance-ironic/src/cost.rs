//! Measures the change feed on a real Ironic and prints the times. It asserts nothing.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use metal3_domain::ids::NodeUuid;
use metal3_ironic::calls;
use metal3_ironic::calls::node::Order;
use metal3_ironic::calls::patch::Patch;
use metal3_ironic::calls::state::Power;
use metal3_ironic::feed::{ChangeTracker, Step};
use metal3_ironic::model::node::Node;

use crate::lab::Lab;

const TIMES: usize = 20;
/// The number of busy nodes, if there are so many.
const BUSY: usize = 100;
/// Longer than the idle interval and the clock tolerance of the feed.
const IDLE_AFTER: Duration = Duration::from_secs(16);
/// More than the period of full listings.
const FULL_AFTER: Duration = Duration::from_secs(600);

/// Requests of each listing.
const LISTED: usize = 5;
/// The microversion of the listings.
const MICROVERSION: &str = "1.94";
/// Listings with all fields, and with the fields that the host controller reads; `updated_at` cannot be selected.
const LISTINGS: [(&str, &str); 4] = [
    (
        "the newest 20, all fields",
        "detail=true&limit=20&sort_key=updated_at&sort_dir=desc",
    ),
    (
        "the newest 20, by fields=",
        "fields=uuid,name,provision_state,power_state,last_error,reservation,maintenance,fault&limit=20&sort_key=updated_at&sort_dir=desc",
    ),
    ("a page of 1000, all fields", "detail=true&limit=1000"),
    (
        "a page of 1000, by fields=",
        "fields=uuid,name,provision_state,power_state,last_error,reservation,maintenance,fault&limit=1000",
    ),
];

/// Copies nodes in an SQLite database.
const MULTIPLY: &str = include_str!("../../../../e2e/ironic/multiply_nodes.py");

/// Prints the cost of the feed with this number of nodes, a hundred of them busy. The nodes are copied in this database, or
/// created when there is none.
///
/// # Errors
/// When Ironic does not respond, or nodes cannot be copied.
pub async fn measure(lab: &Lab, nodes: u32, database: Option<&Path>) -> anyhow::Result<()> {
    let uuids = prepare(lab, nodes, database).await?;
    let busy = uuids.len().min(BUSY);
    for uuid in uuids.iter().take(busy) {
        let patch = Patch::new().set(&["extra", "busy"], true);
        lab.client.send(&calls::node::patch(&uuid.into(), patch)?).await?;
    }
    println!("{busy} of them changed");
    for limit in [20, 200] {
        let mut times = Vec::new();
        for _ in 0..TIMES {
            let begun = lab.clock.monotonic();
            lab.client
                .send(&calls::node::list::<Node>(Order::NewestChange, limit, None))
                .await?;
            times.push(lab.clock.monotonic().since(begun));
        }
        println!("newest {limit}: p50 {:?}", median(times)?);
    }
    for (what, query) in LISTINGS {
        let (mut times, mut bytes) = (Vec::new(), 0);
        for _ in 0..LISTED {
            let begun = lab.clock.monotonic();
            let answer = lab
                .raw("GET", &format!("/v1/nodes?{query}"), MICROVERSION, None)
                .await?;
            times.push(lab.clock.monotonic().since(begun));
            ensure!(answer.status == 200, "{query}: {}", answer.body);
            bytes = answer.body.to_string().len();
        }
        println!("{what}: p50 {:?}, {} kB", median(times)?, bytes.div_ceil(1024));
    }
    let mut tracker = ChangeTracker::new();
    println!("startup: {}", run_round(lab, &mut tracker, Duration::ZERO).await?);
    tokio::time::sleep(IDLE_AFTER).await;
    println!(
        "the second round: {}",
        run_round(lab, &mut tracker, Duration::ZERO).await?
    );
    tokio::time::sleep(IDLE_AFTER).await;
    println!("an idle round: {}", run_round(lab, &mut tracker, Duration::ZERO).await?);
    for uuid in uuids.iter().take(busy) {
        lab.client
            .send(&calls::state::set_power(&uuid.into(), Power::On))
            .await?;
    }
    // The tracker waits at most one idle interval.
    let at_work = run_round(lab, &mut tracker, Duration::from_secs(10)).await?;
    println!("a round with {busy} busy nodes: {at_work}");
    println!(
        "a round with a full listing: {}",
        run_round(lab, &mut tracker, FULL_AFTER).await?
    );
    Ok(())
}

/// Creates or copies the missing nodes.
async fn prepare(lab: &Lab, nodes: u32, database: Option<&Path>) -> anyhow::Result<Vec<NodeUuid>> {
    let mut uuids = listed(lab).await?;
    if let Some(database) = database {
        lab.node().await?;
        let python = lab
            .python()
            .context("the endpoint file has no path of Ironic's Python")?;
        let copied = tokio::process::Command::new(python)
            .args(["-c", MULTIPLY])
            .arg(database)
            .arg(nodes.to_string())
            .status()
            .await?;
        ensure!(copied.success(), "cannot copy nodes in {}", database.display());
        uuids = listed(lab).await?;
    }
    let begun = lab.clock.monotonic();
    let missing = usize::try_from(nodes)?.saturating_sub(uuids.len());
    for _ in 0..missing {
        uuids.push(lab.node().await?);
    }
    println!(
        "{} nodes, {missing} of them created in {:?}",
        uuids.len(),
        lab.clock.monotonic().since(begun)
    );
    Ok(uuids)
}

async fn listed(lab: &Lab) -> anyhow::Result<Vec<NodeUuid>> {
    let (mut uuids, mut behind) = (Vec::new(), None);
    loop {
        let page = calls::node::list::<Node>(Order::Created, 1_000, behind.as_ref());
        let page = lab.client.send(&page).await?.value;
        uuids.extend(page.items.into_iter().map(|node| node.uuid));
        behind = page.next;
        if behind.is_none() {
            return Ok(uuids);
        }
    }
}

async fn run_round(lab: &Lab, tracker: &mut ChangeTracker, ahead: Duration) -> anyhow::Result<String> {
    let (begun, before) = (lab.clock.monotonic(), lab.client.requests_sent());
    let at = begun.after(ahead);
    let mut woken = 0_usize;
    while let Step::Fetch(ask) = tracker.next(at) {
        let answered = lab.client.send(&ask.call()).await?;
        woken = woken.saturating_add(tracker.answered(at, answered.value, answered.server_time).len());
    }
    let sent = lab.client.requests_sent().saturating_sub(before);
    Ok(format!(
        "{sent} requests, {:?}, {woken} woken",
        lab.clock.monotonic().since(begun)
    ))
}

fn median(mut times: Vec<Duration>) -> anyhow::Result<Duration> {
    times.sort();
    times.get(times.len() / 2).copied().context("nothing was measured")
}
