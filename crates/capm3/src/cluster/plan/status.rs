//! The conditions of a Metal3Cluster, in both API generations.

use metal3_api::infrastructure::conditions::{cluster, legacy, shared};
use metal3_api::infrastructure::v1beta2::{DeprecatedStatus, HostApi, LegacyStatus, Metal3Cluster};
use metal3_api::meta::{Condition, ConditionStatus, Time};
use metal3_runtime::condition::{ConditionBuilder, Severity, set_condition};
use metal3_runtime::reason::Reason;

use super::{Action, Plan};
use crate::cluster::Facts;
use crate::endpoint::conditions;

/// Whether every set field has an effect.
const SPEC_SERVED: &str = "SpecServed";
const READY: Reason = Reason::new(shared::REASON_READY);

/// Phase of the object. Messages contain the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    /// Paused.
    Paused(String),
    /// Belongs to no Cluster.
    Unattached,
    /// Its Cluster does not exist.
    ClusterMissing(String),
    /// Its references to Clusters contradict each other.
    NotAttached(String),
    /// Waits for an endpoint.
    Waiting(String),
    /// Cannot be used without a change.
    Invalid(String),
    /// Can be used.
    Provisioned,
    /// Waits for its descendants.
    Deleting(String),
}

/// State of the attachment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Attached {
    /// Belongs to this Cluster.
    To(String),
    /// Detaches; this machine still belongs to it.
    Leaving(String),
    /// Detached from this Cluster.
    Detached(String),
    /// Detached earlier: the condition is kept.
    Left,
    /// This Cluster does not exist.
    NotFound(String),
    /// Names two Clusters.
    Contradicts(String),
    /// Another Cluster owns it as well.
    OwnedByOther(String),
    /// This Cluster uses it by name.
    NotAdopted(String),
}

/// Input of the conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StatusReport {
    pub(super) phase: Phase,
    /// Attachment; `None` for an object without extension fields.
    pub(super) attached: Option<Attached>,
    /// Endpoint; `None` when not requested.
    pub(super) endpoint: Option<conditions::EndpointState>,
    /// Drift of the source; `None` when not requested.
    pub(super) drift: Option<conditions::Drift>,
    /// Rendered Secret; `None` when not requested.
    pub(super) rendered: Option<ConditionBuilder>,
    /// Whether the summary includes these conditions.
    pub(super) uses_extensions: bool,
}

impl StatusReport {
    /// A report of the phase alone.
    pub(super) const fn of(phase: Phase) -> Self {
        Self {
            phase,
            attached: None,
            endpoint: None,
            drift: None,
            rendered: None,
            uses_extensions: false,
        }
    }
}

/// A plan with the status, if it changes.
pub(super) fn with_status(
    facts: &Facts<'_>,
    mut after: Metal3Cluster,
    report: &StatusReport,
    action: Option<Action>,
) -> Plan {
    let phase = &report.phase;
    let (generation, now) = (facts.object.metadata.generation, facts.now);
    let older = after
        .status
        .deprecated
        .take()
        .and_then(|older| older.v1beta1)
        .unwrap_or_default();
    let (mut standard, mut conditions) = (std::mem::take(&mut after.status.conditions), older.conditions);
    let paused = paused(phase).standard(generation, now);
    set_condition(&mut standard, with_message(paused, phase));
    let extensions = extension_conditions(report, generation, now);
    if let Some((infrastructure, older, ready)) = phase_conditions(phase) {
        if let Some(infrastructure) = infrastructure {
            set_condition(&mut standard, infrastructure.standard(generation, now));
        }
        let ready = summary(report, &extensions).unwrap_or(ready);
        set_condition(&mut standard, ready.standard(generation, now));
        for statement in older {
            set_condition(&mut conditions, statement.legacy(now));
        }
    }
    for condition in extensions {
        set_condition(&mut standard, condition);
    }
    remove_obsolete(&mut standard, report);
    let unsupported_fields = unsupported_fields(facts.object);
    standard.retain(|one| one.type_ != SPEC_SERVED || unsupported_fields.is_some());
    if let Some(statement) = unsupported_fields {
        set_condition(&mut standard, statement.standard(generation, now));
    }
    after.status.conditions = standard;
    // differs (`failure-cleared`): the Go manager never clears these fields.
    after.status.deprecated = (!conditions.is_empty()).then(|| DeprecatedStatus {
        v1beta1: Some(LegacyStatus {
            conditions,
            ..LegacyStatus::default()
        }),
    });
    // differs (`cluster-last-updated`): it changes with the status; the Go manager writes it in every reconcile and so
    // triggers itself.
    let has_changed = after.status != facts.object.status;
    if has_changed {
        after.status.last_updated = Some(now);
    }
    Plan {
        action,
        status: has_changed.then(|| Box::new(after.status)),
        ..Plan::default()
    }
}

