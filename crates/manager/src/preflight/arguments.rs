//! The arguments of `preflight`.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use metal3_preflight::{Direction, Series};
use metal3_runtime::client::Chosen;

use crate::output::Output;

/// The question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preflight {
    /// The direction of the switch.
    pub direction: Direction,
    /// The namespace of the objects; `None` for all.
    pub namespace: Option<String>,
    /// How long the controllers run in a dry run at most; zero for not at all.
    pub dry_run: Duration,
    /// The form of the output.
    pub output: Output,
}

const VALID: &str = "use preflight, --back, --to=1.14, --dry-run=1m, -n NAMESPACE, -o text|json|yaml, --kubeconfig FILE, --context NAME";
/// The time in which a switch shows what it does.
const FIRST: Duration = Duration::from_secs(60);
/// The series of the Go managers that `--back` means.
const NEWEST: Series = Series::new(1, 14);
/// The oldest series that this program follows, and so may go back to.
const OLDEST: Series = Series::new(1, 9);

/// Parses the arguments after `preflight`, and returns the kubeconfig and its context too.
///
/// # Errors
/// Names the argument and the valid ones.
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<(Preflight, Chosen)> {
    let (mut is_back, mut to, mut namespace, mut output, mut limit) = (false, None, None, None, None);
    let mut chosen = Chosen::default();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        if argument == "--back" {
            is_back = true;
            continue;
        }
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (argument, arguments.next()),
        };
        let place = match name.as_str() {
            "--to" => &mut to,
            "--dry-run" => &mut limit,
            "-n" | "--namespace" => &mut namespace,
            "-o" | "--output" => &mut output,
            "--kubeconfig" => &mut chosen.kubeconfig,
            "--context" => &mut chosen.context,
            _ => bail!("{name:?}: {VALID}"),
        };
        let value = value.filter(|value| !value.is_empty());
        *place = Some(value.with_context(|| format!("{name} has no value; {VALID}"))?);
    }
    let output = match output.as_deref() {
        None | Some("text") => Output::Text,
        Some("json") => Output::Json,
        Some("yaml") => Output::Yaml,
        Some(other) => bail!("-o {other:?}: {VALID}"),
    };
    let series = match to.as_deref() {
        None => NEWEST,
        Some(text) => Series::parse(text)
            .filter(|series| (OLDEST..=NEWEST).contains(series))
            .with_context(|| {
                format!("--to {text:?} is no series of cluster-api-provider-metal3 from {OLDEST} to {NEWEST}; {VALID}")
            })?,
    };
    let direction = match (is_back, to) {
        (true, _) => Direction::Back(series),
        (false, None) => Direction::ToThisProgram,
        (false, Some(_)) => bail!("--to names the release of the way back; add --back"),
    };
    let dry_run = match limit.as_deref() {
        None => FIRST,
        Some(text) => metal3_flags::span::parse(text)
            .with_context(|| format!("--dry-run {text:?} is no time such as 1m or 90s, or 0 for none; {VALID}"))?,
    };
    let preflight = Preflight {
        direction,
        dry_run,
        namespace,
        output,
    };
    Ok((preflight, chosen))
}
