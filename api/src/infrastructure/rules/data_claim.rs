//! Metal3DataClaim: one immutable template in its own namespace.

use super::references::{check_kept, check_object};
use crate::infrastructure::v1beta2::Metal3DataClaim;
use crate::rules::{AdmissionRules, Findings, On, Rule};

impl AdmissionRules for Metal3DataClaim {
    const RULES: &'static [Rule<Self>] = &[
        Rule {
            name: "template-named",
            description: "`spec.template.name` names a data template.",
            on: On::Create(names_a_template),
            differs: None,
        },
        Rule {
            name: "template-in-own-namespace",
            description: "The data template is in the claim's namespace.",
            on: On::Spec(|claim, findings| {
                let owner = claim.new.metadata.namespace.as_ref();
                check_object(
                    "spec.template",
                    claim.new.spec.template.as_ref(),
                    owner,
                    "Metal3DataClaim",
                    findings,
                );
            }),
            differs: Some("unchanged-spec"),
        },
        Rule {
            name: "template-kept",
            description: "The data template of a claim cannot be changed.",
            on: On::Update(|old, new, findings| {
                check_kept(
                    "spec.template",
                    old.spec.template.as_ref(),
                    new.spec.template.as_ref(),
                    findings,
                );
            }),
            differs: None,
        },
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