/// The fields that are stored without effect.
fn unsupported_fields(object: &Metal3Cluster) -> Option<ConditionBuilder> {
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
            "without effect yet: {}; it is stored, and machines are created as without it",
            used.join(", ")
        )
    };
    let reason = Reason::new("NotYet");
    (!used.is_empty()).then(|| ConditionBuilder::mark_false(SPEC_SERVED, reason, Severity::Info, message()))
}

/// The conditions of objects that share a control plane.
fn extension_conditions(report: &StatusReport, generation: Option<i64>, now: Time) -> Vec<Condition> {
    let attached = report
        .attached
        .as_ref()
        .and_then(|attached| attached.condition(generation, now));
    let endpoint = report
        .endpoint
        .as_ref()
        .map(|endpoint| endpoint.condition(generation, now));
    let drift = report.drift.as_ref().and_then(|drift| drift.condition(generation, now));
    let rendered = report
        .rendered
        .as_ref()
        .map(|rendered| rendered.standard(generation, now));
    [attached, endpoint, drift, rendered].into_iter().flatten().collect()
}

/// Removes conditions that do not apply any more. During a pause and during deletion they are kept.
fn remove_obsolete(standard: &mut Vec<Condition>, report: &StatusReport) {
    if matches!(report.phase, Phase::Paused(_) | Phase::Deleting(_)) {
        return;
    }
    standard.retain(|one| match one.type_.as_str() {
        cluster::ATTACHED => report.attached.is_some(),
        cluster::ENDPOINT_READY => report.endpoint.is_some(),
        cluster::ENDPOINT_DRIFTED => report.drift.is_some(),
        cluster::ENDPOINT_RENDERED => report.rendered.is_some(),
        _ => true,
    });
}

/// The summary of an object with extension fields: not ready while one of their conditions fails.
fn summary(report: &StatusReport, extensions: &[Condition]) -> Option<ConditionBuilder> {
    if !report.uses_extensions || report.phase != Phase::Provisioned {
        return None;
    }
    let is_failing = |condition: &&Condition| match condition.type_.as_str() {
        cluster::ENDPOINT_DRIFTED => condition.status == ConditionStatus::True,
        _ => condition.status == ConditionStatus::False,
    };
    let failing = extensions.iter().filter(is_failing);
    let lines: Vec<String> = failing.map(|one| format!("* {}: {}", one.type_, one.message)).collect();
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
        let is_false = |reason, message: String| {
            let statement =
                ConditionBuilder::mark_false(cluster::ATTACHED, Reason::new(reason), Severity::Warning, message);
            statement.standard(generation, now)
        };
        let is_true = |reason, message: String| {
            let statement = ConditionBuilder::mark_true(cluster::ATTACHED, Reason::new(reason));
            Condition {
                message,
                ..statement.standard(generation, now)
            }
        };
        Some(match self {
            Self::Left => return None,
            Self::To(name) => is_true("Attached", format!("belongs to Cluster {name}")),
            Self::Leaving(machine) => is_true(
                "Detaching",
                format!("detaches from the Cluster once no Metal3Machine belongs to it; {machine} does"),
            ),
            Self::Detached(name) => is_false(
                "Detached",
                format!("detached from Cluster {name}; remove the detach annotation to join it again"),
            ),
            Self::NotFound(name) => is_false(
                cluster::REASON_CLUSTER_NOT_FOUND,
                format!("Cluster {name} does not exist in this namespace; create it, or correct the name"),
            ),
            Self::Contradicts(why) => is_false(cluster::REASON_CLUSTER_REF_CONFLICT, why.clone()),
            Self::OwnedByOther(why) => is_false(cluster::REASON_OWNED_BY_OTHER, why.clone()),
            Self::NotAdopted(name) => is_false(
                cluster::REASON_NOT_ADOPTED,
                format!(
                    "Cluster {name} uses the object for its name, but does not own it: it will not be moved, paused or \
                     deleted with the Cluster; set spec.clusterName to {name} to have it adopted"
                ),
            ),
        })
    }
}

