//! What the lists of several Ironics show of a host, without a request.

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::ids::NodeUuid;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState;
use metal3_runtime::plan::{Observed, UnknownReason};

use super::ironic_session::IronicSession;
use super::sessions::Sessions;
use crate::ironics::{self, Elsewhere, Listing, Located, Name, elsewhere};
use crate::node::{bmc, name};
use crate::plan::object::recorded_node_id;

fn named(name: &str) -> String {
    format!("name {name}")
}

fn of_machine(machine: &str) -> String {
    format!("machine {machine}")
}

/// What a host is found by in a list. A node whose BMC has not accepted its login takes the machine from no host.
pub(super) fn keys_of(node: &Node) -> Vec<String> {
    let is_verified = !matches!(node.provision_state, ProvisionState::Enroll | ProvisionState::Verifying);
    let machine = bmc::machine_in(|key| node.driver_info.get(key)).filter(|_| is_verified);
    let machine = machine.map(|machine| of_machine(&machine));
    node.name.as_deref().map(named).into_iter().chain(machine).collect()
}

/// A host, as it is looked for in the lists.
pub(super) struct Sought {
    recorded: Option<NodeUuid>,
    names: Vec<String>,
    machine: Option<String>,
}

impl Sought {
    pub(super) fn of(host: &BareMetalHost, accepts_plain: bool) -> Self {
        let plain = name::plain(host).filter(|_| accepts_plain);
        let names = name::of(host).ok().into_iter().chain(plain);
        let address = host.spec.bmc.as_ref().map(|bmc| bmc.address.as_str());
        Self {
            recorded: NodeUuid::parse(recorded_node_id(host)).ok(),
            names: names.map(|name| named(&name)).collect(),
            machine: address.and_then(bmc::machine).map(|machine| of_machine(&machine)),
        }
    }
}

impl IronicSession {
    fn lists_recorded(&self, host: &Sought) -> bool {
        host.recorded
            .as_ref()
            .is_some_and(|uuid| self.listed_node(uuid).is_some())
    }

    fn lists_named(&self, host: &Sought) -> bool {
        host.names.iter().any(|name| !self.listed_with(name).is_empty())
    }

    fn listing(&self, host: &Sought) -> Listing {
        Listing {
            is_complete: self.is_listed(),
            has_recorded: self.lists_recorded(host),
            has_named: self.lists_named(host),
            has_machine: host
                .machine
                .as_ref()
                .is_some_and(|machine| !self.listed_with(machine).is_empty()),
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
