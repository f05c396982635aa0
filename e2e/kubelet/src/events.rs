//! Events on Pods. One object per Pod, reason and note; repetitions increase its count.
//!
//! Events are best effort: a failed write is logged.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::clock;
use crate::clock::bounded;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EventType {
    Normal,
    Warning,
}

/// The identity of an Event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    uid: String,
    event_type: EventType,
    reason: String,
    note: String,
}

#[derive(Debug, Clone)]
struct Written {
    name: String,
    count: i32,
}

/// Writes Events, and keeps the written ones of existing Pods.
pub(crate) struct Events {
    client: Client,
    node_name: String,
    written: Mutex<BTreeMap<Key, Written>>,
}

impl Events {
    pub(crate) fn new(client: Client, node_name: &str) -> Self {
        Self {
            client,
            node_name: node_name.to_owned(),
            written: Mutex::new(BTreeMap::new()),
        }
    }

    pub(crate) async fn publish(&self, pod: &Pod, event_type: EventType, reason: &str, note: String) {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let key = Key {
            uid,
            event_type,
            reason: reason.to_owned(),
            note,
        };
        if let Err(error) = self.write(pod, key).await {
            tracing::warn!(error = format!("{error:#}"), reason, "an Event was not written");
        }
    }

    /// Drops the records of a deleted Pod.
    pub(crate) async fn forget(&self, pod: &Pod) {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        self.written.lock().await.retain(|key, _| key.uid != uid);
    }

    async fn write(&self, pod: &Pod, key: Key) -> anyhow::Result<()> {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let events: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let now = clock::now();
        let mut written = self.written.lock().await;
        if let Some(known) = written.get_mut(&key) {
            let count = known.count.saturating_add(1);
            let patch = Patch::Merge(json!({"count": count, "lastTimestamp": now.to_string()}));
            bounded(events.patch(&known.name, &PatchParams::default(), &patch)).await?;
            known.count = count;
            return Ok(());
        }
        let name = format!(
            "{}.{:x}",
            pod.metadata.name.as_deref().unwrap_or_default(),
            now.as_nanosecond()
        );
        let event: Event = serde_json::from_value(event(pod, &key, &name, &self.node_name, now))?;
        bounded(events.create(&PostParams::default(), &event)).await?;
        written.insert(key, Written { name, count: 1 });
        Ok(())
    }
}

fn event(pod: &Pod, key: &Key, name: &str, node_name: &str, now: Timestamp) -> Value {
    let meta = &pod.metadata;
    json!({
        "metadata": {"name": name, "namespace": meta.namespace},
        "involvedObject": {
            "apiVersion": "v1", "kind": "Pod", "name": meta.name, "namespace": meta.namespace, "uid": meta.uid,
        },
        "type": match key.event_type { EventType::Normal => "Normal", EventType::Warning => "Warning" },
        "reason": key.reason,
        "message": key.note,
        "source": {"component": "process-kubelet", "host": node_name},
        "reportingComponent": "process-kubelet",
        "reportingInstance": node_name,
        "firstTimestamp": now.to_string(),
        "lastTimestamp": now.to_string(),
        "count": 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::fixtures::pod;

    #[test]
    fn event_names_its_pod_and_its_reporter() {
        let pod = pod(json!({"containers": []}));
        let key = Key {
            uid: "u-1".into(),
            event_type: EventType::Warning,
            reason: "Failed".into(),
            note: "no binary".into(),
        };
        let event: Event = serde_json::from_value(event(&pod, &key, "e", "n", Timestamp::UNIX_EPOCH)).unwrap();
        assert_eq!(event.involved_object.uid.as_deref(), Some("u-1"));
        assert_eq!(
            (event.type_.as_deref(), event.reason.as_deref()),
            (Some("Warning"), Some("Failed"))
        );
        assert_eq!(event.message.as_deref(), Some("no binary"));
        assert_eq!(event.source.unwrap().component.as_deref(), Some("process-kubelet"));
    }
}
