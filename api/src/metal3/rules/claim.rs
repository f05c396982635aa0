//! HostClaim: a valid selector and a valid workload.

use metal3_domain::selector::{check_key, check_value};

use super::{check_image_checksum, check_image_url, check_reboot_annotations, check_secret_namespace, split_message};
use crate::meta::SecretReference;
use crate::metal3::v1alpha1::{HostClaim, HostClaimSpec, HostSelectorRequirement};
use crate::rules::{AdmissionRules, FieldPath, Findings, Rule, Unserved, WriteRequest};

impl AdmissionRules for HostClaim {
    const UNSERVED: Option<Unserved> = Some(Unserved::without("--hostclaims", "no host is chosen"));
    const RULES: &'static [Rule<Self>] = &[
        Rule::on_spec(
            "match-label-valid",
            "Each key and value of `spec.hostSelector.matchLabels` can be a label.",
            match_labels_are_valid,
        ),
        Rule::on_spec(
            "expression-key-valid",
            "The key of each expression can be a label.",
            |claim, findings| each_expression(claim, findings, key_is_valid),
        ),
        Rule::on_spec(
            "expression-operator-known",
            "The operator of each expression is `=`, `==`, `!=`, `in`, `notin`, `exists` or `!`, in lower \
                case.",
            |claim, findings| each_expression(claim, findings, operator_is_known),
        ),
        Rule::on_spec(
            "expression-value-count",
            "`=`, `==` and `!=` have one value, `in` and `notin` at least one, `exists` and `!` none.",
            |claim, findings| each_expression(claim, findings, values_are_as_many_as_needed),
        ),
        Rule::on_spec(
            "expression-value-valid",
            "Each value of an expression can be the value of a label.",
            |claim, findings| each_expression(claim, findings, values_are_valid),
        ),
        Rule::on_spec(
            "image-url-fetchable",
            "The image has an absolute URL with the scheme `http`, `https`, `ftp`, `gopher` or `oci`.",
            |claim, findings| check_image_url(claim.new.spec.image.as_ref(), findings),
        ),
        Rule::on_spec(
            "image-checksum-fits",
            "The image has a checksum unless it is a `live-iso` or comes from `oci://`, where it has \
                none.",
            |claim, findings| check_image_checksum(claim.new.spec.image.as_ref(), findings),
        ),
        Rule::on_write(
            "reboot-readable",
            "Reboot annotations are empty or JSON, with the mode `hard` or `soft` if they name one.",
            |claim, findings| check_reboot_annotations(&claim.new.metadata, findings),
        ),
        Rule::on_spec(
            "secret-in-own-namespace",
            "References to Secrets name the namespace of the claim or none.",
            secrets_are_in_own_namespace,
        )
        .differing("claim-secret-namespace"),
    ];
}

const LABELS: &str = "write letters, digits, '-', '_' and '.', 63 at most";

fn match_labels_are_valid(claim: &WriteRequest<'_, HostClaim>, findings: &mut Findings) {
    let labels = claim
        .new
        .spec
        .host_selector
        .iter()
        .flat_map(|selector| &selector.match_labels);
    for (key, value) in labels {
        let path = FieldPath::new("spec.hostSelector.matchLabels").key(key);
        for error in [check_key(key).err(), check_value(value).err()].into_iter().flatten() {
            let (problem, cure) = split_message(&error.to_string(), LABELS);
            findings.invalid(path.clone(), value, problem, cure);
        }
    }
}

/// Checks each expression.
fn each_expression(
    claim: &WriteRequest<'_, HostClaim>,
    findings: &mut Findings,
    check: fn(&HostSelectorRequirement, &FieldPath, &mut Findings),
) {
    let expressions = claim
        .new
        .spec
        .host_selector
        .iter()
        .flat_map(|selector| &selector.match_expressions);
    for (position, expression) in expressions.enumerate() {
        let path = FieldPath::new("spec.hostSelector.matchExpressions").index(position);
        check(expression, &path, findings);
    }
}

fn key_is_valid(expression: &HostSelectorRequirement, path: &FieldPath, findings: &mut Findings) {
    if let Err(error) = check_key(&expression.key) {
        let (problem, cure) = split_message(&error.to_string(), LABELS);
        findings.invalid(path.child("key"), &expression.key, problem, cure);
    }
}

/// Number of values of an operator.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arity {
    None,
    One,
    Some,
}

impl Arity {
    /// Lower case only: host selection also reads `In`, but the Go webhook accepts only these spellings.
    fn of(operator: &str) -> Option<Self> {
        match operator {
            "=" | "==" | "!=" => Some(Self::One),
            "in" | "notin" => Some(Self::Some),
            "exists" | "!" => Some(Self::None),
            _ => None,
        }
    }
}

fn operator_is_known(expression: &HostSelectorRequirement, path: &FieldPath, findings: &mut Findings) {
    if Arity::of(&expression.operator).is_none() {
        findings.not_supported(
            path.child("operator"),
            &expression.operator,
            "is no operator of a label selector",
            "use =, ==, !=, in, notin, exists or !, in lower case",
        );
    }
}

fn values_are_as_many_as_needed(expression: &HostSelectorRequirement, path: &FieldPath, findings: &mut Findings) {
    let problem = match (Arity::of(&expression.operator), expression.values.len()) {
        (None, _) | (Some(Arity::One), 1) | (Some(Arity::None), 0) => return,
        (Some(Arity::Some), count) if count > 0 => return,
        (Some(Arity::One), _) => "exactly one",
        (Some(Arity::Some), _) => "at least one",
        (Some(Arity::None), _) => "no",
    };
    findings.invalid(
        path.child("values"),
        &expression.values,
        format!("the operator {} takes {problem} value", expression.operator),
        format!("give it {problem} value"),
    );
}

/// Values are checked only when their number is right, except for lists.
fn values_are_valid(expression: &HostSelectorRequirement, path: &FieldPath, findings: &mut Findings) {
    let looked_at = match (Arity::of(&expression.operator), expression.values.len()) {
        (Some(Arity::One), count) => count == 1,
        (arity, _) => arity == Some(Arity::Some),
    };
    let values = expression.values.iter().enumerate().filter(|_| looked_at);
    for (position, value) in values {
        if let Err(error) = check_value(value) {
            let (problem, cure) = split_message(&error.to_string(), LABELS);
            findings.invalid(path.child("values").index(position), value, problem, cure);
        }
    }
}

/// A claim is a tenant boundary: a Secret of another namespace is never read for it.
fn secrets_are_in_own_namespace(claim: &WriteRequest<'_, HostClaim>, findings: &mut Findings) {
    type Pick = fn(&HostClaimSpec) -> Option<&SecretReference>;
    let members: [(&str, Pick); 3] = [
        ("spec.userData", |spec| spec.user_data.as_ref()),
        ("spec.networkData", |spec| spec.network_data.as_ref()),
        ("spec.metaData", |spec| spec.meta_data.as_ref()),
    ];
    for (path, pick) in members {
        let secret = pick(&claim.new.spec);
        if claim.old.is_none_or(|old| pick(&old.spec) != secret) {
            check_secret_namespace(path, &claim.new.metadata, secret, findings);
        }
    }
}
