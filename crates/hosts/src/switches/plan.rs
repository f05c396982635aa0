//! The decision about the switches of a namespace. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use metal3_api::meta::{Condition, ConditionStatus, Time};
use metal3_api::metal3::v1alpha1::BareMetalSwitch;
use metal3_runtime::condition::set_condition;
use metal3_runtime::object_reader::Erased;
use metal3_runtime::reason::Reason;
use secrecy::zeroize::Zeroizing;

use super::file::{self, HEADER, Problem, Section};
use super::{CONFIG_KEY, Outputs};
use crate::names::switch_reason::{
    CREDENTIAL_ERROR, OUTPUT_MISSING, OUTPUT_REFUSED, RECONCILED, STATE_UNKNOWN, TOO_LARGE,
};

/// The condition of a switch.
const VALID: &str = "Valid";
const RECONCILED_MESSAGE: &str = "Switch configuration has been successfully reconciled into the config secret";
/// Bytes of all sections, and of all private keys. A Secret has 1 MiB at most, and may have other content.
const LARGEST: usize = 900 * 1024;

/// The login of a switch.
pub(super) enum Login {
    /// The switch names no Secret.
    NotNamed,
    /// It names one of another namespace.
    OtherNamespace,
    Absent,
    /// The Secret has not the label of Secrets for hardware.
    Unlabelled,
    /// The Secret has another use.
    OtherUse,
    /// The namespace has too many switches to read it.
    NotRead,
    /// Whether it exists, or its content, is not known.
    Unknown(String),
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
        named.and_then(|named| named.name.as_deref()).unwrap_or_default()
    }
}

/// One of the two Secrets that Ironic reads.
pub(super) enum Output {
    Absent,
    Unknown(String),
    Known(Arc<Erased<Secret>>),
}

impl Output {
    fn data(&self) -> Option<&BTreeMap<String, ByteString>> {
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
    /// The Secret of which the API server refused a change in this reconcile.
    pub(super) refused: Option<Which>,
    pub(super) now: Time,
}

/// Values to set, and to remove. It has no `Debug`, because it has secrets.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) which: Which,
    pub(super) values: BTreeMap<String, Option<ByteString>>,
}

/// The writes, in this order, then the reports.
pub(super) struct Plan {
    pub(super) writes: Vec<Write>,
    /// Switches with another status.
    pub(super) reports: Vec<(Arc<BareMetalSwitch>, BareMetalSwitch)>,
    /// What the first switch that is left out waits for.
    pub(super) wait: Option<(Reason, String)>,
}

pub(super) fn plan(facts: &Facts<'_>) -> Plan {
    let text = facts.configs.data().and_then(|data| data.get(CONFIG_KEY));
    let stored = text
        .and_then(|text| str::from_utf8(&text.0).ok())
        .and_then(file::stored);
    // Without switches, only what was written for former ones is changed.
    if facts.switches.is_empty() && facts.unreadable.is_empty() && stored.is_none() {
        return Plan {
            writes: Vec::new(),
            reports: Vec::new(),
            wait: None,
        };
    }
    let mut content = Content::default();
    let mut problems = BTreeMap::new();
    let stored = stored.unwrap_or_default();
    for name in &facts.unreadable {
        content.keep(&stored, name, facts.keys.data());
    }
    for switch in &facts.switches {
        let section = match &switch.login {
            Login::Unknown(why) => {
                content.keep(&stored, switch.name(), facts.keys.data());
                let why = format!("credentials secret {} cannot be read: {why}", switch.secret());
                Err(Problem::new(STATE_UNKNOWN, why))
            }
            login => section(switch, login, facts.outputs).and_then(|section| content.add(switch.name(), section)),
        };
        if let Err(problem) = section {
            problems.insert(switch.name().to_owned(), problem);
        }
    }
    let blocked = blocked(facts);
    let writes = match blocked {
        None => writes(facts, content),
        Some(_) => Vec::new(),
    };
    reported(facts, writes, &problems, blocked.as_ref())
}

/// Why nothing is written.
fn blocked(facts: &Facts<'_>) -> Option<Problem> {
    let Outputs { configs, keys, .. } = facts.outputs;
    let refused = facts.refused.map(|which| {
        let name = if which == Which::Configs { configs } else { keys };
        let why = format!(
            "the API server refuses to change Secret {name}; let this program patch it, and make it neither immutable nor \
             larger than 1 MiB"
        );
        Problem::new(OUTPUT_REFUSED, why)
    });
    let unusable = facts.configs.problem(configs).or_else(|| facts.keys.problem(keys));
    refused.or(unusable)
}

