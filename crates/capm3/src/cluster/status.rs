//! What is said of a Metal3Cluster, in both generations.

use metal3_api::infrastructure::conditions::{cluster, legacy, shared};
use metal3_api::infrastructure::v1beta2::{DeprecatedStatus, HostApi, LegacyStatus, Metal3Cluster};
use metal3_api::meta::{Condition, ConditionStatus, Time};
use metal3_runtime::condition::{ConditionBuilder, Severity, set_condition};
use metal3_runtime::reason::Reason;

use super::{Action, Facts, Plan};
use crate::endpoint::said;

/// Whether everything that the object asks for is acted on.
const SPEC_SERVED: &str = "SpecServed";
const READY: Reason = Reason::new(shared::REASON_READY);

/// How far the object is. Texts are for people and say what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing is done.
    Paused(String),
    /// No Cluster has claimed it.
    Loose,
    /// Its Cluster does not exist.
    WithoutCluster(String),
    /// What it says of its Cluster contradicts itself.
    NotAttached(String),
    /// It waits for an endpoint.
    Waiting(String),
    /// It cannot be used as it stands.
    Invalid(String),
    /// It can be used.
    Provisioned,
    /// It waits for what belongs to it.
    Deleting(String),
}

/// Whether the object found its Cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Attached {
    /// It belongs to this one.
    To(String),
    /// It is to leave, and this machine still needs it.
    Leaving(String),
    /// It left this one.
    Detached(String),
    /// It left one earlier, and is not to join any: what was said of that stands.
    Left,
    /// This one does not exist.
    NotFound(String),
    /// It names two.
    Contradicts(String),
    /// Another one owns it, too.
    OwnedByOther(String),
    /// This one uses it for its name.
    NotAdopted(String),
}

/// All that is said of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words {
    /// How far it is.
    pub(super) standing: Standing,
    /// Whether it found its Cluster. Nothing for one that is what it always was.
    pub(super) attached: Option<Attached>,
    /// Whether the endpoint is known. Nothing where nobody asks.
    pub(super) endpoint: Option<said::Standing>,
    /// Whether its source has changed since. Nothing where nobody asks.
    pub(super) drift: Option<said::Drift>,
    /// Whether the endpoint is filled in where it is to be. Nothing where nobody asks.
    pub(super) rendered: Option<ConditionBuilder>,
    /// Whether the summary counts all of that.
    pub(super) is_new: bool,
}

impl Words {
    /// Nothing is said but how far it is.
    pub(super) const fn of(standing: Standing) -> Self {
        Self {
            standing,
            attached: None,
            endpoint: None,
            drift: None,
            rendered: None,
            is_new: false,
        }
    }
}

/// The plan with what is to be said, if that is news.
pub(super) fn saying(facts: &Facts<'_>, mut after: Metal3Cluster, words: &Words, action: Option<Action>) -> Plan {
    let standing = &words.standing;
    let (generation, now) = (facts.object.metadata.generation, facts.now);
    let older = after
        .status
        .deprecated
        .take()
        .and_then(|older| older.v1beta1)
        .unwrap_or_default();
    let (mut standard, mut conditions) = (std::mem::take(&mut after.status.conditions), older.conditions);
    let paused = paused(standing).standard(generation, now);
    set_condition(&mut standard, with_message(paused, standing));
    let new = new_conditions(words, generation, now);
    if let Some((infrastructure, older, ready)) = statements(standing) {
        if let Some(infrastructure) = infrastructure {
            set_condition(&mut standard, infrastructure.standard(generation, now));
        }
        let ready = summary(words, &new).unwrap_or(ready);
        set_condition(&mut standard, ready.standard(generation, now));
        for statement in older {
            set_condition(&mut conditions, statement.legacy(now));
        }
    }
    for condition in new {
        set_condition(&mut standard, condition);
    }
    forget(&mut standard, words);
    let not_yet = not_yet(facts.object);
    standard.retain(|one| one.type_ != SPEC_SERVED || not_yet.is_some());
    if let Some(statement) = not_yet {
        set_condition(&mut standard, statement.standard(generation, now));
    }
    after.status.conditions = standard;
    // differs (`failure-cleared`): what the Go manager once wrote there stands for ever.
    after.status.deprecated = (!conditions.is_empty()).then(|| DeprecatedStatus {
        v1beta1: Some(LegacyStatus {
            conditions,
            ..LegacyStatus::default()
        }),
    });
    // differs (`cluster-last-updated`): it moves with the status; the Go manager writes it in every pass and so wakes itself.
    let is_news = after.status != facts.object.status;
    if is_news {
        after.status.last_updated = Some(now);
    }
    Plan {
        action,
        status: is_news.then(|| Box::new(after.status)),
        ..Plan::default()
    }
}

