//! Reboots of a claim, each passed on once.
//!
//! A request is renamed on the claim, with the claim's version as its identifier; the host gets it together with that identifier in
//! the record; then the claim loses it. After an interruption the identifier shows whether the host had it.

use std::collections::BTreeMap;

use metal3_api::metal3::names::{CLAIM_REBOOT_ANNOTATION, REBOOT_ANNOTATION, REBOOT_ANNOTATION_PREFIX};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostClaim, RebootMode, RebootRequest};
use metal3_runtime::cache::Key;
use serde::{Deserialize, Serialize};

use super::super::bond::Record;
use super::super::choice::hash;
use super::super::facts::Facts;
use super::{Action, Decision, Step, verify};

/// The longest key of an annotation after the domain.
const LONGEST: usize = 63;
const LONGEST_ID: usize = 32;
/// The start of the keys on a host: those of its administrators begin with something else.
const OWN_KEY: &str = "hostclaim-";

/// A request on its way.
#[derive(Debug, Serialize, Deserialize)]
struct Pending {
    id: String,
    value: String,
}

fn annotations(claim: &HostClaim) -> impl Iterator<Item = (&str, &str)> {
    let all = claim.metadata.annotations.iter().flatten();
    all.map(|(name, value)| (name.as_str(), value.as_str()))
}

/// What a host is asked for: nothing of the text but its meaning.
fn canonical(text: &str) -> Option<String> {
    let RebootRequest { mode, force } = RebootRequest::parse(text).ok()?;
    let mode = match mode {
        RebootMode::Soft => "soft",
        RebootMode::Hard => "hard",
    };
    Some(serde_json::json!({ "mode": mode, "force": force }).to_string())
}

pub(super) fn pass_on(facts: &Facts, (key, host): (&Key, &BareMetalHost), record: &Record) -> Decision<()> {
    let claim = &facts.claim;
    let find = |wanted: &str| {
        annotations(claim)
            .find(|(name, _)| *name == wanted)
            .map(|(_, value)| value)
    };
    if let Some(text) = find(CLAIM_REBOOT_ANNOTATION) {
        let pending: Option<Pending> = serde_json::from_str(text).ok();
        let pending = pending.filter(|one| one.id.len() <= LONGEST_ID);
        let valid = pending.and_then(|one| Some((canonical(&one.value)?, one.id)));
        return Err(match valid.filter(|(_, id)| record.reboot.as_ref() != Some(id)) {
            Some((value, id)) => {
                verify(facts, key)?;
                let mut changed = host.clone();
                Record {
                    reboot: Some(id),
                    ..record.clone()
                }
                .write(&mut changed);
                let annotations = changed.metadata.annotations.get_or_insert_default();
                annotations.insert(REBOOT_ANNOTATION.to_owned(), value);
                Step::Do(Action::Host(Box::new(changed), "pass a reboot on"))
            }
            None => change(claim, |annotations| drop(annotations.remove(CLAIM_REBOOT_ANNOTATION))),
        });
    }
    let Some(value) = find(REBOOT_ANNOTATION).and_then(canonical) else {
        return Ok(());
    };
    let id = claim.metadata.resource_version.clone().unwrap_or_default();
    let text = serde_json::to_string(&Pending { id, value }).unwrap_or_default();
    Err(change(claim, |annotations| {
        annotations.remove(REBOOT_ANNOTATION);
        annotations.insert(CLAIM_REBOOT_ANNOTATION.to_owned(), text);
    }))
}

fn change(claim: &HostClaim, change: impl FnOnce(&mut BTreeMap<String, String>)) -> Step {
    let mut changed = claim.clone();
    change(changed.metadata.annotations.get_or_insert_default());
    Step::Do(Action::Claim(Box::new(changed)))
}

/// The most annotations that keep a host off: they share the annotations of the host with those of its administrators.
const MOST_HOLDS: usize = 16;

/// Why not all reboots that the claim asks for are passed on.
pub(super) fn ignored(claim: &HostClaim) -> Option<&'static str> {
    let is_request = |name: &str| name == REBOOT_ANNOTATION || name.starts_with(REBOOT_ANNOTATION_PREFIX);
    let mut requests = annotations(claim).filter(|(name, _)| is_request(name));
    if requests.any(|(_, value)| canonical(value).is_none()) {
        return Some(
            "an annotation reboot.metal3.io has a value that cannot be read, and is ignored; correct or remove it",
        );
    }
    let holds = annotations(claim).filter(|(name, _)| name.starts_with(REBOOT_ANNOTATION_PREFIX));
    (holds.count() > MOST_HOLDS).then_some(
        "the claim has more than 16 annotations reboot.metal3.io/KEY, and the further ones are ignored; remove some",
    )
}

/// The annotations that keep the host off while the claim has its own.
pub(super) fn hold(claim: &HostClaim, host: &mut BareMetalHost) {
    let asked = annotations(claim).filter_map(|(name, value)| {
        let key = name.strip_prefix(REBOOT_ANNOTATION_PREFIX)?;
        let plain = format!("{OWN_KEY}{key}");
        let name = match plain.len() {
            0..=LONGEST => plain,
            _ => format!("{OWN_KEY}{}", hash(&[key])),
        };
        Some((format!("{REBOOT_ANNOTATION_PREFIX}{name}"), canonical(value)?))
    });
    let asked: BTreeMap<String, String> = asked.take(MOST_HOLDS).collect();
    let annotations = host.metadata.annotations.get_or_insert_default();
    annotations.retain(|name, _| !is_hold(name) || asked.contains_key(name));
    annotations.extend(asked);
    if annotations.is_empty() {
        host.metadata.annotations = None;
    }
}

/// Whether an annotation of a host was passed on by a claim and keeps the host off.
pub(in super::super) fn is_hold(name: &str) -> bool {
    let key = name.strip_prefix(REBOOT_ANNOTATION_PREFIX);
    key.is_some_and(|key| key.starts_with(OWN_KEY))
}

/// Removes all of them.
pub(super) fn let_go(host: &mut BareMetalHost) {
    hold(&HostClaim::default(), host);
}
