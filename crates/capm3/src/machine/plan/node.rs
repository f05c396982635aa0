//! The machine's Node and its provider ID.

use metal3_api::infrastructure::v1beta2::Initialization;
use metal3_api::metal3::v1alpha1::{BareMetalHost, ProvisioningState};
use metal3_capi::progress;
use metal3_domain::ids::Uid;

use super::{Pass, Surroundings};
use crate::machine::action::Action;
use crate::machine::conditions::Node;
use crate::machine::facts::Nodes;
use crate::node::{Found, Trust, Wanted, find, provider_id};

impl<'a> Pass<'a> {
    /// Looks for the Node of a provisioned host, and gives both sides the provider ID.
    pub(super) fn node(&mut self, host: &BareMetalHost, around: Surroundings<'a>) -> Node {
        let trust = trust(around);
        let is_known = self.is_provisioned() && self.facts.machine.spec.provider_id.is_some();
        // A Node that is known by its host name alone has to be given the provider ID, though the machine has it.
        if is_known && (trust != Trust::Hostname || around.owner.status.node_ref.is_some()) {
            return Node::Known;
        }
        if host.status.provisioning.state != ProvisioningState::Provisioned {
            return Node::NotExpected;
        }
        self.wants_nodes = true;
        let id = match provider_id(&self.machine) {
            Ok(id) => id,
            Err(error) => return Node::Failed(error.to_string()),
        };
        if trust == Trust::Hostname {
            // parity: nobody says how the kubelet was started, so Cluster API is told before the Node is there.
            self.provisioned(&id.to_string());
        }
        let nodes = match self.facts.nodes {
            Nodes::Seen(nodes) => nodes,
            Nodes::Unknown(why) => return Node::Waiting(why.to_owned()),
        };
        let host_uid = host.metadata.uid.as_deref().and_then(|uid| Uid::parse(uid).ok());
        let hostname = host
            .status
            .hardware
            .as_ref()
            .and_then(|hardware| hardware.hostname.as_deref());
        let wanted = Wanted {
            id: &id,
            stated: self.facts.machine.spec.provider_id.as_deref().unwrap_or_default(),
            host_uid: host_uid.as_ref(),
            hostnames: hostname.as_slice(),
            trust,
        };
        match find(&wanted, nodes) {
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
        }
    }

    /// What Cluster API waits for. It never becomes false again.
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

fn trust(around: Surroundings<'_>) -> Trust {
    if around.metal3_cluster.spec.cloud_provider_enabled == Some(true) {
        Trust::ProviderId
    } else if progress::has_bootstrap_provider(around.owner) {
        Trust::Label
    } else {
        Trust::Hostname
    }
}
