//! Invariants of deployment zones, checked when a host gets its image: what was wrong until then can still be mended.

use metal3_api::infrastructure::names::FAILURE_DOMAIN_LABEL;
use metal3_sim_capi::view::Object;
use serde_json::Value;

use super::{Change, consumer};

/// A machine whose zones give data is not written without, and one that may not leave its zone is in it.
pub(super) fn written_in_its_zone(change: &Change<'_>) -> Option<String> {
    let old = change
        .old
        .filter(|_| change.is_of("BareMetalHost") && !change.deleted)?;
    if old.at("/spec/image").is_some() || change.new.at("/spec/image").is_none() {
        return None;
    }
    let machine = ("Metal3Machine".to_owned(), consumer(change.new).to_owned());
    let machine = change.all.get(&machine)?;
    let site = machine.text("/status/metal3Cluster");
    let site = change.of_kind("Metal3Cluster").find(|one| one.name() == site)?;
    let zones = site.at("/spec/deploymentZones")?.as_array()?;
    let gives = zones.iter().any(|zone| zone.get("dataTemplate").is_some());
    if gives && change.new.at("/spec/metaData").is_none() {
        return Some(format!("{} gets it without data", machine.name()));
    }
    let domain = machine.text("/spec/failureDomain");
    let is_kept = site.text("/spec/failureDomainPolicy") == "Required" && !domain.is_empty();
    let zone = zones
        .iter()
        .find(|zone| zone.get("name").and_then(Value::as_str) == Some(domain));
    (is_kept && !is_in(change.new, domain, zone)).then(|| format!("{} left {domain} for it", machine.name()))
}

/// The scripts select hosts of zones by labels alone.
fn is_in(host: &Object, domain: &str, zone: Option<&Value>) -> bool {
    let wanted = zone.and_then(|zone| zone.pointer("/hostSelector/matchLabels")?.as_object());
    match wanted {
        Some(wanted) => wanted.iter().all(|(key, value)| host.label(key) == value.as_str()),
        None => host.label(FAILURE_DOMAIN_LABEL) == Some(domain),
    }
}
