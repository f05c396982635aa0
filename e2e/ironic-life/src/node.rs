//! One node in Ironic: its verbs, and waiting by state.

use std::time::Duration;

use anyhow::{Context as _, bail};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::ironic::Ironic;
use crate::looks::Looks;

/// States that stay until somebody asks for something.
const RESTING: [&str; 4] = ["enroll", "manageable", "available", "active"];

pub(crate) struct Node<'a> {
    ironic: &'a Ironic,
    pub(crate) uuid: String,
    looks: &'a Looks<'a>,
    pub(crate) patience: Duration,
}

impl<'a> Node<'a> {
    pub(crate) async fn enrol(ironic: &'a Ironic, node: &Value, looks: &'a Looks<'a>) -> anyhow::Result<Self> {
        let created = ironic.call(Method::POST, "/v1/nodes", Some(node)).await?;
        let uuid = created
            .get("uuid")
            .and_then(Value::as_str)
            .context("a node without uuid")?
            .to_owned();
        Ok(Self {
            ironic,
            uuid,
            looks,
            patience: Duration::from_secs(1200),
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

    /// Asks for a provision state, with more fields in `body`.
    pub(crate) async fn ask(&self, target: &str, mut body: Value) -> anyhow::Result<()> {
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

    /// Waits until the node rests in `wanted`.
    pub(crate) async fn wait(&self, wanted: &str) -> anyhow::Result<()> {
        let mut seen = Instant::now();
        let end = seen + self.patience;
        loop {
            let (node, at) = self.looks.after(seen, &self.uuid).await?;
            match judge(&node, wanted) {
                Verdict::There => return Ok(()),
                Verdict::Stranded => bail!("wanted {wanted}, got {node}"),
                Verdict::OnTheWay if at > end => bail!("wanted {wanted}, still {node}"),
                Verdict::OnTheWay => seen = at,
            }
        }
    }

    /// Waits until the node rests anywhere, or patience ends; for faults, where no end is wanted.
    pub(crate) async fn settle(&self) -> anyhow::Result<Value> {
        let mut seen = Instant::now();
        let end = seen + self.patience;
        loop {
            let (node, at) = self.looks.after(seen, &self.uuid).await?;
            if rests(&node) || at > end {
                return Ok(node);
            }
            seen = at;
        }
    }

    /// The latest error in the node's history: `last_error` may be gone by now, history stays.
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
enum Verdict {
    There,
    OnTheWay,
    Stranded,
}

fn text<'a>(node: &'a Value, field: &str) -> Option<&'a str> {
    node.get(field).and_then(Value::as_str)
}

fn rests(node: &Value) -> bool {
    let state = text(node, "provision_state").unwrap_or_default();
    is_failure(state) || (RESTING.contains(&state) && text(node, "target_provision_state").is_none())
}

fn is_failure(state: &str) -> bool {
    state.ends_with("failed") || state == "error"
}

fn judge(node: &Value, wanted: &str) -> Verdict {
    match (rests(node), text(node, "provision_state")) {
        (true, Some(state)) if state == wanted => Verdict::There,
        (true, _) => Verdict::Stranded,
        (false, _) => Verdict::OnTheWay,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_is_there_only_when_nothing_more_is_asked_of_it() {
        let node = |state, target: Option<&str>| json!({ "provision_state": state, "target_provision_state": target });
        assert_eq!(judge(&node("active", None), "active"), Verdict::There);
        assert_eq!(
            judge(&node("manageable", Some("available")), "manageable"),
            Verdict::OnTheWay
        );
        assert_eq!(
            judge(&node("clean wait", Some("available")), "available"),
            Verdict::OnTheWay
        );
        assert_eq!(
            judge(&node("deploy failed", Some("active")), "active"),
            Verdict::Stranded
        );
        assert_eq!(judge(&node("enroll", None), "manageable"), Verdict::Stranded);
    }
}
