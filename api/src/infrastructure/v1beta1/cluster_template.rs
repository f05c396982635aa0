//! A template for the infrastructure of clusters made from a ClusterClass.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cluster::Metal3ClusterSpec;
use crate::kind::kind;

kind! {
    /// A template from which Metal3Cluster objects are made.
    pub struct Metal3ClusterTemplate in "infrastructure.cluster.x-k8s.io" / "v1beta1" as "metal3clustertemplates" {
        spec: Metal3ClusterTemplateSpec,
    }
}

/// Holds the template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Metal3ClusterTemplateSpec {
    /// Metadata and spec of each Metal3Cluster.
    pub template: ClusterTemplateResource,
}

/// Spec of the objects to make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterTemplateResource {
    /// Spec of each Metal3Cluster.
    pub spec: Metal3ClusterSpec,
}
