//! Admission rules of the kinds of `ipam.metal3.io`.

mod address;
mod claim;
mod pool;
mod ranges;

use metal3_domain::ip::parse_address;

use super::names::REQUESTED_ADDRESS_ANNOTATION;
use super::v1alpha1::{IPAddress, IPClaim, IPPool};
use crate::meta::{IpText, ObjectReference};
use crate::rules::{FieldPath, Findings, Reviewer};

/// The kinds and their rules.
#[must_use]
pub fn reviewers() -> Vec<Reviewer> {
    vec![
        Reviewer::of::<IPAddress>(),
        Reviewer::of::<IPClaim>(),
        Reviewer::of::<IPPool>(),
    ]
}

const WRITE_AN_ADDRESS: &str = "write an IPv4 address such as 192.0.2.7 or an IPv6 address such as 2001:db8::7";

/// Rejects text that is no address.
fn check_address(path: impl Into<FieldPath>, text: &str, findings: &mut Findings) {
    if parse_address(text).is_err() {
        findings.invalid(path, text, "is not a valid IP address", WRITE_AN_ADDRESS);
    }
}

fn check_addresses(path: &FieldPath, texts: &[IpText], findings: &mut Findings) {
    for (position, text) in texts.iter().enumerate() {
        check_address(path.index(position), text.as_str(), findings);
    }
}

/// Checks the annotation that requests a specific address.
fn check_requested_address(
    metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    findings: &mut Findings,
) {
    let requested = metadata
        .annotations
        .as_ref()
        .and_then(|annotations| annotations.get(REQUESTED_ADDRESS_ANNOTATION));
    if let Some(text) = requested {
        let path = FieldPath::new("metadata.annotations").key(REQUESTED_ADDRESS_ANNOTATION);
        check_address(path, text, findings);
    }
}

fn name_of(reference: &ObjectReference) -> &str {
    reference.name.as_deref().unwrap_or_default()
}

/// The members that identify the object. Absent and empty are the same, as in Go.
fn target(reference: &ObjectReference) -> [&str; 3] {
    [&reference.name, &reference.namespace, &reference.kind].map(|member| member.as_deref().unwrap_or_default())
}

fn check_same_target(path: &str, old: &ObjectReference, new: &ObjectReference, findings: &mut Findings) {
    if target(old) != target(new) {
        findings.invalid(path, new, "cannot be modified", "create a new object instead");
    }
}

/// Rejects an empty text.
fn require(path: &str, text: &str, cure: &str, findings: &mut Findings) {
    if text.is_empty() {
        findings.invalid(path, "", "cannot be empty", cure);
    }
}
