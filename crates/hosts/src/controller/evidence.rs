//! What one pass has seen so far: what the caches showed at its start, and every live answer since.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareData};
use metal3_ironic::model::inventory::Inspection;
use metal3_ironic::model::node::{Node, Validation};
use metal3_ironic::model::port::Port;
use metal3_ironic::slots::Turn;

use crate::facts::{HostSeen, NodeSeen, NodeSight, Read, Refused, Secret, Sight};

/// A Secret as this pass sees it.
#[derive(Clone)]
pub(super) struct Seen {
    pub(super) metadata: Arc<ObjectMeta>,
    pub(super) values: Option<Arc<BTreeMap<String, ByteString>>>,
}

/// A node as this pass sees it.
#[derive(Debug, Clone)]
pub(super) enum NodeView {
    Unknown,
    Absent,
    Foreign(String),
    Found(Arc<Node>, NodeSeen),
}

/// Everything that a pass may plan from.
pub(super) struct Evidence {
    pub(super) host: Arc<BareMetalHost>,
    pub(super) host_seen: HostSeen,
    pub(super) secrets: BTreeMap<Read, Sight<Seen>>,
    pub(super) hardware: Sight<Arc<HardwareData>>,
    pub(super) node: NodeView,
    pub(super) ports: Sight<Vec<Port>>,
    pub(super) inventory: Sight<Box<Inspection>>,
    pub(super) validation: Sight<Validation>,
    pub(super) history: Sight<String>,
    pub(super) turn: Option<Turn>,
    pub(super) refused: Option<Refused>,
}

impl Evidence {
    /// A live view of the host.
    pub(super) fn saw_host(&mut self, host: BareMetalHost) {
        if host.status.provisioning.state != self.host.status.provisioning.state
            && let NodeView::Found(_, seen @ NodeSeen::Abreast) = &mut self.node
        {
            *seen = NodeSeen::Current;
        }
        self.host = Arc::new(host);
        self.host_seen = HostSeen::Live;
    }

    /// A live view of the node. What was said of it before may not hold any more.
    pub(super) fn saw_node(&mut self, node: NodeView) {
        self.node = node;
        self.validation = Sight::Unknown;
    }

    /// The node was asked for something: what is seen of it is old.
    pub(super) fn asked_node(&mut self) {
        if let NodeView::Found(_, seen) = &mut self.node {
            *seen = NodeSeen::Stale;
        }
        self.validation = Sight::Unknown;
    }

    /// As a plan sees the node.
    pub(super) fn node_sight(&self) -> NodeSight<'_> {
        match &self.node {
            NodeView::Unknown => NodeSight::Unknown,
            NodeView::Absent => NodeSight::Absent,
            NodeView::Foreign(name) => NodeSight::Foreign { name },
            NodeView::Found(node, seen) => NodeSight::Found(node, *seen),
        }
    }

    /// As a plan sees Ironic's verdict on it.
    pub(super) fn validation_sight(&self) -> Sight<&Validation> {
        lent_as(&self.validation, |verdict| verdict)
    }

    /// As a plan sees its ports.
    pub(super) fn ports_sight(&self) -> Sight<&[Port]> {
        lent_as(&self.ports, Vec::as_slice)
    }

    /// As a plan sees what inspection found.
    pub(super) fn inventory_sight(&self) -> Sight<&Inspection> {
        lent_as(&self.inventory, AsRef::as_ref)
    }

    /// As a plan sees the last failure that Ironic remembers.
    pub(super) fn history_sight(&self) -> Sight<&str> {
        lent_as(&self.history, String::as_str)
    }

    /// As a plan sees the HardwareData.
    pub(super) fn hardware_sight(&self) -> Sight<&HardwareData> {
        lent_as(&self.hardware, AsRef::as_ref)
    }

    /// As a plan sees a Secret.
    pub(super) fn secret(&self, which: Read) -> Sight<Secret<'_>> {
        match self.secrets.get(&which) {
            None | Some(Sight::Absent) => Sight::Absent,
            Some(Sight::Unknown) => Sight::Unknown,
            Some(Sight::Found(seen)) => Sight::Found(Secret {
                metadata: &seen.metadata,
                values: seen.values.as_deref(),
            }),
        }
    }
}

/// The same sight, borrowed.
fn lent_as<T, U: ?Sized>(sight: &Sight<T>, lend: impl Fn(&T) -> &U) -> Sight<&U> {
    match sight {
        Sight::Unknown => Sight::Unknown,
        Sight::Absent => Sight::Absent,
        Sight::Found(thing) => Sight::Found(lend(thing)),
    }
}
