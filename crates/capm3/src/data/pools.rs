//! The pools that a template takes addresses from, and the grants from them.
//!
//! A machine gets one address per pool, however often the template names it. Group, kind and name identify a pool. When
//! several fields could name a pool, the annotation takes precedence over the reference and the reference over the
//! plain name; the rest are ignored, so no unused address is claimed.
//!
//! Invariant: rendering resolves a field with the same function as the collection here, so it never needs a pool that
//! is not collected.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use metal3_api::infrastructure::v1beta2::{
    AnnotationSource, DynamicNetwork, FromPool, Gateway, IPPoolReference, MetaData, Metal3DataTemplateSpec,
    NetworkData, Networks, Route, StaticNetwork,
};
use metal3_api::ipam::names::GROUP;
use metal3_api::meta::FamilyText;
use metal3_domain::names::ObjectName;

use super::subject::Subject;
use super::{DataError, Problem};

/// Kind of the pools of the group `ipam.metal3.io`.
const KIND: &str = "IPPool";

/// A pool in the machine's namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolRef {
    /// Group; with the kind it selects the contract.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: ObjectName,
}

/// A granted address with its properties, as the pool's provider wrote them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grant {
    /// The address.
    pub address: String,
    /// Prefix length; unknown for some providers.
    pub prefix: Option<i64>,
    /// Gateway; empty for none.
    pub gateway: String,
    /// Name servers.
    pub dns_servers: Vec<String>,
}

/// The grants, by pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants(pub BTreeMap<PoolRef, Grant>);

impl PoolRef {
    /// An IPPool of `ipam.metal3.io`.
    ///
    /// # Errors
    /// When the text is not an object name.
    pub fn metal3(name: &str, field: &str) -> Result<Self, DataError> {
        Self::try_new(GROUP, KIND, name, field)
    }

    /// Whether the contract of `ipam.metal3.io` applies rather than that of Cluster API.
    #[must_use]
    pub fn is_metal3(&self) -> bool {
        self.group == GROUP && self.kind == KIND
    }

    fn try_new(group: &str, kind: &str, name: &str, field: &str) -> Result<Self, DataError> {
        if group == GROUP && kind != KIND {
            // differs (`pool-kind-without-group`): the Go manager creates a claim that no provider serves.
            let (group, kind) = (group.to_owned(), kind.to_owned());
            return Err(Problem::PoolKind { group, kind }.of(field));
        }
        let parsed = ObjectName::parse(name).map_err(|error| {
            Problem::PoolName {
                name: name.to_owned(),
                error,
            }
            .of(field)
        })?;
        Ok(Self {
            group: group.to_owned(),
            kind: kind.to_owned(),
            name: parsed,
        })
    }

    /// The pool of a reference. Without group and kind it is an IPPool of `ipam.metal3.io`.
    ///
    /// # Errors
    /// When its name or kind is invalid.
    pub(crate) fn of_reference(reference: &IPPoolReference, field: &str) -> Result<Self, DataError> {
        let group = stated(reference.api_group.as_deref()).unwrap_or(GROUP);
        let kind = stated(reference.kind.as_deref()).unwrap_or(KIND);
        Self::try_new(group, kind, &reference.name, field)
    }

    /// The pool of a metadata entry.
    ///
    /// # Errors
    /// When its name or kind is invalid.
    pub(super) fn of_entry(entry: &FromPool, field: &str) -> Result<Self, DataError> {
        // differs (`pool-kind-honoured`): the Go manager treats every such entry as an IPPool of `ipam.metal3.io`.
        let group = stated(entry.api_group.as_deref()).unwrap_or(GROUP);
        let kind = stated(entry.kind.as_deref()).unwrap_or(KIND);
        Self::try_new(group, kind, &entry.name, field)
    }

    /// The pool of a network's address.
    ///
    /// # Errors
    /// When it names none, or an invalid one.
    pub(super) fn of_network<A: FamilyText>(
        network: &StaticNetwork<A>,
        subject: &Subject<'_>,
        field: &str,
    ) -> Result<Self, DataError> {
        let sources = Sources {
            annotation: network.from_pool_annotation.as_ref(),
            reference: network.from_pool_ref.as_ref(),
            name: network.ip_address_from_ip_pool.as_deref(),
            name_field: "ipAddressFromIPPool",
        };
        sources
            .resolve(subject, field)?
            .ok_or_else(|| Problem::PoolUnset.of(field))
    }

    /// The pool of a route's gateway; `None` when the gateway is literal or unset.
    ///
    /// # Errors
    /// When the pool is invalid.
    pub(super) fn of_gateway<A: FamilyText>(
        gateway: &Gateway<A>,
        subject: &Subject<'_>,
        field: &str,
    ) -> Result<Option<Self>, DataError> {
        if gateway.string.as_ref().is_some_and(|text| !text.to_string().is_empty()) {
            return Ok(None);
        }
        let sources = Sources {
            annotation: gateway.from_pool_annotation.as_ref(),
            reference: gateway.from_pool_ref.as_ref(),
            name: gateway.from_ip_pool.as_deref(),
            name_field: "fromIPPool",
        };
        sources.resolve(subject, field)
    }

    /// The pool of name servers, if any.
    ///
    /// # Errors
    /// When its name is invalid.
    pub(super) fn of_dns(name: Option<&str>, field: &str) -> Result<Option<Self>, DataError> {
        stated(name)
            .map(|name| Self::metal3(name, &format!("{field}.dnsFromIPPool")))
            .transpose()
    }
}

