//! Prints the memory per object and the request rates of the simulated API server. The figures depend on the machine
//! and are not asserted.

use anyhow::Context as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use metal3_sim_cluster::{Cluster, Options};
use serde_json::json;
use tokio::time::Instant;

const OBJECTS: u32 = 20_000;

/// Resident memory of this process.
fn resident_bytes() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("reading /proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line
        .and_then(|line| line.split_whitespace().next())
        .context("no VmRSS")?;
    Ok(kilobytes.parse::<u64>()?.saturating_mul(1024))
}

fn name(number: u32) -> String {
    format!("object-{number}")
}

fn report(what: &str, start: Instant) {
    let millis = start.elapsed().as_millis().max(1);
    let rate = u128::from(OBJECTS)
        .saturating_mul(1000)
        .checked_div(millis)
        .unwrap_or(0);
    println!("{what:<8} {rate:>8} requests per second");
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut options = Options::seeded(1);
    // Without history, only stored objects use memory.
    options.history = 1;
    let cluster = Cluster::start(&options);
    let api: Api<ConfigMap> = Api::namespaced(cluster.client("bench"), "default");
    let before = resident_bytes()?;
    let start = Instant::now();
    for number in 0..OBJECTS {
        let object = json!({"metadata": {"name": name(number), "labels": {"a": "b"}}, "data": {"key": "value"}});
        api.create(&PostParams::default(), &serde_json::from_value(object)?)
            .await?;
    }
    report("create", start);
    let grown = resident_bytes()?.saturating_sub(before);
    let start = Instant::now();
    for number in 0..OBJECTS {
        api.get(&name(number)).await?;
    }
    report("get", start);
    let start = Instant::now();
    for number in 0..OBJECTS {
        let patch = Patch::Merge(json!({"data": {"key": "other"}}));
        api.patch(&name(number), &PatchParams::default(), &patch).await?;
    }
    report("patch", start);
    let start = Instant::now();
    for number in 0..OBJECTS {
        api.delete(&name(number), &DeleteParams::default()).await?;
    }
    report("delete", start);
    let each = grown.checked_div(u64::from(OBJECTS)).unwrap_or(0);
    println!("memory   {each:>8} bytes per stored object (a ConfigMap of one short key)");
    Ok(())
}
