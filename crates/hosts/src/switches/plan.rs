//! The decision about the switches of a namespace. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use metal3_api::meta::{Condition, ConditionStatus, Time};
use metal3_api::metal3::v1alpha1::BareMetalSwitch;
use metal3_runtime::condition::set_condition;
use metal3_runtime::object_reader::Erased;
use metal3_runtime::reason::Reason;

use super::content::{Content, writes};
use super::file::{self, Problem, Section};
use super::{CONFIG_KEY, Outputs};
use crate::names::switch_reason::{
    CREDENTIAL_ERROR, OUTPUT_MISSING, OUTPUT_REFUSED, RECONCILED, STATE_UNKNOWN, TOO_LARGE,
};

/// The condition of a switch.
const VALID: &str = "Valid";
const RECONCILED_MESSAGE: &str = "Switch configuration has been successfully reconciled into the config secret";
/// Letters of the longest name of a Secret. A message with a longer one would be none of a condition.
const LONGEST_NAME: usize = 253;

/// The login of a switch.
pub(super) enum Login {
    /// The switch names no Secret.
    NotNamed,
    /// It names one of another namespace.
    OtherNamespace,
    Absent,
    /// The Secret has not the label of Secrets for hardware.
    Unlabelled,
    /// A host uses the Secret.
    OfHost,
    /// The Secret is of another type.
    OtherUse,
    /// The namespace has too many switches to read it.
    NotRead,
    /// Whether it exists, or its content, is not known, and no watch tells when that changes.
    Unknown(String),
    /// Whether a host uses it is not known. The watch of hosts tells when that changes.
    Unclear(String),
    Known(Arc<Erased<Secret>>),
}

/// A switch and its login.
pub(super) struct Switch {
    pub(super) object: Arc<BareMetalSwitch>,
    pub(super) login: Login,
}

impl Switch {
    fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    fn secret(&self) -> &str {
        let named = self.object.spec.credentials.as_ref();
        let name = named.and_then(|named| named.name.as_deref()).unwrap_or_default();
        let end = name.char_indices().nth(LONGEST_NAME).map_or(name.len(), |(at, _)| at);
        name.get(..end).unwrap_or_default()
    }
}

/// One of the two Secrets that Ironic reads.
pub(super) enum Output {
    Absent,
    Unknown(String),
    Known(Arc<Erased<Secret>>),
}

impl Output {
    pub(super) fn data(&self) -> Option<&BTreeMap<String, ByteString>> {
        static EMPTY: BTreeMap<String, ByteString> = BTreeMap::new();
        match self {
            Self::Known(secret) => Some(secret.data.as_ref().unwrap_or(&EMPTY)),
            Self::Absent | Self::Unknown(_) => None,
        }
    }

    fn problem(&self, name: &str) -> Option<Problem> {
        match self {
            Self::Known(_) => None,
            Self::Absent => Some(Problem::new(
                OUTPUT_MISSING,
                format!(
                    "Secret {name} not found; create it empty in the namespace of the switch, and mount it in Ironic"
                ),
            )),
            Self::Unknown(why) => Some(Problem::new(
                STATE_UNKNOWN,
                format!("Secret {name} cannot be read: {why}"),
            )),
        }
    }
}

/// Which of the two Secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Which {
    Configs,
    Keys,
}

/// All that a decision may see.
pub(super) struct Facts<'a> {
    pub(super) outputs: &'a Outputs,
    /// In the order of their names.
    pub(super) switches: Vec<Switch>,
    /// The names of those that cannot be decoded.
    pub(super) unreadable: Vec<String>,
    pub(super) configs: Output,
    pub(super) keys: Output,
    /// The Secrets of which the API server refused a change in this reconcile.
    pub(super) refused: BTreeSet<Which>,
    pub(super) now: Time,
}

/// Values to set, and to remove. It has no `Debug`, because it has secrets.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) which: Which,
    pub(super) values: BTreeMap<String, Option<ByteString>>,
}

/// What is waited for.
#[derive(Clone)]
pub(super) struct Wait {
    pub(super) reason: Reason,
    pub(super) message: String,
    /// Whether a condition shows it.
    pub(super) is_shown: bool,
}

/// The writes, in this order, then the reports.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) writes: Vec<Write>,
    /// Switches with another status.
    pub(super) reports: Vec<(Arc<BareMetalSwitch>, BareMetalSwitch)>,
    /// What is waited for; first what no condition shows.
    pub(super) wait: Option<Wait>,
    /// Whether no watch tells when the wait is over.
    pub(super) is_unwatched: bool,
}

