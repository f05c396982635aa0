//! One snapshot of a recording: the stored objects, and the nodes of Ironic.

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

/// Label suffix when Ironic has no node.
const NO_NODE: &str = "no-node";

/// A snapshot.
#[derive(Debug, Clone)]
pub(in crate::golden) struct Snapshot {
    /// Base name of its files, such as `03-registering-off.enroll`.
    pub(in crate::golden) label: String,
    /// All objects of the namespace, shared while unchanged.
    pub(in crate::golden) objects: Arc<Vec<Document>>,
    /// Nodes of Ironic; `None` when not recorded.
    pub(in crate::golden) nodes: Option<Vec<Machine>>,
}

/// A node with its ports.
#[derive(Debug, Clone)]
pub(in crate::golden) struct Machine {
    pub(in crate::golden) node: Node,
    pub(in crate::golden) ports: Vec<Port>,
    /// The complete node from Ironic.
    pub(in crate::golden) shown: Value,
    /// The complete ports.
    pub(in crate::golden) shown_ports: Vec<Value>,
}

/// File format.
#[derive(Deserialize)]
struct Recorded {
    node: Value,
    ports: Vec<Value>,
}

/// State of a host in a timeline.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::golden) struct HostState {
    /// Provisioning state.
    pub(in crate::golden) state: ProvisioningState,
    /// Power state.
    pub(in crate::golden) powered_on: bool,
}

/// States of all hosts, by name.
pub(in crate::golden) type HostStates = BTreeMap<String, HostState>;

/// Parses the nodes of a file.
///
/// # Errors
/// When a node has another format than the Ironic API.
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

impl Snapshot {
    /// States of all hosts.
    ///
    /// # Errors
    /// When a host cannot be decoded.
    pub(in crate::golden) fn host_states(&self) -> Result<HostStates> {
        let is_host = |document: &&Document| {
            let type_meta = document.type_meta();
            type_meta
                .is_some_and(|(version, kind)| kind == BareMetalHost::KIND && version == BareMetalHost::group_version())
        };
        let state_of = |document: &Document| {
            let host: BareMetalHost =
                serde_json::from_value(document.value.clone()).with_context(|| document.label())?;
            let state = HostState {
                state: host.status.provisioning.state,
                powered_on: host.status.powered_on,
            };
            Ok((host.metadata.name.unwrap_or_default(), state))
        };
        self.objects.iter().filter(is_host).map(state_of).collect()
    }

    /// Checks that the types represent every object completely, that ports belong to their node, and that the node is
    /// in the state of the label.
    ///
    /// # Errors
    /// The first violation.
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
                    "port {} is recorded with node {uuid} and belongs to {}",
                    port.address,
                    port.node_uuid
                );
            }
        }
        // Recordings of one host have the node state in their labels.
        let Some((_, expected)) = self.label.split_once('.') else {
            return Ok(());
        };
        let found = match machines {
            [] => NO_NODE.to_owned(),
            [machine, ..] => machine.node.provision_state.to_string().replace(' ', "-"),
        };
        ensure!(
            self.nodes.is_none() || found == expected,
            "{}: the node is {found}",
            self.label
        );
        Ok(())
    }
}
