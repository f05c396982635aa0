//! Copies labels and annotations of the host to its HardwareData, as policies say.

use metal3_api::metal3::names::CLAIM_COPIED_ANNOTATION;
use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareData};
use metal3_runtime::cache::Key;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

use super::super::facts::{Facts, Read};
use super::super::policy::{self, Metadata};
use super::{Action, Decision, Step, verify};

/// The keys that were copied.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Copied {
    labels: BTreeSet<String>,
    annotations: BTreeSet<String>,
}

/// Copies them, and removes what is not copied any more. Only policies that were read in this reconcile say what is copied.
pub(super) fn copy(facts: &Facts, key: &Key, host: &BareMetalHost) -> Decision<()> {
    let accepting = || super::accepting(facts, &key.namespace).filter(|(_, policy)| policy.copies());
    let wanted = policy::copied(host, accepting().map(|(_, policy)| policy));
    let Some(changed) = changed(facts, key, wanted) else {
        return Ok(());
    };
    verify(facts, key)?;
    if let Some((unread, _)) = accepting().find(|(policy, _)| !facts.fresh.policies.contains(*policy)) {
        return Err(Step::Read(Read::Policy(unread.clone())));
    }
    Err(Step::Do(Action::Hardware(Box::new(changed))))
}

/// Removes all of them, which needs no permission.
pub(super) fn remove(facts: &Facts, key: &Key) -> Decision<()> {
    match changed(facts, key, Metadata::default()) {
        Some(changed) => Err(Step::Do(Action::Hardware(Box::new(changed)))),
        None => Ok(()),
    }
}

fn changed(facts: &Facts, key: &Key, wanted: Metadata) -> Option<HardwareData> {
    let hardware = facts.hardware.get(key).filter(|_| !facts.is_hardware_refused)?;
    let changed = with(hardware, wanted);
    (changed.metadata != hardware.metadata).then_some(changed)
}

/// The HardwareData without what was copied.
pub(in super::super) fn without(hardware: &HardwareData) -> HardwareData {
    with(hardware, Metadata::default())
}

fn with(hardware: &HardwareData, wanted: Metadata) -> HardwareData {
    let mut changed = hardware.clone();
    let metadata = &mut changed.metadata;
    let text = metadata
        .annotations
        .as_ref()
        .and_then(|all| all.get(CLAIM_COPIED_ANNOTATION));
    let before: Copied = text
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let mut annotations = metadata.annotations.take().unwrap_or_default();
    let mut labels = metadata.labels.take().unwrap_or_default();
    annotations.remove(CLAIM_COPIED_ANNOTATION);
    let now = Copied {
        labels: replace(&mut labels, &before.labels, wanted.labels),
        annotations: replace(&mut annotations, &before.annotations, wanted.annotations),
    };
    if now != Copied::default() {
        let text = serde_json::to_string(&now).unwrap_or_default();
        annotations.insert(CLAIM_COPIED_ANNOTATION.to_owned(), text);
    }
    metadata.labels = Some(labels).filter(|all| !all.is_empty());
    metadata.annotations = Some(annotations).filter(|all| !all.is_empty());
    changed
}

/// Replaces what was copied before. What others wrote stays. Returns the keys that are copied now.
fn replace(
    found: &mut BTreeMap<String, String>,
    before: &BTreeSet<String>,
    wanted: BTreeMap<String, String>,
) -> BTreeSet<String> {
    found.retain(|key, _| !before.contains(key));
    let new: BTreeMap<_, _> = wanted.into_iter().filter(|(key, _)| !found.contains_key(key)).collect();
    let keys = new.keys().cloned().collect();
    found.extend(new);
    keys
}