fn section(switch: &Switch, login: &Login, outputs: &Outputs) -> Result<Section, Problem> {
    let secret = switch.secret();
    let message = match login {
        Login::Known(values) => {
            let none = BTreeMap::new();
            let values = values.data.as_ref().unwrap_or(&none);
            return file::section(&switch.object, secret, values, &outputs.folder);
        }
        Login::NotRead => {
            let why = "the namespace has too many switches; move some to another namespace".to_owned();
            return Err(Problem::new(TOO_LARGE, why));
        }
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
        Login::OtherUse => format!(
            "credentials secret {secret} has another use, such as the login of a BMC, and its content would be sent to the \
             switch; create one for the switch, of the type Opaque, kubernetes.io/basic-auth or kubernetes.io/ssh-auth"
        ),
        Login::Unknown(why) => why.clone(),
    };
    Err(Problem::new(CREDENTIAL_ERROR, message))
}

/// What the two Secrets are to contain.
#[derive(Default)]
struct Content {
    sections: BTreeMap<String, Zeroizing<String>>,
    keys: BTreeMap<String, ByteString>,
    size: usize,
    size_of_keys: usize,
}

impl Content {
    fn add(&mut self, name: &str, section: Section) -> Result<(), Problem> {
        let key = section.key.as_ref();
        let size = self.size.saturating_add(section.text.len());
        let size_of_keys = self.size_of_keys.saturating_add(key.map_or(0, |(_, key)| key.0.len()));
        if size > LARGEST || size_of_keys > LARGEST {
            let why = "the Secrets for Ironic are full; delete switches, or move some to another namespace";
            return Err(Problem::new(TOO_LARGE, why));
        }
        if let Some((file, key)) = section.key {
            if self.keys.get(&file).is_some_and(|other| *other != key) {
                let why =
                    "a switch before it has the same spec.macAddress and another private key; correct one of them";
                return Err(Problem::new(CREDENTIAL_ERROR, why));
            }
            self.keys.insert(file, key);
        }
        (self.size, self.size_of_keys) = (size, size_of_keys);
        self.sections.insert(name.to_owned(), section.text);
        Ok(())
    }

    /// Keeps what is stored for a switch of which something is not known.
    fn keep(
        &mut self,
        stored: &BTreeMap<String, Zeroizing<String>>,
        name: &str,
        keys: Option<&BTreeMap<String, ByteString>>,
    ) {
        let Some(section) = stored.get(name) else { return };
        self.size = self.size.saturating_add(section.len());
        self.sections.insert(name.to_owned(), section.clone());
        let file = file::key_file(section);
        if let Some((file, key)) = file.and_then(|file| Some((file, keys?.get(file)?))) {
            self.size_of_keys = self.size_of_keys.saturating_add(key.0.len());
            self.keys.insert(file.to_owned(), key.clone());
        }
    }

    fn file(&self) -> ByteString {
        let mut file = HEADER.to_owned();
        for section in self.sections.values() {
            file.push_str(section);
        }
        ByteString(file.into_bytes())
    }
}

/// A key is written before a section that names it, and removed after it: each prefix is a file whose keys exist.
///
/// differs (`switch-secrets-shared`): the Go manager removes all other content of the two Secrets.
fn writes(facts: &Facts<'_>, content: Content) -> Vec<Write> {
    let none = BTreeMap::new();
    let stored = facts.keys.data().unwrap_or(&none);
    let file = content.file();
    let has_file = facts.configs.data().and_then(|data| data.get(CONFIG_KEY)) == Some(&file);
    let removed = stored
        .keys()
        .filter(|name| file::is_key_file(name) && !content.keys.contains_key(*name));
    let removed: BTreeMap<String, _> = removed.map(|name| (name.clone(), None)).collect();
    let changed = content
        .keys
        .into_iter()
        .filter(|(name, key)| stored.get(name) != Some(key));
    let changed: BTreeMap<String, _> = changed.map(|(name, key)| (name, Some(key))).collect();
    let file = if has_file {
        BTreeMap::new()
    } else {
        BTreeMap::from([(CONFIG_KEY.to_owned(), Some(file))])
    };
    let writes = [(Which::Keys, changed), (Which::Configs, file), (Which::Keys, removed)];
    let writes = writes.into_iter().filter(|(_, values)| !values.is_empty());
    writes.map(|(which, values)| Write { which, values }).collect()
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
            wait = Some((problem.reason, problem.message.clone()));
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
    Plan { writes, reports, wait }
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
