//! The `Ironic` resource of ironic-standalone-operator, reduced to the fields that are read.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_core::ObjectMeta;
use serde::Deserialize;

/// An Ironic that the operator runs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Ironic {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// What is wanted.
    pub spec: IronicSpec,
    /// What the operator reports.
    pub status: IronicStatus,
}

metal3_runtime::resource!(Ironic: NamespaceResourceScope, "ironic.metal3.io", "v1alpha1", "Ironic", "ironics");

/// What is wanted of an [`Ironic`].
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct IronicSpec {
    /// The Secret with the login of the API. The operator creates one and names it, if it is empty.
    pub api_credentials_name: String,
    /// TLS.
    pub tls: IronicTls,
}

/// TLS of an [`Ironic`].
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct IronicTls {
    /// The Secret with the certificate of the API. Empty: the API is served without TLS.
    pub certificate_name: String,
}

/// What the operator reports of an [`Ironic`].
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct IronicStatus {
    /// Conditions.
    pub conditions: Vec<Condition>,
}
