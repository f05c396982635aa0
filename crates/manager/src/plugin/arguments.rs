//! The arguments of the words.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use metal3_api::metal3::v1alpha1::ProvisioningState;
use metal3_explain::labels;
use metal3_explain::view::{Filter, View};
use metal3_runtime::client::Chosen;

use super::words::{Takes, Word, find, usage};
use crate::output::Output;

/// A question, and the form of its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What is asked.
    pub ask: Ask,
    /// The namespaces.
    pub scope: Scope,
    /// The form of the output.
    pub output: Output,
    /// Whether changes are printed too.
    pub watch: bool,
    /// The file with the history of a node in Ironic.
    pub ironic_history: Option<String>,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// A report.
    View(View),
    /// An archive in a file.
    Bundle(String),
}

/// The namespaces that are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// That of the kubeconfig.
    Default,
    /// One.
    Namespace(String),
    /// All.
    All,
}

impl Scope {
    /// The namespace, if it is one.
    #[must_use]
    pub fn namespace<'a>(&'a self, default: &'a str) -> Option<&'a str> {
        match self {
            Self::Default => Some(default),
            Self::Namespace(name) => Some(name),
            Self::All => None,
        }
    }
}

/// Values by the names of flags, and the other words.
type Parsed = (BTreeMap<&'static str, String>, Vec<String>);

/// Parses the arguments after a word, and returns the kubeconfig and its context too.
///
/// # Errors
/// Names the argument and the valid ones.
pub fn parse(word: &str, arguments: impl IntoIterator<Item = String>) -> Result<(Command, Chosen)> {
    let word = find(word).with_context(|| format!("{word:?} is not a command"))?;
    let (mut flags, words) = split(word, arguments)?;
    let mut take = |name: &str| flags.remove(name);
    let scope = match (take("--namespace"), take("--all-namespaces")) {
        (Some(_), Some(_)) => bail!("-n and -A exclude each other; {}", usage(word)),
        (Some(name), None) if name.is_empty() => bail!("-n names no namespace; {}", usage(word)),
        (Some(name), None) => Scope::Namespace(name),
        (None, Some(_)) => Scope::All,
        (None, None) => Scope::Default,
    };
    let output = match take("--output") {
        None => Output::Text,
        Some(name) => Output::named(&name).with_context(|| format!("-o {name:?}; {}", usage(word)))?,
    };
    let chosen = Chosen {
        kubeconfig: take("--kubeconfig"),
        context: take("--context"),
    };
    let watch = take("--watch").is_some();
    let file = take("--file");
    let ironic_history = take("--ironic-history");
    let filter = Filter {
        labels: take("--selector").unwrap_or_default(),
        state: take("--state"),
        error: take("--error"),
        bmc: take("--bmc"),
        image: take("--image"),
        cluster: take("--cluster"),
    };
    if let Some(state) = &filter.state {
        let is_known = !matches!(
            serde_json::from_value(state.as_str().into()),
            Ok(ProvisioningState::Other(_))
        );
        ensure!(
            is_known,
            "--state {state:?}: write it as in status.provisioning.state of a host"
        );
    }
    labels::parse(&filter.labels).map_err(|why| anyhow::anyhow!("-l {:?}: {why}", filter.labels))?;
    let command = Command {
        ask: ask(word, &words, filter, file)?,
        scope,
        output,
        watch,
        ironic_history,
    };
    Ok((command, chosen))
}

fn ask(word: &Word, words: &[String], filter: Filter, file: Option<String>) -> Result<Ask> {
    let view = match (word.name, words) {
        ("tree", [name]) => View::Tree(name.clone()),
        ("timeline", [name]) => View::Timeline(name.clone(), Vec::new()),
        ("pools", []) => View::Pools(None),
        ("pools", [name]) => View::Pools(Some(name.clone())),
        ("hosts", []) => View::Hosts(filter),
        ("consumers", []) => View::Consumers,
        ("claims", []) => View::Claims,
        ("top", []) => View::Top,
        ("support-bundle", []) => return Ok(Ask::Bundle(file.unwrap_or_else(|| "metal3-support.tar".to_owned()))),
        (name, []) => bail!("{name}: {}", usage(word)),
        (name, words) => bail!("{name} {}: {}", words.join(" "), usage(word)),
    };
    Ok(Ask::View(view))
}

fn split(word: &Word, arguments: impl IntoIterator<Item = String>) -> Result<Parsed> {
    let (mut flags, mut words) = (BTreeMap::new(), Vec::new());
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        if !argument.starts_with('-') {
            words.push(argument);
            continue;
        }
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (argument, None),
        };
        let flag = word.flags.iter().find(|flag| flag.name == name || flag.short == name);
        let flag = flag.with_context(|| format!("{name:?}: {}", usage(word)))?;
        let value = match (flag.takes, value) {
            (Takes::Nothing, Some(value)) => bail!("{name} takes no value, not {value:?}; {}", usage(word)),
            (Takes::Nothing | Takes::Optional, None) => String::new(),
            (Takes::Value | Takes::Optional, Some(value)) => value,
            (Takes::Value, None) => {
                let next = arguments.next().filter(|next| !next.starts_with('-'));
                next.with_context(|| format!("{name} has no value; {}", usage(word)))?
            }
        };
        ensure!(
            flags.insert(flag.name, value).is_none(),
            "{name} is given twice; {}",
            usage(word)
        );
    }
    Ok((flags, words))
}
