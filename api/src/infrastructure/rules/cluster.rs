//! Metal3Cluster: an endpoint, or a source of one.

use super::zones;
use crate::infrastructure::label_prefixes;
use crate::infrastructure::names::LABEL_PREFIXES_ANNOTATION;
use crate::infrastructure::v1beta2::{EndpointSource, EndpointSourceType, HostApi, Metal3Cluster, Metal3ClusterSpec};
use crate::rules::{AdmissionRules, Defaulting, FieldPath, Findings, Rule, WriteRequest};

const CLUSTER_NAME_LABEL: &str = "cluster.x-k8s.io/cluster-name";
const API_SERVER_PORT: i32 = 6443;

impl AdmissionRules for Metal3Cluster {
    const RULES: &'static [Rule<Self>] = &[
        Rule::on_spec(
            "endpoint-known",
            "`spec.controlPlaneEndpoint.host` is set, unless `spec.controlPlaneEndpointSource` names its \
                source, or the object joins a Cluster by `spec.clusterName` or its label.",
            endpoint_is_known,
        )
        .differing("cluster-endpoint-source"),
        Rule::<Self>::on_spec(
            "endpoint-source-complete",
            "The members of `spec.controlPlaneEndpointSource` fit its type: a Service needs `service`, a \
                pool needs `ipPool`, and no other type takes them.",
            |cluster, findings| {
                let source = cluster.new.spec.control_plane_endpoint_source.as_ref();
                source_is_complete(source, findings);
            },
        )
        .differing("cluster-endpoint-source"),
        Rule::on_update(
            "cluster-name-kept",
            "`spec.clusterName` cannot be changed once set.",
            cluster_name_is_kept,
        )
        .differing("cluster-endpoint-source"),
        Rule::<Self>::on_spec("zones-distinct", zones::DISTINCT, |cluster, findings| {
            zones::distinct("spec.deploymentZones", &cluster.new.spec.deployment_zones, findings);
        })
        .differing(zones::DIFFERS),
        Rule::<Self>::on_spec("zone-data-template-in-own-namespace", zones::NEAR, |cluster, findings| {
            zones::templates_are_near("spec.deploymentZones", &cluster.new.spec.deployment_zones, cluster.new.metadata.namespace.as_ref(), findings);
        })
        .differing(zones::DIFFERS),
        Rule::<Self>::on_spec("zone-data-template-named", zones::NAMED, |cluster, findings| {
            zones::templates_are_named("spec.deploymentZones", &cluster.new.spec.deployment_zones, findings);
        })
        .differing(zones::DIFFERS),
        Rule::<Self>::on_spec("zone-selector-readable", zones::SELECTOR, |cluster, findings| {
            zones::selectors_are_readable("spec.deploymentZones", &cluster.new.spec.deployment_zones, findings);
        })
        .differing("selector-warning"),
        Rule::on_write(
            "label-prefixes-readable",
            "A warning is returned when the annotation with prefixes of labels for Nodes cannot be read, so that no label is \
                copied.",
            label_prefixes_are_readable,
        )
        .differing("label-sync-reported"),
        Rule::<Self>::on_spec(
            "members-effective",
            "A warning is returned for members without effect: `identityRef` and `hostAPI: HostClaim`, and `identityRef`, \
                `hostNamespace` and `hostSelector.inNamespace` of a zone.",
            |cluster, findings| warn_of_unserved(&FieldPath::new("spec"), &cluster.new.spec, findings),
        )
        .differing("cluster-unserved-members"),
    ];
    const DEFAULTS: &'static [Defaulting<Self>] = &[
        Defaulting {
            name: "endpoint-port",
            description: "The port of the endpoint is 6443.",
            apply: |cluster| {
                if let Some(endpoint) = &mut cluster.spec.control_plane_endpoint {
                    endpoint.port = endpoint.port.filter(|port| *port != 0).or(Some(API_SERVER_PORT));
                }
            },
        },
        Defaulting {
            name: "no-cloud-provider",
            description: "No cloud provider in the workload cluster sets provider IDs.",
            apply: |cluster| {
                cluster.spec.cloud_provider_enabled.get_or_insert(false);
            },
        },
    ];
}

