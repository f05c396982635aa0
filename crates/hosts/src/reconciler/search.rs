//! Searches the node of a host: in its Ironic, or in all of them.

use std::sync::Arc;

use metal3_api::metal3::names::REGISTERED_IN_ANNOTATION;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::ids::NodeUuid;
use metal3_ironic::calls::{NodeRef, node, port};
use metal3_ironic::model::node::Node;
use metal3_ironic::{Error, SendPermit};
use metal3_runtime::cache::Key;
use metal3_runtime::plan::{Observed, UnknownReason};

use super::ironic_session::{IronicSession, chosen};
use super::observations::Observations;
use super::observer::{Observer, found};
use crate::facts::{ForeignNode, FoundNode};
use crate::ironics::{self, Choice, Elsewhere, Located, Name, Wish, choose};
use crate::node::{name, ports};
use crate::plan::object::recorded_node_id;

impl Observer {
    /// What the lists of the other Ironics show of the host.
    pub(super) fn elsewhere(&self, of: &Observations) -> Elsewhere {
        self.ironics
            .elsewhere(&of.host, of.ironic.as_ref(), self.plain_node_names)
    }

    /// The observations of a host whose Ironic is recorded in this process alone: a dry run writes no record, and all that would
    /// follow needs one.
    pub(super) fn as_recorded(&self, of: &Observations) -> Option<Observations> {
        let choice = choose(self.ironics.names(), &Wish::of(&of.host), &of.located);
        let Choice::Use {
            ironic, is_new: true, ..
        } = choice
        else {
            return None;
        };
        let mut host = BareMetalHost::clone(&of.host);
        let annotations = host.metadata.annotations.get_or_insert_default();
        annotations.insert(REGISTERED_IN_ANNOTATION.to_owned(), ironic.to_string());
        Some(self.observe_cached(Arc::new(host), of.refused.clone()))
    }

    /// Searches all Ironics for the node, and chooses that which has it. No request is sent to one that does not respond: others
    /// would wait for it.
    pub(super) async fn locate(&self, observed: &mut Observations) {
        observed.located = self.located(&observed.host).await;
        observed.ironic = self.ironics.of(&observed.host, &observed.located).cloned();
    }

    async fn located(&self, host: &BareMetalHost) -> Located {
        let recorded = ironics::recorded(host);
        let mut sessions: Vec<(&Name, &IronicSession)> = self.ironics.iter().collect();
        sessions.sort_by_key(|(name, _)| Some(&***name) != recorded.as_deref());
        // What is recorded is to be left, so that only a live view counts then.
        match self.ironics.in_lists(host, self.plain_node_names) {
            Observed::Unknown(UnknownReason::NotRead) => {}
            known => return known,
        }
        // What the others answer does not decide then, and each would be asked again and again.
        if let Some((name, _)) = sessions.iter().find(|(_, session)| !session.is_listed()) {
            tracing::debug!(host = %Key::of(host), ironic = %name, "it is not searched while this Ironic does not respond");
            let why = "one of them does not respond".to_owned();
            return Observed::Unknown(UnknownReason::Unreadable(why));
        }
        let mut unread = None;
        for (name, session) in sessions {
            match self.is_in(session, host).await {
                Ok(true) => return Observed::Present(Name::clone(name)),
                Ok(false) => {}
                Err(error) => {
                    tracing::debug!(host = %Key::of(host), ironic = %name, %error, "it cannot be searched");
                    unread = Some(format!("one of them: {}", error.category()));
                }
            }
        }
        unread.map_or(Observed::Absent, |why| {
            Observed::Unknown(UnknownReason::Unreadable(why))
        })
    }

    async fn is_in(&self, session: &IronicSession, host: &BareMetalHost) -> Result<bool, Error> {
        let recorded = NodeUuid::parse(recorded_node_id(host)).ok().map(NodeRef::Uuid);
        let plain_name = name::plain(host).filter(|_| self.plain_node_names);
        let names = name::of(host).ok().into_iter().chain(plain_name).map(NodeRef::Name);
        for at in recorded.into_iter().chain(names) {
            let is_recorded = matches!(at, NodeRef::Uuid(_));
            let node = get(session, at, None).await?;
            // Of another name it is not used, and may operate the machine: so that Ironic refuses the host, and no other one takes it.
            if node.is_some_and(|node| is_recorded || self.is_own(host, &node)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Searches by UUID, name and MAC address. A node is the host's only by its name. Absent only when all searches
    /// succeed without a result.
    pub(super) async fn search(&self, observed: &Observations) -> Result<Observed<FoundNode>, Error> {
        let (host, send_permit) = (&*observed.host, observed.send_permit.as_ref());
        let ironic = chosen(observed.ironic.as_ref())?;
        let mut recorded = None;
        if let Ok(uuid) = NodeUuid::parse(recorded_node_id(host))
            && let Some(node) = get(ironic, NodeRef::Uuid(uuid), send_permit).await?
        {
            if self.is_own(host, &node) {
                return Ok(found(node));
            }
            recorded = Some(node.uuid);
        }
        // differs: `host-node-by-name`. The Go manager also takes a node with the name of the host alone.
        let plain_name = name::plain(host).filter(|_| self.plain_node_names);
        let names = name::of(host).ok().into_iter().chain(plain_name);
        for name in names {
            let node = get(ironic, NodeRef::Name(name.clone()), send_permit).await?;
            if let Some(node) = node.filter(|node| name::is_named(node.name.as_deref(), &name)) {
                return Ok(found(node));
            }
        }
        if let Some(uuid) = recorded {
            return Ok(Observed::Present(FoundNode::Foreign(ForeignNode::Recorded { uuid })));
        }
        // Ironic rejects the search for another kind of address, and has no port with it.
        let Ok(Some(address)) = ports::boot_address(host) else {
            return Ok(Observed::Absent);
        };
        let ports = ironic.read(send_permit, &port::with_address(&address)).await?;
        let Some(port) = ports.items.into_iter().next() else {
            return Ok(Observed::Absent);
        };
        Ok(match get(ironic, NodeRef::Uuid(port.node_uuid), send_permit).await? {
            None => Observed::Unknown(UnknownReason::NotRead),
            Some(node) if self.is_own(host, &node) => found(node),
            Some(node) => Observed::Present(FoundNode::Foreign(ForeignNode::Address { name: node.name })),
        })
    }
}

async fn get(ironic: &IronicSession, node: NodeRef, send_permit: Option<&SendPermit>) -> Result<Option<Node>, Error> {
    match ironic.send_for_node(send_permit, &node::get(&node)).await {
        Ok(response) => Ok(Some(response.value)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
