//! Posts the inspection data for nodes without a machine, and samples the state of all nodes.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::ensure;
use metal3_ironic::model::state::ProvisionState;
use metal3_ironic_life::inspection_data;
use metal3_sim_bmc::identity::Number;
use reqwest::Method;
use serde_json::Value;
use tokio::time::sleep;

use crate::env::{NAMESPACE, TestEnv};
use crate::level::HOST;

/// The interval of listings per host: about the time a listing takes in Ironic.
const PER_HOST: Duration = Duration::from_millis(4);
/// The minimum interval.
const MIN_INTERVAL: Duration = Duration::from_millis(250);

/// The maximum of rejected posts. Ironic rejects a post when its database is locked for too long, and invalid data.
const MAX_REJECTED: usize = 100;

/// Statistics of the listings.
#[derive(Debug, Default)]
pub(crate) struct NodeStats {
    /// The maximum number of busy nodes.
    pub(crate) busiest: usize,
    pub(crate) listings: usize,
}

/// Lists nodes until it is dropped, and posts data for each node in `inspect wait` that has no machine.
pub(crate) async fn serve(env: &TestEnv, stats: &mut NodeStats) -> anyhow::Result<()> {
    let mut posted: BTreeSet<String> = BTreeSet::new();
    let mut rejected = 0_usize;
    loop {
        let listed = env
            .session
            .ironic
            .get("/v1/nodes?fields=uuid,name,provision_state")
            .await?;
        let nodes = listed
            .get("nodes")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let field = |node: &Value, name: &str| node.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let state = |node: &Value| ProvisionState::from(field(node, "provision_state"));
        let busy = nodes.iter().filter(|node| state(node).is_busy()).count();
        stats.busiest = stats.busiest.max(busy);
        stats.listings = stats.listings.saturating_add(1);
        let waits = |node: &&Value| state(node) == ProvisionState::InspectWait;
        // A node that waits again has failed in between, e.g. because the database was locked for too long.
        let waiting: BTreeSet<String> = nodes.iter().filter(waits).map(|node| field(node, "uuid")).collect();
        posted.retain(|uuid| waiting.contains(uuid));
        for node in nodes.iter().filter(waits).filter(|_| env.lab.is_none()) {
            let name = field(node, "name");
            let number = name
                .strip_prefix(&format!("{NAMESPACE}~{HOST}"))
                .and_then(|number| number.parse().ok());
            let Some(number) = number.map(Number) else { continue };
            // Ironic rejects a second post while the node still waits.
            if posted.insert(field(node, "uuid")) {
                let data = inspection_data(&env.profile, number);
                let path = "/v1/continue_inspection";
                if let Err(error) = env.session.ironic.call(Method::POST, path, Some(&data)).await {
                    // The post may have been accepted; the node state decides.
                    posted.remove(&field(node, "uuid"));
                    rejected = rejected.saturating_add(1);
                    ensure!(
                        rejected < MAX_REJECTED,
                        "{rejected} posts were rejected, the last: {error:#}"
                    );
                }
            }
        }
        sleep(PER_HOST.saturating_mul(env.hosts.into()).max(MIN_INTERVAL)).await;
    }
}
