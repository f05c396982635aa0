//! Leader election by Lease, in its simplest honest form: every write names the version it saw, and another's Lease
//! is timed by the own clock from the moment it was last seen to change.

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

/// What the Lease said when it last changed.
struct Seen {
    version: Option<String>,
    at: Instant,
}

/// Competes for ever. Ends with an error when the Lease is lost: a leader must not go on.
pub(crate) async fn compete(name: &str, leads: &AtomicBool) -> anyhow::Result<()> {
    let client = Client::try_default().await.context("no in-cluster configuration")?;
    let leases: Api<Lease> = Api::default_namespaced(client);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname")?;
    let run = std::fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    // One identity per run: a container that is restarted is not the leader that it was.
    let me = format!("{}_{}", host.trim(), run.trim());
    let mut seen = Seen {
        version: None,
        at: Instant::now(),
    };
    let mut renewed = Instant::now();
    loop {
        match turn(&leases, name, &me, &mut seen).await {
            Ok(true) => {
                renewed = Instant::now();
                if !leads.swap(true, Ordering::Relaxed) {
                    say(&format!("{me} leads"));
                }
            }
            Ok(false) if leads.load(Ordering::Relaxed) => bail!("{me} lost the Lease"),
            Ok(false) => {}
            Err(_) if leads.load(Ordering::Relaxed) && renewed.elapsed() > LEASE => bail!("{me} could not renew"),
            Err(error) => say(&format!("no turn: {error:#}")),
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// One look at the Lease; answers whether it is ours now.
async fn turn(leases: &Api<Lease>, name: &str, me: &str, seen: &mut Seen) -> anyhow::Result<bool> {
    let Some(lease) = leases.get_opt(name).await? else {
        let fresh: Lease = serde_json::from_value(body(name, me, None))?;
        return held(leases.create(&PostParams::default(), &fresh).await);
    };
    if lease.metadata.resource_version != seen.version {
        // A newcomer waits twice as long: a leader that is restarted at once must not come before its follower.
        let extra = if seen.version.is_none() { LEASE } else { Duration::ZERO };
        *seen = Seen {
            version: lease.metadata.resource_version.clone(),
            at: Instant::now() + extra,
        };
    }
    let holder = lease.spec.and_then(|spec| spec.holder_identity);
    if holder.as_deref() != Some(me) && seen.at.elapsed() < LEASE {
        return Ok(false);
    }
    let patch = Patch::Merge(body(name, me, seen.version.as_deref()));
    held(leases.patch(name, &PatchParams::default(), &patch).await)
}

/// A conflict says that somebody else was faster.
fn held(written: kube::Result<Lease>) -> anyhow::Result<bool> {
    match written {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn body(name: &str, me: &str, version: Option<&str>) -> Value {
    let now = format!("{:.6}", Timestamp::now());
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "resourceVersion": version},
        "spec": {"holderIdentity": me, "leaseDurationSeconds": LEASE.as_secs(), "renewTime": now},
    })
}
