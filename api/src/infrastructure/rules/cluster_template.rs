//! Metal3ClusterTemplate: clusters made from it must know their endpoint.

use crate::infrastructure::v1beta2::Metal3ClusterTemplate;
use crate::rules::{Findings, On, Rule, Ruled, Writing};

impl Ruled for Metal3ClusterTemplate {
    const RULES: &'static [Rule<Self>] = &[Rule {
        name: "endpoint-known",
        says: "`spec.template.spec.controlPlaneEndpoint` has host and port, unless `controlPlaneEndpointSource` says \
               where the endpoint comes from. The port is not filled in.",
        on: On::Spec(endpoint_is_known),
        differs: Some("cluster-template-repair"),
    }];
}

fn endpoint_is_known(template: &Writing<'_, Metal3ClusterTemplate>, findings: &mut Findings) {
    let spec = &template.new.spec.template.spec;
    if spec.control_plane_endpoint_source.is_some() {
        return;
    }
    let path = "spec.template.spec.controlPlaneEndpoint";
    let cure = "set it, or say in controlPlaneEndpointSource where the endpoint comes from";
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
