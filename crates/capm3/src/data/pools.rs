//! The pools that fields of a template name, and the grants from them.
//!
//! Group, kind and name identify a pool. When several fields could name a pool, the annotation takes precedence over the
//! reference and the reference over the plain name; the rest are ignored, so no unused address is claimed.

use std::collections::BTreeMap;
use std::fmt;

use metal3_api::infrastructure::v1beta2::{AnnotationSource, FromPool, Gateway, IPPoolReference, StaticNetwork};
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
        Self::try_new(None, None, name, field)
    }

    /// Whether the contract of `ipam.metal3.io` applies rather than that of Cluster API.
    #[must_use]
    pub fn is_metal3(&self) -> bool {
        self.group == GROUP && self.kind == KIND
    }

    fn try_new(group: Option<&str>, kind: Option<&str>, name: &str, field: &str) -> Result<Self, DataError> {
        let (group, kind) = (stated(group).unwrap_or(GROUP), stated(kind).unwrap_or(KIND));
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
        Self::try_new(
            reference.api_group.as_deref(),
            reference.kind.as_deref(),
            &reference.name,
            field,
        )
    }

    /// The pool of a metadata entry.
    ///
    /// # Errors
    /// When its name or kind is invalid.
    pub(super) fn of_entry(entry: &FromPool, field: &str) -> Result<Self, DataError> {
        // differs (`pool-kind-honoured`): the Go manager treats every such entry as an IPPool of `ipam.metal3.io`.
        Self::try_new(entry.api_group.as_deref(), entry.kind.as_deref(), &entry.name, field)
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
        let missing = || Problem::NotGranted(pool.to_string()).of(field);
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

fn stated(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}
