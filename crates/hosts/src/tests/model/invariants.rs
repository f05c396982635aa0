//! The invariants of the model, and the properties of its final states.

use serde_json::{Value, json};

use super::state::ModelState;
use crate::tests::fixture::OTHER_UID;

impl ModelState {
    fn asked(&self) -> Option<String> {
        let host = self.host.as_ref()?;
        host["spec"]["image"]["url"].as_str().map(str::to_owned)
    }

    pub(super) fn check_erasure(&mut self, verb: &str) {
        let Some(host) = &self.host else {
            return self.violation = Some(format!("{verb} for a deleted host"));
        };
        let has = |name: &str| host["metadata"]["annotations"].get(name).is_some();
        let is_wanted =
            self.expected_image.is_some() && self.disk == self.expected_image && self.asked() == self.expected_image;
        let is_deleted = host["metadata"].get("deletionTimestamp").is_some();
        let why = if has("baremetalhost.metal3.io/paused") {
            Some("a paused host")
        } else if self.is_moved {
            Some("a host that moved")
        } else if host["spec"]["externallyProvisioned"] == json!(true) {
            Some("an externally provisioned machine")
        } else if self.is_used_by_other() {
            Some("the instance of another user")
        } else if is_wanted && !is_deleted {
            Some("a requested image")
        } else {
            None
        };
        if let Some(why) = why {
            self.violation = Some(format!("{verb} erases {why}"));
        }
        if verb == "deleted" && self.expected_image.is_some() {
            if self.was_withheld {
                self.violation = Some("a withheld host is deprovisioned without confirmation".to_owned());
            }
            if self.budget == 0 {
                self.violation = Some("more hosts are deprovisioned than the budget allows".to_owned());
            }
            self.budget = self.budget.saturating_sub(1);
            self.expected_image = None;
        }
    }

    pub(super) fn check_interruption(&mut self, verb: &str) {
        if self.is_moved {
            self.violation = Some(format!("{verb} interrupts a host that moved"));
        }
        if self.is_used_by_other() {
            self.violation = Some(format!("{verb} interrupts the instance of another user"));
        }
    }

    pub(super) fn check_node_deletion(&mut self) {
        if self.is_used_by_other() {
            self.violation = Some("the node of another user is deleted".to_owned());
        }
    }

    fn is_used_by_other(&self) -> bool {
        let node = self.node.as_ref();
        node.is_some_and(|node| node["instance_uuid"] == OTHER_UID)
    }

    pub(super) fn check_status(&mut self) {
        let Some(host) = &self.host else { return };
        let provisioning = &host["status"]["provisioning"];
        if provisioning["state"] == "provisioned" {
            let mut conditions = host["status"]["conditions"].as_array().into_iter().flatten();
            self.was_withheld = conditions.any(|condition| condition["type"] == "Held");
        }
        if provisioning["state"] == "provisioned" && self.expected_image.is_none() {
            self.expected_image = provisioning["image"]["url"].as_str().map(str::to_owned);
        }
    }

    /// The properties of a state in which nothing changes any more.
    pub(super) fn check_at_rest(&self) -> Result<(), String> {
        let Some(host) = &self.host else {
            let is_left = self.node.is_some() && !self.is_moved && !self.is_used_by_other();
            return if is_left {
                Err("the host is deleted and its node is not".to_owned())
            } else {
                Ok(())
            };
        };
        let status = &host["status"];
        let (state, error) = (
            status["provisioning"]["state"].as_str().unwrap_or_default(),
            &status["errorType"],
        );
        let still = |name: &str| host["metadata"]["annotations"].get(name).is_some();
        let node_state = self
            .node
            .as_ref()
            .map_or("none", |node| node["provision_state"].as_str().unwrap());
        if still("baremetalhost.metal3.io/paused")
            || self.bounds.start == "unreadable"
            || self.bounds.may_fail
            || self.is_moved
        {
            return Ok(());
        }
        if self.is_used_by_other() {
            return if error.is_null() {
                Err("the node serves another instance without a recorded error".to_owned())
            } else {
                Ok(())
            };
        }
        if host["metadata"].get("deletionTimestamp").is_some() {
            return Err(format!(
                "the host is deleted and stays in state {state:?}, node {node_state}: {error}"
            ));
        }
        self.check_deployed(status, node_state)
    }

    /// The disk equals the status and the spec.
    fn check_deployed(&self, status: &Value, node_state: &str) -> Result<(), String> {
        let (state, error) = (
            status["provisioning"]["state"].as_str().unwrap_or_default(),
            &status["errorType"],
        );
        let is_left_to_user = status["errorMessage"]
            .as_str()
            .is_some_and(|message| message.contains("it is not known whether"));
        if state == "deprovisioning" && is_left_to_user {
            return Ok(());
        }
        let runs = status["provisioning"]["image"]["url"]
            .as_str()
            .filter(|url| !url.is_empty());
        if runs != self.disk.as_deref() {
            return Err(format!(
                "the status records {runs:?}, and the disk contains {:?}; state {state:?}, node {node_state}",
                self.disk
            ));
        }
        let is_withheld = self.bounds.budget == 0;
        if self.asked() != self.disk && !is_withheld {
            return Err(format!(
                "the host runs {:?} and the request is {:?}; state {state:?}, {error}",
                self.disk,
                self.asked()
            ));
        }
        if state == "provisioned" && node_state != "active" {
            return Err(format!("the host is provisioned and its node {node_state}"));
        }
        Ok(())
    }
}
