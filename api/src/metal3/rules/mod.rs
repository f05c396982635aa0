//! Admission rules of the kinds of `metal3.io`.
//!
//! The decisions are those of the Go manager's webhooks, which reject, never warn and set no defaults. Warnings are
//! about kinds and fields that this program does not serve. Checks that need other objects, such as whether hosts refer
//! to an attachment, are not rules.

mod attachment;
mod claim;
mod data_image;
mod firmware_components;
mod host;
mod policy;
mod shape;
mod subscription;
mod unserved;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_domain::image::{ImageError, ImageField, check_host_image, check_url};

use super::v1alpha1::{
    BMCEventSubscription, BareMetalHost, BareMetalSwitch, DataImage, HostClaim, HostDeployPolicy,
    HostFirmwareComponents, HostNetworkAttachment, Image, RebootRequest, reboot_annotations,
};
use crate::meta::SecretReference;
use crate::rules::{FieldPath, Findings, Reviewer};

/// The kinds and their rules.
#[must_use]
pub fn reviewers() -> Vec<Reviewer> {
    vec![
        Reviewer::of::<BareMetalHost>(),
        Reviewer::of::<BareMetalSwitch>(),
        Reviewer::of::<BMCEventSubscription>(),
        Reviewer::of::<DataImage>(),
        Reviewer::of::<HostClaim>(),
        Reviewer::of::<HostDeployPolicy>(),
        Reviewer::of::<HostFirmwareComponents>(),
        Reviewer::of::<HostNetworkAttachment>(),
    ]
}

/// The text of a member; empty when absent.
fn text(member: Option<&String>) -> &str {
    member.map_or("", String::as_str)
}

fn annotation_path(name: &str) -> FieldPath {
    FieldPath::new("metadata.annotations").key(name)
}

/// Splits a message of the domain crate at its semicolon into problem and cure.
fn split_message(message: &str, cure: &str) -> (String, String) {
    match message.split_once("; ") {
        Some((problem, cure)) => (problem.to_owned(), cure.to_owned()),
        None => (message.to_owned(), cure.to_owned()),
    }
}

/// Rejects a reference to a Secret of another namespace.
fn check_secret_namespace(
    path: &str,
    metadata: &ObjectMeta,
    secret: Option<&SecretReference>,
    findings: &mut Findings,
) {
    let own = text(metadata.namespace.as_ref());
    let named = secret.map_or("", |secret| text(secret.namespace.as_ref()));
    if !named.is_empty() && named != own {
        findings.forbidden(
            FieldPath::new(path).child("namespace"),
            "cross-namespace Secret references are not allowed",
            "leave the namespace out, and create the Secret in the namespace of this object",
        );
    }
}

/// Checks a URL to fetch from. The finding does not show it: it may contain credentials.
fn check_fetchable(path: impl Into<FieldPath>, url: &str, findings: &mut Findings) {
    if let Some(error) = check_url(url) {
        report_image_error(path.into(), &error, findings);
    }
}

/// Checks the image's URL.
fn check_image_url(image: Option<&Image>, findings: &mut Findings) {
    if let Some(image) = image {
        check_fetchable("spec.image.url", &image.url, findings);
    }
}

/// Checks that the image has a checksum exactly when it needs one.
fn check_image_checksum(image: Option<&Image>, findings: &mut Findings) {
    let errors = image.map(|image| check_host_image(&image.fields())).unwrap_or_default();
    for error in errors.iter().filter(|error| error.field() == ImageField::Checksum) {
        report_image_error(FieldPath::new("spec.image.checksum"), error, findings);
    }
}

fn report_image_error(path: FieldPath, error: &ImageError, findings: &mut Findings) {
    let (problem, cure) = split_message(&error.to_string(), "write a URL such as https://192.0.2.9/os.qcow2");
    if error.is_missing() {
        findings.required(path, problem, cure);
    } else if error.is_forbidden() {
        findings.forbidden(path, problem, cure);
    } else {
        findings.unreadable(path, problem, cure);
    }
}

/// Checks the values of reboot annotations.
fn check_reboot_annotations(metadata: &ObjectMeta, findings: &mut Findings) {
    for (name, value) in reboot_annotations(metadata) {
        if let Err(error) = RebootRequest::parse(value) {
            findings.invalid(
                annotation_path(name),
                value,
                error.to_string(),
                r#"leave it empty, or write {"mode": "hard"} or {"mode": "soft"}"#,
            );
        }
    }
}
