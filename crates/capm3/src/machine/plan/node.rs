//! The machine's Node and its provider ID.

use std::sync::Arc;

use metal3_api::infrastructure::v1beta2::Initialization;
use metal3_api::metal3::v1alpha1::{BareMetalHost, ProvisioningState};
use metal3_capi::progress;
use metal3_domain::ids::Uid;
use metal3_runtime::plan::{Observed, UnknownReason};

use super::{Decision, Planner, Prerequisites};
use crate::machine::action::{Action, Reads};
use crate::machine::conditions::Node;
use crate::node::{Found, NodeQuery, Trust, find, provider_id};

impl<'a> Planner<'a> {
    /// Finds the Node of a provisioned host, and sets the provider ID of the Node and of the machine.
    pub(super) fn node(&mut self, host: &BareMetalHost, prerequisites: Prerequisites<'a>) -> Result<Node, Decision> {
        let trust = trust(prerequisites);
        let is_known = self.is_provisioned() && self.before.spec.provider_id.is_some();
        // A Node matched by host name still needs the provider ID, although the machine has it.
        if is_known && (trust != Trust::Hostname || prerequisites.owner.status.node_ref.is_some()) {
            return Ok(Node::Known);
        }
        if host.status.provisioning.state != ProvisioningState::Provisioned {
            return Ok(Node::NotExpected);
        }
        if self.facts.nodes.unknown() == Some(&UnknownReason::NotRead) {
            return Err(Decision::Read(Reads::Nodes));
        }
        let id = match provider_id(&self.machine) {
            Ok(id) => id,
            Err(error) => return Ok(Node::Failed(error.to_string())),
        };
        let nodes = match self.facts.nodes.as_deref() {
            Observed::Present(nodes) => nodes,
            Observed::Absent => &[],
            Observed::Unknown(why) => return Ok(Node::Waiting(why.to_string())),
        };
        let host_uid = host.metadata.uid.as_deref().and_then(|uid| Uid::parse(uid).ok());
        let hostname = host
            .status
            .hardware
            .as_ref()
            .and_then(|hardware| hardware.hostname.as_deref());
        let query = NodeQuery {
            id: &id,
            stated: self.before.spec.provider_id.as_deref().unwrap_or_default(),
            host_uid: host_uid.as_ref(),
            hostnames: hostname.as_slice(),
            trust,
        };
        let found = find(&query, nodes);
        if trust == Trust::Hostname && !matches!(found, Ok(Found::Node { .. })) && has_no_label(&query, nodes) {
            // parity: how the kubelet starts is unknown, so Cluster API gets the provider ID before the Node exists.
            self.provisioned(&id.to_string());
        }
        Ok(match found {
            Ok(Found::Node { provider_id, .. }) => {
                self.provisioned(&provider_id);
                Node::Known
            }
            Ok(Found::Adopt { name }) => {
                let provider_id = self.machine.spec.provider_id.clone().unwrap_or_else(|| id.to_string());
                self.actions.push(Action::AdoptNode {
                    node: name,
                    provider_id: provider_id.clone(),
                });
                self.provisioned(&provider_id);
                Node::Known
            }
            Ok(Found::None) => Node::Waiting(format!("waiting for the Node with provider ID {id} to register")),
            Err(error) => Node::Failed(error.to_string()),
        })
    }

    /// Sets what Cluster API waits for. It never becomes false again.
    fn provisioned(&mut self, provider_id: &str) {
        self.patch_machine(|machine| {
            machine.spec.provider_id.get_or_insert_with(|| provider_id.to_owned());
        });
        self.machine.status.initialization = Some(Initialization {
            provisioned: Some(true),
        });
    }

    fn is_provisioned(&self) -> bool {
        let initialization = self.machine.status.initialization.as_ref();
        initialization.is_some_and(|done| done.provisioned == Some(true))
    }
}

/// Whether neither provider ID nor label identifies a Node, so that only its host name can.
fn has_no_label(query: &NodeQuery<'_>, nodes: &[Arc<metal3_capi::workload::Node>]) -> bool {
    let trust = Trust::Label;
    find(&NodeQuery { trust, ..*query }, nodes) == Ok(Found::None)
}

fn trust(prerequisites: Prerequisites<'_>) -> Trust {
    if prerequisites.metal3_cluster.spec.cloud_provider_enabled == Some(true) {
        Trust::ProviderId
    } else if progress::has_bootstrap_provider(prerequisites.owner) {
        Trust::Label
    } else {
        Trust::Hostname
    }
}
