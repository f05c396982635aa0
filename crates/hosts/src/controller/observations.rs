//! The observations of one reconcile: from the caches at its start, updated by every live response.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareData};
use metal3_ironic::model::inventory::Inspection;
use metal3_ironic::model::node::{Node, Validation};
use metal3_ironic::model::port::Port;
use metal3_ironic::slots::SlotState;

use crate::facts::{HostFreshness, NodeFreshness, Observed, ObservedNode, Read, Refused, Secret};

#[derive(Clone)]
pub(super) struct ObservedSecret {
    pub(super) metadata: Arc<ObjectMeta>,
    pub(super) values: Option<Arc<BTreeMap<String, ByteString>>>,
}

#[derive(Debug, Clone)]
pub(super) enum NodeObservation {
    Unknown,
    Absent,
    Foreign(String),
    Found(Arc<Node>, NodeFreshness),
}

pub(super) struct Observations {
    pub(super) host: Arc<BareMetalHost>,
    pub(super) host_freshness: HostFreshness,
    pub(super) secrets: BTreeMap<Read, Observed<ObservedSecret>>,
    pub(super) hardware: Observed<Arc<HardwareData>>,
    pub(super) node: NodeObservation,
    pub(super) ports: Observed<Vec<Port>>,
    pub(super) inventory: Observed<Box<Inspection>>,
    pub(super) validation: Observed<Validation>,
    pub(super) history: Observed<String>,
    pub(super) slot: Option<SlotState>,
    pub(super) refused: Option<Refused>,
}

impl Observations {
    pub(super) fn set_host(&mut self, host: BareMetalHost) {
        if host.status.provisioning.state != self.host.status.provisioning.state
            && let NodeObservation::Found(_, freshness @ NodeFreshness::InState) = &mut self.node
        {
            *freshness = NodeFreshness::Current;
        }
        self.host = Arc::new(host);
        self.host_freshness = HostFreshness::Live;
    }

    /// Stores the live node. Its earlier validation may be outdated.
    pub(super) fn set_node(&mut self, node: NodeObservation) {
        self.node = node;
        self.validation = Observed::Unknown;
    }

    /// Marks the observation as older than a request to the node.
    pub(super) fn mark_node_stale(&mut self) {
        if let NodeObservation::Found(_, freshness) = &mut self.node {
            *freshness = NodeFreshness::Stale;
        }
        self.validation = Observed::Unknown;
    }

    /// Whether the observed node is older than a request of this process.
    pub(super) const fn is_node_stale(&self) -> bool {
        matches!(self.node, NodeObservation::Found(_, NodeFreshness::Stale))
    }

    pub(super) fn observed_node(&self) -> ObservedNode<'_> {
        match &self.node {
            NodeObservation::Unknown => ObservedNode::Unknown,
            NodeObservation::Absent => ObservedNode::Absent,
            NodeObservation::Foreign(name) => ObservedNode::Foreign { name },
            NodeObservation::Found(node, freshness) => ObservedNode::Found(node, *freshness),
        }
    }

    pub(super) fn validation(&self) -> Observed<&Validation> {
        borrow(&self.validation, |validation| validation)
    }

    pub(super) fn ports(&self) -> Observed<&[Port]> {
        borrow(&self.ports, Vec::as_slice)
    }

    pub(super) fn inventory(&self) -> Observed<&Inspection> {
        borrow(&self.inventory, AsRef::as_ref)
    }

    pub(super) fn last_history_error(&self) -> Observed<&str> {
        borrow(&self.history, String::as_str)
    }

    pub(super) fn hardware_data(&self) -> Observed<&HardwareData> {
        borrow(&self.hardware, AsRef::as_ref)
    }

    pub(super) fn secret(&self, which: Read) -> Observed<Secret<'_>> {
        match self.secrets.get(&which) {
            None | Some(Observed::Absent) => Observed::Absent,
            Some(Observed::Unknown) => Observed::Unknown,
            Some(Observed::Found(secret)) => Observed::Found(Secret {
                metadata: &secret.metadata,
                values: secret.values.as_deref(),
            }),
        }
    }
}

fn borrow<T, U: ?Sized>(value: &Observed<T>, borrow_value: impl Fn(&T) -> &U) -> Observed<&U> {
    match value {
        Observed::Unknown => Observed::Unknown,
        Observed::Absent => Observed::Absent,
        Observed::Found(value) => Observed::Found(borrow_value(value)),
    }
}
