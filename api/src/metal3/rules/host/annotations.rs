//! Annotations with JSON documents or requests.

use serde_json::Value;

use super::Host;
use crate::crd::schema::structural;
use crate::metal3::names::{HARDWARE_DETAILS_ANNOTATION, INSPECT_ANNOTATION, INSPECTION_DISABLED, STATUS_ANNOTATION};
use crate::metal3::rules::annotation_path;
use crate::metal3::rules::shape::{first_value, member, mismatch};
use crate::metal3::v1alpha1::{
    BareMetalHost, BareMetalHostStatus, ErrorType, HardwareDetails, InspectionMode, OperationalStatus,
};
use crate::rules::Findings;

/// Parses the document of an annotation; `None` when it is empty.
fn document(host: &BareMetalHost, annotation: &str) -> Option<Result<Value, String>> {
    let text = host.annotation(annotation).filter(|text| !text.is_empty())?;
    Some(first_value(text))
}

/// Checks a document against the schema of `T`.
fn matching<T: schemars::JsonSchema>(document: Result<Value, String>) -> Result<Value, String> {
    let value = document?;
    match mismatch(&structural::<T>(), &value) {
        Some(problem) => Err(problem),
        None => Ok(value),
    }
}

pub(super) fn saved_status_is_readable(host: &Host<'_>, findings: &mut Findings) {
    let Some(document) = document(host.new, STATUS_ANNOTATION) else {
        return;
    };
    if let Err(problem) = matching::<BareMetalHostStatus>(document) {
        findings.unreadable(
            annotation_path(STATUS_ANNOTATION),
            format!("error decoding status annotation: {problem}"),
            "write the status as it was saved, or remove the annotation",
        );
    }
}

pub(super) fn saved_status_has_known_values(host: &Host<'_>, findings: &mut Findings) {
    let Some(Ok(status)) = document(host.new, STATUS_ANNOTATION).map(matching::<BareMetalHostStatus>) else {
        return;
    };
    let value = |name| status.as_object().and_then(|members| member(members, name));
    let known = |value: &Value| serde_json::from_value::<OperationalStatus>(value.clone()).is_ok();
    report_unless_known("operationalStatus", value("operationalStatus"), known, findings);
    let known = |value: &Value| value == "" || serde_json::from_value::<ErrorType>(value.clone()).is_ok();
    report_unless_known("errorType", value("errorType"), known, findings);
}

fn report_unless_known(name: &str, value: Option<&Value>, known: fn(&Value) -> bool, findings: &mut Findings) {
    if let Some(value) = value.filter(|value| !value.is_null() && !known(value)) {
        findings.not_supported(
            annotation_path(STATUS_ANNOTATION),
            value,
            format!("invalid {name} in the {STATUS_ANNOTATION} annotation"),
            "write the status as it was saved, or remove the annotation",
        );
    }
}

pub(super) fn inspect_is_known(host: &Host<'_>, findings: &mut Findings) {
    if let Some(text) = host.new.annotation(INSPECT_ANNOTATION)
        && !["", INSPECTION_DISABLED].contains(&text)
    {
        findings.not_supported(
            annotation_path(INSPECT_ANNOTATION),
            text,
            format!("invalid value for the {INSPECT_ANNOTATION} annotation"),
            "leave it empty to inspect again, or write disabled",
        );
    }
}

pub(super) fn details_require_disabled_inspection(host: &Host<'_>, findings: &mut Findings) {
    if document(host.new, HARDWARE_DETAILS_ANNOTATION).is_some() && !host.new.inspection_disabled() {
        findings.forbidden(
            annotation_path(HARDWARE_DETAILS_ANNOTATION),
            "when hardware details are provided, inspection must be disabled",
            "set spec.inspectionMode to disabled",
        );
    }
}

/// Checked only when inspection is disabled: the Go manager reports enabled inspection first.
pub(super) fn details_are_readable(host: &Host<'_>, findings: &mut Findings) {
    let Some(document) = document(host.new, HARDWARE_DETAILS_ANNOTATION) else {
        return;
    };
    if !host.new.inspection_disabled() {
        return;
    }
    if let Err(problem) = matching::<HardwareDetails>(document) {
        findings.unreadable(
            annotation_path(HARDWARE_DETAILS_ANNOTATION),
            format!("error decoding the {HARDWARE_DETAILS_ANNOTATION} annotation: {problem}"),
            "write hardware details as a HardwareData holds them",
        );
    }
}

pub(super) fn inspection_is_unambiguous(host: &Host<'_>, findings: &mut Findings) {
    let annotation = host.new.annotation(INSPECT_ANNOTATION).filter(|text| !text.is_empty());
    let (Some(text), Some(mode)) = (annotation, host.new.spec.inspection_mode) else {
        return;
    };
    if (text == INSPECTION_DISABLED) != (mode == InspectionMode::Disabled) {
        findings.invalid(
            "spec.inspectionMode",
            mode,
            format!("{INSPECT_ANNOTATION} annotation and inspectionMode field have contradicting values"),
            "remove the annotation",
        );
    }
}
