//! The pools that a machine needs an address from: one address per pool, however often the template names it.
//!
//! Invariant: rendering resolves a field with the same function as the collection here, so it never needs a pool that
//! is not collected.

use std::collections::BTreeSet;

use metal3_api::infrastructure::v1beta2::{
    DynamicNetwork, MetaData, Metal3DataTemplateSpec, NetworkData, Networks, Route, StaticNetwork,
};
use metal3_api::meta::FamilyText;

use super::DataError;
use super::meta_data::{field, pool_lists};
use super::network_data::{SERVICES, network_field, route_field};
use super::pools::PoolRef;
use super::subject::Subject;

/// The pools that a machine needs an address from.
///
/// # Errors
/// When a field names an invalid pool.
pub fn needed(template: &Metal3DataTemplateSpec, subject: &Subject<'_>) -> Result<BTreeSet<PoolRef>, DataError> {
    let pools = BTreeSet::new();
    let mut collector = Collector { subject, pools };
    if let Some(meta_data) = &template.meta_data {
        collector.meta_data(meta_data)?;
    }
    if let Some(network_data) = &template.network_data {
        collector.network_data(network_data)?;
    }
    Ok(collector.pools)
}

struct Collector<'a> {
    subject: &'a Subject<'a>,
    pools: BTreeSet<PoolRef>,
}

impl Collector<'_> {
    fn meta_data(&mut self, meta_data: &MetaData) -> Result<(), DataError> {
        for (list, entries, _) in pool_lists(meta_data) {
            for (position, entry) in entries.iter().enumerate() {
                self.pools.insert(PoolRef::of_entry(entry, &field(list, position))?);
            }
        }
        Ok(())
    }

    fn network_data(&mut self, data: &NetworkData) -> Result<(), DataError> {
        if let Some(networks) = &data.networks {
            let Networks {
                ipv4,
                ipv6,
                ipv4_dhcp,
                ipv6_dhcp,
                ipv6_slaac,
            } = networks;
            self.static_networks(ipv4, "ipv4")?;
            self.static_networks(ipv6, "ipv6")?;
            self.dynamic_networks(ipv4_dhcp, "ipv4DHCP")?;
            self.dynamic_networks(ipv6_dhcp, "ipv6DHCP")?;
            self.dynamic_networks(ipv6_slaac, "ipv6SLAAC")?;
        }
        let services = data.services.as_ref();
        let dns = services.and_then(|services| services.dns_from_ip_pool.as_deref());
        self.pools.extend(PoolRef::of_dns(dns, SERVICES)?);
        Ok(())
    }

    fn static_networks<A: FamilyText>(&mut self, networks: &[StaticNetwork<A>], list: &str) -> Result<(), DataError> {
        for (position, network) in networks.iter().enumerate() {
            let field = network_field(list, position);
            self.pools.insert(PoolRef::of_network(network, self.subject, &field)?);
            self.routes(&network.routes, &field)?;
        }
        Ok(())
    }

    fn dynamic_networks<A: FamilyText>(&mut self, networks: &[DynamicNetwork<A>], list: &str) -> Result<(), DataError> {
        for (position, network) in networks.iter().enumerate() {
            self.routes(&network.routes, &network_field(list, position))?;
        }
        Ok(())
    }

    fn routes<A: FamilyText>(&mut self, routes: &[Route<A>], network: &str) -> Result<(), DataError> {
        for (position, route) in routes.iter().enumerate() {
            let field = route_field(network, position);
            let gateway = PoolRef::of_gateway(&route.gateway, self.subject, &format!("{field}.gateway"))?;
            self.pools.extend(gateway);
            let services = route.services.as_ref();
            let dns = services.and_then(|services| services.dns_from_ip_pool.as_deref());
            self.pools.extend(PoolRef::of_dns(dns, &format!("{field}.services"))?);
        }
        Ok(())
    }
}
