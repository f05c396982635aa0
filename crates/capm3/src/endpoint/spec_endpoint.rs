//! The endpoint in the spec of a Metal3Cluster.
//!
//! A derived endpoint is in the same field as a user's value, so that other controllers read a normal object. An
//! annotation distinguishes the two; unlike field managers, it survives a move to another cluster.

use metal3_api::infrastructure::names::DERIVED_ENDPOINT_ANNOTATION;
use metal3_api::infrastructure::v1beta2::{EndpointOrigin, Metal3Cluster};

use super::address::Address;

/// Content of `spec.controlPlaneEndpoint`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpecEndpoint {
    /// Set by the user.
    Typed(Address),
    /// Derived by this controller.
    Derived(Derived),
    /// Not set. A port alone is the default for sources without one.
    Unset,
}

impl SpecEndpoint {
    /// The endpoint that Cluster API takes from the object.
    #[must_use]
    pub const fn address(&self) -> Option<&Address> {
        match self {
            Self::Typed(address) | Self::Derived(Derived { address, .. }) => Some(address),
            Self::Unset => None,
        }
    }
}

/// A derived endpoint and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Derived {
    /// The endpoint.
    pub address: Address,
    /// The source.
    pub origin: EndpointOrigin,
}

impl Derived {
    /// The value of the annotation.
    #[must_use]
    pub fn marker(&self) -> String {
        format!("{};{}", origin_name(self.origin), self.address)
    }

    /// Parses the annotation; `None` when it is invalid.
    #[must_use]
    pub fn parse(marker: &str) -> Option<Self> {
        let (source, address) = marker.split_once(';')?;
        Some(Self {
            address: Address::parse(address)?,
            origin: serde_json::from_value(source.into()).ok()?,
        })
    }
}

/// The API name of a source.
#[must_use]
pub const fn origin_name(origin: EndpointOrigin) -> &'static str {
    match origin {
        EndpointOrigin::Spec => "Spec",
        EndpointOrigin::Cluster => "Cluster",
        EndpointOrigin::InfraCluster => "InfraCluster",
        EndpointOrigin::ControlPlane => "ControlPlane",
        EndpointOrigin::Service => "Service",
        EndpointOrigin::IPPool => "IPPool",
    }
}

/// The endpoint that was derived last, even if the field changed since.
#[must_use]
pub fn last_derived(object: &Metal3Cluster) -> Option<Derived> {
    let annotations = object.metadata.annotations.as_ref()?;
    Derived::parse(annotations.get(DERIVED_ENDPOINT_ANNOTATION)?)
}

/// The endpoint in the spec.
#[must_use]
pub fn spec_endpoint(object: &Metal3Cluster) -> SpecEndpoint {
    let stated = object.spec.control_plane_endpoint.as_ref();
    let Some(address) = stated.and_then(Address::of) else {
        return SpecEndpoint::Unset;
    };
    match last_derived(object) {
        Some(derived) if derived.address == address => SpecEndpoint::Derived(derived),
        _ => SpecEndpoint::Typed(address),
    }
}
