//! Reads the state of all nodes with one listing per interval for all waiters, so that many nodes cause little load.

use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::ironic::Ironic;

const PATH: &str =
    "/v1/nodes?fields=uuid,provision_state,target_provision_state,power_state,last_error,maintenance&limit=1000";
/// The interval between listings, and its extension per node.
const INTERVAL: Duration = Duration::from_millis(200);
const PER_NODE: Duration = Duration::from_millis(5);

pub(crate) struct NodePoller<'a> {
    ironic: &'a Ironic,
    interval: Duration,
    last: Mutex<Option<Listing>>,
}

struct Listing {
    started: Instant,
    nodes: Vec<Value>,
}

impl<'a> NodePoller<'a> {
    pub(crate) fn new(ironic: &'a Ironic, nodes: u16) -> Self {
        Self {
            ironic,
            interval: INTERVAL.saturating_add(PER_NODE.saturating_mul(u32::from(nodes))),
            last: Mutex::new(None),
        }
    }

    /// A node from a listing that started after this time, and the start of that listing. The first waiter sends the
    /// request.
    pub(crate) async fn after(&self, since: Instant, uuid: &str) -> anyhow::Result<(Value, Instant)> {
        let mut last = self.last.lock().await;
        let listing = match last.take().filter(|listing| listing.started > since) {
            Some(listing) => listing,
            None => self.list(since).await?,
        };
        let listing = last.insert(listing);
        let node = listing
            .nodes
            .iter()
            .find(|node| node.get("uuid").and_then(Value::as_str) == Some(uuid));
        Ok((
            node.with_context(|| format!("node {uuid} does not exist"))?.clone(),
            listing.started,
        ))
    }

    async fn list(&self, since: Instant) -> anyhow::Result<Listing> {
        sleep_until(since.checked_add(self.interval).unwrap_or(since)).await;
        let started = Instant::now();
        let mut listed = self.ironic.get(PATH).await?;
        let nodes = listed.get_mut("nodes").map(Value::take);
        let nodes = nodes.and_then(|nodes| nodes.as_array().cloned());
        Ok(Listing {
            started,
            nodes: nodes.context("Ironic lists no nodes")?,
        })
    }
}
