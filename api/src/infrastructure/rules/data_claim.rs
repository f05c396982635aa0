//! Metal3DataClaim: one immutable template in its own namespace.

use super::references::{check_kept, check_object};
use crate::infrastructure::v1beta2::Metal3DataClaim;
use crate::rules::{AdmissionRules, Findings, Rule};

impl AdmissionRules for Metal3DataClaim {
    const RULES: &'static [Rule<Self>] = &[
        Rule::on_create(
            "template-named",
            "`spec.template.name` names a data template.",
            names_a_template,
        ),
        Rule::on_spec(
            "template-in-own-namespace",
            "The data template is in the claim's namespace.",
            |claim, findings| {
                let owner = claim.new.metadata.namespace.as_ref();
                check_object(
                    "spec.template",
                    claim.new.spec.template.as_ref(),
                    owner,
                    "Metal3DataClaim",
                    findings,
                );
            },
        ),
        Rule::on_update(
            "template-kept",
            "The data template of a claim cannot be changed.",
            |old, new, findings| {
                check_kept(
                    "spec.template",
                    old.spec.template.as_ref(),
                    new.spec.template.as_ref(),
                    findings,
                );
            },
        ),
    ];
}

fn names_a_template(claim: &Metal3DataClaim, findings: &mut Findings) {
    let name = claim
        .spec
        .template
        .as_ref()
        .and_then(|template| template.name.as_deref())
        .unwrap_or_default();
    if name.is_empty() {
        findings.invalid(
            "spec.template.name",
            name,
            "must be set",
            "name a Metal3DataTemplate of this namespace",
        );
    }
}
