//! Networks: IPv4, IPv6, then dynamic ones; their routes and name servers.

use std::net::{Ipv4Addr, Ipv6Addr};

use metal3_api::infrastructure::v1beta2 as api;
use metal3_api::meta::FamilyText;
use metal3_domain::ip::{Address, Prefix, parse_address};
use metal3_domain::network_data as model;

use super::{network_field, route_field};
use crate::data::pools::{Grants, PoolRef};
use crate::data::subject::Subject;
use crate::data::{DataError, Problem};

pub(super) fn all(
    networks: &api::Networks,
    subject: &Subject<'_>,
    grants: &Grants,
) -> Result<Vec<model::Network>, DataError> {
    let api::Networks {
        ipv4,
        ipv6,
        ipv4_dhcp,
        ipv6_dhcp,
        ipv6_slaac,
    } = networks;
    let mut rendered = Vec::new();
    let renderer = Renderer { subject, grants };
    renderer.static_networks(ipv4, "ipv4", model::StaticType::Ipv4, &mut rendered)?;
    renderer.static_networks(ipv6, "ipv6", model::StaticType::Ipv6, &mut rendered)?;
    renderer.dynamic_networks(ipv4_dhcp, "ipv4DHCP", model::DynamicType::Ipv4Dhcp, &mut rendered)?;
    renderer.dynamic_networks(ipv6_dhcp, "ipv6DHCP", model::DynamicType::Ipv6Dhcp, &mut rendered)?;
    renderer.dynamic_networks(ipv6_slaac, "ipv6SLAAC", model::DynamicType::Ipv6Slaac, &mut rendered)?;
    Ok(rendered)
}

/// The name servers of the template, then those of a pool.
pub(super) fn name_servers(
    written: Vec<String>,
    pool: Option<&str>,
    grants: &Grants,
    field: &str,
) -> Result<Vec<model::Service>, DataError> {
    let mut addresses = written;
    if let Some(pool) = PoolRef::of_dns(pool, field)? {
        addresses.extend(grants.of(&pool, field)?.dns_servers.iter().cloned());
    }
    Ok(addresses.into_iter().map(model::Service::dns).collect())
}

struct Renderer<'a> {
    subject: &'a Subject<'a>,
    grants: &'a Grants,
}

impl Renderer<'_> {
    fn static_networks<A: FamilyText>(
        &self,
        networks: &[api::StaticNetwork<A>],
        list: &str,
        type_: model::StaticType,
        rendered: &mut Vec<model::Network>,
    ) -> Result<(), DataError> {
        for (position, network) in networks.iter().enumerate() {
            let field = network_field(list, position);
            let (ip_address, netmask) = self.address(network, &field)?;
            rendered.push(model::Network::Static(model::StaticNetwork {
                id: network.id.clone(),
                ip_address,
                link: network.link.clone(),
                netmask,
                routes: self.routes(&network.routes, &field)?,
                r#type: type_,
            }));
        }
        Ok(())
    }

    fn dynamic_networks<A: FamilyText>(
        &self,
        networks: &[api::DynamicNetwork<A>],
        list: &str,
        type_: model::DynamicType,
        rendered: &mut Vec<model::Network>,
    ) -> Result<(), DataError> {
        for (position, network) in networks.iter().enumerate() {
            rendered.push(model::Network::Dynamic(model::DynamicNetwork {
                id: network.id.clone(),
                link: network.link.clone(),
                routes: self.routes(&network.routes, &network_field(list, position))?,
                r#type: type_,
            }));
        }
        Ok(())
    }

    /// The granted address of a network, and its mask; the mask is empty when the prefix is unknown.
    fn address<A: FamilyText>(
        &self,
        network: &api::StaticNetwork<A>,
        field: &str,
    ) -> Result<(String, String), DataError> {
        let pool = PoolRef::of_network(network, self.subject, field)?;
        let grant = self.grants.of(&pool, field)?;
        let (pool, text) = (pool.to_string(), grant.address.clone());
        let Ok(address) = parse_address(&text) else {
            return Err(Problem::NoAddress { pool, text }.of(field));
        };
        if address.is_ipv4() != is_v4::<A>() {
            // differs (`network-family`): the Go manager renders the address with an invalid mask.
            let family = if is_v4::<A>() { "IPv4" } else { "IPv6" };
            return Err(Problem::Family { pool, text, family }.of(field));
        }
        let netmask = grant.prefix.map(|prefix| mask::<A>(prefix, field)).transpose()?;
        Ok((text, netmask.unwrap_or_default()))
    }

    fn routes<A: FamilyText>(&self, routes: &[api::Route<A>], network: &str) -> Result<Vec<model::Route>, DataError> {
        let rendered = routes.iter().enumerate();
        rendered
            .map(|(position, route)| self.route(route, &route_field(network, position)))
            .collect()
    }

    fn route<A: FamilyText>(&self, route: &api::Route<A>, field: &str) -> Result<model::Route, DataError> {
        let gateway_field = format!("{field}.gateway");
        let gateway = match PoolRef::of_gateway(&route.gateway, self.subject, &gateway_field)? {
            Some(pool) => self.grants.of(&pool, &gateway_field)?.gateway.clone(),
            None => route
                .gateway
                .string
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
        };
        let services = route.services.as_ref().map(|services| {
            let written = services.dns.iter().map(ToString::to_string).collect();
            let pool = services.dns_from_ip_pool.as_deref();
            name_servers(written, pool, self.grants, &format!("{field}.services"))
        });
        Ok(model::Route {
            gateway,
            netmask: mask::<A>(route.prefix.unwrap_or(0).into(), &format!("{field}.prefix"))?,
            network: route.network.to_string(),
            services: services.transpose()?.unwrap_or_default(),
        })
    }
}

const fn is_v4<A: FamilyText>() -> bool {
    A::BITS == 32
}

/// The mask of a prefix length, as an address.
fn mask<A: FamilyText>(length: i64, field: &str) -> Result<String, DataError> {
    fn text<F: Address>(length: i64, field: &str) -> Result<String, DataError> {
        let mask = u8::try_from(length).ok().and_then(Prefix::<F>::mask);
        let longest = F::BITS;
        mask.map(|mask| mask.to_string())
            .ok_or_else(|| Problem::Prefix { length, longest }.of(field))
    }
    if is_v4::<A>() {
        text::<Ipv4Addr>(length, field)
    } else {
        text::<Ipv6Addr>(length, field)
    }
}
