//! The rows of a rule table, and their execution for one object.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Finding, Findings};
use crate::crd::defaults::equal_with_defaults;
use crate::kind::Kind;

/// A requested change of an object.
#[derive(Debug)]
pub enum Change<'a, K> {
    /// A new object.
    Create(&'a K),
    /// A stored object is replaced.
    Update {
        /// As stored.
        old: &'a K,
        /// As it would be stored.
        new: &'a K,
    },
    /// A stored object is deleted.
    Delete(&'a K),
}

/// A create or update request; a create when there is no old object.
#[derive(Debug)]
pub struct WriteRequest<'a, K> {
    /// As stored, on update.
    pub old: Option<&'a K>,
    /// As it would be stored.
    pub new: &'a K,
}

/// When a row applies, and its check.
pub enum On<K: 'static> {
    /// On create and on update.
    Write(fn(&WriteRequest<'_, K>, &mut Findings)),
    /// On create, and on an update that changes the spec. A stored object with an invalid spec can still be relabelled,
    /// moved and deleted.
    Spec(fn(&WriteRequest<'_, K>, &mut Findings)),
    /// On create only.
    Create(fn(&K, &mut Findings)),
    /// On update only: the old object, then the new one.
    Update(fn(&K, &K, &mut Findings)),
    /// On delete only.
    Delete(fn(&K, &mut Findings)),
}

impl<K> On<K> {
    /// The operations, as text for the documentation.
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

/// One validation row, which rejects or warns.
#[derive(Debug)]
pub struct Rule<K: 'static> {
    /// Short name, in kebab case; also the name of its example.
    pub name: &'static str,
    /// The rule as a sentence for the user.
    pub description: &'static str,
    /// The check.
    pub on: On<K>,
    /// Row of `docs/parity.md` when the Go managers decide otherwise.
    pub differs: Option<&'static str>,
}

impl<K> Rule<K> {
    pub(crate) const fn new(name: &'static str, description: &'static str, on: On<K>) -> Self {
        Self {
            name,
            description,
            on,
            differs: None,
        }
    }

    pub(crate) const fn on_write(
        name: &'static str,
        description: &'static str,
        check: fn(&WriteRequest<'_, K>, &mut Findings),
    ) -> Self {
        Self::new(name, description, On::Write(check))
    }

    /// A row about the spec: an unchanged stored spec is accepted, which the Go managers reject.
    pub(crate) const fn on_spec(
        name: &'static str,
        description: &'static str,
        check: fn(&WriteRequest<'_, K>, &mut Findings),
    ) -> Self {
        Self::new(name, description, On::Spec(check)).differing("unchanged-spec")
    }

    pub(crate) const fn on_create(name: &'static str, description: &'static str, check: fn(&K, &mut Findings)) -> Self {
        Self::new(name, description, On::Create(check))
    }

    pub(crate) const fn on_update(
        name: &'static str,
        description: &'static str,
        check: fn(&K, &K, &mut Findings),
    ) -> Self {
        Self::new(name, description, On::Update(check))
    }

    /// Names the row of `docs/parity.md` about the difference.
    pub(crate) const fn differing(mut self, row: &'static str) -> Self {
        self.differs = Some(row);
        self
    }
}

/// One defaulting row.
#[derive(Debug)]
pub struct Defaulting<K: 'static> {
    /// Short name, in kebab case; also the name of its example.
    pub name: &'static str,
    /// The row as a sentence for the user.
    pub description: &'static str,
    /// Sets the default.
    pub apply: fn(&mut K),
}

/// A kind with admission rules.
pub trait AdmissionRules: Kind<Spec: JsonSchema + Serialize> {
    /// Validation rows.
    const RULES: &'static [Rule<Self>];
    /// Defaulting rows.
    const DEFAULTS: &'static [Defaulting<Self>] = &[];
}

/// Runs all validation rows of the kind.
#[must_use]
pub fn review<K: AdmissionRules>(change: &Change<'_, K>) -> Vec<Finding> {
    // Decided once: an object can be large, and a kind has many rows about the spec.
    let has_new_spec = match change {
        Change::Update { old, new } => spec_changes(*old, *new),
        Change::Create(_) | Change::Delete(_) => true,
    };
    let all = K::RULES.iter();
    all.flat_map(|rule| run(rule, change, has_new_spec)).collect()
}

fn run<K: AdmissionRules>(rule: &Rule<K>, change: &Change<'_, K>, has_new_spec: bool) -> Vec<Finding> {
    let mut findings = Findings::of(rule.name);
    match (&rule.on, change) {
        (On::Write(check) | On::Spec(check), Change::Create(new)) => {
            check(&WriteRequest { old: None, new }, &mut findings)
        }
        (On::Write(check), Change::Update { old, new }) => check(&WriteRequest { old: Some(old), new }, &mut findings),
        (On::Spec(check), Change::Update { old, new }) if has_new_spec => {
            check(&WriteRequest { old: Some(old), new }, &mut findings);
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

/// Whether an update changes the spec by more than defaults: those of its schema and those of the kind.
///
/// differs: update-without-defaults
fn spec_changes<K: AdmissionRules>(old: &K, new: &K) -> bool {
    if old.spec() == new.spec() {
        return false;
    }
    let [old, new] = [old, new].map(|object| {
        let mut object = object.clone();
        set_defaults(&mut object);
        object
    });
    !equal_with_defaults(old.spec(), new.spec(), |spec| spec)
}

/// Runs all defaulting rows of the kind.
pub fn set_defaults<K: AdmissionRules>(object: &mut K) {
    for row in K::DEFAULTS {
        (row.apply)(object);
    }
}
