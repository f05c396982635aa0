//! The admission rules of this program, over the stored objects.
//!
//! A stored object that its rules would refuse can still be edited. A template whose copies they would refuse cannot be
//! scaled up any more.

use metal3_api::catalog;
use metal3_api::infrastructure::v1beta2::{Metal3ClusterTemplate, Metal3MachineTemplate, Metal3RemediationTemplate};
use metal3_api::kind::Kind as _;
use metal3_api::rules::{Level, Operation, Reviewer, Unserved};
use serde_json::Value;

use crate::finding::{Decision, Finding};
use crate::objects::{Objects, named};

const TEMPLATES: [&str; 3] = [
    Metal3MachineTemplate::KIND,
    Metal3ClusterTemplate::KIND,
    Metal3RemediationTemplate::KIND,
];

/// The rule about the entries of a pool that are skipped.
const ALLOCATES_NOTHING: &str = "range-of-one-family";

pub(crate) fn findings(objects: &Objects) -> Vec<Finding> {
    let mut findings = Vec::new();
    let reviewers = catalog::reviewers();
    for (kind, documents) in objects.iter() {
        let is_of = |one: &&Reviewer| (one.group, one.version, one.kind) == (kind.group, kind.version, kind.kind);
        let Some(reviewer) = reviewers.iter().find(is_of) else {
            continue;
        };
        for document in documents {
            findings.extend(reviewed(reviewer, document));
        }
    }
    findings
}

fn reviewed(reviewer: &Reviewer, document: &Value) -> Vec<Finding> {
    let object = named(reviewer.kind, document);
    let reviewed = (reviewer.set_defaults)(document)
        .and_then(|document| (reviewer.review)(Operation::Create, None, Some(&document)));
    let review = match reviewed {
        Ok(review) => review,
        Err(why) => {
            let cure = "correct it before the switch";
            return vec![Finding::new(
                Decision::No,
                object,
                format!("cannot be decoded: {why}"),
                cure,
            )];
        }
    };
    let is_template = TEMPLATES.contains(&reviewer.kind);
    // Kinds without a controller have rules of their own here.
    let findings = review.findings.iter().filter(|finding| finding.rule != Unserved::ROW);
    let finding = |finding: &metal3_api::rules::Finding| match finding.level {
        Level::Refuse => {
            let (decision, consequence) = match finding.rule {
                _ if is_template => (Decision::No, "new machines of it would be refused"),
                ALLOCATES_NOTHING => (Decision::No, "no address is given from its mixed entries"),
                _ => (
                    Decision::Go,
                    "it stays editable, and a new object like it would be refused",
                ),
            };
            Finding::new(decision, &object, format!("{consequence}: {}", finding.detail()), "")
        }
        Level::Warn => Finding::new(Decision::Go, &object, finding.detail(), ""),
    };
    findings.map(finding).collect()
}
