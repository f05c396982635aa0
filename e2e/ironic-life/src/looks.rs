//! Looks at nodes: one listing serves everybody who waits, so that with many nodes looking is not the load.

use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::ironic::Ironic;

const PATH: &str =
    "/v1/nodes?fields=uuid,provision_state,target_provision_state,power_state,last_error,maintenance&limit=1000";
/// Between two looks, and how much longer that is for each node.
const PAUSE: Duration = Duration::from_millis(200);
const EACH: Duration = Duration::from_millis(5);

pub(crate) struct Looks<'a> {
    ironic: &'a Ironic,
    pause: Duration,
    last: Mutex<Option<Look>>,
}

struct Look {
    begun: Instant,
    nodes: Vec<Value>,
}

impl<'a> Looks<'a> {
    pub(crate) fn new(ironic: &'a Ironic, nodes: u16) -> Self {
        Self {
            ironic,
            pause: PAUSE.saturating_add(EACH.saturating_mul(u32::from(nodes))),
            last: Mutex::new(None),
        }
    }

    /// A node, as it was seen by a look that began after this time; and when that was. Whoever comes first looks for all.
    pub(crate) async fn after(&self, since: Instant, uuid: &str) -> anyhow::Result<(Value, Instant)> {
        let mut last = self.last.lock().await;
        let look = match last.take().filter(|look| look.begun > since) {
            Some(look) => look,
            None => self.look(since).await?,
        };
        let look = last.insert(look);
        let node = look
            .nodes
            .iter()
            .find(|node| node.get("uuid").and_then(Value::as_str) == Some(uuid));
        Ok((
            node.with_context(|| format!("node {uuid} is gone"))?.clone(),
            look.begun,
        ))
    }

    async fn look(&self, since: Instant) -> anyhow::Result<Look> {
        sleep_until(since.checked_add(self.pause).unwrap_or(since)).await;
        let begun = Instant::now();
        let mut listed = self.ironic.get(PATH).await?;
        let nodes = listed.get_mut("nodes").map(Value::take);
        let nodes = nodes.and_then(|nodes| nodes.as_array().cloned());
        Ok(Look {
            begun,
            nodes: nodes.context("Ironic lists no nodes")?,
        })
    }
}
