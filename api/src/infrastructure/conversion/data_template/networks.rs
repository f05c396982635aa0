//! Networks and services of a data template.

use crate::infrastructure::conversion::error::ConversionError;
use crate::infrastructure::conversion::value::{list, narrow_nonzero, non_default, text, widen_nonzero};
use crate::infrastructure::{v1beta1 as spoke, v1beta2 as hub};
use crate::meta::FamilyText;

pub(super) fn to_spoke(networks: &hub::Networks) -> spoke::Networks {
    spoke::Networks {
        ipv4: networks.ipv4.iter().map(static_to_spoke).collect(),
        ipv6: networks.ipv6.iter().map(static_to_spoke).collect(),
        ipv4_dhcp: networks.ipv4_dhcp.iter().map(dynamic_to_spoke).collect(),
        ipv6_dhcp: networks.ipv6_dhcp.iter().map(dynamic_to_spoke).collect(),
        ipv6_slaac: networks.ipv6_slaac.iter().map(dynamic_to_spoke).collect(),
    }
}

pub(super) fn from_spoke(networks: &spoke::Networks) -> Result<hub::Networks, ConversionError> {
    Ok(hub::Networks {
        ipv4: list(&networks.ipv4, "ipv4", static_from_spoke)?,
        ipv6: list(&networks.ipv6, "ipv6", static_from_spoke)?,
        ipv4_dhcp: list(&networks.ipv4_dhcp, "ipv4DHCP", dynamic_from_spoke)?,
        ipv6_dhcp: list(&networks.ipv6_dhcp, "ipv6DHCP", dynamic_from_spoke)?,
        ipv6_slaac: list(&networks.ipv6_slaac, "ipv6SLAAC", dynamic_from_spoke)?,
    })
}

fn static_to_spoke<A: FamilyText>(network: &hub::StaticNetwork<A>) -> spoke::StaticNetwork<A> {
    spoke::StaticNetwork {
        id: network.id.clone(),
        link: network.link.clone(),
        ip_address_from_ip_pool: network.ip_address_from_ip_pool.clone(),
        from_pool_ref: network.from_pool_ref.as_ref().map(pool_to_spoke),
        from_pool_annotation: network.from_pool_annotation.as_ref().map(annotation_to_spoke),
        routes: network.routes.iter().map(route_to_spoke).collect(),
    }
}

fn static_from_spoke<A: FamilyText>(
    network: &spoke::StaticNetwork<A>,
) -> Result<hub::StaticNetwork<A>, ConversionError> {
    Ok(hub::StaticNetwork {
        id: network.id.clone(),
        link: network.link.clone(),
        ip_address_from_ip_pool: text(network.ip_address_from_ip_pool.as_ref()),
        from_pool_ref: network.from_pool_ref.as_ref().and_then(pool_from_spoke),
        from_pool_annotation: network.from_pool_annotation.as_ref().map(annotation_from_spoke),
        routes: list(&network.routes, "routes", route_from_spoke)?,
    })
}

fn dynamic_to_spoke<A: FamilyText>(network: &hub::DynamicNetwork<A>) -> spoke::DynamicNetwork<A> {
    spoke::DynamicNetwork {
        id: network.id.clone(),
        link: network.link.clone(),
        routes: network.routes.iter().map(route_to_spoke).collect(),
    }
}

fn dynamic_from_spoke<A: FamilyText>(
    network: &spoke::DynamicNetwork<A>,
) -> Result<hub::DynamicNetwork<A>, ConversionError> {
    Ok(hub::DynamicNetwork {
        id: network.id.clone(),
        link: network.link.clone(),
        routes: list(&network.routes, "routes", route_from_spoke)?,
    })
}

fn route_to_spoke<A: FamilyText>(route: &hub::Route<A>) -> spoke::Route<A> {
    let services = |services: &hub::RouteServices<A>| spoke::RouteServices {
        dns: services.dns.clone(),
        dns_from_ip_pool: services.dns_from_ip_pool.clone(),
    };
    spoke::Route {
        network: route.network.clone(),
        prefix: widen_nonzero(route.prefix),
        gateway: spoke::Gateway {
            string: route.gateway.string.clone(),
            from_ip_pool: route.gateway.from_ip_pool.clone(),
            from_pool_ref: route.gateway.from_pool_ref.as_ref().map(pool_to_spoke),
            from_pool_annotation: route.gateway.from_pool_annotation.as_ref().map(annotation_to_spoke),
        },
        services: route.services.as_ref().map(services).and_then(non_default),
    }
}

fn route_from_spoke<A: FamilyText>(route: &spoke::Route<A>) -> Result<hub::Route<A>, ConversionError> {
    let services = |services: &spoke::RouteServices<A>| hub::RouteServices {
        dns: services.dns.clone(),
        dns_from_ip_pool: text(services.dns_from_ip_pool.as_ref()),
    };
    let gateway = &route.gateway;
    Ok(hub::Route {
        network: route.network.clone(),
        prefix: narrow_nonzero(route.prefix, "prefix")?,
        gateway: hub::Gateway {
            string: gateway.string.clone().and_then(non_default),
            from_ip_pool: text(gateway.from_ip_pool.as_ref()),
            from_pool_ref: gateway.from_pool_ref.as_ref().and_then(pool_from_spoke),
            from_pool_annotation: gateway.from_pool_annotation.as_ref().map(annotation_from_spoke),
        },
        services: route.services.as_ref().map(services).and_then(non_default),
    })
}

fn pool_to_spoke(pool: &hub::IPPoolReference) -> spoke::TypedLocalReference {
    spoke::TypedLocalReference {
        api_group: pool.api_group.clone(),
        kind: pool.kind.clone(),
        name: pool.name.clone(),
    }
}

/// An empty reference counts as absent: the Go manager writes it for every optional reference.
fn pool_from_spoke(pool: &spoke::TypedLocalReference) -> Option<hub::IPPoolReference> {
    non_default(hub::IPPoolReference {
        name: pool.name.clone(),
        kind: text(pool.kind.as_ref()),
        api_group: text(pool.api_group.as_ref()),
    })
}

pub(super) fn annotation_to_spoke(source: &hub::AnnotationSource) -> spoke::AnnotationSource {
    spoke::AnnotationSource {
        object: source.object,
        annotation: source.annotation.clone(),
    }
}

pub(super) fn annotation_from_spoke(source: &spoke::AnnotationSource) -> hub::AnnotationSource {
    hub::AnnotationSource {
        object: source.object,
        annotation: source.annotation.clone(),
    }
}

pub(super) fn services_to_spoke(services: &hub::NetworkServices) -> spoke::NetworkServices {
    spoke::NetworkServices {
        dns: services.dns.clone(),
        dns_from_ip_pool: services.dns_from_ip_pool.clone(),
    }
}

pub(super) fn services_from_spoke(services: &spoke::NetworkServices) -> hub::NetworkServices {
    hub::NetworkServices {
        dns: services.dns.clone(),
        dns_from_ip_pool: text(services.dns_from_ip_pool.as_ref()),
    }
}
