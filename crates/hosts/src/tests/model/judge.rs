//! What must not happen in the small world, and what must hold when nothing moves any more.

use serde_json::{Value, json};

use super::world::World;
use crate::tests::scene::OTHER_UID;

impl World {
    /// What somebody asks for now.
    fn asked(&self) -> Option<String> {
        let host = self.host.as_ref()?;
        host["spec"]["image"]["url"].as_str().map(str::to_owned)
    }

    /// Called before Ironic erases something.
    pub(super) fn judge_erasure(&mut self, verb: &str) {
        let Some(host) = &self.host else {
            return self.wrong = Some(format!("{verb} for a host that is gone"));
        };
        let has = |name: &str| host["metadata"]["annotations"].get(name).is_some();
        let is_wanted = self.promised.is_some() && self.disk == self.promised && self.asked() == self.promised;
        let is_deleted = host["metadata"].get("deletionTimestamp").is_some();
        let why = if has("baremetalhost.metal3.io/paused") {
            Some("a paused host")
        } else if self.is_moved {
            Some("a host that moved")
        } else if host["spec"]["externallyProvisioned"] == json!(true) {
            Some("what something else deployed")
        } else if self.is_given_away() {
            Some("what somebody else runs")
        } else if is_wanted && !is_deleted {
            Some("what is wanted")
        } else {
            None
        };
        if let Some(why) = why {
            self.wrong = Some(format!("{verb} wipes {why}"));
        }
        if verb == "deleted" && self.promised.is_some() {
            if self.was_held {
                self.wrong = Some("what was held is torn down without a word from anybody".to_owned());
            }
            if self.budget == 0 {
                self.wrong = Some("more hosts are torn down than the budget has".to_owned());
            }
            self.budget = self.budget.saturating_sub(1);
            self.promised = None;
        }
    }

    /// Called before a machine that runs is switched.
    pub(super) fn judge_interruption(&mut self, verb: &str) {
        if self.is_moved {
            self.wrong = Some(format!("{verb} interrupts a host that moved"));
        }
        if self.is_given_away() {
            self.wrong = Some(format!("{verb} interrupts what somebody else runs"));
        }
    }

    /// Called before Ironic forgets the node.
    pub(super) fn judge_forgetting(&mut self) {
        if self.is_given_away() {
            self.wrong = Some("the node of somebody else is forgotten".to_owned());
        }
    }

    fn is_given_away(&self) -> bool {
        let node = self.node.as_ref();
        node.is_some_and(|node| node["instance_uuid"] == OTHER_UID)
    }

    /// Called when the status was written.
    pub(super) fn judge_status(&mut self) {
        let Some(host) = &self.host else { return };
        let provisioning = &host["status"]["provisioning"];
        if provisioning["state"] == "provisioned" {
            let mut conditions = host["status"]["conditions"].as_array().into_iter().flatten();
            self.was_held = conditions.any(|condition| condition["type"] == "Held");
        }
        if provisioning["state"] == "provisioned" && self.promised.is_none() {
            self.promised = provisioning["image"]["url"].as_str().map(str::to_owned);
        }
    }

    /// What must hold when nothing moves any more.
    pub(super) fn check_at_rest(&self) -> Result<(), String> {
        let Some(host) = &self.host else {
            let is_left = self.node.is_some() && !self.is_moved && !self.is_given_away();
            return if is_left {
                Err("the host is gone and its node is not".to_owned())
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
        if self.is_given_away() {
            return if error.is_null() {
                Err("the node serves another and nobody is told".to_owned())
            } else {
                Ok(())
            };
        }
        if host["metadata"].get("deletionTimestamp").is_some() {
            return Err(format!(
                "the host is deleted and stays, in state {state:?}, node {node_state}: {error}"
            ));
        }
        self.check_deployed(status, node_state)
    }

    /// That what runs is what is said, and what is asked.
    fn check_deployed(&self, status: &Value, node_state: &str) -> Result<(), String> {
        let (state, error) = (
            status["provisioning"]["state"].as_str().unwrap_or_default(),
            &status["errorType"],
        );
        let runs = status["provisioning"]["image"]["url"]
            .as_str()
            .filter(|url| !url.is_empty());
        if runs != self.disk.as_deref() {
            return Err(format!(
                "the host says it runs {runs:?}, and it runs {:?}; state {state:?}, node {node_state}",
                self.disk
            ));
        }
        let is_held = self.bounds.budget == 0;
        if self.asked() != self.disk && !is_held {
            return Err(format!(
                "the host runs {:?} and is asked for {:?}; state {state:?}, {error}",
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
