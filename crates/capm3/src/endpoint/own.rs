//! What a Metal3Cluster says of the endpoint itself.
//!
//! A derived endpoint stands in the same field as a typed one, so that everybody else sees a normal object. An
//! annotation tells the two apart: it outlives a move to another cluster, which the owners of fields do not.

use metal3_api::infrastructure::names::DERIVED_ENDPOINT_ANNOTATION;
use metal3_api::infrastructure::v1beta2::{EndpointOrigin, Metal3Cluster};

use super::address::{Address, stated_port};

/// What stands in `spec.controlPlaneEndpoint`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Own {
    /// A person typed it.
    Typed(Address),
    /// We derived it.
    Derived(Derived),
    /// Nothing. A port alone is a hint for sources that know none.
    Unset {
        /// The port alone.
        port: Option<u16>,
    },
}

/// An endpoint that was derived, and from which source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Derived {
    /// The endpoint.
    pub address: Address,
    /// The source it came from.
    pub origin: EndpointOrigin,
}

impl Derived {
    /// As the annotation says it.
    #[must_use]
    pub fn marker(&self) -> String {
        format!("{};{}", word(self.origin), self.address)
    }

    /// Reads the annotation. One that makes no sense marks nothing.
    #[must_use]
    pub fn parse(marker: &str) -> Option<Self> {
        let (source, address) = marker.split_once(';')?;
        let mut all = ORIGINS.into_iter();
        Some(Self {
            address: Address::parse(address)?,
            origin: all.find(|origin| word(*origin) == source)?,
        })
    }
}

const ORIGINS: [EndpointOrigin; 6] = [
    EndpointOrigin::Spec,
    EndpointOrigin::Cluster,
    EndpointOrigin::InfraCluster,
    EndpointOrigin::ControlPlane,
    EndpointOrigin::Service,
    EndpointOrigin::IPPool,
];

/// A source as the API names it.
#[must_use]
pub const fn word(origin: EndpointOrigin) -> &'static str {
    match origin {
        EndpointOrigin::Spec => "Spec",
        EndpointOrigin::Cluster => "Cluster",
        EndpointOrigin::InfraCluster => "InfraCluster",
        EndpointOrigin::ControlPlane => "ControlPlane",
        EndpointOrigin::Service => "Service",
        EndpointOrigin::IPPool => "IPPool",
    }
}

/// What was derived last, whatever stands in the field now.
#[must_use]
pub fn derived_last(object: &Metal3Cluster) -> Option<Derived> {
    let annotations = object.metadata.annotations.as_ref()?;
    Derived::parse(annotations.get(DERIVED_ENDPOINT_ANNOTATION)?)
}

/// What the object says.
#[must_use]
pub fn own(object: &Metal3Cluster) -> Own {
    let stated = object.spec.control_plane_endpoint.as_ref();
    let Some(address) = stated.and_then(Address::of) else {
        return Own::Unset {
            port: stated.and_then(|endpoint| stated_port(endpoint.port)),
        };
    };
    match derived_last(object) {
        Some(derived) if derived.address == address => Own::Derived(derived),
        _ => Own::Typed(address),
    }
}