/// Members that are kept for later and that nobody acts on.
fn not_yet(object: &Metal3Cluster) -> Option<ConditionBuilder> {
    let spec = &object.spec;
    let all = [
        ("spec.deploymentZones", !spec.deployment_zones.is_empty()),
        ("spec.identityRef", spec.identity_ref.is_some()),
        ("spec.hostAPI: HostClaim", spec.host_api == Some(HostApi::HostClaim)),
    ];
    let used: Vec<&str> = all
        .into_iter()
        .filter(|(_, is_used)| *is_used)
        .map(|(name, _)| name)
        .collect();
    let message = || {
        format!(
            "not acted on yet: {}; it is kept, and machines are made as without it",
            used.join(", ")
        )
    };
    let reason = Reason::new("NotYet");
    (!used.is_empty()).then(|| ConditionBuilder::mark_false(SPEC_SERVED, reason, Severity::Info, message()))
}

/// What only an object says that shares a control plane, or that somebody believes to share one.
fn new_conditions(words: &Words, generation: Option<i64>, now: Time) -> Vec<Condition> {
    let attached = words
        .attached
        .as_ref()
        .and_then(|attached| attached.condition(generation, now));
    let endpoint = words
        .endpoint
        .as_ref()
        .map(|endpoint| endpoint.condition(generation, now));
    let drift = words.drift.as_ref().and_then(|drift| drift.condition(generation, now));
    let rendered = words.rendered.as_ref().map(|said| said.standard(generation, now));
    [attached, endpoint, drift, rendered].into_iter().flatten().collect()
}

/// What is not said any more goes. A pause judges nothing, and who goes is told to wait only.
fn forget(standard: &mut Vec<Condition>, words: &Words) {
    if matches!(words.standing, Standing::Paused(_) | Standing::Deleting(_)) {
        return;
    }
    standard.retain(|one| match one.type_.as_str() {
        cluster::ATTACHED => words.attached.is_some(),
        cluster::ENDPOINT_READY => words.endpoint.is_some(),
        cluster::ENDPOINT_DRIFTED => words.drift.is_some(),
        cluster::ENDPOINT_RENDERED => words.rendered.is_some(),
        _ => true,
    });
}

/// The summary of an object that uses what is new: it is not ready while any of that is wrong.
fn summary(words: &Words, new: &[Condition]) -> Option<ConditionBuilder> {
    if !words.is_new || words.standing != Standing::Provisioned {
        return None;
    }
    let is_bad = |condition: &&Condition| match condition.type_.as_str() {
        cluster::ENDPOINT_DRIFTED => condition.status == ConditionStatus::True,
        _ => condition.status == ConditionStatus::False,
    };
    let bad = new.iter().filter(is_bad);
    let lines: Vec<String> = bad.map(|one| format!("* {}: {}", one.type_, one.message)).collect();
    let message = lines.join("\n");
    (!lines.is_empty()).then(|| {
        ConditionBuilder::mark_false(
            cluster::READY,
            Reason::new(shared::REASON_NOT_READY),
            Severity::Info,
            message,
        )
    })
}

impl Attached {
    fn condition(&self, generation: Option<i64>, now: Time) -> Option<Condition> {
        let fails = |reason, message: String| {
            let statement =
                ConditionBuilder::mark_false(cluster::ATTACHED, Reason::new(reason), Severity::Warning, message);
            statement.standard(generation, now)
        };
        let holds = |reason, message: String| {
            let statement = ConditionBuilder::mark_true(cluster::ATTACHED, Reason::new(reason));
            Condition {
                message,
                ..statement.standard(generation, now)
            }
        };
        Some(match self {
            Self::Left => return None,
            Self::To(name) => holds("Attached", format!("belongs to Cluster {name}")),
            Self::Leaving(machine) => holds(
                "Detaching",
                format!("leaves the Cluster once no Metal3Machine belongs to it any more; {machine} does"),
            ),
            Self::Detached(name) => fails(
                "Detached",
                format!("left Cluster {name}; remove the detach annotation to join it again"),
            ),
            Self::NotFound(name) => fails(
                cluster::REASON_CLUSTER_NOT_FOUND,
                format!("Cluster {name} does not exist in this namespace; create it, or correct the name"),
            ),
            Self::Contradicts(why) => fails(cluster::REASON_CLUSTER_REF_CONFLICT, why.clone()),
            Self::OwnedByOther(why) => fails(cluster::REASON_OWNED_BY_OTHER, why.clone()),
            Self::NotAdopted(name) => fails(
                cluster::REASON_NOT_ADOPTED,
                format!(
                    "Cluster {name} uses the object for its name, but does not own it: it will not be moved, paused or \
                     deleted with the Cluster; set spec.clusterName to {name} to have it adopted"
                ),
            ),
        })
    }
}

