//! One node in Ironic: its provision verbs, and waiting for a provision state.

use std::time::Duration;

use anyhow::{Context as _, bail};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::ironic::Ironic;
use crate::poller::NodePoller;

/// States that last until the next provision request.
const STABLE: [&str; 4] = ["enroll", "manageable", "available", "active"];

pub(crate) struct Node<'a> {
    ironic: &'a Ironic,
    pub(crate) uuid: String,
    poller: &'a NodePoller<'a>,
    pub(crate) timeout: Duration,
}

impl<'a> Node<'a> {
    pub(crate) async fn create(ironic: &'a Ironic, node: &Value, poller: &'a NodePoller<'a>) -> anyhow::Result<Self> {
        let created = ironic.call(Method::POST, "/v1/nodes", Some(node)).await?;
        let uuid = created
            .get("uuid")
            .and_then(Value::as_str)
            .context("Ironic returns a node without uuid")?
            .to_owned();
        Ok(Self {
            ironic,
            uuid,
            poller,
            timeout: Duration::from_secs(1200),
        })
    }

    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/v1/nodes/{}{rest}", self.uuid)
    }

    pub(crate) async fn get(&self, rest: &str) -> anyhow::Result<Value> {
        self.ironic.get(&self.path(rest)).await
    }

    pub(crate) async fn add_port(&self, mac: &str) -> anyhow::Result<()> {
        let port = json!({ "node_uuid": self.uuid, "address": mac });
        self.ironic.call(Method::POST, "/v1/ports", Some(&port)).await.map(drop)
    }

    /// Requests a provision state, with additional fields in `body`.
    pub(crate) async fn provision(&self, target: &str, mut body: Value) -> anyhow::Result<()> {
        if let Some(fields) = body.as_object_mut() {
            fields.insert("target".into(), target.into());
        }
        self.ironic
            .call(Method::PUT, &self.path("/states/provision"), Some(&body))
            .await
            .map(drop)
    }

    pub(crate) async fn set(&self, path: &str, value: Value) -> anyhow::Result<()> {
        let patch = json!([{ "op": "add", "path": path, "value": value }]);
        self.ironic
            .call(Method::PATCH, &self.path(""), Some(&patch))
            .await
            .map(drop)
    }

    pub(crate) async fn state(&self) -> anyhow::Result<Value> {
        self.get("?fields=provision_state,target_provision_state,power_state,last_error,maintenance")
            .await
    }

    /// Waits until the node is stable in `wanted`.
    pub(crate) async fn wait(&self, wanted: &str) -> anyhow::Result<()> {
        let mut last = Instant::now();
        let end = last + self.timeout;
        loop {
            let (node, at) = self.poller.after(last, &self.uuid).await?;
            match progress(&node, wanted) {
                Progress::Reached => return Ok(()),
                Progress::Failed => bail!("wanted {wanted}, got {node}"),
                Progress::Pending if at > end => bail!("wanted {wanted}, still {node}"),
                Progress::Pending => last = at,
            }
        }
    }

    /// Waits until the node is stable in any state, or the timeout; for faults.
    pub(crate) async fn settle(&self) -> anyhow::Result<Value> {
        let mut last = Instant::now();
        let end = last + self.timeout;
        loop {
            let (node, at) = self.poller.after(last, &self.uuid).await?;
            if is_stable(&node) || at > end {
                return Ok(node);
            }
            last = at;
        }
    }

    /// The latest error in the node's history: Ironic may have cleared `last_error`.
    pub(crate) async fn latest_error(&self) -> anyhow::Result<Option<String>> {
        let history = self.get("/history?detail=true").await?;
        let events = history.get("history").and_then(Value::as_array).into_iter().flatten();
        let errors = events.filter(|event| text(event, "severity") == Some("ERROR"));
        let latest = errors.max_by_key(|event| text(event, "created_at").unwrap_or_default().to_owned());
        Ok(latest.and_then(|event| text(event, "event")).map(str::to_owned))
    }

    pub(crate) async fn delete(&self) -> anyhow::Result<()> {
        self.ironic.call(Method::DELETE, &self.path(""), None).await.map(drop)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Progress {
    Reached,
    Pending,
    Failed,
}

fn text<'a>(node: &'a Value, field: &str) -> Option<&'a str> {
    node.get(field).and_then(Value::as_str)
}

fn is_stable(node: &Value) -> bool {
    let state = text(node, "provision_state").unwrap_or_default();
    is_failure(state) || (STABLE.contains(&state) && text(node, "target_provision_state").is_none())
}

fn is_failure(state: &str) -> bool {
    state.ends_with("failed") || state == "error"
}

fn progress(node: &Value, wanted: &str) -> Progress {
    match (is_stable(node), text(node, "provision_state")) {
        (true, Some(state)) if state == wanted => Progress::Reached,
        (true, _) => Progress::Failed,
        (false, _) => Progress::Pending,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_reaches_a_state_only_without_a_target_state() {
        let node = |state, target: Option<&str>| json!({ "provision_state": state, "target_provision_state": target });
        assert_eq!(progress(&node("active", None), "active"), Progress::Reached);
        assert_eq!(
            progress(&node("manageable", Some("available")), "manageable"),
            Progress::Pending
        );
        assert_eq!(
            progress(&node("clean wait", Some("available")), "available"),
            Progress::Pending
        );
        assert_eq!(
            progress(&node("deploy failed", Some("active")), "active"),
            Progress::Failed
        );
        assert_eq!(progress(&node("enroll", None), "manageable"), Progress::Failed);
    }
}
