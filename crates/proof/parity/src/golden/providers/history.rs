//! What the stand-ins wrote: each version of each object, in the order of the writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use metal3_sandbox::world::{NAMESPACE, World};

use super::facts::{self, Facts, Names, Subject, Tracked};
use super::text;
use super::timeline::Writes;

/// The versions so far. Clones share them.
#[derive(Clone, Default)]
pub(super) struct History(Arc<Mutex<Versions>>);

#[derive(Default)]
struct Versions {
    names: Names,
    /// Nothing where the object is gone.
    all: Vec<(Subject, Option<Facts>)>,
    last: BTreeMap<Subject, Option<Facts>>,
}

/// Objects that are compared at one moment: those of the provider, or one of another's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    Own,
    One(Subject),
}

impl Group {
    fn has(&self, subject: &Subject) -> bool {
        match self {
            Self::Own => Tracked::of_kind(subject.kind).is_some_and(Tracked::is_own),
            Self::One(one) => one == subject,
        }
    }

    /// The part of a state that is compared.
    pub(super) fn of(&self, state: &BTreeMap<Subject, Facts>) -> BTreeMap<Subject, Facts> {
        let own = state.iter().filter(|(subject, _)| self.has(subject));
        own.map(|(subject, facts)| (subject.clone(), facts.clone())).collect()
    }
}

impl History {
    /// Everything that is written in a world from here on.
    pub(super) fn of(world: &World) -> Self {
        let history = Self::default();
        history.with(|versions| versions.names.namespace = NAMESPACE.to_owned());
        let noted = history.clone();
        world.cluster.observe_writes(move |written| {
            noted.with(|versions| versions.note(written.object, written.deleted));
        });
        history
    }

    /// How many versions there are.
    pub(super) fn count(&self) -> usize {
        self.with(|versions| versions.all.len())
    }

    /// The groups in which objects of these and of what was written here are compared.
    pub(super) fn groups(&self, recorded: &BTreeMap<Subject, Facts>) -> BTreeSet<Group> {
        let seen = self.with(|versions| versions.last.keys().cloned().collect::<Vec<_>>());
        let group = |subject: &Subject| match Tracked::of_kind(subject.kind) {
            Some(tracked) if tracked.is_own() => Group::Own,
            _ => Group::One(subject.clone()),
        };
        recorded.keys().chain(&seen).map(group).collect()
    }

    /// After how many versions, but not before so many, a group was as it was recorded.
    pub(super) fn find(&self, group: &Group, recorded: &BTreeMap<Subject, Facts>, from: usize) -> Option<usize> {
        let recorded = group.of(recorded);
        self.with(|versions| {
            let mut state = BTreeMap::new();
            let is_so = |state: &BTreeMap<Subject, Facts>, count: usize| count >= from && *state == recorded;
            if is_so(&state, 0) {
                return Some(0);
            }
            for (number, (subject, facts)) in versions.all.iter().enumerate() {
                if group.has(subject) {
                    match facts {
                        Some(facts) => drop(state.insert(subject.clone(), facts.clone())),
                        None => drop(state.remove(subject)),
                    }
                }
                if is_so(&state, number + 1) {
                    return Some(number + 1);
                }
            }
            None
        })
    }

    /// How everything is now.
    pub(super) fn now(&self) -> BTreeMap<Subject, Facts> {
        self.with(|versions| {
            let there = versions.last.iter();
            there
                .filter_map(|(subject, facts)| Some((subject.clone(), facts.clone()?)))
                .collect()
        })
    }

    /// What each write changed of what is compared.
    pub(super) fn writes(&self) -> Writes {
        self.with(|versions| {
            let (mut before, mut writes) = (BTreeMap::<&Subject, &Facts>::new(), Writes::new());
            for (subject, facts) in &versions.all {
                let Some(facts) = facts else { continue };
                if let Some(old) = before.insert(subject, facts) {
                    writes.entry(subject.clone()).or_default().push(change(old, facts));
                }
            }
            writes
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Versions) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Versions {
    fn note(&mut self, object: &serde_json::Value, gone: bool) {
        if text(object, "/kind") == "ByoMachine" && self.names.machine.is_empty() {
            self.names.machine = text(object, "/metadata/name").to_owned();
        }
        let Some((subject, facts)) = facts::of(object, &self.names) else {
            return;
        };
        let facts = (!gone).then_some(facts);
        if self.last.get(&subject) != Some(&facts) {
            self.last.insert(subject.clone(), facts.clone());
            self.all.push((subject, facts));
        }
    }
}

/// What is said otherwise; empty where it is not said any more.
fn change(old: &Facts, new: &Facts) -> Facts {
    let said = new.iter().filter(|(path, value)| old.get(*path) != Some(*value));
    let taken = old.keys().filter(|path| !new.contains_key(*path));
    said.map(|(path, value)| (path.clone(), value.clone()))
        .chain(taken.map(|path| (path.clone(), String::new())))
        .collect()
}
