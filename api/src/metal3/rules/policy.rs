//! HostDeployPolicy: expressions that can be used.

use metal3_domain::expression::{LONGEST, whole};

use crate::metal3::v1alpha1::HostDeployPolicy;
use crate::rules::{AdmissionRules, FieldPath, Findings, Rule, Unserved, WriteRequest};

impl AdmissionRules for HostDeployPolicy {
    const UNSERVED: Option<Unserved> = Some(Unserved::without("--hostclaims", "no HostClaim is served"));
    const ONLY_WARNS: bool = true;
    const RULES: &'static [Rule<Self>] = &[Rule::on_spec(
        "expression-usable",
        "A warning is returned for an expression that this program cannot use; it matches nothing.",
        expressions_are_usable,
    )
    .differing("claim-policy")];
}

/// Not refused: the Go manager accepts expressions that are none here.
fn expressions_are_usable(policy: &WriteRequest<'_, HostDeployPolicy>, findings: &mut Findings) {
    let spec = &policy.new.spec;
    let accepted = spec.host_claim_namespaces.as_ref();
    let copied = spec.metadata_copy.as_ref();
    for (path, text, effect) in [
        (
            "spec.hostClaimNamespaces.nameMatches",
            accepted.and_then(|accepted| accepted.name_matches.as_deref()),
            "the policy accepts no claim",
        ),
        (
            "spec.metadataCopy.labelsMatch",
            copied.and_then(|copied| copied.labels_match.as_deref()),
            "no label is copied",
        ),
        (
            "spec.metadataCopy.annotationsMatch",
            copied.and_then(|copied| copied.annotations_match.as_deref()),
            "no annotation is copied",
        ),
    ] {
        let Some(Err(why)) = text.filter(|text| !text.is_empty()).map(whole) else {
            continue;
        };
        let cure = format!("write an expression of the syntax RE2 with {LONGEST} characters at most, without \\Q");
        findings.warn(FieldPath::new(path), format!("{why}, so {effect}"), cure);
    }
}
