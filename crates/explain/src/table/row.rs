//! One row of the table.

use serde::{Serialize, Serializer};

/// Who has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Actor {
    /// It is done.
    Nothing,
    /// Controllers, Ironic or Kubernetes: it continues without help.
    System,
    /// A user, with an object of the cluster.
    User,
    /// A person at the machine, its BMC or the network.
    Hardware,
}

impl Actor {
    /// As output and runbooks name it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing to do",
            Self::System => "system",
            Self::User => "user",
            Self::Hardware => "hardware",
        }
    }
}

impl Serialize for Actor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// As wanted.
    Normal,
    /// Work in progress, or a deliberate stop.
    Info,
    /// It may last until someone acts.
    Warning,
    /// It failed, or lasts until someone acts.
    Error,
}

impl Severity {
    /// As output and runbooks name it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A reason, explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The word in conditions, Events, logs and metrics.
    pub reason: &'static str,
    /// What waits or happened, in a few words.
    pub title: &'static str,
    /// One or two sentences.
    pub meaning: &'static str,
    /// What to check or to type; empty if nothing is to be done.
    pub cure: &'static str,
    /// Who has to act.
    pub actor: Actor,
    /// How bad it is.
    pub severity: Severity,
}

/// It is done, or a normal step.
pub(super) const fn done(reason: &'static str, title: &'static str, meaning: &'static str) -> Row {
    Row {
        reason,
        title,
        meaning,
        cure: "",
        actor: Actor::Nothing,
        severity: Severity::Normal,
    }
}

/// It ends without help; the cure is for a wait that lasts.
pub(super) const fn passes(
    reason: &'static str,
    title: &'static str,
    meaning: &'static str,
    cure: &'static str,
) -> Row {
    by(Actor::System, Severity::Info, [reason, title, meaning, cure])
}

/// A user has to act, or decided so.
pub(super) const fn user(severity: Severity, texts: [&'static str; 4]) -> Row {
    by(Actor::User, severity, texts)
}

/// A person at the machine has to act.
pub(super) const fn hardware(severity: Severity, texts: [&'static str; 4]) -> Row {
    by(Actor::Hardware, severity, texts)
}

/// What a user corrects, and what breaks nothing.
pub(super) const fn warning(row: [&'static str; 4]) -> Row {
    user(Severity::Warning, row)
}

/// What a user may do.
pub(super) const fn notice(row: [&'static str; 4]) -> Row {
    user(Severity::Info, row)
}

/// What stops a host until a user acts.
pub(super) const fn failure(row: [&'static str; 4]) -> Row {
    user(Severity::Error, row)
}

/// What stops a host until a person repairs its machine.
pub(super) const fn machine(row: [&'static str; 4]) -> Row {
    hardware(Severity::Error, row)
}

const fn by(actor: Actor, severity: Severity, [reason, title, meaning, cure]: [&'static str; 4]) -> Row {
    Row {
        reason,
        title,
        meaning,
        cure,
        actor,
        severity,
    }
}
