//! One moment of a recording: the objects as stored, and Ironic's nodes as they were then.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use metal3_api::kind::Kind as _;
use metal3_api::metal3::v1alpha1::{BareMetalHost, ProvisioningState};
use metal3_ironic::model::node::Node;
use metal3_ironic::model::port::Port;
use metal3_ironic::model::state::ProvisionState;
use serde::Deserialize;
use serde_json::Value;

use crate::decode;
use metal3_files::documents::Document;

/// Said in the label of a moment where Ironic has no node.
const NO_NODE: &str = "no-node";

/// What was there at one time.
#[derive(Debug, Clone)]
pub(in crate::golden) struct Moment {
    /// Name of its files, such as `03-registering-off.enroll`.
    pub(in crate::golden) label: String,
    /// Every object of the namespace. Shared by moments between which none changed.
    pub(in crate::golden) objects: Arc<Vec<Document>>,
    /// Ironic's nodes; none where nobody looked.
    pub(in crate::golden) nodes: Option<Vec<Machine>>,
}

/// A node with its ports.
#[derive(Debug, Clone)]
pub(in crate::golden) struct Machine {
    pub(in crate::golden) node: Node,
    pub(in crate::golden) ports: Vec<Port>,
    /// The node as Ironic showed it, beyond what we read of it.
    pub(in crate::golden) shown: Value,
    /// Its ports in the same way.
    pub(in crate::golden) shown_ports: Vec<Value>,
}

/// As a file has them.
#[derive(Deserialize)]
struct Recorded {
    node: Value,
    ports: Vec<Value>,
}

/// How a host stands, as far as a timeline tells.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::golden) struct Standing {
    /// Its state.
    pub(in crate::golden) state: ProvisioningState,
    /// Whether it runs.
    pub(in crate::golden) powered_on: bool,
}

/// How every host stands, by name.
pub(in crate::golden) type Standings = BTreeMap<String, Standing>;

/// The nodes of a file.
///
/// # Errors
/// When one is not as Ironic answers.
pub(in crate::golden) fn machines(text: &str) -> Result<Vec<Machine>> {
    let recorded: Vec<Recorded> = serde_json::from_str(text).context("nodes with their ports")?;
    let machine = |Recorded { node, ports }: Recorded| {
        Ok(Machine {
            node: serde_json::from_value(node.clone())?,
            ports: serde_json::from_value(Value::from(ports.clone()))?,
            shown: node,
            shown_ports: ports,
        })
    };
    let machines: Result<_> = recorded.into_iter().map(machine).collect();
    machines.context("nodes with their ports")
}

impl Moment {
    /// How every host stands.
    ///
    /// # Errors
    /// When a host cannot be read.
    pub(in crate::golden) fn standings(&self) -> Result<Standings> {
        let is_host = |document: &&Document| {
            let type_meta = document.type_meta();
            type_meta
                .is_some_and(|(version, kind)| kind == BareMetalHost::KIND && version == BareMetalHost::group_version())
        };
        let standing = |document: &Document| {
            let host: BareMetalHost =
                serde_json::from_value(document.value.clone()).with_context(|| document.label())?;
            let standing = Standing {
                state: host.status.provisioning.state,
                powered_on: host.status.powered_on,
            };
            Ok((host.metadata.name.unwrap_or_default(), standing))
        };
        self.objects.iter().filter(is_host).map(standing).collect()
    }

    /// Checks that all of it is understood: our types carry every object whole, ports are those of their node, and the
    /// node is where the label says.
    ///
    /// # Errors
    /// The first thing that is not.
    pub(in crate::golden) fn check(&self) -> Result<()> {
        for document in self.objects.iter() {
            let lost = decode::lost(document);
            ensure!(lost.is_empty(), "{}: {}", document.label(), lost.join("; "));
        }
        let machines = self.nodes.as_deref().unwrap_or_default();
        for machine in machines {
            let uuid = &machine.node.uuid;
            ensure!(
                !matches!(machine.node.provision_state, ProvisionState::Other(_)),
                "node {uuid} is in {}, which is no state that we know",
                machine.node.provision_state
            );
            if let Some(port) = machine.ports.iter().find(|port| port.node_uuid != *uuid) {
                bail!(
                    "port {} stands beside node {uuid} and belongs to {}",
                    port.address,
                    port.node_uuid
                );
            }
        }
        // Recordings of one host say in their labels where its node is.
        let Some((_, said)) = self.label.split_once('.') else {
            return Ok(());
        };
        let found = match machines {
            [] => NO_NODE.to_owned(),
            [machine, ..] => machine.node.provision_state.to_string().replace(' ', "-"),
        };
        ensure!(
            self.nodes.is_none() || found == said,
            "{}: the node is {found}",
            self.label
        );
        Ok(())
    }
}
