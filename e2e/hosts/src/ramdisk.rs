//! Where there is no machine, what its ramdisk would have posted; and a look at all nodes now and then.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::ensure;
use metal3_ironic::model::state::ProvisionState;
use metal3_ironic_life::inspection_data;
use metal3_sim_bmc::identity::Number;
use reqwest::Method;
use serde_json::Value;
use tokio::time::sleep;

use crate::level::HOST;
use crate::world::{NAMESPACE, World};

/// Between two looks, for each host: a list costs Ironic about as much.
const GLANCE: Duration = Duration::from_millis(4);
/// The least of that.
const LEAST: Duration = Duration::from_millis(250);

/// So many posts are refused at most: a database that is locked for too long does that, as data that is wrong.
const MOST: usize = 100;

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The most nodes that were at work at once.
    pub(crate) busiest: usize,
    pub(crate) looks: usize,
}

/// Looks until it is dropped, and posts for every node that waits for a ramdisk which nobody plays.
pub(crate) async fn watch(world: &World, seen: &mut Seen) -> anyhow::Result<()> {
    let mut posted: BTreeSet<String> = BTreeSet::new();
    let mut refused = 0_usize;
    loop {
        let listed = world.ironic.get("/v1/nodes?fields=uuid,name,provision_state").await?;
        let nodes = listed
            .get("nodes")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let field = |node: &Value, name: &str| node.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let state = |node: &Value| ProvisionState::from(field(node, "provision_state"));
        let busy = nodes.iter().filter(|node| state(node).is_busy()).count();
        seen.busiest = seen.busiest.max(busy);
        seen.looks = seen.looks.saturating_add(1);
        let waits = |node: &&Value| state(node) == ProvisionState::InspectWait;
        // Whoever waits again has failed meanwhile: a database that is locked for too long does that.
        let waiting: BTreeSet<String> = nodes.iter().filter(waits).map(|node| field(node, "uuid")).collect();
        posted.retain(|uuid| waiting.contains(uuid));
        for node in nodes.iter().filter(waits).filter(|_| world.lab.is_none()) {
            let name = field(node, "name");
            let number = name
                .strip_prefix(&format!("{NAMESPACE}~{HOST}"))
                .and_then(|number| number.parse().ok());
            let Some(number) = number.map(Number) else { continue };
            // While it waits still, a second time would be refused.
            if posted.insert(field(node, "uuid")) {
                let data = inspection_data(&world.profile, number);
                let path = "/v1/continue_inspection";
                if let Err(error) = world.ironic.call(Method::POST, path, Some(&data)).await {
                    // Whether it was taken shows in whether the node still waits.
                    posted.remove(&field(node, "uuid"));
                    refused = refused.saturating_add(1);
                    ensure!(refused < MOST, "{refused} posts were refused, the last: {error:#}");
                }
            }
        }
        sleep(GLANCE.saturating_mul(world.hosts.into()).max(LEAST)).await;
    }
}
