//! Metal3Data: an immutable index of a template, for one claim.

use super::references::{check_kept, check_object};
use crate::infrastructure::v1beta2::Metal3Data;
use crate::rules::{AdmissionRules, Findings, Rule};

impl AdmissionRules for Metal3Data {
    const RULES: &'static [Rule<Self>] = &[
        Rule::on_create(
            "name-says-index",
            "The name is that of the template, a dash and the index.",
            name_says_index,
        ),
        Rule::on_create("index-not-negative", "The index counts from 0.", |data, findings| {
            if data.spec.index.is_some_and(|index| index < 0) {
                findings.invalid("spec.index", data.spec.index, "must be positive value", "count from 0");
            }
        }),
        Rule::<Self>::on_create(
            "references-in-own-namespace",
            "Template and claim are in the namespace of the data.",
            |data, findings| {
                let owner = data.metadata.namespace.as_ref();
                check_object(
                    "spec.template",
                    data.spec.template.as_ref(),
                    owner,
                    "Metal3Data",
                    findings,
                );
                check_object("spec.claim", data.spec.claim.as_ref(), owner, "Metal3Data", findings);
            },
        )
        .differing("data-namespaces"),
        Rule::on_update(
            "index-kept",
            "The index cannot be changed; absent means 0.",
            |old, new, findings| {
                if old.spec.index.unwrap_or_default() != new.spec.index.unwrap_or_default() {
                    findings.invalid(
                        "spec.index",
                        new.spec.index,
                        "cannot be modified",
                        "create a new object instead",
                    );
                }
            },
        ),
        Rule::on_update(
            "template-kept",
            "The template cannot be changed.",
            |old, new, findings| {
                check_kept(
                    "spec.template",
                    old.spec.template.as_ref(),
                    new.spec.template.as_ref(),
                    findings,
                );
            },
        ),
        Rule::on_update("claim-kept", "The claim cannot be changed.", |old, new, findings| {
            check_kept("spec.claim", old.spec.claim.as_ref(), new.spec.claim.as_ref(), findings);
        }),
    ];
}

fn name_says_index(data: &Metal3Data, findings: &mut Findings) {
    let template = data
        .spec
        .template
        .as_ref()
        .and_then(|template| template.name.as_deref())
        .unwrap_or_default();
    let (Some(index), Some(name)) = (data.spec.index, data.metadata.name.as_deref()) else {
        return;
    };
    let expected = format!("{template}-{index}");
    if !template.is_empty() && name != expected {
        findings.invalid(
            "metadata.name",
            name,
            "should follow the convention <template name>-<index>",
            format!("name it {expected}"),
        );
    }
}
