//! Metal3Machine and its template: an image that is complete, Secrets that are near.

use super::references::{check_object, check_secret, warn_of_secret};
use super::{images, in_place, selectors};
use crate::infrastructure::CleaningMode;
use crate::infrastructure::names::REUSE_AFTER_CLEANING_ANNOTATION;
use crate::infrastructure::v1beta2::{Metal3Machine, Metal3MachineSpec, Metal3MachineTemplate};
use crate::meta::SecretReference;
use crate::rules::images::{DIFFERS, STRONG, STRONG_MEANS, VERIFIED, VERIFIED_MEANS};
use crate::rules::{AdmissionRules, FieldPath, Findings, On, Rule, WriteRequest};

const COMPLETE_IMAGE: &str = "The image has a URL that can be read and, unless it is a live image or in a container \
    registry, a checksum. With a deploy step in `customDeploy` no image is needed.";
const EFFECTIVE: &str = "A warning is returned for members without effect: `userData`, `identityRef` and \
    `hostSelector.inNamespace`.";
const SELECTOR: &str = "A warning is returned for an invalid host selector, which matches no host.";

impl AdmissionRules for Metal3Machine {
    const RULES: &'static [Rule<Self>] = &[
        Rule::on_spec("image-complete", COMPLETE_IMAGE, |machine, findings| {
            images::check("spec", &machine.new.spec, findings);
        }),
        Rule::<Self>::on_spec(STRONG, STRONG_MEANS, |machine, findings| {
            images::warn_of_digest("spec", &machine.new.spec, findings);
        })
        .differing(DIFFERS),
        Rule::<Self>::on_spec(VERIFIED, VERIFIED_MEANS, |machine, findings| {
            images::warn_of_download("spec", &machine.new.spec, findings);
        })
        .differing(DIFFERS),
        Rule::new(
            "secrets-in-own-namespace",
            "User data, metadata and network data are Secrets of the machine's namespace.",
            On::Spec(secrets_are_near),
        ),
        Rule::<Self>::on_spec(
            "data-template-in-own-namespace",
            "The data template is in the machine's namespace.",
            |machine, findings| {
                let owner = machine.new.metadata.namespace.as_ref();
                let reference = machine.new.spec.data_template.as_ref();
                check_object("spec.dataTemplate", reference, owner, "Metal3Machine", findings);
            },
        )
        .differing("machine-data-template-namespace"),
        Rule::<Self>::on_spec("host-selector-readable", SELECTOR, |machine, findings| {
            selectors::warn("spec.hostSelector", machine.new.spec.host_selector.as_ref(), findings);
        })
        .differing("selector-warning"),
        Rule::<Self>::on_spec("members-effective", EFFECTIVE, |machine, findings| {
            warn_of_unserved("spec", &machine.new.spec, findings);
        })
        .differing("machine-unserved-members"),
        Rule::<Self>::on_spec("changed-in-place", in_place::OF_MACHINE, in_place::warn_of_machine)
            .differing(in_place::DIFFERS),
    ];
}

impl AdmissionRules for Metal3MachineTemplate {
    const RULES: &'static [Rule<Self>] = &[
        Rule::on_spec("image-complete", COMPLETE_IMAGE, |template, findings| {
            images::check("spec.template.spec", &template.new.spec.template.spec, findings);
        }),
        Rule::<Self>::on_spec(STRONG, STRONG_MEANS, |template, findings| {
            images::warn_of_digest("spec.template.spec", &template.new.spec.template.spec, findings);
        })
        .differing(DIFFERS),
        Rule::<Self>::on_spec(VERIFIED, VERIFIED_MEANS, |template, findings| {
            images::warn_of_download("spec.template.spec", &template.new.spec.template.spec, findings);
        })
        .differing(DIFFERS),
        Rule::on_spec(
            "secrets-near-machines",
            "A warning is returned for a Secret in another namespace: machines created from the template \
                are rejected.",
            secrets_are_near_machines,
        )
        .differing("template-secret-warning"),
        Rule::<Self>::on_spec("host-selector-readable", SELECTOR, |template, findings| {
            let selector = template.new.spec.template.spec.host_selector.as_ref();
            selectors::warn("spec.template.spec.hostSelector", selector, findings);
        })
        .differing("selector-warning"),
        Rule::<Self>::on_spec("members-effective", EFFECTIVE, |template, findings| {
            warn_of_unserved("spec.template.spec", &template.new.spec.template.spec, findings);
        })
        .differing("machine-unserved-members"),
        Rule::<Self>::on_spec(
            "node-reuse-cleaning",
            "A warning is returned for `nodeReuse` unless automated cleaning is disabled: a host whose disks would be \
                cleaned is not deprovisioned for a roll.",
            warn_of_cleaned_reuse,
        )
        .differing("reuse-without-cleaning"),
        Rule::<Self>::on_spec("changed-in-place", in_place::OF_TEMPLATE, in_place::warn_of_template)
            .differing(in_place::DIFFERS),
    ];
}

/// Warns about members that are stored without effect.
///
/// differs: `machine-unserved-members`. The Go manager says nothing about user data, and has no other of these members.
fn warn_of_unserved(path: &str, spec: &Metal3MachineSpec, findings: &mut Findings) {
    let path = FieldPath::new(path);
    if spec.user_data.is_some() {
        findings.warn(
            path.child("userData"),
            format!("{path}.userData has no effect: the bootstrap data of the Machine replace it"),
            "remove it, and set spec.bootstrap.dataSecretName of the Machine",
        );
    }
    if spec.identity_ref.is_some() {
        findings.warn(
            path.child("identityRef"),
            format!("{path}.identityRef has no effect yet: hosts of another cluster are not used"),
            "remove it, or the machine gets a host of its own namespace",
        );
    }
    let namespace = spec
        .host_selector
        .as_ref()
        .and_then(|selector| selector.in_namespace.as_ref());
    if namespace.is_some() {
        findings.warn(
            path.child("hostSelector").child("inNamespace"),
            format!("{path}.hostSelector.inNamespace has no effect yet: hosts of other namespaces are not used"),
            "remove it, or the machine gets a host of its own namespace",
        );
    }
}

fn warn_of_cleaned_reuse(template: &WriteRequest<'_, Metal3MachineTemplate>, findings: &mut Findings) {
    let spec = &template.new.spec;
    let annotations = template.new.metadata.annotations.as_ref();
    let is_accepted = annotations.is_some_and(|all| all.contains_key(REUSE_AFTER_CLEANING_ANNOTATION));
    let is_kept = spec.template.spec.automated_cleaning_mode == Some(CleaningMode::Disabled);
    if spec.node_reuse == Some(true) && !is_kept && !is_accepted {
        findings.warn(
            FieldPath::new("spec.template.spec.automatedCleaningMode"),
            "cleaning would erase the disks that nodeReuse keeps, so machines are not replaced",
            format!("set it to disabled, or annotate the template with {REUSE_AFTER_CLEANING_ANNOTATION}"),
        );
    }
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
