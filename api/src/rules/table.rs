//! The rows of a rule table, and running them over one object.

use super::{Finding, Findings};
use crate::kind::Kind;

/// What is asked of an object.
#[derive(Debug)]
pub enum Change<'a, K> {
    /// It is new.
    Create(&'a K),
    /// It replaces a stored one.
    Update {
        /// As stored.
        old: &'a K,
        /// As it would be stored.
        new: &'a K,
    },
    /// It goes.
    Delete(&'a K),
}

/// An object being written: created when there is no old one.
#[derive(Debug)]
pub struct Writing<'a, K> {
    /// As stored, on update.
    pub old: Option<&'a K>,
    /// As it would be stored.
    pub new: &'a K,
}

/// When a row looks, and what it sees.
pub enum On<K: 'static> {
    /// On create and on update.
    Write(fn(&Writing<'_, K>, &mut Findings)),
    /// On create, and on an update that changes the spec: what is stored can still be relabelled, moved and let go.
    Spec(fn(&Writing<'_, K>, &mut Findings)),
    /// On create only.
    Create(fn(&K, &mut Findings)),
    /// On update only: the old object, then the new one.
    Update(fn(&K, &K, &mut Findings)),
    /// On delete only.
    Delete(fn(&K, &mut Findings)),
}

impl<K> On<K> {
    /// When the row looks, in a word for the documentation.
    #[must_use]
    pub const fn when(&self) -> &'static str {
        match self {
            Self::Write(_) => "create, update",
            Self::Spec(_) => "create, update of the spec",
            Self::Create(_) => "create",
            Self::Update(_) => "update",
            Self::Delete(_) => "delete",
        }
    }
}

impl<K> std::fmt::Debug for On<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.when())
    }
}

/// One row: a thing that is not allowed, or that the user is warned of.
#[derive(Debug)]
pub struct Rule<K: 'static> {
    /// Short name, in kebab case; also the name of its example.
    pub name: &'static str,
    /// The rule as a sentence for the user.
    pub says: &'static str,
    /// The check.
    pub on: On<K>,
    /// Row of `docs/parity.md`, where the Go managers decide otherwise.
    pub differs: Option<&'static str>,
}

/// One row: a member that is filled in when the user leaves it out.
#[derive(Debug)]
pub struct Filling<K: 'static> {
    /// Short name, in kebab case; also the name of its example.
    pub name: &'static str,
    /// The row as a sentence for the user.
    pub says: &'static str,
    /// Fills the member in.
    pub fill: fn(&mut K),
}

/// A kind with rules.
pub trait Ruled: Kind {
    /// What is not allowed.
    const RULES: &'static [Rule<Self>];
    /// What is filled in.
    const FILLINGS: &'static [Filling<Self>] = &[];
}

/// Runs every rule of the kind.
#[must_use]
pub fn review<K: Ruled>(change: &Change<'_, K>) -> Vec<Finding> {
    K::RULES.iter().flat_map(|rule| run(rule, change)).collect()
}

fn run<K: Kind>(rule: &Rule<K>, change: &Change<'_, K>) -> Vec<Finding> {
    let mut findings = Findings::of(rule.name);
    match (&rule.on, change) {
        (On::Write(check) | On::Spec(check), Change::Create(new)) => check(&Writing { old: None, new }, &mut findings),
        (On::Write(check), Change::Update { old, new }) => check(&Writing { old: Some(old), new }, &mut findings),
        (On::Spec(check), Change::Update { old, new }) if old.spec() != new.spec() => {
            check(&Writing { old: Some(old), new }, &mut findings);
        }
        (On::Create(check), Change::Create(new)) => check(new, &mut findings),
        (On::Update(check), Change::Update { old, new }) => check(old, new, &mut findings),
        (On::Delete(check), Change::Delete(old)) => check(old, &mut findings),
        (On::Write(_) | On::Spec(_), Change::Delete(_))
        | (On::Spec(_) | On::Create(_) | On::Delete(_), Change::Update { .. })
        | (On::Create(_) | On::Update(_), Change::Delete(_))
        | (On::Update(_) | On::Delete(_), Change::Create(_)) => {}
    }
    findings.into_vec()
}

/// Fills in what the user left out.
pub fn fill<K: Ruled>(object: &mut K) {
    for row in K::FILLINGS {
        (row.fill)(object);
    }
}
