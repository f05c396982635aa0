//! List items with the same key, which `v1beta1` allows and `v1beta2` does not.
//!
//! The API server keeps them and accepts updates that do not change the list; a server-side apply of the list may fail.
//! So the controller reports them in a condition of the template.

use std::collections::BTreeSet;

use crate::infrastructure::v1beta2::{Metal3DataTemplate, NetworkData, Route};
use crate::meta::FamilyText;

/// Paths of the VLANs and routes of a data template whose tag or destination repeats an earlier one of the same list.
#[must_use]
pub fn repeated(template: &Metal3DataTemplate) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(data) = &template.spec.network_data {
        repeated_tags(data, &mut found);
        repeated_destinations(data, &mut found);
    }
    found
}

fn repeated_tags(data: &NetworkData, found: &mut Vec<String>) {
    let vlans = data.links.iter().flat_map(|links| &links.vlans);
    let tags = vlans.map(|vlan| vlan.vlan_id);
    found.extend(repeated_positions(tags).map(|index| format!("spec.networkData.links.vlans[{index}]")));
}

fn repeated_destinations(data: &NetworkData, found: &mut Vec<String>) {
    let Some(networks) = &data.networks else { return };
    let lists: [(&str, Vec<Vec<usize>>); 5] = [
        ("ipv4", by_network(networks.ipv4.iter().map(|network| &network.routes))),
        ("ipv6", by_network(networks.ipv6.iter().map(|network| &network.routes))),
        (
            "ipv4DHCP",
            by_network(networks.ipv4_dhcp.iter().map(|network| &network.routes)),
        ),
        (
            "ipv6DHCP",
            by_network(networks.ipv6_dhcp.iter().map(|network| &network.routes)),
        ),
        (
            "ipv6SLAAC",
            by_network(networks.ipv6_slaac.iter().map(|network| &network.routes)),
        ),
    ];
    for (list, networks) in lists {
        for (network, routes) in networks.into_iter().enumerate() {
            let path = |route| format!("spec.networkData.networks.{list}[{network}].routes[{route}]");
            found.extend(routes.into_iter().map(path));
        }
    }
}

/// For each network, positions of its repeated routes.
fn by_network<'a, A>(networks: impl Iterator<Item = &'a Vec<Route<A>>>) -> Vec<Vec<usize>>
where
    A: FamilyText + Ord + 'a,
{
    let destinations =
        |routes: &'a Vec<Route<A>>| repeated_positions(routes.iter().map(|route| &route.network)).collect();
    networks.map(destinations).collect()
}

/// Positions of the items that repeat an earlier one.
fn repeated_positions<T: Ord>(items: impl Iterator<Item = T>) -> impl Iterator<Item = usize> {
    let mut seen = BTreeSet::new();
    items
        .enumerate()
        .filter_map(move |(index, item)| (!seen.insert(item)).then_some(index))
}
