//! Kinds in use that this program does not serve.

use metal3_api::kind::Kind;
use metal3_api::metal3::v1alpha1::{
    BareMetalSwitch, FirmwareSchema, HardwareData, HostClaim, HostDeployPolicy, HostNetworkAttachment,
    HostUpdatePolicy, PreprovisioningImage,
};

use serde_json::Value;

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
    findings.extend(each::<HostDeployPolicy>(objects, Decision::Go, ""));
    findings.extend(each::<HostNetworkAttachment>(objects, Decision::Go, ""));
    let switches = "its ports are configured no more; keep the Go manager if they must be";
    findings.extend(each::<BareMetalSwitch>(objects, Decision::Go, switches));
    findings.extend(undecodable::<HardwareData>(objects));
    findings.extend(undecodable::<FirmwareSchema>(objects));
    findings
}

/// Kinds that have no admission rules, which would say it.
fn undecodable<K: Kind>(objects: &Objects) -> impl Iterator<Item = Finding> {
    let wrong = |document: &Value| {
        let why = serde_json::from_value::<K>(document.clone()).err()?;
        let cure = "correct it before the switch";
        let what = format!("cannot be decoded: {why}");
        Some(Finding::new(Decision::No, name::<K>(document), what, cure))
    };
    objects.documents::<K>().iter().filter_map(wrong)
}

fn each<K: Kind>(objects: &Objects, decision: Decision, cure: &'static str) -> impl Iterator<Item = Finding> {
    let documents = objects.documents::<K>().iter();
    documents.map(move |document| unserved(name::<K>(document), decision, cure))
}

fn unserved(name: String, decision: Decision, cure: &str) -> Finding {
    let what = "is of a kind that no controller of this program serves; it stays as it is";
    Finding::new(decision, name, what, cure).row("kind-unserved")
}
