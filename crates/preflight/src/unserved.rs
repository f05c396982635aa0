//! Kinds in use that this program does not serve.

use metal3_api::kind::Kind;
use metal3_api::metal3::v1alpha1::{HostClaim, HostUpdatePolicy, PreprovisioningImage};

use crate::finding::{Decision, Finding};
use crate::objects::{Objects, name};

pub(crate) fn findings(objects: &Objects) -> Vec<Finding> {
    let mut findings = Vec::new();
    let delete = "delete it before the switch, or keep the Go manager";
    findings.extend(each::<HostClaim>(objects, Decision::No, delete));
    findings.extend(objects.documents::<PreprovisioningImage>().iter().map(|document| {
        let what = "is served with --build-preprov-image only; without that flag it stays as it is";
        Finding::new(Decision::Go, name::<PreprovisioningImage>(document), what, "").row("agent-image-builder")
    }));
    findings.extend(each::<HostUpdatePolicy>(objects, Decision::Go, ""));
    findings
}

fn each<K: Kind>(objects: &Objects, decision: Decision, cure: &'static str) -> impl Iterator<Item = Finding> {
    let documents = objects.documents::<K>().iter();
    documents.map(move |document| unserved(name::<K>(document), decision, cure))
}

fn unserved(name: String, decision: Decision, cure: &str) -> Finding {
    let what = "is of a kind that no controller of this program serves; it stays as it is";
    Finding::new(decision, name, what, cure).row("kind-unserved")
}