/// What becomes of the part of a switch.
enum Decided {
    Write(Section),
    /// What is stored stays.
    Keep(Problem),
    LeaveOut(Problem),
}

pub(super) fn plan(facts: &Facts<'_>) -> Plan {
    let stored = stored_text(facts).and_then(file::stored);
    let is_unread = matches!(facts.configs, Output::Unknown(_));
    // Without switches, only what was written for former ones is changed.
    if facts.switches.is_empty() && facts.unreadable.is_empty() && stored.is_none() && !is_unread {
        return Plan::default();
    }
    let mut content = Content::default();
    let mut problems = BTreeMap::new();
    let stored = stored.unwrap_or_default();
    for name in &facts.unreadable {
        content.keep(&stored, name, facts.keys.data());
    }
    let mut sections = Vec::new();
    for switch in &facts.switches {
        let problem = match decided(facts, switch) {
            Decided::Write(section) => {
                sections.push((switch.name(), section));
                continue;
            }
            Decided::Keep(problem) => {
                content.keep(&stored, switch.name(), facts.keys.data());
                problem
            }
            Decided::LeaveOut(problem) => problem,
        };
        problems.insert(switch.name().to_owned(), problem);
    }
    // What stays has its place first.
    for (name, section) in sections {
        if let Err(problem) = content.add(name, section) {
            problems.insert(name.to_owned(), problem);
        }
    }
    let blocked = match facts.refused.contains(&Which::Configs) {
        true => Some(refused(&facts.outputs.configs)),
        false => facts.configs.problem(&facts.outputs.configs),
    };
    let mut writes = match blocked {
        None => writes(facts, content),
        Some(_) => Vec::new(),
    };
    let of_keys = keys_that_stay(facts, &mut writes);
    let mut planned = reported(facts, writes, &problems, blocked.as_ref());
    if let Some(wait) = not_shown(facts, blocked, of_keys) {
        planned.wait = Some(wait);
    }
    planned
}

/// The stored file.
fn stored_text<'a>(facts: &'a Facts<'_>) -> Option<&'a str> {
    let text = facts.configs.data()?.get(CONFIG_KEY)?;
    str::from_utf8(&text.0).ok()
}

fn refused(secret: &str) -> Problem {
    let why = format!(
        "the API server refuses to change Secret {secret}; let this program patch it, by its roles and by the admission policies of the \
         release, and make it neither immutable nor larger than 1 MiB"
    );
    Problem::new(OUTPUT_REFUSED, why)
}

/// Removes the writes to a Secret of keys that cannot be changed. Returns why keys of former switches may stay in it.
fn keys_that_stay(facts: &Facts<'_>, writes: &mut Vec<Write>) -> Option<Problem> {
    let keys = &facts.outputs.keys;
    if !facts.refused.contains(&Which::Keys) {
        return match facts.keys {
            Output::Unknown(_) => facts.keys.problem(keys),
            Output::Absent | Output::Known(_) => None,
        };
    }
    let before = writes.len();
    writes.retain(|write| write.which != Which::Keys);
    (writes.len() != before).then(|| refused(keys))
}

/// What is waited for, and no condition shows.
fn not_shown(facts: &Facts<'_>, blocked: Option<Problem>, of_keys: Option<Problem>) -> Option<Wait> {
    let mut switches = facts.switches.iter();
    let has_condition = switches.any(|switch| switch.object.metadata.deletion_timestamp.is_none());
    let undecodable = facts.unreadable.first().map(|name| {
        let why = format!("BareMetalSwitch {name} cannot be decoded; what was written for it stays; correct it");
        Problem::new(STATE_UNKNOWN, why)
    });
    let problem = blocked.filter(|_| !has_condition).or(of_keys).or(undecodable)?;
    Some(Wait {
        reason: problem.reason,
        message: problem.message,
        is_shown: false,
    })
}

/// Why the private key of a section can be in no Secret now.
fn key_problem(facts: &Facts<'_>, section: &Section) -> Option<Problem> {
    let (file, key) = section.key.as_ref()?;
    let name = &facts.outputs.keys;
    let is_stored = facts.keys.data().and_then(|data| data.get(file)) == Some(key);
    let is_refused = facts.refused.contains(&Which::Keys) && !is_stored;
    let problem = facts.keys.problem(name);
    problem.or_else(|| is_refused.then(|| refused(name)))
}

