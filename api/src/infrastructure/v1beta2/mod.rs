//! `infrastructure.cluster.x-k8s.io/v1beta2`, the version that is stored.
//!
//! Fields that the Go manager does not have are all optional. It drops them, and then acts as if they were absent.

mod cluster;
mod data;
mod data_template;
mod endpoint_source;
mod host_selector;
mod image;
mod machine;
mod reference;
mod remediation;
mod status;

pub use cluster::{
    ClusterRole, ClusterTemplateResource, ControlPlaneEndpoint, DeploymentZone, FailureDomain, FailureDomainPolicy,
    HostApi, Metal3Cluster, Metal3ClusterSpec, Metal3ClusterStatus, Metal3ClusterTemplate, Metal3ClusterTemplateSpec,
    ResolvedEndpoint,
};
pub use data::{
    Metal3Data, Metal3DataClaim, Metal3DataClaimSpec, Metal3DataClaimStatus, Metal3DataSpec, Metal3DataStatus,
};
pub use data_template::{
    Bond, BondParameter, DynamicNetwork, Ethernet, FromAnnotation, FromHostInterface, FromLabel, FromPool, Gateway,
    IndexEntry, IndexGrant, MacAddress, MetaData, Metal3DataTemplate, Metal3DataTemplateSpec, Metal3DataTemplateStatus,
    NamespaceEntry, NetworkData, NetworkLinks, NetworkServices, Networks, ObjectNameEntry, Route, RouteServices,
    StaticNetwork, StringEntry, Vlan,
};
pub use endpoint_source::{
    EndpointOrigin, EndpointPool, EndpointRender, EndpointService, EndpointSource, EndpointSourceType,
};
pub use host_selector::{HostSelector, HostSelectorRequirement};
pub use image::{CustomDeploy, Image};
pub use machine::{
    HostRecord, MachineTemplateResource, Metal3Machine, Metal3MachineSpec, Metal3MachineStatus, Metal3MachineTemplate,
    Metal3MachineTemplateSpec,
};
pub use reference::{AnnotationSource, IPPoolReference, IdentityReference, LocalName, Metal3ObjectRef, TypedReference};
pub use remediation::{
    Metal3Remediation, Metal3RemediationSpec, Metal3RemediationStatus, Metal3RemediationTemplate,
    Metal3RemediationTemplateSpec, Metal3RemediationTemplateStatus, RemediationPhase, RemediationStrategy,
    RemediationTemplateResource, RemediationType,
};
pub use status::{DeprecatedStatus, Initialization, LegacyStatus};
