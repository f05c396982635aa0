//! The words of a scenario.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::quoted::blocks;
use crate::wish::{Nodes, Wish};

/// A scenario: a world, and what happens in it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it shows, as a sentence.
    pub about: String,
    /// How many hosts there are at the start.
    pub hosts: u32,
    /// Where hosts and objects are that name no namespace; without, that is for the world to say.
    pub namespace: Option<String>,
    /// What happens, in this order.
    pub steps: Vec<Step>,
}

impl Scenario {
    /// Reads a script.
    ///
    /// # Errors
    /// What is no word of a script, and where.
    pub fn read(text: &str) -> Result<Self> {
        Ok(serde_saphyr::from_str(text)?)
    }

    /// How many hosts there are at most.
    #[must_use]
    pub fn hosts_at_most(&self) -> u32 {
        let more = self.steps.iter().map(|step| match step {
            Step::Hosts(count) => *count,
            _ => 0,
        });
        more.fold(self.hosts, u32::saturating_add)
    }
}

/// `Kind` and name of `Kind/name`.
///
/// # Errors
/// Where it is not written so.
pub fn kind_and_name(object: &str) -> Result<(&str, &str)> {
    object
        .split_once('/')
        .with_context(|| format!("{object:?}: write Kind/name"))
}

/// One step.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Objects of a file are made or changed, with values for the variables in it.
    Apply(Apply),
    /// Objects that others have published are made as they are: of a file of manifests, or of what one quotes.
    Published(String),
    /// An object, `Kind/name`, is changed by a merge patch.
    Change {
        /// `Kind/name`.
        object: String,
        /// What is merged into it.
        patch: Value,
    },
    /// An object, `Kind/name`, is deleted.
    Delete(String),
    /// Something comes true, sooner or later.
    Wait(Wish),
    /// Something is true now.
    Check(Wish),
    /// Something stays true for so long.
    Holds {
        /// What stays true.
        wish: Wish,
        /// For so long.
        during: Span,
    },
    /// So many Nodes are in a workload cluster, each with these labels.
    Nodes(Nodes),
    /// More hosts come.
    Hosts(u32),
    /// The machine of a host breaks.
    Fault {
        /// The number of the host.
        host: u32,
        /// What is wrong with it, in the words of whoever plays machines.
        has: Vec<Value>,
    },
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

impl Step {
    /// The kind of the objects that it is about, where it names one.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        match self {
            Self::Change { object, .. } | Self::Delete(object) => kind_and_name(object).ok().map(|(kind, _)| kind),
            Self::Wait(wish) | Self::Check(wish) | Self::Holds { wish, .. } => Some(&wish.kind),
            Self::Apply(_)
            | Self::Published(_)
            | Self::Nodes(_)
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

/// The documents of a text that others have published: all of a manifest, or those that prose quotes.
///
/// # Errors
/// What cannot be read.
pub fn published(text: &str) -> Result<Vec<Value>> {
    let is_prose = serde_saphyr::from_multiple::<Value>(text).is_err();
    let texts = if is_prose { blocks(text) } else { vec![text.to_owned()] };
    let mut all = Vec::new();
    for text in texts {
        all.extend(serde_saphyr::from_multiple::<Value>(&text)?);
    }
    // A kustomization says which files belong together, and is no object.
    all.retain(|one| one.pointer("/metadata/name").is_some());
    ensure!(!all.is_empty(), "there is no object in it");
    Ok(all)
}

/// A file of objects.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Apply {
    /// In the folder of the scripts.
    pub file: String,
    /// Values for the variables in it.
    #[serde(default)]
    pub with: BTreeMap<String, String>,
}

/// A time, as `90s`, `10m` or `6h`.
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
    fn times_are_read_with_their_unit_and_refused_without() {
        assert_eq!(span("90s").unwrap().as_secs(), 90);
        assert_eq!(span("10m").unwrap().as_secs(), 600);
        assert_eq!(span("6h").unwrap().as_secs(), 21_600);
        for wrong in ["", "6", "h", "sixh", "6d"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn hosts_that_come_later_count_and_steps_name_their_kind() {
        let text = "about: x\nhosts: 2\nsteps: [{ hosts: 3 }, { delete: Cluster/a }, { wait: { kind: Machine } }]";
        let scenario = Scenario::read(text).unwrap();
        assert_eq!(scenario.hosts_at_most(), 5);
        let kinds: Vec<_> = scenario.steps.iter().map(Step::kind).collect();
        assert_eq!(kinds, [None, Some("Cluster"), Some("Machine")]);
    }

    #[test]
    fn what_prose_quotes_is_published_as_a_manifest_is() {
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
    fn unknown_words_are_refused() {
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
