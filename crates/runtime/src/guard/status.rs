//! What a Deployment says about who serves a group.

use std::fmt;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use metal3_domain::clock::Monotonic;

use super::OURS;

/// How long a view still counts after the first look that failed: a watch that is taken up again takes moments. After
/// that nobody knows. What a look takes comes before: a connection that died without a word is noticed only after
/// [`SILENCE_LIMIT`](crate::watch::SILENCE_LIMIT).
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// What a failed look waits for, at first and at most.
pub(super) const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The Deployment of another implementation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ForeignDeployment {
    /// The group it serves, as `--controllers` names it.
    pub group: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl ForeignDeployment {
    /// The Deployment of the group at a place such as [`super::CAPM3`].
    #[must_use]
    pub fn at(group: &str, (namespace, name): (&str, &str)) -> Self {
        Self {
            group: group.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

impl fmt::Display for ForeignDeployment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Deployment {}/{}", self.namespace, self.name)
    }
}

/// Whether a group may be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuardStatus {
    /// Nobody else serves it.
    Clear,
    /// Somebody said that it does not matter who else does.
    Forced,
    /// Another implementation is there.
    Present {
        /// Which.
        foreign: ForeignDeployment,
        /// Its identity, for those who refer to it.
        uid: Option<String>,
        /// Replicas that it wants or has, whichever is more.
        replicas: u32,
    },
    /// Nobody knows.
    Unknown {
        /// Which could not be looked at.
        foreign: ForeignDeployment,
        /// Why.
        why: String,
    },
}

impl GuardStatus {
    /// Whether the group may be served.
    #[must_use]
    pub const fn is_clear(&self) -> bool {
        match self {
            Self::Clear | Self::Forced => true,
            Self::Present { .. } | Self::Unknown { .. } => false,
        }
    }
}

impl fmt::Display for GuardStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clear => write!(f, "no other implementation runs"),
            Self::Forced => write!(f, "--force-controllers: other implementations are not looked for"),
            Self::Present { foreign, replicas, .. } => write!(
                f,
                "controllers of {} are idle: {foreign} runs (replicas: {replicas}); scale it to 0, or start with \
                 --force-controllers",
                foreign.group
            ),
            Self::Unknown { foreign, why } => write!(
                f,
                "controllers of {} are idle: whether {foreign} runs is not known ({why}); let this manager list \
                 and watch it, or start with --force-controllers",
                foreign.group
            ),
        }
    }
}

/// What is known of one Deployment, as events and failures come in.
#[derive(Debug)]
pub(super) struct View {
    foreign: ForeignDeployment,
    status: GuardStatus,
    /// Since when there has been no news but failures, and the pause after the last one.
    failing: Option<(Monotonic, Duration)>,
}

impl View {
    pub(super) fn new(foreign: ForeignDeployment) -> Self {
        let status = GuardStatus::Unknown {
            foreign: foreign.clone(),
            why: "it has not been looked at yet".to_owned(),
        };
        Self {
            foreign,
            status,
            failing: None,
        }
    }

    pub(super) const fn status(&self) -> &GuardStatus {
        &self.status
    }

    /// The Deployment is this, or not there.
    pub(super) fn seen(&mut self, deployment: Option<&Deployment>) {
        self.failing = None;
        let replicas = deployment.filter(|found| !is_ours(found)).map_or(0, replicas);
        self.status = if replicas == 0 {
            GuardStatus::Clear
        } else {
            GuardStatus::Present {
                foreign: self.foreign.clone(),
                uid: deployment.and_then(|found| found.metadata.uid.clone()),
                replicas,
            }
        };
    }

    /// A look failed. Gives how long to wait before the next one.
    pub(super) fn failed(&mut self, why: String, now: Monotonic) -> Duration {
        let (since, pause) = match self.failing {
            Some((since, pause)) => (since, pause.saturating_mul(2).min(LONGEST_PAUSE)),
            None => (now, FIRST_PAUSE),
        };
        self.failing = Some((since, pause));
        let left = since.after(PATIENCE).since(now);
        // What was never seen cannot be out of date: the newest reason is the most useful one.
        if left.is_zero() || matches!(self.status, GuardStatus::Unknown { .. }) {
            self.unknown(why);
            return pause;
        }
        // The next failure must not come much later than the moment from which it counts.
        pause.min(left)
    }

    fn unknown(&mut self, why: String) {
        self.status = GuardStatus::Unknown {
            foreign: self.foreign.clone(),
            why,
        };
    }
}

/// Replicas that a Deployment wants or has. One that is scaled down still has Pods that work.
fn replicas(deployment: &Deployment) -> u32 {
    let wanted = deployment.spec.as_ref().map_or(1, |spec| spec.replicas.unwrap_or(1));
    let there = deployment
        .status
        .as_ref()
        .and_then(|status| status.replicas)
        .unwrap_or(0);
    u32::try_from(wanted.max(there)).unwrap_or(0)
}

fn is_ours(deployment: &Deployment) -> bool {
    let (label, value) = OURS;
    let pod = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.template.metadata.as_ref());
    let labels = pod.and_then(|pod| pod.labels.as_ref());
    labels
        .and_then(|labels| labels.get(label))
        .is_some_and(|found| found == value)
}