fn decided(facts: &Facts<'_>, switch: &Switch) -> Decided {
    let secret = switch.secret();
    let message = match &switch.login {
        Login::Known(values) => {
            let none = BTreeMap::new();
            let values = values.data.as_ref().unwrap_or(&none);
            return match file::section(&switch.object, secret, values, &facts.outputs.folder) {
                Err(problem) => Decided::LeaveOut(problem),
                Ok(section) => match key_problem(facts, &section) {
                    Some(problem) => Decided::Keep(problem),
                    None => Decided::Write(section),
                },
            };
        }
        Login::NotRead => {
            let why = "the namespace has too many switches; move some to another namespace";
            return Decided::Keep(Problem::new(TOO_LARGE, why));
        }
        Login::Unknown(why) | Login::Unclear(why) => {
            let why = format!("credentials secret {secret} cannot be read: {why}");
            return Decided::Keep(Problem::new(STATE_UNKNOWN, why));
        }
        // Who may write hosts must not take a switch from Ironic: nothing new is read or sent, and nothing is removed.
        Login::OfHost => return Decided::Keep(Problem::new(CREDENTIAL_ERROR, other_use(secret))),
        Login::OtherUse => other_use(secret),
        Login::NotNamed => "credentials secret reference is not set; name a Secret in spec.credentials.name".to_owned(),
        Login::OtherNamespace => {
            "spec.credentials.namespace is another one than that of the switch, whose Secrets are \
                                  not read; remove it, and create the Secret in the namespace of the switch"
                .to_owned()
        }
        Login::Absent => format!("credentials secret {secret} not found; create it in the namespace of the switch"),
        Login::Unlabelled => format!(
            "credentials secret {secret} has no label environment.metal3.io: baremetal; label it to have its content sent \
             to the switch"
        ),
    };
    Decided::LeaveOut(Problem::new(CREDENTIAL_ERROR, message))
}

fn other_use(secret: &str) -> String {
    format!(
        "credentials secret {secret} has another use, such as the login of a BMC, and its content would be sent to the \
         switch; create one for the switch, of the type Opaque, kubernetes.io/basic-auth or kubernetes.io/ssh-auth"
    )
}

fn reported(
    facts: &Facts<'_>,
    writes: Vec<Write>,
    problems: &BTreeMap<String, Problem>,
    blocked: Option<&Problem>,
) -> Plan {
    let (mut reports, mut wait) = (Vec::new(), None);
    for switch in &facts.switches {
        let problem = problems.get(switch.name()).or(blocked);
        if let (None, Some(problem)) = (&wait, problem) {
            wait = Some(Wait {
                reason: problem.reason,
                message: problem.message.clone(),
                is_shown: true,
            });
        }
        if switch.object.metadata.deletion_timestamp.is_some() {
            continue;
        }
        let mut reported = BareMetalSwitch::clone(&switch.object);
        let condition = condition(problem, reported.metadata.generation, facts.now);
        if set_condition(&mut reported.status.conditions, condition) {
            reports.push((Arc::clone(&switch.object), reported));
        }
    }
    Plan {
        writes,
        reports,
        wait,
        is_unwatched: is_unwatched(facts),
    }
}

/// Whether a right or a policy of the API server has to change, which no watch tells.
fn is_unwatched(facts: &Facts<'_>) -> bool {
    let is_unknown = |output: &Output| matches!(output, Output::Unknown(_));
    let mut switches = facts.switches.iter();
    !facts.refused.is_empty()
        || is_unknown(&facts.configs)
        || is_unknown(&facts.keys)
        || switches.any(|switch| matches!(switch.login, Login::Unknown(_)))
}

fn condition(problem: Option<&Problem>, generation: Option<i64>, now: Time) -> Condition {
    let status = match problem {
        None => ConditionStatus::True,
        Some(problem) if problem.reason == STATE_UNKNOWN => ConditionStatus::Unknown,
        Some(_) => ConditionStatus::False,
    };
    Condition {
        type_: VALID.to_owned(),
        status,
        observed_generation: generation,
        last_transition_time: now,
        reason: problem.map_or(RECONCILED, |problem| problem.reason).to_string(),
        message: problem.map_or_else(|| RECONCILED_MESSAGE.to_owned(), |problem| problem.message.clone()),
    }
}
