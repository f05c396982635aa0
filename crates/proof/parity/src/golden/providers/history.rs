//! Versions of the objects that the stand-ins wrote, in order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use metal3_sandbox::world::{NAMESPACE, World};
use parking_lot::Mutex;

use super::fields::{self, ComparedKind, Fields, ObjectId, Placeholders};
use super::timeline::Writes;
use crate::values::text;

/// Recorded versions. Clones share them.
#[derive(Clone, Default)]
pub(super) struct History(Arc<Mutex<Versions>>);

#[derive(Default)]
struct Versions {
    placeholders: Placeholders,
    /// `None` for a deleted object.
    all: Vec<(ObjectId, Option<Fields>)>,
    last: BTreeMap<ObjectId, Option<Fields>>,
}

/// Objects that are compared at one moment: all of the provider, or a single other one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ObjectGroup {
    Own,
    One(ObjectId),
}

impl ObjectGroup {
    fn has(&self, id: &ObjectId) -> bool {
        match self {
            Self::Own => ComparedKind::of_kind(id.kind).is_some_and(ComparedKind::is_own),
            Self::One(one) => one == id,
        }
    }

    /// The compared part of a state.
    pub(super) fn of(&self, state: &BTreeMap<ObjectId, Fields>) -> BTreeMap<ObjectId, Fields> {
        let own = state.iter().filter(|(id, _)| self.has(id));
        own.map(|(id, fields)| (id.clone(), fields.clone())).collect()
    }
}

impl History {
    /// Records all writes from now on.
    pub(super) fn of(world: &World) -> Self {
        let history = Self::default();
        history.with(|versions| versions.placeholders.namespace = NAMESPACE.to_owned());
        let recorder = history.clone();
        world.cluster.observe_writes(move |written| {
            recorder.with(|versions| versions.record(written.object, written.deleted));
        });
        history
    }

    /// Number of versions.
    pub(super) fn count(&self) -> usize {
        self.with(|versions| versions.all.len())
    }

    /// Groups of the recorded and the written objects.
    pub(super) fn groups(&self, recorded: &BTreeMap<ObjectId, Fields>) -> BTreeSet<ObjectGroup> {
        let seen = self.with(|versions| versions.last.keys().cloned().collect::<Vec<_>>());
        let group = |id: &ObjectId| match ComparedKind::of_kind(id.kind) {
            Some(compared) if compared.is_own() => ObjectGroup::Own,
            _ => ObjectGroup::One(id.clone()),
        };
        recorded.keys().chain(&seen).map(group).collect()
    }

    /// The first version, from a minimum on, at which a group equals the recording.
    pub(super) fn find(
        &self,
        group: &ObjectGroup,
        recorded: &BTreeMap<ObjectId, Fields>,
        from: usize,
    ) -> Option<usize> {
        let recorded = group.of(recorded);
        self.with(|versions| {
            let mut state = BTreeMap::new();
            let matches = |state: &BTreeMap<ObjectId, Fields>, count: usize| count >= from && *state == recorded;
            if matches(&state, 0) {
                return Some(0);
            }
            for (number, (id, fields)) in versions.all.iter().enumerate() {
                if group.has(id) {
                    match fields {
                        Some(fields) => drop(state.insert(id.clone(), fields.clone())),
                        None => drop(state.remove(id)),
                    }
                }
                if matches(&state, number + 1) {
                    return Some(number + 1);
                }
            }
            None
        })
    }

    /// Current state.
    pub(super) fn now(&self) -> BTreeMap<ObjectId, Fields> {
        self.with(|versions| {
            let there = versions.last.iter();
            there
                .filter_map(|(id, fields)| Some((id.clone(), fields.clone()?)))
                .collect()
        })
    }

    /// Changed fields of each write.
    pub(super) fn writes(&self) -> Writes {
        self.with(|versions| {
            let (mut before, mut writes) = (BTreeMap::<&ObjectId, &Fields>::new(), Writes::new());
            for (id, fields) in &versions.all {
                let Some(fields) = fields else { continue };
                if let Some(old) = before.insert(id, fields) {
                    writes.entry(id.clone()).or_default().push(change(old, fields));
                }
            }
            writes
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Versions) -> T) -> T {
        work(&mut self.0.lock())
    }
}

impl Versions {
    fn record(&mut self, object: &serde_json::Value, deleted: bool) {
        if text(object, "/kind") == "ByoMachine" && self.placeholders.machine.is_empty() {
            self.placeholders.machine = text(object, "/metadata/name").to_owned();
        }
        let Some((id, fields)) = fields::of(object, &self.placeholders) else {
            return;
        };
        let fields = (!deleted).then_some(fields);
        if self.last.get(&id) != Some(&fields) {
            self.last.insert(id.clone(), fields.clone());
            self.all.push((id, fields));
        }
    }
}

/// Changed fields; empty for removed ones.
fn change(old: &Fields, new: &Fields) -> Fields {
    let new_value = new.iter().filter(|(path, value)| old.get(*path) != Some(*value));
    let taken = old.keys().filter(|path| !new.contains_key(*path));
    new_value
        .map(|(path, value)| (path.clone(), value.clone()))
        .chain(taken.map(|path| (path.clone(), String::new())))
        .collect()
}
