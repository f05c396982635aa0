//! What may be written to the kinds of `metal3.io`.
//!
//! The verdicts are those of the Go manager's webhooks, which refuse, never warn and fill nothing in. What needs more
//! than the object at hand, such as whether hosts still refer to an attachment, is not decided here.

mod attachment;
mod claim;
mod data_image;
mod firmware_components;
mod host;
mod shape;
mod subscription;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_domain::image::{ImageFault, ImageField, check_host_image, check_url};

use super::v1alpha1::{
    BMCEventSubscription, BareMetalHost, DataImage, HostClaim, HostFirmwareComponents, HostNetworkAttachment, Image,
    RebootRequest, reboot_annotations,
};
use crate::meta::SecretReference;
use crate::rules::{FieldPath, Findings, Reviewer};

/// The kinds and their rules.
#[must_use]
pub fn reviewers() -> Vec<Reviewer> {
    vec![
        Reviewer::of::<BareMetalHost>(),
        Reviewer::of::<BMCEventSubscription>(),
        Reviewer::of::<DataImage>(),
        Reviewer::of::<HostClaim>(),
        Reviewer::of::<HostFirmwareComponents>(),
        Reviewer::of::<HostNetworkAttachment>(),
    ]
}

/// A member that is absent says what an empty one says.
fn text(member: Option<&String>) -> &str {
    member.map_or("", String::as_str)
}

fn annotation_path(name: &str) -> FieldPath {
    FieldPath::new("metadata.annotations").key(name)
}

/// Problem and cure, which the vocabulary joins by a semicolon.
fn halves(message: &str, cure: &str) -> (String, String) {
    match message.split_once("; ") {
        Some((problem, cure)) => (problem.to_owned(), cure.to_owned()),
        None => (message.to_owned(), cure.to_owned()),
    }
}

/// A reference may name the object's own namespace or none.
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
            "leave the namespace out, and create the Secret beside this object",
        );
    }
}

/// The URL of something to be fetched. It is not shown, because it may hold credentials.
fn check_fetchable(path: impl Into<FieldPath>, url: &str, findings: &mut Findings) {
    if let Some(fault) = check_url(url) {
        report_image_fault(path.into(), &fault, findings);
    }
}

/// Whether the image's URL can be fetched.
fn check_image_url(image: Option<&Image>, findings: &mut Findings) {
    if let Some(image) = image {
        check_fetchable("spec.image.url", &image.url, findings);
    }
}

/// Whether the image has the checksum it needs, or none where it must have none.
fn check_image_checksum(image: Option<&Image>, findings: &mut Findings) {
    let faults = image.map(|image| check_host_image(&image.fields())).unwrap_or_default();
    for fault in faults.iter().filter(|fault| fault.field() == ImageField::Checksum) {
        report_image_fault(FieldPath::new("spec.image.checksum"), fault, findings);
    }
}

fn report_image_fault(path: FieldPath, fault: &ImageFault, findings: &mut Findings) {
    let (problem, cure) = halves(&fault.to_string(), "write a URL such as https://192.0.2.9/os.qcow2");
    if fault.is_missing() {
        findings.required(path, problem, cure);
    } else if fault.is_forbidden() {
        findings.forbidden(path, problem, cure);
    } else {
        findings.unreadable(path, problem, cure);
    }
}

/// Annotations that ask for a reboot say how in a way that can be read.
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
