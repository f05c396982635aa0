//! Why hosts are not chosen, with messages for users.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use metal3_api::meta::ObjectReference;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use thiserror::Error;

/// Why a host is not chosen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum Refusal {
    /// Its labels do not match.
    #[error("not matched by spec.hostSelector")]
    NotSelected,
    /// It has another consumer.
    #[error("in use by {kind} {name}")]
    InUse {
        /// Kind of the consumer.
        kind: String,
        /// Its name.
        name: String,
    },
    /// It is kept for another owner.
    #[error("kept for {owner}")]
    KeptForAnother {
        /// The control plane or MachineDeployment, or the Cluster of another owner of the same name.
        owner: String,
    },
    /// It is being deleted.
    #[error("being deleted")]
    Deleting,
    /// It is paused.
    #[error("paused")]
    Paused,
    /// It is annotated as unhealthy.
    #[error("marked as unhealthy")]
    Unhealthy,
    /// It is not registered in Ironic.
    #[error("detached")]
    Detached,
    /// It reports an error.
    #[error("reporting an error")]
    Faulty,
    /// Its image was installed by other means.
    #[error("externally provisioned")]
    ExternallyProvisioned,
    /// It has an image and no consumer: the user provisions it without Cluster API.
    #[error("given an image by hand")]
    HasImage,
    /// It is kept for this machine and not ready yet; the machine waits for it.
    #[error("kept for this machine and {state:?} still")]
    KeptNotReady {
        /// Its state.
        state: String,
    },
    /// It cannot be provisioned in its state.
    #[error("{state:?}, not available")]
    NotReady {
        /// Its state.
        state: String,
    },
    /// Another host is kept for the machine.
    #[error("free, but another is kept for this machine")]
    OtherKept,
}

impl Refusal {
    pub(super) fn of_consumer(consumer: &ObjectReference) -> Self {
        Self::InUse {
            kind: consumer.kind.clone().unwrap_or_default(),
            name: consumer.name.clone().unwrap_or_default(),
        }
    }

    /// Another Cluster keeps the host for an owner of the same name.
    pub(super) fn kept_by_cluster(consumer: &ObjectReference) -> Self {
        let [namespace, name] = [&consumer.namespace, &consumer.name].map(|text| text.as_deref().unwrap_or_default());
        Self::KeptForAnother {
            owner: format!("Cluster {namespace}/{name}"),
        }
    }

    /// The group for summaries; groups with a remedy come first.
    const fn group(&self) -> Group {
        match self {
            Self::Unhealthy => Group(0, "marked as unhealthy"),
            Self::Faulty => Group(1, "reporting an error"),
            Self::Paused => Group(2, "paused"),
            Self::Detached => Group(3, "detached"),
            Self::HasImage => Group(4, "given an image by hand"),
            Self::ExternallyProvisioned => Group(5, "externally provisioned"),
            Self::KeptNotReady { .. } => Group(6, "kept for this machine and not ready yet"),
            Self::OtherKept => Group(7, "free, but not the one that is kept for this machine"),
            Self::KeptForAnother { .. } => Group(8, "kept for other owners"),
            Self::NotSelected => Group(9, "not matched by spec.hostSelector"),
            // One group, because hosts change between these states all the time.
            Self::InUse { .. } | Self::NotReady { .. } | Self::Deleting => Group(10, "in use or not available yet"),
        }
    }
}

/// Rank and text of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Group(u8, &'static str);

/// Every host that was not chosen, by name. `Display` is one sentence without numbers and names: every waiting machine
/// writes it to its status, so a change of one host would otherwise cause a write per machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refusals<'a>(BTreeMap<&'a str, Refusal>);

impl<'a> Refusals<'a> {
    pub(super) fn add(&mut self, host: &'a BareMetalHost, refusal: Refusal) {
        self.0
            .insert(host.metadata.name.as_deref().unwrap_or_default(), refusal);
    }

    pub(super) fn any(&self, test: impl Fn(&Refusal) -> bool) -> bool {
        self.0.values().any(test)
    }

    /// Why a host was not chosen.
    #[must_use]
    pub fn of(&self, host: &str) -> Option<&Refusal> {
        self.0.get(host)
    }

    /// The hosts that were not chosen, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &Refusal)> {
        self.0.iter().map(|(host, refusal)| (*host, refusal))
    }
}

impl Refusals<'_> {
    /// The groups with numbers and names, for a log.
    #[must_use]
    pub fn in_detail(&self) -> String {
        let mut groups: BTreeMap<Group, Vec<&str>> = BTreeMap::new();
        for (host, refusal) in self.iter() {
            groups.entry(refusal.group()).or_default().push(host);
        }
        let texts = groups.into_iter().map(|(Group(_, text), hosts)| {
            let example = hosts.first().copied().unwrap_or_default();
            format!("{} {text} (such as {example})", hosts.len())
        });
        texts.collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Refusals<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups: BTreeSet<Group> = self.0.values().map(Refusal::group).collect();
        f.write_str("no host can be claimed: ")?;
        if groups.is_empty() {
            return f.write_str("there is none in the namespace; register hosts");
        }
        f.write_str("each is ")?;
        let (number, mut separator) = (groups.len(), "");
        for (position, Group(_, text)) in (1_usize..).zip(groups) {
            write!(f, "{separator}{text}")?;
            separator = if position.saturating_add(1) == number {
                ", or "
            } else {
                ", "
            };
        }
        f.write_str("; register more hosts, or widen spec.hostSelector")
    }
}
