//! Nodes that claims create, change and remove.

use std::sync::atomic::Ordering;

use anyhow::{Context as _, bail};
use metal3_domain::ids::NodeUuid;
use metal3_ironic::Error;
use metal3_ironic::calls::node::NewNode;
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::calls::{self, NodeRef};
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState;
use metal3_ironic::request::Call;
use serde_json::{Map, json};

use super::{Lab, POLL_INTERVAL, TIMEOUT, expect_error};

/// The name prefix of nodes of claims.
const NAME_PREFIX: &str = "contract~";

/// Whether a claim created this node, in this run or an aborted one.
pub(crate) fn is_test_node(node: &Node) -> bool {
    node.name.as_deref().is_some_and(|name| name.starts_with(NAME_PREFIX))
}

impl Lab {
    pub(crate) fn name(&self) -> String {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        format!("{NAME_PREFIX}{}-{number}", std::process::id())
    }

    /// An instance UUID that no other run uses.
    pub(crate) fn instance(&self) -> String {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        format!("{:08x}-0000-4000-8000-{number:012x}", std::process::id())
    }

    pub(crate) fn new_node(&self) -> NewNode {
        NewNode {
            name: self.name(),
            driver: "fake-hardware".into(),
            driver_info: Map::from_iter([("fake_password".into(), json!("hunter2"))]),
            properties: Map::new(),
            more: Map::new(),
            disable_power_off: None,
        }
    }

    /// Sends a request and returns the value of the answer.
    pub(crate) async fn send<T>(&self, call: &Call<T>) -> Result<T, Error> {
        self.client.send(call).await.map(|answer| answer.value)
    }

    /// Expects that a request fails with an error of this category.
    pub(crate) async fn refused<T>(&self, call: &Call<T>, category: &str) -> anyhow::Result<Error> {
        expect_error(self.client.send(call).await, category)
    }

    pub(crate) async fn create(&self, new: NewNode) -> anyhow::Result<NodeUuid> {
        Ok(self.send(&calls::node::create(new)?).await?.uuid)
    }

    pub(crate) async fn node(&self) -> anyhow::Result<NodeUuid> {
        self.create(self.new_node()).await
    }

    pub(crate) async fn read(&self, uuid: &NodeUuid) -> Result<Node, Error> {
        self.send(&calls::node::get(&NodeRef::from(uuid))).await
    }

    /// Requests a transition, with retries while the node is locked.
    pub(crate) async fn ask(&self, uuid: &NodeUuid, transition: Transition) -> anyhow::Result<()> {
        let call = calls::provision::request(&NodeRef::from(uuid), transition)?;
        self.unlocked(|| self.client.send(&call)).await?;
        Ok(())
    }

    pub(crate) async fn unlocked<T, F, R>(&self, attempt: F) -> anyhow::Result<T>
    where
        F: Fn() -> R,
        R: Future<Output = Result<T, Error>>,
    {
        let begun = self.clock.monotonic();
        loop {
            match attempt().await {
                Err(Error::Locked(_)) if self.clock.monotonic().since(begun) < TIMEOUT => {
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
                other => return Ok(other?),
            }
        }
    }

    /// Waits until the node is in the state and unlocked.
    pub(crate) async fn reach(&self, uuid: &NodeUuid, state: &ProvisionState) -> anyhow::Result<Node> {
        let begun = self.clock.monotonic();
        loop {
            let node = self.read(uuid).await?;
            if node.provision_state == *state && node.reservation.is_none() {
                return Ok(node);
            }
            if self.clock.monotonic().since(begun) > TIMEOUT {
                bail!(
                    "the node is {} and not {state}: {:?}",
                    node.provision_state,
                    node.last_error
                );
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    pub(crate) async fn go(&self, uuid: &NodeUuid, by: Transition, to: &ProvisionState) -> anyhow::Result<Node> {
        self.ask(uuid, by).await?;
        self.reach(uuid, to).await
    }

    /// Removes the node in any state.
    pub(crate) async fn remove(&self, uuid: &NodeUuid) -> anyhow::Result<()> {
        let node = NodeRef::from(uuid);
        let (maintenance, delete) = (
            calls::node::set_maintenance(&node, "contract"),
            calls::node::delete(&node),
        );
        self.unlocked(|| self.client.send(&maintenance)).await?;
        self.unlocked(|| self.client.send(&delete))
            .await
            .context("cannot clean up")?;
        Ok(())
    }
}
