//! An explanation: from the object that was asked about to the last one that it waits for.

use metal3_api::meta::Time;
use serde::{Serialize, Serializer};

use crate::events::EventLine;
use crate::object::ObjectId;
use crate::read::NotRead;
use crate::table::{Actor, Entry, Severity};

/// One object of the chain, and why it is not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// The object.
    pub object: ObjectId,
    /// What it waits for, in a few words.
    pub title: String,
    /// The reason of its condition, error or Event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The message of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// Whether it may be younger: a condition keeps its time when another reason replaces the first one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_most: bool,
    /// How long this step usually takes, in seconds: the median of the hosts in the namespace that completed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usual_seconds: Option<i64>,
    /// Who has to act.
    pub who_acts: Actor,
    /// How bad it is.
    pub severity: Severity,
    /// What to do.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cure: String,
    /// The section of the runbooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runbook: Option<String>,
}

impl Link {
    /// A reason of the table.
    #[must_use]
    pub(crate) fn explained(object: &ObjectId, entry: Entry, message: &str, since: Option<Time>) -> Self {
        let row = entry.row;
        Self {
            reason: Some(row.reason.to_owned()),
            message: message.to_owned(),
            since,
            severity: row.severity,
            runbook: Some(entry.runbook()),
            ..Self::plain(object, row.title, row.actor, row.cure)
        }
    }

    /// With the time of a condition, or of a step in which it happened.
    #[must_use]
    pub(crate) fn at_most(self, since: Option<Time>) -> Self {
        Self {
            since,
            at_most: since.is_some(),
            ..self
        }
    }

    /// Without a reason of the table.
    #[must_use]
    pub(crate) fn plain(object: &ObjectId, title: impl Into<String>, who_acts: Actor, cure: impl Into<String>) -> Self {
        Self {
            object: object.clone(),
            title: title.into(),
            reason: None,
            message: String::new(),
            since: None,
            at_most: false,
            usual_seconds: None,
            who_acts,
            severity: match who_acts {
                Actor::Nothing => Severity::Normal,
                Actor::System => Severity::Info,
                Actor::User | Actor::Hardware => Severity::Warning,
            },
            cure: cure.into(),
            runbook: None,
        }
    }
}

/// The result for the object that was asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It waits for nothing.
    Ready,
    /// It continues without help.
    Waiting,
    /// Someone has to act.
    Blocked,
    /// An object could not be read.
    Unknown,
    /// It does not exist.
    Absent,
}

impl State {
    /// As output names it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "waits for nothing",
            Self::Waiting => "waits, and continues without help",
            Self::Blocked => "someone has to act",
            Self::Unknown => "not known, because something could not be read",
            Self::Absent => "does not exist",
        }
    }

    /// The exit code of the command.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Ready => 0,
            Self::Waiting => 3,
            Self::Blocked => 4,
            Self::Unknown => 5,
            Self::Absent => 6,
        }
    }
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Ready => "ready",
            Self::Waiting => "waiting",
            Self::Blocked => "blocked",
            Self::Unknown => "unknown",
            Self::Absent => "absent",
        })
    }
}

impl Explanation {
    /// Whether the chain ends at a cause: its last link says what to do, and its reason is known if its kind is.
    #[must_use]
    pub fn names_a_cause(&self) -> bool {
        let Some(last) = self.chain.last() else {
            return self.state == State::Ready;
        };
        // The reasons of other providers are shown as they are.
        let is_explained = last.reason.is_none() || last.runbook.is_some() || !last.object.is_of_this_project();
        let is_answered = last.who_acts == Actor::Nothing || !last.cure.is_empty();
        is_explained && is_answered && self.state != State::Unknown
    }
}

/// Why an object waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The object.
    pub object: ObjectId,
    /// The result.
    pub state: State,
    /// From the object to the last cause; empty if it waits for nothing.
    pub chain: Vec<Link>,
    /// The Events of the last object, the oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventLine>,
    /// What could not be read, and may hide a cause.
    pub not_read: Vec<NotRead>,
}
