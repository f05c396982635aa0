//! A template for the infrastructure of clusters made from a ClusterClass.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cluster::Metal3ClusterSpec;
use crate::kind::kind;
use crate::meta::TemplateMetadata;

kind! {
    /// A template from which Metal3Cluster objects are made.
    pub struct Metal3ClusterTemplate in "infrastructure.cluster.x-k8s.io" / "v1beta2" as "metal3clustertemplates" {
        spec: Metal3ClusterTemplateSpec,
    }
}

/// Holds the template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metal3ClusterTemplateSpec {
    /// Metadata and spec of each Metal3Cluster.
    pub template: ClusterTemplateResource,
}

/// Metadata and spec of the objects to make.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterTemplateResource {
    /// Labels and annotations of each Metal3Cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// Spec of each Metal3Cluster.
    pub spec: Metal3ClusterSpec,
}
