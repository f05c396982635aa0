//! References that must stay in the namespace of their owner.

use crate::infrastructure::v1beta2::Metal3ObjectRef;
use crate::meta::SecretReference;
use crate::rules::{FieldPath, Findings};

const LEAVE_IT_OUT: &str = "leave it out; references stay in the namespace of their owner";

/// True for a namespace that is absent, empty or the owner's. Without an owner namespace only an absent or empty one is
/// accepted.
fn is_own(namespace: Option<&String>, owner: Option<&String>) -> bool {
    match (namespace, owner) {
        (Some(named), Some(owner)) => named.is_empty() || named == owner,
        (Some(named), None) => named.is_empty(),
        (None, _) => true,
    }
}

/// Rejects a Secret of another namespace, which is never read.
pub(super) fn check_secret(
    path: &str,
    secret: Option<&SecretReference>,
    owner: Option<&String>,
    findings: &mut Findings,
) {
    if secret.is_some_and(|secret| !is_own(secret.namespace.as_ref(), owner)) {
        let path = FieldPath::new(path).child("namespace");
        findings.forbidden(path, "cross-namespace secret references are not allowed", LEAVE_IT_OUT);
    }
}

/// Warns about a Secret of another namespace, which machines created from the template cannot read.
pub(super) fn warn_of_secret(
    path: &str,
    secret: Option<&SecretReference>,
    owner: Option<&String>,
    findings: &mut Findings,
) {
    if secret.is_some_and(|secret| !is_own(secret.namespace.as_ref(), owner)) {
        let path = FieldPath::new(path).child("namespace");
        let problem = format!(
            "{path}: machines created from this template are rejected, their Secrets must be in their own namespace"
        );
        findings.warn(path, problem, LEAVE_IT_OUT);
    }
}

/// Rejects a reference to another namespace, which is never followed.
pub(super) fn check_object(
    path: &str,
    reference: Option<&Metal3ObjectRef>,
    owner: Option<&String>,
    what: &str,
    findings: &mut Findings,
) {
    if let Some(reference) = reference
        && !is_own(reference.namespace.as_ref(), owner)
    {
        let problem =
            format!("must be empty or match the {what} namespace; cross-namespace references are not allowed");
        findings.invalid(
            FieldPath::new(path).child("namespace"),
            &reference.namespace,
            problem,
            LEAVE_IT_OUT,
        );
    }
}

/// Name and namespace of a reference. Absent and empty are the same, as in Go.
fn target(reference: Option<&Metal3ObjectRef>) -> [&str; 2] {
    reference.map_or(["", ""], |reference| {
        let Metal3ObjectRef { name, namespace } = reference;
        [name.as_deref(), namespace.as_deref()].map(Option::unwrap_or_default)
    })
}

/// Rejects a changed reference, even when only the implied namespace is added.
pub(super) fn check_kept(
    path: &str,
    old: Option<&Metal3ObjectRef>,
    new: Option<&Metal3ObjectRef>,
    findings: &mut Findings,
) {
    if target(old) != target(new) {
        findings.invalid(path, new, "cannot be modified", "create a new object instead");
    }
}
