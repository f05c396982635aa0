//! The floor: what the API server takes for the same number of the same writes when nothing is waited for.
//!
//! The objects are as large as those of the run, and no manager runs. What a phase takes longer is hardware, or ours.

use anyhow::{Context as _, bail};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::drive::{documents, host_name};
use crate::outcome::Api;
use crate::server::{NAMESPACE, Server, in_namespace};

/// Writes at a time.
const AT_ONCE: usize = 32;
const MARK: &str = "scale.test/write";

/// Objects of a host of the run, as large as they become.
pub(crate) struct Sample {
    status: Value,
    hardware: Value,
}

impl Sample {
    /// Reads them of a provisioned host.
    pub(crate) async fn read(server: &Server, number: u32) -> anyhow::Result<Self> {
        let name = host_name(number);
        let host = server
            .get(&format!("{}/{name}", in_namespace("baremetalhosts")))
            .await?;
        let hardware = server.get(&format!("{}/{name}", in_namespace("hardwaredata"))).await?;
        let part = |object: &Value, name: &str| object.get(name).cloned().context("a host without it");
        Ok(Self {
            status: part(&host, "status")?,
            hardware: part(&hardware, "spec")?,
        })
    }

    fn hardware_data(&self, name: &str) -> Value {
        json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "HardwareData",
            "metadata": { "name": name, "namespace": NAMESPACE }, "spec": self.hardware })
    }
}

/// Creates hosts that no manager looks after.
pub(crate) async fn prepare(server: &Server, sample: &Sample, hosts: u32) -> anyhow::Result<()> {
    clear(server).await?;
    let created = stream::iter(1..=hosts).map(|number| async move {
        let (secret, host) = documents(number);
        let name = host_name(number);
        server.create(&in_namespace("secrets"), &secret).await?;
        server.create(&in_namespace("baremetalhosts"), &host).await?;
        server
            .create(&in_namespace("hardwaredata"), &sample.hardware_data(&name))
            .await?;
        let status = format!("{}/{name}/status", in_namespace("baremetalhosts"));
        server.merge(&status, &json!({ "status": sample.status })).await
    });
    created
        .buffer_unordered(AT_ONCE)
        .try_for_each(|_| async { Ok(()) })
        .await
}

/// A kind of write, and the number of writes.
struct Writes<'a> {
    verb: &'a str,
    resource: &'a str,
    number: u64,
}

/// Sends the writes of a phase, and returns the seconds that they take.
pub(crate) async fn measure(server: &Server, sample: &Sample, api: &Api, hosts: u32) -> anyhow::Result<f64> {
    let events = api.shared.iter().filter(|(what, _)| what.ends_with(" events"));
    let all = api.writes.iter().chain(events).map(|(what, number)| {
        let (verb, resource) = what.split_once(' ').context("a write without a resource")?;
        Ok(Writes {
            verb,
            resource,
            number: *number,
        })
    });
    let all: Vec<Writes<'_>> = all.collect::<anyhow::Result<_>>()?;
    let since = Instant::now();
    let rounds = all.iter().map(|writes| writes.number.div_ceil(hosts.into())).max();
    let writes = (0..rounds.unwrap_or(0)).flat_map(|round| {
        let hosts = u64::from(hosts);
        all.iter().flat_map(move |writes| {
            let left = writes.number.saturating_sub(round.saturating_mul(hosts)).min(hosts);
            (1..=left).map(move |number| (writes, round, u32::try_from(number).unwrap_or(u32::MAX)))
        })
    });
    let sent = stream::iter(writes).map(|(writes, round, number)| write(server, sample, writes, round, number));
    sent.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    Ok(since.elapsed().as_secs_f64())
}

async fn write(
    server: &Server,
    sample: &Sample,
    Writes { verb, resource, .. }: &Writes<'_>,
    round: u64,
    number: u32,
) -> anyhow::Result<()> {
    let (kind, part) = resource.split_once('/').unwrap_or((resource, ""));
    let name = match kind {
        "secrets" => format!("{}-bmc", host_name(number)),
        _ => host_name(number),
    };
    let path = format!("{}/{name}", in_namespace(kind));
    let mark = format!("{}-{round}", since_boot());
    match (*verb, kind, part) {
        ("patch", "baremetalhosts", "status") => {
            let status = json!({ "status": { "errorMessage": mark } });
            server.merge(&format!("{path}/status"), &status).await?;
        }
        ("patch", "baremetalhosts" | "secrets" | "hardwaredata", "") => {
            let mark = json!({ "metadata": { "annotations": { MARK: mark } } });
            server.merge(&path, &mark).await?;
        }
        ("create", "hardwaredata", "") => {
            let object = sample.hardware_data(&format!("{name}-{mark}"));
            server.create(&in_namespace(kind), &object).await?;
        }
        ("create" | "patch", "events", "") => {
            server
                .create(&in_namespace(kind), &event(&name, &format!("{name}-{mark}")))
                .await?;
        }
        _ => bail!("the floor has no write such as `{verb} {resource}`"),
    }
    Ok(())
}

/// A number that differs between calls of [`measure`].
fn since_boot() -> u64 {
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    let digits: String = uptime.split(' ').next().unwrap_or_default().replace('.', "");
    digits.parse().unwrap_or(0)
}

fn event(host: &str, name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Event", "metadata": { "name": name, "namespace": NAMESPACE },
        "involvedObject": { "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "name": host,
            "namespace": NAMESPACE },
        "type": "Normal", "reason": "Measured", "message": "an event of the floor", "source": { "component": "scale" } })
}

/// Deletes all objects of the namespace. No controller collects what deleted hosts owned.
pub(crate) async fn clear(server: &Server) -> anyhow::Result<()> {
    for resource in ["baremetalhosts", "hardwaredata", "secrets", "events"] {
        server.delete(&in_namespace(resource)).await?;
    }
    Ok(())
}
