//! The words of a scenario.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use metal3_manager::sandbox::world::Fault;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A scenario: a world, and what happens in it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    /// What it shows, as a sentence.
    pub(super) about: String,
    /// How many hosts there are at the start.
    pub(super) hosts: u32,
    pub(super) steps: Vec<Step>,
}

/// One step.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Step {
    /// Objects of a file are made or changed, with values for the variables in it.
    Apply(Apply),
    /// An object, `Kind/name`, is changed by a merge patch.
    Change { object: String, patch: Value },
    /// An object, `Kind/name`, is deleted.
    Delete(String),
    /// Something comes true, sooner or later.
    Wait(Wish),
    /// Something is true now.
    Check(Wish),
    /// Something stays true for so long.
    Holds { wish: Wish, during: Span },
    /// So many Nodes are in a workload cluster, each with these labels.
    Nodes(Nodes),
    /// More hosts come.
    Hosts(u32),
    /// The machine of a host breaks.
    Fault { host: u32, has: Vec<Fault> },
    /// The machine of a host is whole again.
    Mend(u32),
    /// Ironic is away for so long.
    IronicDown(Span),
    /// The products are killed and start anew.
    Restart,
    /// For so long, the products write nothing.
    Quiet(Span),
    /// How often a machine's disk was written since the beginning, all machines together.
    Written(u32),
}

/// A file of objects.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Apply {
    pub(super) file: String,
    #[serde(default)]
    pub(super) with: BTreeMap<String, String>,
}

/// What is wished of objects: that so many are so.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wish {
    pub(super) kind: String,
    /// Only the one of this name.
    pub(super) name: Option<String>,
    /// Only those of this Cluster.
    pub(super) cluster: Option<String>,
    /// What they say, by JSON pointer.
    #[serde(default, rename = "where")]
    pub(super) says: BTreeMap<String, Value>,
    /// Status of their conditions.
    #[serde(default)]
    pub(super) condition: BTreeMap<String, String>,
    /// Texts that occur somewhere in them.
    #[serde(default)]
    pub(super) mentions: Vec<String>,
    /// How many are so; of one name, one.
    pub(super) count: Option<usize>,
}

/// What is wished of the Nodes of a workload cluster.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nodes {
    pub(super) cluster: String,
    pub(super) count: usize,
    #[serde(default)]
    pub(super) labels: Vec<String>,
}

/// A time, as `90s`, `10m` or `6h`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span(pub(super) Duration);

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
    fn times_are_read_with_their_unit_and_refused_without() {
        assert_eq!(span("90s").unwrap().as_secs(), 90);
        assert_eq!(span("10m").unwrap().as_secs(), 600);
        assert_eq!(span("6h").unwrap().as_secs(), 21_600);
        for wrong in ["", "6", "h", "sixh", "6d"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn unknown_words_are_refused() {
        let read = |text: &str| serde_saphyr::from_str::<Scenario>(text);
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
