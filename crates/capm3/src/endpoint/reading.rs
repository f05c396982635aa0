//! Which objects of others are to be looked at, and what they say.

use metal3_api::cluster::{Cluster, ContractReference};
use metal3_api::infrastructure::v1beta2::{
    EndpointOrigin, EndpointPool, EndpointRender, EndpointService, EndpointSourceType, Metal3Cluster,
};
use metal3_api::meta::Time;

use super::address::{Address, stated_port};
use super::own::derived_last;
use super::render::{self, Template};

/// What an object says of the endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// This is it.
    Address(Address),
    /// The object is there, and says nothing yet.
    Nothing,
    /// The object is there, says nothing yet, and why.
    Pending(String),
    /// It says something that is no endpoint: what is wrong, by field and with the cure.
    Invalid(String),
    /// There is no such object, or no such kind.
    Absent,
    /// We may not look; or make it, where it is ours to make.
    Forbidden {
        /// The verb that is refused.
        verb: &'static str,
        /// The resource, as rules name it: `plural.group`.
        resource: String,
    },
    /// Nobody can say, and why.
    Unknown(String),
}

/// One object and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The object, as kind and name.
    pub from: String,
    /// What it says.
    pub heard: Heard,
    /// Its controller, where that has failed for want of our endpoint and may not look again by itself.
    pub sleeper: Option<Sleeper>,
}

/// A controller that fails and pauses longer each time. Only a change of its own object wakes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sleeper {
    /// Since when it fails, by its own clock.
    pub since: Option<Time>,
    /// The endpoint that we woke it for last.
    pub woken_for: Option<String>,
}

/// What was heard of each object that was looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Readings {
    /// The Cluster's infrastructure.
    pub infrastructure: Option<Reading>,
    /// Its control plane.
    pub control_plane: Option<Reading>,
    /// The Service.
    pub service: Option<Reading>,
    /// The claim on an address of a pool.
    pub pool: Option<Reading>,
    /// What the endpoint is to be filled into.
    pub template: Option<Template>,
}

impl Readings {
    /// The same, after the server did not let the claim be made.
    #[must_use]
    pub fn without_claim(&self, heard: &Heard) -> Self {
        let pool = self.pool.clone().map(|reading| Reading {
            heard: heard.clone(),
            ..reading
        });
        Self { pool, ..self.clone() }
    }

    /// What a source said.
    #[must_use]
    pub const fn of(&self, origin: EndpointOrigin) -> Option<&Reading> {
        match origin {
            EndpointOrigin::Spec | EndpointOrigin::Cluster => None,
            EndpointOrigin::InfraCluster => self.infrastructure.as_ref(),
            EndpointOrigin::ControlPlane => self.control_plane.as_ref(),
            EndpointOrigin::Service => self.service.as_ref(),
            EndpointOrigin::IPPool => self.pool.as_ref(),
        }
    }
}

/// What is to be looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The Cluster's infrastructure.
    pub infrastructure: Option<ContractReference>,
    /// Its control plane.
    pub control_plane: Option<ContractReference>,
    /// The Service.
    pub service: Option<EndpointService>,
    /// The port for a source that knows none.
    pub port: Option<u16>,
    /// The pool of which an address is claimed.
    pub pool: Option<EndpointPool>,
    /// What the endpoint is to be filled into.
    pub template: Option<EndpointRender>,
}

/// The source that an object asks for. Nothing where its endpoint is what is written in it, as ever.
#[must_use]
pub fn asked(object: &Metal3Cluster, is_secondary: bool) -> Option<EndpointSourceType> {
    let source = object.spec.control_plane_endpoint_source.as_ref();
    let stated = source.map(|source| source.type_.unwrap_or_default());
    stated.or_else(|| is_secondary.then_some(EndpointSourceType::Auto))
}

/// What is to be looked at for an object. Without a source of its own choice, the objects of others are only a way to
/// know earlier what the Cluster will say: once it does, only the one that the endpoint came from is still of interest.
#[must_use]
pub fn wanted(object: &Metal3Cluster, cluster: &Cluster, is_secondary: bool) -> Wanted {
    use EndpointSourceType::{Auto, Cluster as FromCluster, ControlPlane, IPPool, InfraCluster, Service, Spec};
    let Some(asked) = asked(object, is_secondary) else {
        return Wanted::default();
    };
    let source = object.spec.control_plane_endpoint_source.as_ref();
    let named = source
        .and_then(|source| source.object_ref.as_ref())
        .map(|named| ContractReference {
            api_group: named.api_group.clone(),
            kind: named.kind.clone(),
            name: named.name.clone(),
        });
    let is_fixed = Address::of_cluster(cluster).is_some();
    let origin = derived_last(object).map(|derived| derived.origin);
    let early = |from| asked == Auto && (!is_fixed || origin == Some(from));
    let complete = |reference: &ContractReference| !reference.kind.is_empty() && !reference.name.is_empty();
    let infrastructure = cluster.spec.infrastructure_ref.clone().filter(|_| is_secondary);
    let control_plane = cluster.spec.control_plane_ref.clone();
    let mut wanted = Wanted {
        template: source
            .and_then(|source| render::named(source.render.as_ref()?).ok())
            .cloned(),
        ..Wanted::default()
    };
    match asked {
        Spec | FromCluster => {}
        IPPool => wanted.pool = source.and_then(|source| source.ip_pool.clone()),
        InfraCluster => wanted.infrastructure = named.or(infrastructure),
        ControlPlane => wanted.control_plane = named.or(control_plane),
        Service => {
            wanted.service = source.and_then(|source| source.service.clone());
            wanted.port = object
                .spec
                .control_plane_endpoint
                .as_ref()
                .and_then(|own| stated_port(own.port));
        }
        Auto => {
            wanted.infrastructure = infrastructure.filter(|_| early(EndpointOrigin::InfraCluster));
            wanted.control_plane = control_plane.filter(|_| early(EndpointOrigin::ControlPlane));
        }
    }
    wanted.infrastructure = wanted.infrastructure.filter(complete);
    wanted.control_plane = wanted.control_plane.filter(complete);
    wanted
}
