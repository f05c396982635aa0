//! `infrastructure.cluster.x-k8s.io/v1beta1`, served for older clients and never stored.
//!
//! An annotation carries the members of the stored object that this version has no field for.

mod cluster;
mod data;
mod data_template;
mod host_selector;
mod image;
mod machine;
mod reference;
mod remediation;
mod status;

pub use cluster::{
    ClusterTemplateResource, ControlPlaneEndpoint, FailureDomain, Metal3Cluster, Metal3ClusterSpec,
    Metal3ClusterStatus, Metal3ClusterTemplate, Metal3ClusterTemplateSpec,
};
pub use data::{
    Metal3Data, Metal3DataClaim, Metal3DataClaimSpec, Metal3DataClaimStatus, Metal3DataSpec, Metal3DataStatus,
};
pub use data_template::{
    Bond, DynamicNetwork, Ethernet, FromAnnotation, FromHostInterface, FromLabel, FromPool, Gateway, IndexEntry,
    MacAddress, MetaData, Metal3DataTemplate, Metal3DataTemplateSpec, Metal3DataTemplateStatus, NamespaceEntry,
    NetworkData, NetworkLinks, NetworkServices, Networks, ObjectNameEntry, Route, RouteServices, StaticNetwork,
    StringEntry, Vlan,
};
pub use host_selector::{HostSelector, HostSelectorRequirement};
pub use image::{CustomDeploy, Image};
pub use machine::{
    MachineTemplateResource, Metal3Machine, Metal3MachineSpec, Metal3MachineStatus, Metal3MachineTemplate,
    Metal3MachineTemplateSpec,
};
pub use reference::{AnnotationSource, TypedLocalReference};
pub use remediation::{
    Metal3Remediation, Metal3RemediationSpec, Metal3RemediationStatus, Metal3RemediationTemplate,
    Metal3RemediationTemplateSpec, Metal3RemediationTemplateStatus, RemediationStrategy, RemediationTemplateResource,
};
pub use status::NewerStatus;
