//! Rules about applying the definitions of one family over those of the other.

use std::collections::{BTreeMap, BTreeSet};

use metal3_api::infrastructure::v1beta2::Metal3ClusterTemplate;
use metal3_api::kind::Kind as _;
use metal3_flags::Owner;

use crate::facts::{Crd, Direction, Facts};
use crate::finding::{Decision, Finding};
use crate::managers::Manager;

const CONVERSION_OFF: &str = r#"--patch='[{"op":"add","path":"/spec/conversion","value":{"strategy":"None"}}]'"#;

const HOST_WEBHOOKS: &str = "baremetal-operator-validating-webhook-configuration";

pub(crate) fn findings(facts: &Facts, managers: &[Manager]) -> Vec<Finding> {
    let mut findings = conflicts(&facts.crds);
    match facts.direction {
        Direction::ToThisProgram if facts.are_listed("customresourcedefinitions") => {
            findings.extend(managers.iter().filter_map(|manager| missing(facts, manager)));
        }
        Direction::ToThisProgram => {}
        Direction::Back(_) => {
            findings.extend(half_a_conversion(&facts.crds));
            findings.extend(half_of_the_webhooks(managers));
        }
    }
    findings
}

/// The definitions that this program runs without: its controllers wait for them. Those of a Go manager come with the components, and
/// kinds that nothing waits for may be missing.
fn missing(facts: &Facts, manager: &Manager) -> Option<Finding> {
    if !manager.is_this_program {
        return None;
    }
    let required = manager.controllers.iter().filter_map(|one| facts.required.get(one));
    let is_missing = |name: &&String| !facts.crds.iter().any(|crd| crd.name == **name);
    let missing: BTreeSet<&str> = required.flatten().filter(is_missing).map(String::as_str).collect();
    if missing.is_empty() {
        return None;
    }
    let names: Vec<&str> = missing.into_iter().collect();
    let what = format!("waits for definitions and begins nothing: {}", names.join(", "));
    let cure = "apply the components of its release again";
    let object = format!("Deployment {}", manager.deployment);
    Some(Finding::new(Decision::No, object, what, cure))
}

/// Whether the definition is of a kind that is served here.
fn is_of_metal3(crd: &&Crd) -> bool {
    crd.name.ends_with(".metal3.io") || crd.name.starts_with("metal3")
}

/// The API server refuses to change what another field manager wrote.
fn conflicts(crds: &[Crd]) -> Vec<Finding> {
    let mut by_writer: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for crd in crds.iter().filter(is_of_metal3) {
        for writer in &crd.writers {
            by_writer.entry(writer).or_default().push(&crd.name);
        }
    }
    let finding = |(writer, crds): (&str, Vec<&str>)| {
        let first = crds.first().copied().unwrap_or_default();
        let what = format!(
            "{} of them, as {first}, were written by {writer}, so `kubectl apply --server-side` of other components is a \
             conflict where they differ",
            crds.len()
        );
        let cure = "apply with `kubectl apply --server-side --force-conflicts`, or use `clusterctl upgrade apply`";
        Finding::new(Decision::Go, "CustomResourceDefinitions", what, cure)
    };
    by_writer.into_iter().map(finding).collect()
}

/// `kubectl apply` of a definition without a conversion removes its own members of it, but not the CA bundle that
/// cert-manager wrote, and the API server refuses the rest.
fn half_a_conversion(crds: &[Crd]) -> Option<Finding> {
    let name = format!("{}.{}", Metal3ClusterTemplate::PLURAL, Metal3ClusterTemplate::GROUP);
    let crd = crds.iter().find(|crd| crd.name == name && crd.has_webhook)?;
    let what = "is converted by the webhook, which the definition of the Go manager is not: `kubectl apply` of that is refused";
    let cure = format!("kubectl patch crd {} --type=json {CONVERSION_OFF}", crd.name);
    let object = format!("CustomResourceDefinition {}", crd.name);
    Some(Finding::new(Decision::Go, object, what, cure).row("cluster-template-conversion"))
}

/// The same for the webhooks of hosts that only this program has.
fn half_of_the_webhooks(managers: &[Manager]) -> Option<Finding> {
    let mut ours = managers.iter().filter(|manager| manager.is_this_program);
    ours.find(|manager| manager.controllers.contains(&Owner::Hosts.name()))?;
    let what = "has webhooks that the Go manager has not: `kubectl apply` of its components is refused";
    let cure = format!("kubectl delete --ignore-not-found validatingwebhookconfiguration {HOST_WEBHOOKS}");
    let object = format!("ValidatingWebhookConfiguration {HOST_WEBHOOKS}");
    Some(Finding::new(Decision::Go, object, what, cure))
}
