//! What a Deployment shows about who serves a group.

use std::fmt;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use metal3_domain::clock::Monotonic;

use super::PART_OF_LABEL;

/// How long the last view counts after the first failed request: a watch that is resumed takes moments. After that the
/// status is unknown. A broken connection is detected only after [`SILENCE_LIMIT`](crate::watch::SILENCE_LIMIT) in
/// addition.
pub(super) const GRACE: Duration = Duration::from_secs(30);

/// The back-off after a failed request, at first and at most.
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
    /// The Deployment of the group under a name such as [`super::CAPM3`].
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
    /// No other implementation serves it.
    Clear,
    /// The flag overrides the guard.
    Forced,
    /// Another implementation runs.
    Present {
        /// Its Deployment.
        foreign: ForeignDeployment,
        /// The UID, for Events.
        uid: Option<String>,
        /// Wanted or existing replicas, whichever is more.
        replicas: u32,
    },
    /// It is unknown whether another implementation runs.
    Unknown {
        /// Its Deployment.
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
            Self::Forced => write!(f, "--force-controllers: other implementations are not checked"),
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

/// The view of one Deployment, from events and failures.
#[derive(Debug)]
pub(super) struct DeploymentView {
    foreign: ForeignDeployment,
    status: GuardStatus,
    /// Since when requests have failed, and the back-off after the last one.
    failing: Option<(Monotonic, Duration)>,
}

impl DeploymentView {
    pub(super) fn new(foreign: ForeignDeployment) -> Self {
        let status = GuardStatus::Unknown {
            foreign: foreign.clone(),
            why: "it was not read yet".to_owned(),
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

    /// The Deployment is this, or it does not exist.
    pub(super) fn observed(&mut self, deployment: Option<&Deployment>) {
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

    /// A request failed. Returns how long to wait before the next one.
    pub(super) fn failed(&mut self, why: String, now: Monotonic) -> Duration {
        let (since, pause) = match self.failing {
            Some((since, pause)) => (since, pause.saturating_mul(2).min(LONGEST_PAUSE)),
            None => (now, FIRST_PAUSE),
        };
        self.failing = Some((since, pause));
        let left = since.after(GRACE).since(now);
        // The status was never known: the newest reason is the most useful one.
        if left.is_zero() || matches!(self.status, GuardStatus::Unknown { .. }) {
            self.unknown(why);
            return pause;
        }
        // The next failure must not come much later than the instant at which it counts.
        pause.min(left)
    }

    fn unknown(&mut self, why: String) {
        self.status = GuardStatus::Unknown {
            foreign: self.foreign.clone(),
            why,
        };
    }
}

/// Wanted or existing replicas: a Deployment that is scaled down still has running Pods.
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
    let (label, value) = PART_OF_LABEL;
    let pod = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.template.metadata.as_ref());
    let labels = pod.and_then(|pod| pod.labels.as_ref());
    labels
        .and_then(|labels| labels.get(label))
        .is_some_and(|found| found == value)
}
