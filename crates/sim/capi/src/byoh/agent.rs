//! Agents on the hosts: an agent joins its host to the cluster of the machine that claims it, and resets the host when
//! that machine is deleted.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use k8s_openapi::ByteString;
use metal3_runtime::cache::Key;
use serde_json::Value;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{AgentTask, agent_task, reset_patches, template_variables};
use crate::kinds::BYO_HOST;
use crate::kubelet::{RETRY, join, send};
use crate::node::{Boot, first_boot};
use crate::view::Object;
use crate::watch::{WatchEvent, follow};
use crate::workload::WorkloadClusters;

/// Dependencies of the agents.
pub struct Parts {
    /// The API server with the hosts.
    pub client: kube::Client,
    /// The workload clusters.
    pub workloads: WorkloadClusters,
    /// Duration from bootstrap data until kubeadm has finished.
    pub boot: Duration,
}

/// State of a host.
enum HostState {
    /// It runs its bootstrap data until that time.
    Booting(Box<Boot>, Instant),
    /// It is a Node, or has nothing to run.
    Idle,
}

/// Runs the agents of all hosts until the future is dropped.
pub async fn run(parts: Parts) {
    let (to, mut events) = unbounded_channel();
    let mut tasks = JoinSet::new();
    tasks.spawn(follow(parts.client.clone(), BYO_HOST.clone(), None, to, |event| event));
    let mut all: BTreeMap<Key, HostState> = BTreeMap::new();
    loop {
        let due = |state: &HostState| match state {
            HostState::Booting(_, due) => Some(*due),
            HostState::Idle => None,
        };
        let event = match all.values().filter_map(due).min() {
            Some(due) => tokio::time::timeout_at(due, events.recv()).await.ok(),
            None => Some(events.recv().await),
        };
        let done = match event {
            Some(None) => return,
            Some(Some(WatchEvent::Applied(host))) => observe(&parts, &mut all, &host).await,
            Some(Some(WatchEvent::Deleted(host))) => {
                all.remove(&host.key());
                Ok(())
            }
            Some(Some(WatchEvent::Listed(keys))) => {
                all.retain(|key, _| keys.contains(key));
                Ok(())
            }
            None => {
                advance(&parts, &mut all).await;
                Ok(())
            }
        };
        if let Err(why) = done {
            tracing::warn!("an agent cannot do its work: {why}");
        }
    }
}

async fn observe(parts: &Parts, all: &mut BTreeMap<Key, HostState>, host: &Object) -> Result<(), String> {
    let key = host.key();
    let secret = match agent_task(host) {
        AgentTask::CleanUp => {
            all.remove(&key);
            return reset_host(parts, host).await;
        }
        AgentTask::Run(secret) if !all.contains_key(&key) => secret,
        AgentTask::Run(_) | AgentTask::Idle => return Ok(()),
    };
    let path = format!("/api/v1/namespaces/{}/secrets/{secret}", key.namespace);
    let secret = send(&parts.client, Method::GET, &path, &Value::Null).await?;
    let value = secret.pointer("/data/value").cloned().unwrap_or_default();
    let ByteString(bytes) = serde_json::from_value(value).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
    let state = match (
        first_boot(&text, &template_variables(host.name()))?,
        Instant::now().checked_add(parts.boot),
    ) {
        (Some(boot), Some(finished)) => HostState::Booting(Box::new(boot), finished),
        _ => HostState::Idle,
    };
    all.insert(key, state);
    Ok(())
}

/// Joins the hosts whose time has come.
async fn advance(parts: &Parts, all: &mut BTreeMap<Key, HostState>) {
    let now = Instant::now();
    for state in all.values_mut() {
        let HostState::Booting(boot, due) = state else { continue };
        if *due > now {
            continue;
        }
        match join(&parts.workloads, boot).await {
            Ok(()) => *state = HostState::Idle,
            Err(why) => {
                tracing::debug!(endpoint = boot.endpoint, "not joined: {why}");
                *due = now.checked_add(RETRY).unwrap_or(now);
            }
        }
    }
}

/// Resets a host to its state without a machine.
async fn reset_host(parts: &Parts, host: &Object) -> Result<(), String> {
    let group = format!("/apis/{}/namespaces", BYO_HOST.api_version());
    let path = format!("{group}/{}/{}/{}", host.namespace(), BYO_HOST.plural, host.name());
    let [status, rest] = reset_patches();
    send(&parts.client, Method::PATCH, &format!("{path}/status"), &status).await?;
    send(&parts.client, Method::PATCH, &path, &rest).await.map(drop)
}