fn paused(standing: &Standing) -> ConditionBuilder {
    match standing {
        Standing::Paused(_) => ConditionBuilder::mark_true(cluster::PAUSED, Reason::new(shared::REASON_PAUSED)),
        _ => ConditionBuilder::mark_false(
            cluster::PAUSED,
            Reason::new(shared::REASON_NOT_PAUSED),
            Severity::Info,
            "",
        ),
    }
}

/// A pause names its causes although it holds.
fn with_message(paused: Condition, standing: &Standing) -> Condition {
    match standing {
        Standing::Paused(message) => Condition {
            message: message.clone(),
            ..paused
        },
        _ => paused,
    }
}

/// Of the infrastructure, of both in the older generation, and the summary. A pause says nothing of them.
fn statements(standing: &Standing) -> Option<(Option<ConditionBuilder>, Vec<ConditionBuilder>, ConditionBuilder)> {
    let not_ready = |reason, message: &str| {
        ConditionBuilder::mark_false(cluster::READY, Reason::new(reason), Severity::Info, message)
    };
    Some(match standing {
        Standing::Paused(_) => return None,
        Standing::Provisioned => (
            Some(ConditionBuilder::mark_true(cluster::INFRASTRUCTURE_READY, READY)),
            vec![
                ConditionBuilder::mark_true(legacy::INFRASTRUCTURE_READY, READY),
                ConditionBuilder::mark_true(legacy::READY, READY),
            ],
            ConditionBuilder::mark_true(cluster::READY, READY),
        ),
        Standing::Invalid(flaw) | Standing::Waiting(flaw) => {
            let (reason, severity, message) = match standing {
                Standing::Invalid(_) => (
                    cluster::REASON_INVALID_CONFIGURATION,
                    Severity::Error,
                    format!("Invalid Metal3Cluster provided: {flaw}"),
                ),
                _ => (cluster::REASON_ENDPOINT_FAILED, Severity::Info, flaw.clone()),
            };
            let older = |aspect| {
                let reason = Reason::new(legacy::REASON_ENDPOINT_FAILED);
                ConditionBuilder::mark_false(aspect, reason, severity, message.clone())
            };
            let summary = format!("* {}: {message}", cluster::INFRASTRUCTURE_READY);
            (
                Some(ConditionBuilder::mark_false(
                    cluster::INFRASTRUCTURE_READY,
                    Reason::new(reason),
                    severity,
                    message.clone(),
                )),
                vec![older(legacy::INFRASTRUCTURE_READY), older(legacy::READY)],
                not_ready(shared::REASON_NOT_READY, &summary),
            )
        }
        Standing::Loose => {
            let message = "waiting for a Cluster to own the object; name it in spec.infrastructureRef of a Cluster, or name the Cluster in spec.clusterName";
            (None, Vec::new(), not_ready(shared::REASON_NOT_READY, message))
        }
        Standing::NotAttached(why) => (None, Vec::new(), not_ready(shared::REASON_NOT_READY, why)),
        Standing::WithoutCluster(name) => {
            let message =
                format!("Cluster {name}, which the object belongs to, does not exist; create it, or delete the object");
            (None, Vec::new(), not_ready(cluster::REASON_NO_OWNER_CLUSTER, &message))
        }
        // differs (`cluster-deleting`): for the Go manager the summary hides that the object goes.
        Standing::Deleting(message) => {
            let older = ConditionBuilder::mark_false(
                legacy::READY,
                Reason::new(shared::REASON_DELETING),
                Severity::Info,
                message,
            );
            (None, vec![older], not_ready(shared::REASON_DELETING, message))
        }
    })
}
