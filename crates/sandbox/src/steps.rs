//! Performs the steps of scenarios on a world.
//!
//! The player of a script decides how it waits: one checks in simulated time, another shows what happens meanwhile. The
//! steps that last are the player's; all others are performed here ([`Performed`]).

use anyhow::{Context as _, Result, ensure};
use http::Method;
use metal3_scenario::{Expectation, ExpectedNodes, Step, kind_and_name};
use metal3_sim_capi::view::{Object, endpoint};
use serde_json::{Value, json};

use crate::variables::{Variables, substitute};
use crate::world::{Faults, NAMESPACE, Setup, World, collection, host_name, version_of};

/// Returns the text of a file that a script applies, by the path in the script.
pub type ReadFile = Box<dyn Fn(&str) -> Result<String> + Send + Sync>;

/// Whether a step was performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Performed {
    /// It was.
    Yes,
    /// It lasts, or needs files of others: the caller performs it.
    ByCaller,
}

/// A world, and what performs steps on it.
pub struct Performer {
    /// The world.
    pub world: World,
    /// Namespace of hosts, and of objects without one.
    pub namespace: String,
    /// Number of hosts so far.
    pub hosts: u32,
    read: ReadFile,
}

impl Performer {
    /// Starts a world without hosts, with the namespace of the setup.
    ///
    /// # Errors
    /// When the world does not start.
    pub async fn start(setup: &Setup, read: ReadFile) -> Result<Self> {
        let world = World::start(setup)?;
        if setup.namespace != NAMESPACE {
            let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": setup.namespace } });
            let path = "/api/v1/namespaces";
            world.send(Method::POST, path, "application/json", &namespace).await?;
        }
        Ok(Self {
            world,
            namespace: setup.namespace.clone(),
            hosts: 0,
            read,
        })
    }

    /// Performs a step that does not wait.
    ///
    /// # Errors
    /// When the API server rejects it, or a check fails.
    pub async fn perform(&mut self, step: &Step) -> Result<Performed> {
        match step {
            Step::Apply(apply) => {
                let text = (self.read)(&apply.file)?;
                let applied = apply_text(&self.world, &text, &apply.with).await;
                applied.with_context(|| apply.file.clone())?;
            }
            Step::Change { object, patch } => {
                self.ask(Method::PATCH, object, "application/merge-patch+json", patch)
                    .await?;
            }
            Step::Delete(object) => self.delete(object).await?,
            Step::DeleteMachineOf(host) => self.delete_machine_of(*host).await?,
            Step::Check(expectation) => self.check(expectation).await?,
            Step::Nodes(nodes) => self.nodes(nodes).await?,
            Step::Hosts(count) => self.add_hosts(*count).await?,
            Step::Fault { host, has } => self.break_machine(*host, has)?,
            Step::Mend(host) => self.break_machine(*host, &[])?,
            Step::IronicDown(span) => self.world.ironic.restart(span.0),
            Step::Restart => self.world.restart(),
            Step::Written(times) => {
                let each =
                    (1..=self.hosts).filter_map(|host| self.world.machine(host, |machine| machine.counts.written));
                let found: u32 = each.sum();
                ensure!(found == *times, "disks were written {found} times, not {times}");
            }
            Step::Published(_) | Step::Wait(_) | Step::Holds { .. } | Step::Why(_) | Step::Quiet(_) => {
                return Ok(Performed::ByCaller);
            }
        }
        Ok(Performed::Yes)
    }

    /// Adds hosts.
    ///
    /// # Errors
    /// When the API server rejects one.
    pub async fn add_hosts(&mut self, count: u32) -> Result<()> {
        for _ in 0..count {
            self.hosts = self.hosts.saturating_add(1);
            self.world.add_host(self.hosts, &json!({})).await?;
        }
        Ok(())
    }

    /// Checks an expectation now.
    ///
    /// # Errors
    /// When it is not met.
    pub async fn check(&self, expectation: &Expectation) -> Result<()> {
        expectation.check(&self.list(&expectation.kind).await?)
    }

    /// All objects of a kind.
    ///
    /// # Errors
    /// When the kind is unknown.
    pub async fn list(&self, kind: &str) -> Result<Vec<Value>> {
        let path = collection(&version(kind)?, kind, &self.namespace).map_err(anyhow::Error::msg)?;
        let list = self
            .world
            .send(Method::GET, &path, "application/json", &Value::Null)
            .await?;
        Ok(items(&list))
    }

    /// Deletes the Machine that has a host: it has the name of the Metal3Machine.
    async fn delete_machine_of(&self, host: u32) -> Result<()> {
        let name = host_name(host);
        let mut hosts = self.list("BareMetalHost").await?.into_iter().map(Object);
        let host = hosts.find(|one| one.name() == name);
        let host = host.with_context(|| format!("there is no BareMetalHost {name}"))?;
        let machine = host.text("/spec/consumerRef/name");
        ensure!(!machine.is_empty(), "{name} has no consumer");
        self.delete(&format!("Machine/{machine}")).await
    }

    async fn delete(&self, object: &str) -> Result<()> {
        self.ask(Method::DELETE, object, "application/json", &json!({})).await
    }

    /// Sends a request about `Kind/name`.
    async fn ask(&self, method: Method, object: &str, media: &str, body: &Value) -> Result<()> {
        let (kind, name) = kind_and_name(object)?;
        let place = collection(&version(kind)?, kind, &self.namespace).map_err(anyhow::Error::msg)?;
        let answer = self.world.send(method, &format!("{place}/{name}"), media, body).await;
        Ok(answer.map(drop)?)
    }

    /// Sets the faults of a machine.
    fn break_machine(&self, host: u32, has: &[Value]) -> Result<()> {
        let faults: Faults = serde_json::from_value(has.into())?;
        self.world.machine(host, |machine| machine.faults = faults);
        Ok(())
    }

    async fn nodes(&self, expectation: &ExpectedNodes) -> Result<()> {
        let mut clusters = self.list("Cluster").await?.into_iter().map(Object);
        let cluster = clusters.find(|cluster| cluster.name() == expectation.cluster);
        let at = cluster.as_ref().and_then(endpoint);
        let at = at.context("the Cluster has no endpoint")?;
        let workload = self.world.workloads.at(&at);
        let workload = workload.with_context(|| format!("no API server answers at {at}"))?;
        let request = http::Request::get("/api/v1/nodes").body(Vec::new())?;
        let list: Value = workload.client("scenario").request(request).await?;
        expectation.check(&items(&list))
    }
}

/// Applies the documents of a text, in which these variables have these values.
///
/// # Errors
/// When a variable has no value, or the API server rejects a document.
pub async fn apply_text(world: &World, text: &str, values: &Variables) -> Result<()> {
    let text = substitute(text, values).map_err(|names| anyhow::anyhow!("no value for {}", names.join(", ")))?;
    for document in serde_saphyr::from_multiple::<Value>(&text)? {
        world.apply(&document).await?;
    }
    Ok(())
}

fn version(kind: &str) -> Result<String> {
    version_of(kind).with_context(|| format!("unknown kind {kind}"))
}

/// The objects of a list.
fn items(list: &Value) -> Vec<Value> {
    list.get("items").and_then(Value::as_array).cloned().unwrap_or_default()
}
