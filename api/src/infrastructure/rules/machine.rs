//! Metal3Machine and its template: an image that is complete, Secrets that are near.

use super::references::{check_object, check_secret, warn_of_secret};
use super::{images, selectors};
use crate::infrastructure::v1beta2::{Metal3Machine, Metal3MachineSpec, Metal3MachineTemplate};
use crate::meta::SecretReference;
use crate::rules::{AdmissionRules, Findings, On, Rule, WriteRequest};

const COMPLETE_IMAGE: &str = "The image has a URL that can be read and, unless it is a live image or in a container \
    registry, a checksum. With a deploy step in `customDeploy` no image is needed.";
const SELECTOR: &str = "A warning is returned for an invalid host selector, which matches no host.";

impl AdmissionRules for Metal3Machine {
    const RULES: &'static [Rule<Self>] = &[
        Rule {
            name: "image-complete",
            description: COMPLETE_IMAGE,
            on: On::Spec(|machine, findings| {
                images::check("spec", &machine.new.spec, findings);
            }),
            differs: Some("unchanged-spec"),
        },
        Rule {
            name: "secrets-in-own-namespace",
            description: "User data, metadata and network data are Secrets of the machine's namespace.",
            on: On::Spec(secrets_are_near),
            differs: None,
        },
        Rule {
            name: "data-template-in-own-namespace",
            description: "The data template is in the machine's namespace.",
            on: On::Spec(|machine, findings| {
                let owner = machine.new.metadata.namespace.as_ref();
                let reference = machine.new.spec.data_template.as_ref();
                check_object("spec.dataTemplate", reference, owner, "Metal3Machine", findings);
            }),
            differs: Some("machine-data-template-namespace"),
        },
        Rule {
            name: "host-selector-readable",
            description: SELECTOR,
            on: On::Spec(|machine, findings| {
                selectors::warn("spec.hostSelector", machine.new.spec.host_selector.as_ref(), findings);
            }),
            differs: Some("selector-warning"),
        },
    ];
}

impl AdmissionRules for Metal3MachineTemplate {
    const RULES: &'static [Rule<Self>] = &[
        Rule {
            name: "image-complete",
            description: COMPLETE_IMAGE,
            on: On::Spec(|template, findings| {
                images::check("spec.template.spec", &template.new.spec.template.spec, findings);
            }),
            differs: Some("unchanged-spec"),
        },
        Rule {
            name: "secrets-near-machines",
            description: "A warning is returned for a Secret in another namespace: machines created from the template \
                are rejected.",
            on: On::Spec(secrets_are_near_machines),
            differs: Some("template-secret-warning"),
        },
        Rule {
            name: "host-selector-readable",
            description: SELECTOR,
            on: On::Spec(|template, findings| {
                let selector = template.new.spec.template.spec.host_selector.as_ref();
                selectors::warn("spec.template.spec.hostSelector", selector, findings);
            }),
            differs: Some("selector-warning"),
        },
    ];
}

/// The Secrets that the user sets in the spec, by member.
fn secrets(spec: &Metal3MachineSpec) -> [(&'static str, Option<&SecretReference>); 3] {
    [
        ("userData", spec.user_data.as_ref()),
        ("metaData", spec.meta_data.as_ref()),
        ("networkData", spec.network_data.as_ref()),
    ]
}

fn secrets_are_near(machine: &WriteRequest<'_, Metal3Machine>, findings: &mut Findings) {
    for (member, secret) in secrets(&machine.new.spec) {
        check_secret(
            &format!("spec.{member}"),
            secret,
            machine.new.metadata.namespace.as_ref(),
            findings,
        );
    }
}

fn secrets_are_near_machines(template: &WriteRequest<'_, Metal3MachineTemplate>, findings: &mut Findings) {
    let owner = template.new.metadata.namespace.as_ref();
    for (member, secret) in secrets(&template.new.spec.template.spec) {
        warn_of_secret(&format!("spec.template.spec.{member}"), secret, owner, findings);
    }
}
