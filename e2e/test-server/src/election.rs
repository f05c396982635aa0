//! Leader election by Lease in a minimal form: each write has the observed resource version, and another holder's Lease is
//! timed by the local clock since its last observed change.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::say;

const LEASE: Duration = Duration::from_secs(4);
const RETRY: Duration = Duration::from_secs(1);

/// The last observed change of the Lease.
struct LastChange {
    version: Option<String>,
    at: Instant,
}

/// Runs the election. Returns an error when the Lease is lost: the process must end.
pub(crate) async fn compete(name: &str, leads: &AtomicBool) -> anyhow::Result<()> {
    let client = Client::try_default().await.context("no in-cluster configuration")?;
    let leases: Api<Lease> = Api::default_namespaced(client);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname")?;
    let run = std::fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    // One identity per run: a restarted container is a different candidate.
    let identity = format!("{}_{}", host.trim(), run.trim());
    let mut last_change = LastChange {
        version: None,
        at: Instant::now(),
    };
    let mut renewed = Instant::now();
    loop {
        match attempt(&leases, name, &identity, &mut last_change).await {
            Ok(true) => {
                renewed = Instant::now();
                if !leads.swap(true, Ordering::Relaxed) {
                    say(&format!("{identity} leads"));
                }
            }
            Ok(false) if leads.load(Ordering::Relaxed) => bail!("{identity} lost the Lease"),
            Ok(false) => {}
            Err(_) if leads.load(Ordering::Relaxed) && renewed.elapsed() > LEASE => bail!("{identity} could not renew"),
            Err(error) => say(&format!("election: {error:#}")),
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// One attempt; returns whether this process holds the Lease.
async fn attempt(
    leases: &Api<Lease>,
    name: &str,
    identity: &str,
    last_change: &mut LastChange,
) -> anyhow::Result<bool> {
    let Some(lease) = leases.get_opt(name).await? else {
        let fresh: Lease = serde_json::from_value(body(name, identity, None))?;
        return held(leases.create(&PostParams::default(), &fresh).await);
    };
    if lease.metadata.resource_version != last_change.version {
        // A new candidate waits twice as long: a restarted leader must not win against the standby.
        let extra = if last_change.version.is_none() {
            LEASE
        } else {
            Duration::ZERO
        };
        *last_change = LastChange {
            version: lease.metadata.resource_version.clone(),
            at: Instant::now() + extra,
        };
    }
    let holder = lease.spec.and_then(|spec| spec.holder_identity);
    if holder.as_deref() != Some(identity) && last_change.at.elapsed() < LEASE {
        return Ok(false);
    }
    let patch = Patch::Merge(body(name, identity, last_change.version.as_deref()));
    held(leases.patch(name, &PatchParams::default(), &patch).await)
}

/// A conflict means that another candidate wrote first.
fn held(written: kube::Result<Lease>) -> anyhow::Result<bool> {
    match written {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn body(name: &str, identity: &str, version: Option<&str>) -> Value {
    let now = format!("{:.6}", Timestamp::now());
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "resourceVersion": version},
        "spec": {"holderIdentity": identity, "leaseDurationSeconds": LEASE.as_secs(), "renewTime": now},
    })
}
