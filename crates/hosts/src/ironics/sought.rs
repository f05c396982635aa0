//! How a host is looked for in the lists of nodes: the keys of both.

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::ids::NodeUuid;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState;

use crate::node::{bmc, name};
use crate::plan::object::recorded_node_id;

fn named(name: &str) -> String {
    format!("name {name}")
}

fn of_machine(machine: &str) -> String {
    format!("machine {machine}")
}

/// What a host is found by in a list. A node whose BMC has not accepted its login takes the machine from no host.
pub(crate) fn keys_of(node: &Node) -> Vec<String> {
    let is_verified = !matches!(node.provision_state, ProvisionState::Enroll | ProvisionState::Verifying);
    let machine = bmc::machine_in(|key| node.driver_info.get(key)).filter(|_| is_verified);
    let machine = machine.map(|machine| of_machine(&machine));
    node.name.as_deref().map(named).into_iter().chain(machine).collect()
}

/// A host, as it is looked for in the lists.
pub(crate) struct Sought {
    pub(crate) recorded: Option<NodeUuid>,
    /// The keys of its names.
    pub(crate) names: Vec<String>,
    /// The key of its machine.
    pub(crate) machine: Option<String>,
}

impl Sought {
    pub(crate) fn of(host: &BareMetalHost, accepts_plain: bool) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixture::{Fixture, node};

    #[test]
    fn node_has_the_keys_of_its_host_and_of_its_machine_once_the_login_was_accepted() {
        let host: BareMetalHost = serde_json::from_value(Fixture::new("registering").host).unwrap();
        let sought = Sought::of(&host, false);
        let keys = |state: &str| keys_of(&serde_json::from_value(node(state)).unwrap());
        for (state, has_machine) in [
            ("enroll", false),
            ("verifying", false),
            ("manageable", true),
            ("active", true),
        ] {
            let keys = keys(state);
            assert_eq!(sought.names, keys[..1], "{state}");
            assert_eq!(
                sought.machine.as_ref(),
                keys.get(1).or(sought.machine.as_ref()),
                "{state}"
            );
            assert_eq!(keys.len() == 2, has_machine, "{state}: {keys:?}");
        }
        assert_eq!(sought.names, ["name metal~h"]);
        assert_eq!(Sought::of(&host, true).names, ["name metal~h", "name h"]);
    }
}
