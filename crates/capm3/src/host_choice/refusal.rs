//! Why hosts are not chosen, with messages for users.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use metal3_api::infrastructure::names::{FAILURE_DOMAIN_LABEL, NODE_REUSE_LABEL};
use metal3_api::meta::ObjectReference;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use thiserror::Error;

/// Why a host is not chosen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum Refusal {
    /// Its labels do not match.
    #[error("not matched by spec.hostSelector: {why}")]
    NotSelected {
        /// The first requirement that they do not satisfy.
        why: String,
    },
    /// It is not in the failure domain of the machine, and the Metal3Cluster requires that.
    #[error("not in failure domain {domain}, which is required")]
    NotInDomain {
        /// The failure domain.
        domain: String,
        /// Whether the selector of its deployment zone decides, and not the label.
        by_selector: bool,
    },
    /// It is in a failure domain of another Metal3Cluster of the Cluster, and in none of the machine's.
    #[error("a host of Metal3Cluster {site}")]
    OfAnotherSite {
        /// The other Metal3Cluster.
        site: String,
    },
    /// The machine gets its data template from the zone of its host, and this one is in none that has one.
    #[error("in no deployment zone with a data template")]
    WithoutTemplate,
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
    /// It is kept for an owner of this name, and two Clusters have one.
    #[error("kept for an owner of this name, but for which Cluster is not stated")]
    KeptForOneOfTwo,
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

    /// Whether the machine waits for this host and takes no other one.
    pub(super) const fn is_awaited(&self) -> bool {
        matches!(self, Self::KeptNotReady { .. } | Self::KeptForOneOfTwo)
    }

    /// The group for summaries; groups with a remedy come first.
    fn group(&self) -> Group<'_> {
        let group = |rank, text| Group(rank, Cow::Borrowed(text));
        match self {
            Self::Unhealthy => group(0, "marked as unhealthy"),
            Self::Faulty => group(1, "reporting an error"),
            Self::Paused => group(2, "paused"),
            Self::Detached => group(3, "detached"),
            Self::HasImage => group(4, "given an image by hand"),
            Self::ExternallyProvisioned => group(5, "externally provisioned"),
            Self::KeptNotReady { .. } => group(6, "kept for this machine and not ready yet"),
            Self::OtherKept => group(7, "free, but not the one that is kept for this machine"),
            Self::KeptForAnother { .. } => group(8, "kept for other owners"),
            Self::KeptForOneOfTwo => group(5, "kept for an owner of this name, which two Clusters have"),
            Self::NotSelected { why } => Group(9, Cow::Owned(format!("not matched by spec.hostSelector ({why})"))),
            Self::NotInDomain { domain, by_selector } => {
                let by = match by_selector {
                    true => "hostSelector of the deployment zone".to_owned(),
                    false => format!("label {FAILURE_DOMAIN_LABEL}"),
                };
                let text = format!("not in failure domain {domain}, which is required ({by})");
                Group(9, Cow::Owned(text))
            }
            Self::OfAnotherSite { .. } => group(9, "hosts of another Metal3Cluster of the Cluster"),
            Self::WithoutTemplate => group(
                9,
                "in no deployment zone with a data template, and the machine names none",
            ),
            Self::InUse { .. } => group(10, "in use"),
            Self::NotReady { .. } => group(11, "not available yet"),
            Self::Deleting => group(12, "being deleted"),
        }
    }
}

/// Rank and text of a group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Group<'a>(u8, Cow<'a, str>);

/// Groups in a message. A user decides how many requirements a selector has.
const MOST_GROUPS: usize = 8;

/// A number in a condition. Every waiting machine has it in its status, so in a large fleet a change of one host must not
/// change the text: above 20 it is rounded down to 20, 50, 100, 200 and so on.
struct Rounded(usize);

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 <= EXACT {
            return write!(f, "{}", self.0);
        }
        let steps = std::iter::successors(Some(EXACT), |step| {
            // 20, 50, 100, 200, 500
            let is_two = step.to_string().starts_with('2');
            if is_two {
                step.checked_mul(5).map(|step| step / 2)
            } else {
                step.checked_mul(2)
            }
        });
        let step = steps.take_while(|step| *step < self.0).last().unwrap_or(EXACT);
        write!(f, "more than {step}")
    }
}

/// The largest number that is not rounded.
const EXACT: usize = 20;

/// Every host that was not chosen, by name.
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

    /// Whether a host waits until one of two Clusters has no owner of its name. Machines of other Clusters enqueue nothing.
    #[must_use]
    pub fn has_undecided(&self) -> bool {
        self.any(|refusal| matches!(refusal, Refusal::KeptForOneOfTwo))
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
        let mut groups: BTreeMap<Group<'_>, Vec<&str>> = BTreeMap::new();
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

/// One sentence: how many hosts there are, and how many of them cannot be claimed for which reason.
impl fmt::Display for Refusals<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no host can be claimed: ")?;
        if self.0.is_empty() {
            return f.write_str("there is none in the namespace; register hosts");
        }
        let mut groups: BTreeMap<Group<'_>, usize> = BTreeMap::new();
        for refusal in self.0.values() {
            let number = groups.entry(refusal.group()).or_default();
            *number = number.saturating_add(1);
        }
        let hosts = self.0.len();
        write!(f, "of {} host{}", Rounded(hosts), if hosts == 1 { "" } else { "s" })?;
        for (Group(_, text), number) in groups.iter().take(MOST_GROUPS) {
            write!(f, ", {} {text}", Rounded(*number))?;
        }
        let others: usize = groups.values().skip(MOST_GROUPS).sum();
        if others > 0 {
            write!(f, ", {} for other reasons", Rounded(others))?;
        }
        match self.iter().find(|(_, refusal)| refusal.is_awaited()) {
            Some((host, Refusal::KeptForOneOfTwo)) => write!(
                f,
                "; BareMetalHost {host} is awaited: make its Cluster the spec.consumerRef, or remove its label {NODE_REUSE_LABEL}"
            ),
            Some((host, _)) => write!(f, "; BareMetalHost {host} is awaited, see its status"),
            None if self.any(|refusal| matches!(refusal, Refusal::NotInDomain { .. })) => {
                f.write_str("; register more hosts, label them with their failure domain, or widen spec.hostSelector")
            }
            None => f.write_str("; register more hosts, or widen spec.hostSelector"),
        }
    }
}