/// Warns about members that are stored without effect.
pub(super) fn warn_of_unserved(path: &FieldPath, spec: &Metal3ClusterSpec, findings: &mut Findings) {
    let cure = "remove it, or machines get hosts of their own namespace";
    for (member, is_used, what) in [
        (
            "identityRef",
            spec.identity_ref.is_some(),
            "hosts of another cluster are not used",
        ),
        (
            "hostAPI",
            spec.host_api == Some(HostApi::HostClaim),
            "HostClaims are not created",
        ),
    ] {
        if is_used {
            findings.warn(
                path.child(member),
                format!("{path}.{member} has no effect yet: {what}"),
                cure,
            );
        }
    }
    zones::warn_of_unserved(&path.child("deploymentZones"), &spec.deployment_zones, findings);
}

impl Metal3ClusterSpec {
    /// The host of the endpoint, unless absent or empty.
    #[must_use]
    pub fn endpoint_host(&self) -> Option<&str> {
        self.control_plane_endpoint
            .as_ref()?
            .host
            .as_deref()
            .filter(|host| !host.is_empty())
    }
}

/// An object that joins a Cluster receives the endpoint from it.
fn joins_a_cluster(cluster: &Metal3Cluster) -> bool {
    let labelled = cluster
        .metadata
        .labels
        .as_ref()
        .is_some_and(|labels| labels.contains_key(CLUSTER_NAME_LABEL));
    labelled || cluster.spec.cluster_name.as_ref().is_some_and(|name| !name.is_empty())
}

fn endpoint_is_known(cluster: &WriteRequest<'_, Metal3Cluster>, findings: &mut Findings) {
    let spec = &cluster.new.spec;
    let has_host = spec.endpoint_host().is_some();
    let has_source = spec
        .control_plane_endpoint_source
        .as_ref()
        .is_some_and(|source| source.type_.unwrap_or_default() != EndpointSourceType::Spec);
    if !has_host && !has_source && !joins_a_cluster(cluster.new) {
        findings.invalid(
            "spec.controlPlaneEndpoint",
            spec.control_plane_endpoint.as_ref(),
            "is required",
            "set host, or name its source in spec.controlPlaneEndpointSource",
        );
    }
}

fn source_is_complete(source: Option<&EndpointSource>, findings: &mut Findings) {
    use EndpointSourceType::{ControlPlane, IPPool, InfraCluster, Service};
    let Some(source) = source else { return };
    let path = FieldPath::new("spec.controlPlaneEndpointSource");
    let chosen = source.type_.unwrap_or_default();
    for (member, there, needed, allowed) in [
        (
            "service",
            source.service.is_some(),
            chosen == Service,
            chosen == Service,
        ),
        ("ipPool", source.ip_pool.is_some(), chosen == IPPool, chosen == IPPool),
        (
            "objectRef",
            source.object_ref.is_some(),
            false,
            [ControlPlane, InfraCluster].contains(&chosen),
        ),
    ] {
        if needed && !there {
            findings.required(
                path.child(member),
                format!("type {chosen:?} needs it"),
                "set it, or choose another type",
            );
        } else if there && !allowed {
            let problem = format!("type {chosen:?} does not use it");
            findings.forbidden(path.child(member), problem, "remove it, or choose the type that does");
        }
    }
}

fn cluster_name_is_kept(old: &Metal3Cluster, new: &Metal3Cluster, findings: &mut Findings) {
    if old.spec.cluster_name.is_some() && old.spec.cluster_name != new.spec.cluster_name {
        let found = &new.spec.cluster_name;
        findings.invalid(
            "spec.clusterName",
            found,
            "cannot be modified",
            "create another Metal3Cluster instead",
        );
    }
}

fn label_prefixes_are_readable(cluster: &WriteRequest<'_, Metal3Cluster>, findings: &mut Findings) {
    let annotations = cluster.new.metadata.annotations.as_ref();
    let text = annotations.and_then(|annotations| annotations.get(LABEL_PREFIXES_ANNOTATION));
    if let Some(Err(error)) = text.map(|text| label_prefixes(text)) {
        let path = FieldPath::new("metadata.annotations").key(LABEL_PREFIXES_ANNOTATION);
        findings.warn(path, error.to_string(), "no label is copied until this is corrected");
    }
}
