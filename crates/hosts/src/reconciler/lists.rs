//! What the lists of several Ironics show of a host, without a request.

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::plan::{Observed, UnknownReason};

use super::ironic_session::IronicSession;
use super::sessions::Sessions;
use crate::ironics::{self, Elsewhere, Listing, Located, Name, Sought, elsewhere};

impl IronicSession {
    /// Whether the store has every node that Ironic had at its last response.
    pub(super) fn is_listed(&self) -> bool {
        self.is_answering() && self.feed().has_listed()
    }

    /// Whether both send to the same endpoint.
    fn is_at_the_endpoint_of(&self, other: &Self) -> bool {
        let endpoint = self.client().endpoint();
        endpoint.is_some() && endpoint == other.client().endpoint()
    }

    /// Whether both list the same nodes: then two names lead to one Ironic. No two Ironics have a node with the same UUID.
    fn shares_nodes_with(&self, other: &Self) -> bool {
        let lists = |one: &Self, first: &Self| {
            first
                .feed()
                .first()
                .is_some_and(|uuid| one.feed().node(&uuid).is_some())
        };
        self.is_listed() && other.is_listed() && (lists(self, other) || lists(other, self))
    }

    fn lists_recorded(&self, host: &Sought) -> bool {
        host.recorded
            .as_ref()
            .is_some_and(|uuid| self.feed().node(uuid).is_some())
    }

    fn lists_named(&self, host: &Sought) -> bool {
        host.names.iter().any(|name| !self.feed().with_key(name).is_empty())
    }

    fn listing(&self, host: &Sought) -> Listing {
        Listing {
            is_complete: self.is_listed(),
            has_recorded: self.lists_recorded(host),
            has_named: self.lists_named(host),
            has_machine: host
                .machine
                .as_ref()
                .is_some_and(|machine| !self.feed().with_key(machine).is_empty()),
            is_same: false,
        }
    }
}

impl Sessions {
    /// What the lists of the other Ironics show of a host of this one.
    pub(super) fn elsewhere(
        &self,
        host: &BareMetalHost,
        own: Option<&IronicSession>,
        accepts_plain: bool,
    ) -> Elsewhere {
        let Some(own) = own.filter(|_| !self.names().is_one()) else {
            return Elsewhere::Nothing;
        };
        let sought = Sought::of(host, accepts_plain);
        let others = self.iter().filter(|(_, one)| !one.is(own)).map(|(_, one)| Listing {
            is_same: one.is_at_the_endpoint_of(own) || one.shares_nodes_with(own),
            ..one.listing(&sought)
        });
        let others: Vec<Listing> = others.collect();
        elsewhere(own.listing(&sought), &others)
    }

    /// The Ironic that lists the node of a host which records none. What was not listed is not known.
    pub(super) fn in_lists(&self, host: &BareMetalHost, accepts_plain: bool) -> Located {
        let not_known = Observed::Unknown(UnknownReason::NotRead);
        if self.names().is_one() || ironics::recorded(host).is_some() {
            return not_known;
        }
        let sought = Sought::of(host, accepts_plain);
        if let Some((name, _)) = self.iter().find(|(_, session)| session.lists_recorded(&sought)) {
            return Observed::Present(Name::clone(name));
        }
        if sought.recorded.is_some() && !self.iter().all(|(_, session)| session.is_listed()) {
            // A node of its name is not the recorded one, which may be elsewhere.
            return not_known;
        }
        let mut named = self.iter().filter(|(_, session)| session.lists_named(&sought));
        match (named.next(), named.next()) {
            (None, _) => not_known,
            (Some((name, _)), None) => Observed::Present(Name::clone(name)),
            (Some(_), Some(_)) => Observed::Unknown(UnknownReason::Unreadable(
                "two Ironics have a node with the name of this host".to_owned(),
            )),
        }
    }
}
