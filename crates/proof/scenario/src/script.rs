//! The format of a scenario.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::cause::ExpectedCause;
use crate::expectation::{Expectation, ExpectedNodes};
use crate::quoted::blocks;

/// A scenario.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it shows, as a sentence.
    pub about: String,
    /// Number of hosts at the start.
    pub hosts: u32,
    /// Namespace of hosts, and of objects without one; the default depends on the environment.
    pub namespace: Option<String>,
    /// Whether the products run with `--join-preflight`.
    #[serde(default, rename = "join-preflight")]
    pub looks_before_joins: bool,
    /// Steps in order.
    pub steps: Vec<Step>,
}

impl Scenario {
    /// Parses a scenario.
    ///
    /// # Errors
    /// The unknown keyword, and its place.
    pub fn read(text: &str) -> Result<Self> {
        Ok(serde_saphyr::from_str(text)?)
    }

    /// Number of hosts at the end.
    #[must_use]
    pub fn hosts_at_most(&self) -> u32 {
        let more = self.steps.iter().map(|step| match step {
            Step::Hosts(count) => *count,
            _ => 0,
        });
        more.fold(self.hosts, u32::saturating_add)
    }
}

/// Splits `Kind/name`.
///
/// # Errors
/// When it has another form.
pub fn kind_and_name(object: &str) -> Result<(&str, &str)> {
    object
        .split_once('/')
        .with_context(|| format!("{object:?}: write Kind/name"))
}

/// One step.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Applies the objects of a file, with values for its variables.
    Apply(Apply),
    /// Creates published objects unchanged: of a manifest, or those quoted in a document.
    Published(String),
    /// Applies a merge patch to an object.
    Change {
        /// `Kind/name`.
        object: String,
        /// The merge patch.
        patch: Value,
    },
    /// Deletes an object, `Kind/name`.
    Delete(String),
    /// Deletes the Machine that has the host with this number.
    DeleteMachineOf(u32),
    /// Waits until the expectation is met.
    Wait(Expectation),
    /// Checks the expectation now.
    Check(Expectation),
    /// Checks that the expectation stays met.
    Holds {
        /// The expectation.
        #[serde(rename = "wish")]
        expectation: Expectation,
        /// Duration.
        during: Span,
    },
    /// Waits until the explanations of objects end at a cause.
    Why(ExpectedCause),
    /// Checks the Nodes of a workload cluster.
    Nodes(ExpectedNodes),
    /// Adds hosts.
    Hosts(u32),
    /// Breaks the machine of a host.
    Fault {
        /// Number of the host.
        host: u32,
        /// Faults, in the format of the machine simulator.
        has: Vec<Value>,
    },
    /// Repairs the machine of a host.
    Mend(u32),
    /// Stops Ironic for this time.
    IronicDown(Span),
    /// Kills and restarts the products.
    Restart,
    /// Checks that the products write nothing for this time.
    Quiet(Span),
    /// Checks the total number of disk writes of all machines.
    Written(u32),
}

impl Step {
    /// The kind of the objects of the step, if it names one.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        match self {
            Self::Change { object, .. } | Self::Delete(object) => kind_and_name(object).ok().map(|(kind, _)| kind),
            Self::Wait(expectation) | Self::Check(expectation) | Self::Holds { expectation, .. } => {
                Some(&expectation.kind)
            }
            Self::Why(cause) => Some(&cause.kind),
            Self::Apply(_)
            | Self::Published(_)
            | Self::Nodes(_)
            | Self::DeleteMachineOf(_)
            | Self::Hosts(_)
            | Self::Fault { .. }
            | Self::Mend(_)
            | Self::IronicDown(_)
            | Self::Restart
            | Self::Quiet(_)
            | Self::Written(_) => None,
        }
    }
}

/// Objects of a published text: all of a manifest, or those quoted in prose.
///
/// # Errors
/// When the text cannot be parsed or has no object.
pub fn published(text: &str) -> Result<Vec<Value>> {
    let is_prose = serde_saphyr::from_multiple::<Value>(text).is_err();
    let texts = if is_prose { blocks(text) } else { vec![text.to_owned()] };
    let mut all = Vec::new();
    for text in texts {
        all.extend(serde_saphyr::from_multiple::<Value>(&text)?);
    }
    // A kustomization is no API object.
    all.retain(|one| one.pointer("/metadata/name").is_some());
    ensure!(!all.is_empty(), "there is no object in it");
    Ok(all)
}

/// A file of objects.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Apply {
    /// Path relative to the scenarios.
    pub file: String,
    /// Values for its variables.
    #[serde(default)]
    pub with: BTreeMap<String, String>,
}

/// A duration, as `90s`, `10m` or `6h`.
#[derive(Debug, Clone, Copy)]
pub struct Span(pub Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        span(&text).map(Self).map_err(serde::de::Error::custom)
    }
}

fn span(text: &str) -> Result<Duration> {
    let (number, unit) = text
        .split_at_checked(text.len().saturating_sub(1))
        .unwrap_or((text, ""));
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        _ => bail!("{text:?}: write a time as 90s, 10m or 6h"),
    };
    let number: u64 = number
        .parse()
        .with_context(|| format!("{text:?}: write a time as 90s, 10m or 6h"))?;
    Ok(Duration::from_secs(number.saturating_mul(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(span("90s").unwrap().as_secs(), 90);
        assert_eq!(span("10m").unwrap().as_secs(), 600);
        assert_eq!(span("6h").unwrap().as_secs(), 21_600);
        for wrong in ["", "6", "h", "sixh", "6d"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn added_hosts_count_and_steps_have_a_kind() {
        let text = "about: x\nhosts: 2\nsteps: [{ hosts: 3 }, { delete: Cluster/a }, { wait: { kind: Machine } }]";
        let scenario = Scenario::read(text).unwrap();
        assert_eq!(scenario.hosts_at_most(), 5);
        let kinds: Vec<_> = scenario.steps.iter().map(Step::kind).collect();
        assert_eq!(kinds, [None, Some("Cluster"), Some("Machine")]);
    }

    #[test]
    fn manifests_quoted_in_prose_are_published() {
        let manifest = "kind: A\napiVersion: v1\nmetadata: { name: a }\n---\nkind: Kustomization\n";
        let prose = format!("# A word: of `it`\n\n- {{ and\n\n```yaml\n{{% raw %}}\n{manifest}{{% endraw %}}\n```\n");
        for text in [manifest, &prose] {
            let all = published(text).unwrap();
            assert_eq!(all.len(), 1, "{all:?}");
            assert_eq!(all[0]["kind"], "A");
        }
        assert!(published("nothing: here").is_err());
    }

    #[test]
    fn unknown_keywords_are_rejected() {
        let read = Scenario::read;
        assert!(read("about: x\nhosts: 1\nsteps: [{ restart: null }]").is_ok());
        for wrong in [
            "about: x\nhosts: 1\nsteps: [{ hope: null }]",
            "about: x\nhosts: 1\nsteps: [{ wait: { kind: Machine, conut: 1 } }]",
            "about: x\nsteps: []",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