impl fmt::Display for PoolRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_metal3() {
            self.name.fmt(f)
        } else {
            write!(f, "{} ({}.{})", self.name, self.kind, self.group)
        }
    }
}

impl Grants {
    /// The grant from a pool.
    ///
    /// # Errors
    /// When there is none yet.
    pub fn of(&self, pool: &PoolRef, field: &str) -> Result<&Grant, DataError> {
        let missing = || Problem::NotGranted { pool: pool.to_string() }.of(field);
        self.0.get(pool).ok_or_else(missing)
    }
}

/// The fields that may name a pool, in order of precedence.
struct Sources<'a> {
    annotation: Option<&'a AnnotationSource>,
    reference: Option<&'a IPPoolReference>,
    name: Option<&'a str>,
    name_field: &'static str,
}

impl Sources<'_> {
    /// The first field that is set. An empty annotation, reference or name counts as unset, because the older API
    /// version writes unset fields so.
    fn resolve(&self, subject: &Subject<'_>, field: &str) -> Result<Option<PoolRef>, DataError> {
        // differs (`claims-used-pools-only`): with an annotation the Go manager claims from the other source too.
        if let Some(source) = self.annotation.filter(|source| !source.annotation.is_empty()) {
            let field = format!("{field}.fromPoolAnnotation");
            let name = subject.required_annotation(source, &field)?;
            return PoolRef::metal3(name, &field).map(Some);
        }
        if let Some(reference) = self.reference.filter(|reference| !reference.name.is_empty()) {
            return PoolRef::of_reference(reference, &format!("{field}.fromPoolRef")).map(Some);
        }
        let name = stated(self.name);
        name.map(|name| PoolRef::metal3(name, &format!("{field}.{}", self.name_field)))
            .transpose()
    }
}

/// The pools that a machine needs an address from.
///
/// # Errors
/// When a field names an invalid pool.
pub fn needed(template: &Metal3DataTemplateSpec, subject: &Subject<'_>) -> Result<BTreeSet<PoolRef>, DataError> {
    let mut pools = BTreeSet::new();
    if let Some(meta_data) = &template.meta_data {
        of_meta_data(meta_data, &mut pools)?;
    }
    if let Some(network_data) = &template.network_data {
        of_network_data(network_data, subject, &mut pools)?;
    }
    Ok(pools)
}

fn of_meta_data(meta_data: &MetaData, pools: &mut BTreeSet<PoolRef>) -> Result<(), DataError> {
    for (property, entries) in super::meta_data::pool_entries(meta_data) {
        for (position, entry) in entries.iter().enumerate() {
            pools.insert(PoolRef::of_entry(
                entry,
                &super::meta_data::field(property.list(), position),
            )?);
        }
    }
    Ok(())
}

fn of_network_data(data: &NetworkData, subject: &Subject<'_>, pools: &mut BTreeSet<PoolRef>) -> Result<(), DataError> {
    if let Some(networks) = &data.networks {
        let Networks {
            ipv4,
            ipv6,
            ipv4_dhcp,
            ipv6_dhcp,
            ipv6_slaac,
        } = networks;
        of_static(ipv4, "ipv4", subject, pools)?;
        of_static(ipv6, "ipv6", subject, pools)?;
        of_dynamic(ipv4_dhcp, "ipv4DHCP", subject, pools)?;
        of_dynamic(ipv6_dhcp, "ipv6DHCP", subject, pools)?;
        of_dynamic(ipv6_slaac, "ipv6SLAAC", subject, pools)?;
    }
    let services = data.services.as_ref();
    let dns = services.and_then(|services| services.dns_from_ip_pool.as_deref());
    pools.extend(PoolRef::of_dns(dns, super::network_data::SERVICES)?);
    Ok(())
}

fn of_static<A: FamilyText>(
    networks: &[StaticNetwork<A>],
    list: &str,
    subject: &Subject<'_>,
    pools: &mut BTreeSet<PoolRef>,
) -> Result<(), DataError> {
    for (position, network) in networks.iter().enumerate() {
        let field = super::network_data::network_field(list, position);
        pools.insert(PoolRef::of_network(network, subject, &field)?);
        of_routes(&network.routes, &field, subject, pools)?;
    }
    Ok(())
}

fn of_dynamic<A: FamilyText>(
    networks: &[DynamicNetwork<A>],
    list: &str,
    subject: &Subject<'_>,
    pools: &mut BTreeSet<PoolRef>,
) -> Result<(), DataError> {
    for (position, network) in networks.iter().enumerate() {
        let field = super::network_data::network_field(list, position);
        of_routes(&network.routes, &field, subject, pools)?;
    }
    Ok(())
}

fn of_routes<A: FamilyText>(
    routes: &[Route<A>],
    network: &str,
    subject: &Subject<'_>,
    pools: &mut BTreeSet<PoolRef>,
) -> Result<(), DataError> {
    for (position, route) in routes.iter().enumerate() {
        let field = super::network_data::route_field(network, position);
        pools.extend(PoolRef::of_gateway(
            &route.gateway,
            subject,
            &format!("{field}.gateway"),
        )?);
        let services = route.services.as_ref();
        let dns = services.and_then(|services| services.dns_from_ip_pool.as_deref());
        pools.extend(PoolRef::of_dns(dns, &format!("{field}.services"))?);
    }
    Ok(())
}

fn stated(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}
