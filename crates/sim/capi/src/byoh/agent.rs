//! The agents on the hosts: what is on a host becomes a Node of the cluster that it was told of, and is cleared away when
//! its machine goes, so that the next one can have the host.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use http::Method;
use k8s_openapi::ByteString;
use metal3_runtime::hub::Key;
use serde_json::Value;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{Errand, cleared, errand, known_of};
use crate::kinds::BYO_HOST;
use crate::kubelet::{RETRY, join, send};
use crate::node::{Boot, first_boot};
use crate::site::Sites;
use crate::view::Object;
use crate::watch::{News, follow};

/// What the agents need.
pub struct Parts {
    /// The API server with the hosts.
    pub client: kube::Client,
    /// The workload clusters.
    pub sites: Sites,
    /// From bootstrap data until kubeadm is through.
    pub boot: Duration,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("boot", &self.boot)
            .finish_non_exhaustive()
    }
}

/// What a host does.
enum Does {
    /// It runs its bootstrap data, until then.
    Boots(Box<Boot>, Instant),
    /// It is a Node, or has nothing to run.
    Rests,
}

/// Runs the agents of all hosts for ever. Dropping the future ends them.
pub async fn run(parts: Parts) {
    let (to, mut news) = unbounded_channel();
    let mut tasks = JoinSet::new();
    tasks.spawn(follow(parts.client.clone(), BYO_HOST.clone(), None, to, |news| news));
    let mut all: BTreeMap<Key, Does> = BTreeMap::new();
    loop {
        let due = |does: &Does| match does {
            Does::Boots(_, due) => Some(*due),
            Does::Rests => None,
        };
        let happened = match all.values().filter_map(due).min() {
            Some(due) => tokio::time::timeout_at(due, news.recv()).await.ok(),
            None => Some(news.recv().await),
        };
        let done = match happened {
            Some(None) => return,
            Some(Some(News::Seen(host))) => look(&parts, &mut all, &host).await,
            Some(Some(News::Gone(host))) => {
                all.remove(&host.key());
                Ok(())
            }
            Some(Some(News::Listed(keys))) => {
                all.retain(|key, _| keys.contains(key));
                Ok(())
            }
            None => {
                go_on(&parts, &mut all).await;
                Ok(())
            }
        };
        if let Err(why) = done {
            tracing::warn!("an agent cannot do its work: {why}");
        }
    }
}

async fn look(parts: &Parts, all: &mut BTreeMap<Key, Does>, host: &Object) -> Result<(), String> {
    let key = host.key();
    let secret = match errand(host) {
        Errand::Leave => {
            all.remove(&key);
            return clear(parts, host).await;
        }
        Errand::Run(secret) if !all.contains_key(&key) => secret,
        Errand::Run(_) | Errand::Nothing => return Ok(()),
    };
    let path = format!("/api/v1/namespaces/{}/secrets/{secret}", key.namespace);
    let secret = send(&parts.client, Method::GET, &path, &Value::Null).await?;
    let value = secret.pointer("/data/value").cloned().unwrap_or_default();
    let ByteString(bytes) = serde_json::from_value(value).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
    let does = match (
        first_boot(&text, &known_of(host.name()))?,
        Instant::now().checked_add(parts.boot),
    ) {
        (Some(boot), Some(over)) => Does::Boots(Box::new(boot), over),
        _ => Does::Rests,
    };
    all.insert(key, does);
    Ok(())
}

/// Those whose time it is join.
async fn go_on(parts: &Parts, all: &mut BTreeMap<Key, Does>) {
    let now = Instant::now();
    for does in all.values_mut() {
        let Does::Boots(boot, due) = does else { continue };
        if *due > now {
            continue;
        }
        match join(&parts.sites, boot).await {
            Ok(()) => *does = Does::Rests,
            Err(why) => {
                tracing::debug!(endpoint = boot.endpoint, "not joined: {why}");
                *due = now.checked_add(RETRY).unwrap_or(now);
            }
        }
    }
}

/// Makes a host as it was before it had a machine.
async fn clear(parts: &Parts, host: &Object) -> Result<(), String> {
    let group = format!("/apis/{}/namespaces", BYO_HOST.api_version());
    let path = format!("{group}/{}/{}/{}", host.namespace(), BYO_HOST.plural, host.name());
    let [status, rest] = cleared();
    send(&parts.client, Method::PATCH, &format!("{path}/status"), &status).await?;
    send(&parts.client, Method::PATCH, &path, &rest).await.map(drop)
}
