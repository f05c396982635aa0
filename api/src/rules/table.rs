//! The rows of a rule table, and their execution for one object.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Decision, Findings};
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
    /// When a row about the spec applies.
    pub(crate) const SPEC: &'static str = "create, update of the spec";

    /// The operations, as text for the documentation.
    #[must_use]
    pub const fn when(&self) -> &'static str {
        match self {
            Self::Write(_) => "create, update",
            Self::Spec(_) => Self::SPEC,
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
    /// Whether no row rejects a request, so that it need not wait for this program.
    const ONLY_WARNS: bool = Self::RULES.is_empty() && Self::DEFAULTS.is_empty();
    /// Set when no controller of this program serves the kind: a request that writes its spec gets a warning.
    const UNSERVED: Option<Unserved> = None;
}

/// A kind without a controller of this program.
#[derive(Clone, Copy, Debug)]
pub struct Unserved {
    /// What does not happen, as the end of a sentence: `no disc is inserted`.
    pub consequence: &'static str,
    /// The Go manager that serves it.
    pub served_by: &'static str,
    /// The variable with which this program serves it, too.
    pub setting: Option<&'static str>,
}

impl Unserved {
    /// Row of the warning.
    pub const ROW: &'static str = "unserved";
    /// Row of `docs/parity.md` about the warning.
    pub(crate) const DIFFERS: &'static str = "kind-unserved";
    /// Its description.
    pub(crate) const DESCRIPTION: &'static str =
        "A warning is returned while no controller of this program serves the kind.";

    /// A kind that the Go manager of hosts serves.
    pub(crate) const fn by_host_operator(consequence: &'static str) -> Self {
        Self {
            consequence,
            served_by: "baremetal-operator",
            setting: None,
        }
    }

    /// The same, and this program serves it with a setting.
    pub(crate) const fn without(setting: &'static str, consequence: &'static str) -> Self {
        Self {
            setting: Some(setting),
            ..Self::by_host_operator(consequence)
        }
    }

    /// differs: `kind-unserved`. The Go manager serves the kind.
    fn warn(self, kind: &str, findings: &mut Findings) {
        let (what, remedy) = match self.setting {
            None => (
                format!("no controller of this program serves a {kind}: {}", self.consequence),
                format!("keep the Go manager ({}) for it, or delete the object", self.served_by),
            ),
            Some(setting) => (
                format!("no controller serves a {kind} without {setting}: {}", self.consequence),
                format!("set {setting} for this program, or delete the object"),
            ),
        };
        findings.begin(Self::ROW);
        findings.warn("spec", what, remedy);
    }
}

/// Runs all validation rows of the kind.
#[must_use]
pub fn review<K: AdmissionRules>(change: &Change<'_, K>) -> Decision {
    // Decided once: an object can be large, and a kind has many rows about the spec.
    let has_new_spec = match change {
        Change::Update { old, new } => spec_changes(*old, *new),
        Change::Create(_) | Change::Delete(_) => true,
    };
    let mut findings = Findings::of("");
    for rule in K::RULES {
        findings.begin(rule.name);
        run(rule, change, has_new_spec, &mut findings);
    }
    if has_new_spec
        && !matches!(change, Change::Delete(_))
        && let Some(unserved) = K::UNSERVED
    {
        unserved.warn(K::KIND, &mut findings);
    }
    findings.into_decision()
}

fn run<K: AdmissionRules>(rule: &Rule<K>, change: &Change<'_, K>, has_new_spec: bool, findings: &mut Findings) {
    match (&rule.on, change) {
        (On::Write(check) | On::Spec(check), Change::Create(new)) => check(&WriteRequest { old: None, new }, findings),
        (On::Write(check), Change::Update { old, new }) => check(&WriteRequest { old: Some(old), new }, findings),
        (On::Spec(check), Change::Update { old, new }) if has_new_spec => {
            check(&WriteRequest { old: Some(old), new }, findings);
        }
        (On::Create(check), Change::Create(new)) => check(new, findings),
        (On::Update(check), Change::Update { old, new }) => check(old, new, findings),
        (On::Delete(check), Change::Delete(old)) => check(old, findings),
        (On::Write(_) | On::Spec(_), Change::Delete(_))
        | (On::Spec(_) | On::Create(_) | On::Delete(_), Change::Update { .. })
        | (On::Create(_) | On::Update(_), Change::Delete(_))
        | (On::Update(_) | On::Delete(_), Change::Create(_)) => {}
    }
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
