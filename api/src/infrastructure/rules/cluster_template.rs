//! Metal3ClusterTemplate: clusters created from it must have an endpoint.

use super::{cluster, zones};
use crate::infrastructure::v1beta2::Metal3ClusterTemplate;
use crate::rules::{AdmissionRules, FieldPath, Findings, On, Rule, WriteRequest};

impl AdmissionRules for Metal3ClusterTemplate {
    const RULES: &'static [Rule<Self>] = &[
        Rule {
            name: "endpoint-known",
            description: "`spec.template.spec.controlPlaneEndpoint` has host and port, unless \
                `controlPlaneEndpointSource` is set. The port has no default.",
            on: On::Spec(endpoint_is_known),
            differs: Some("cluster-template-repair"),
        },
        Rule::<Self>::on_spec("zones-distinct", zones::DISTINCT, |template, findings| {
            zones::distinct("spec.template.spec.deploymentZones", &template.new.spec.template.spec.deployment_zones, findings);
        })
        .differing(zones::DIFFERS),
        // Clusters of a class in another namespace get it, too.
        Rule::<Self>::on_spec("zone-data-template-without-namespace", zones::WITHOUT_NAMESPACE, |template, findings| {
            zones::templates_are_near("spec.template.spec.deploymentZones", &template.new.spec.template.spec.deployment_zones, None, findings);
        })
        .differing(zones::DIFFERS),
        Rule::<Self>::on_spec("zone-data-template-named", zones::NAMED, |template, findings| {
            zones::templates_are_named("spec.template.spec.deploymentZones", &template.new.spec.template.spec.deployment_zones, findings);
        })
        .differing(zones::DIFFERS),
        Rule::<Self>::on_spec("zone-selector-readable", zones::SELECTOR, |template, findings| {
            zones::selectors_are_readable("spec.template.spec.deploymentZones", &template.new.spec.template.spec.deployment_zones, findings);
        })
        .differing("selector-warning"),
        Rule::<Self>::on_spec(
            "members-effective",
            "A warning is returned for members without effect: `identityRef` and `hostAPI: HostClaim`, and `identityRef`, \
                `hostNamespace` and `hostSelector.inNamespace` of a zone. A template has no condition that could name them.",
            warn_of_unserved,
        )
        .differing("cluster-unserved-members"),
    ];
}

fn warn_of_unserved(template: &WriteRequest<'_, Metal3ClusterTemplate>, findings: &mut Findings) {
    let (path, spec) = (FieldPath::new("spec.template.spec"), &template.new.spec.template.spec);
    cluster::warn_of_unserved(&path, spec, findings);
}

fn endpoint_is_known(template: &WriteRequest<'_, Metal3ClusterTemplate>, findings: &mut Findings) {
    let spec = &template.new.spec.template.spec;
    if spec.control_plane_endpoint_source.is_some() {
        return;
    }
    let path = "spec.template.spec.controlPlaneEndpoint";
    let cure = "set it, or name the source of the endpoint in controlPlaneEndpointSource";
    if spec.endpoint_host().is_none() {
        findings.required(format!("{path}.host"), "is missing", cure);
    }
    if spec
        .control_plane_endpoint
        .as_ref()
        .and_then(|endpoint| endpoint.port)
        .unwrap_or_default()
        == 0
    {
        findings.required(format!("{path}.port"), "is missing", cure);
    }
}