fn paused(phase: &Phase) -> ConditionBuilder {
    match phase {
        Phase::Paused(_) => ConditionBuilder::mark_true(cluster::PAUSED, Reason::new(shared::REASON_PAUSED)),
        _ => ConditionBuilder::mark_false(
            cluster::PAUSED,
            Reason::new(shared::REASON_NOT_PAUSED),
            Severity::Info,
            "",
        ),
    }
}

/// The paused condition has a message although it is true.
fn with_message(paused: Condition, phase: &Phase) -> Condition {
    match phase {
        Phase::Paused(message) => Condition {
            message: message.clone(),
            ..paused
        },
        _ => paused,
    }
}

/// The conditions of the infrastructure, those of the older generation, and the summary. `None` during a pause.
fn phase_conditions(phase: &Phase) -> Option<(Option<ConditionBuilder>, Vec<ConditionBuilder>, ConditionBuilder)> {
    let not_ready = |reason, message: &str| {
        ConditionBuilder::mark_false(cluster::READY, Reason::new(reason), Severity::Info, message)
    };
    Some(match phase {
        Phase::Paused(_) => return None,
        Phase::Provisioned => (
            Some(ConditionBuilder::mark_true(cluster::INFRASTRUCTURE_READY, READY)),
            vec![
                ConditionBuilder::mark_true(legacy::INFRASTRUCTURE_READY, READY),
                ConditionBuilder::mark_true(legacy::READY, READY),
            ],
            ConditionBuilder::mark_true(cluster::READY, READY),
        ),
        Phase::Invalid(why) | Phase::Waiting(why) => {
            let (reason, severity, message) = match phase {
                Phase::Invalid(_) => (
                    cluster::REASON_INVALID_CONFIGURATION,
                    Severity::Error,
                    format!("Invalid Metal3Cluster provided: {why}"),
                ),
                _ => (cluster::REASON_ENDPOINT_FAILED, Severity::Info, why.clone()),
            };
            let older = |type_| {
                let reason = Reason::new(legacy::REASON_ENDPOINT_FAILED);
                ConditionBuilder::mark_false(type_, reason, severity, message.clone())
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
        Phase::Unattached => {
            let message = "waiting for a Cluster to own the object; name it in spec.infrastructureRef of a Cluster, or name the Cluster in spec.clusterName";
            (None, Vec::new(), not_ready(shared::REASON_NOT_READY, message))
        }
        Phase::NotAttached(why) => (None, Vec::new(), not_ready(shared::REASON_NOT_READY, why)),
        Phase::ClusterMissing(name) => {
            let message =
                format!("Cluster {name}, which the object belongs to, does not exist; create it, or delete the object");
            (None, Vec::new(), not_ready(cluster::REASON_NO_OWNER_CLUSTER, &message))
        }
        // differs (`cluster-deleting`): the summary of the Go manager does not report the deletion.
        Phase::Deleting(message) => {
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
