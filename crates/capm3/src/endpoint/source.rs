//! The objects to read for an endpoint, and their values.

use metal3_api::cluster::{Cluster, ContractReference};
use metal3_api::infrastructure::v1beta2::{
    EndpointOrigin, EndpointPool, EndpointRender, EndpointService, EndpointSourceType, Metal3Cluster,
};
use metal3_api::meta::Time;
use metal3_domain::names::ObjectName;

use super::address::{Address, stated_port};
use super::spec_endpoint::last_derived;

/// State of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceState {
    /// The endpoint.
    Address(Address),
    /// The object exists without an endpoint.
    Empty,
    /// The object exists without an endpoint, and the reason.
    Pending(String),
    /// Its endpoint is invalid: the field, and the remedy.
    Invalid(String),
    /// The object or its kind does not exist.
    Absent,
    /// Reading it, or creating the claim, is forbidden.
    Forbidden {
        /// The forbidden verb.
        verb: &'static str,
        /// The resource, as in RBAC rules: `plural.group`.
        resource: String,
    },
    /// The state is unknown, and the reason.
    Unknown(String),
}

/// A source object and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceValue {
    /// The object, as kind and name.
    pub from: String,
    /// The state.
    pub state: SourceState,
    /// Set when the control plane failed without the endpoint in the Metal3Cluster and may not retry soon.
    pub idle: Option<IdleControlPlane>,
}

/// A control plane whose controller failed and backs off. Only a change of its object triggers a retry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleControlPlane {
    /// Start of the failure, by the clock of its controller.
    pub since: Option<Time>,
    /// The endpoint that it was touched for last.
    pub touched_for: Option<String>,
}

/// State of the template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Template {
    /// Its text.
    Text(String),
    /// The ConfigMap does not exist.
    Absent,
    /// The ConfigMap has no such key.
    WithoutKey,
    /// Reading it is forbidden.
    Forbidden {
        /// The forbidden verb.
        verb: &'static str,
        /// The resource.
        resource: String,
    },
    /// Unknown, and the reason.
    Unknown(String),
}

/// The values of all requested sources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceValues {
    /// The Cluster's infrastructure.
    pub infrastructure: Option<SourceValue>,
    /// The control plane.
    pub control_plane: Option<SourceValue>,
    /// The Service.
    pub service: Option<SourceValue>,
    /// The claim on an address of a pool.
    pub pool: Option<SourceValue>,
    /// The template.
    pub template: Option<Template>,
}

impl SourceValues {
    /// The value of a source.
    #[must_use]
    pub const fn of(&self, origin: EndpointOrigin) -> Option<&SourceValue> {
        match origin {
            EndpointOrigin::Spec | EndpointOrigin::Cluster => None,
            EndpointOrigin::InfraCluster => self.infrastructure.as_ref(),
            EndpointOrigin::ControlPlane => self.control_plane.as_ref(),
            EndpointOrigin::Service => self.service.as_ref(),
            EndpointOrigin::IPPool => self.pool.as_ref(),
        }
    }
}

/// The objects to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WantedSources {
    /// The Cluster's infrastructure.
    pub infrastructure: Option<ContractReference>,
    /// The control plane.
    pub control_plane: Option<ContractReference>,
    /// The Service.
    pub service: Option<EndpointService>,
    /// The port for a source without one.
    pub port: Option<u16>,
    /// The pool to claim an address from.
    pub pool: Option<EndpointPool>,
    /// The template.
    pub template: Option<EndpointRender>,
}

/// The ends of names by which Cluster API finds the Secrets of a Cluster. Who may write a Metal3Cluster need not have the
/// right to write those.
const RESERVED: [&str; 6] = ["-kubeconfig", "-ca", "-etcd", "-proxy", "-sa", "-apiserver-etcd-client"];

/// The requested template and Secret, with valid names.
///
/// # Errors
/// The field with the invalid name.
pub fn validated(requested: &EndpointRender) -> Result<&EndpointRender, String> {
    let names = [
        ("configMapName", &requested.config_map_name),
        ("secretName", &requested.secret_name),
    ];
    for (member, name) in names {
        ObjectName::parse(name.as_str())
            .map_err(|error| format!("spec.controlPlaneEndpointSource.render.{member}: {error}"))?;
    }
    let name = requested.secret_name.as_str();
    match RESERVED.iter().find(|suffix| name.ends_with(**suffix)) {
        None => Ok(requested),
        Some(suffix) => Err(format!(
            "spec.controlPlaneEndpointSource.render.secretName: names that end in {suffix} are those of a Cluster's \
             certificates and kubeconfig; choose another"
        )),
    }
}

/// The requested source; `None` when the endpoint is in the spec.
#[must_use]
pub fn source_type(object: &Metal3Cluster, is_secondary: bool) -> Option<EndpointSourceType> {
    let source = object.spec.control_plane_endpoint_source.as_ref();
    let stated = source.map(|source| source.type_.unwrap_or_default());
    stated.or_else(|| is_secondary.then_some(EndpointSourceType::Auto))
}

/// The objects to read for a Metal3Cluster. With `Auto`, other objects only provide the endpoint before the Cluster
/// does: once the Cluster has an endpoint, only its source is read.
#[must_use]
pub fn wanted_sources(object: &Metal3Cluster, cluster: &Cluster, is_secondary: bool) -> WantedSources {
    use EndpointSourceType::{Auto, Cluster as FromCluster, ControlPlane, IPPool, InfraCluster, Service, Spec};
    let Some(requested) = source_type(object, is_secondary) else {
        return WantedSources::default();
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
    let origin = last_derived(object).map(|derived| derived.origin);
    let early = |from| requested == Auto && (!is_fixed || origin == Some(from));
    let complete = |reference: &ContractReference| !reference.kind.is_empty() && !reference.name.is_empty();
    let infrastructure = cluster.spec.infrastructure_ref.clone().filter(|_| is_secondary);
    let control_plane = cluster.spec.control_plane_ref.clone();
    let mut wanted = WantedSources {
        template: source
            .and_then(|source| validated(source.render.as_ref()?).ok())
            .cloned(),
        ..WantedSources::default()
    };
    match requested {
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
                .and_then(|spec_endpoint| stated_port(spec_endpoint.port));
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
