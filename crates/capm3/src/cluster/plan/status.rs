//! The conditions of a Metal3Cluster, in both API generations.

use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::conditions::{cluster, legacy, shared};
use metal3_api::infrastructure::v1beta2::{DeploymentZone, DeprecatedStatus, HostApi, LegacyStatus, Metal3Cluster};
use metal3_api::meta::{Condition, ConditionStatus, Time};
use metal3_runtime::condition::{ConditionBuilder, Severity, set_condition};
use metal3_runtime::reason::Reason;

use super::draft::Draft;
use crate::cluster::facts::Facts;
use crate::cluster::zones;
use crate::controller::events::{EventRule, events_between};
use crate::endpoint::conditions::{Drift, EndpointState, with_message};
use crate::served::{self, Unserved};

const KNOWN: &str = "the endpoint of the control plane is known";

/// The condition changes that produce Events.
const EVENT_RULES: &[EventRule] = &[
    EventRule::normal(
        cluster::INFRASTRUCTURE_READY,
        shared::REASON_READY,
        "the endpoint of the cluster is known",
    ),
    EventRule::warning(cluster::INFRASTRUCTURE_READY, cluster::REASON_INVALID_CONFIGURATION),
    EventRule::warning(cluster::READY, cluster::REASON_NO_OWNER_CLUSTER),
    EventRule::normal(cluster::ATTACHED, cluster::REASON_ATTACHED, "belongs to its Cluster"),
    EventRule::warning(cluster::ATTACHED, cluster::REASON_DETACHED),
    EventRule::warning(cluster::ATTACHED, cluster::REASON_CLUSTER_REF_CONFLICT),
    EventRule::warning(cluster::ATTACHED, cluster::REASON_CLUSTER_NOT_FOUND),
    EventRule::warning(cluster::ATTACHED, cluster::REASON_OWNED_BY_OTHER),
    EventRule::warning(cluster::ATTACHED, cluster::REASON_NOT_ADOPTED),
    EventRule::normal(cluster::ENDPOINT_READY, cluster::REASON_ENDPOINT_FROM_SPEC, KNOWN),
    EventRule::normal(cluster::ENDPOINT_READY, cluster::REASON_ENDPOINT_FROM_CLUSTER, KNOWN),
    EventRule::normal(
        cluster::ENDPOINT_READY,
        cluster::REASON_ENDPOINT_FROM_INFRA_CLUSTER,
        KNOWN,
    ),
    EventRule::normal(
        cluster::ENDPOINT_READY,
        cluster::REASON_ENDPOINT_FROM_CONTROL_PLANE,
        KNOWN,
    ),
    EventRule::normal(cluster::ENDPOINT_READY, cluster::REASON_ENDPOINT_FROM_SERVICE, KNOWN),
    EventRule::normal(cluster::ENDPOINT_READY, cluster::REASON_ENDPOINT_FROM_IP_POOL, KNOWN),
    EventRule::warning(cluster::ENDPOINT_READY, cluster::REASON_ENDPOINT_CONFLICT),
    EventRule::warning(cluster::ENDPOINT_READY, cluster::REASON_ENDPOINT_INVALID),
    EventRule::warning(cluster::ENDPOINT_READY, cluster::REASON_SOURCE_FORBIDDEN),
    EventRule::warning(cluster::ENDPOINT_READY, cluster::REASON_SOURCE_NOT_FOUND),
    EventRule::normal(
        cluster::ENDPOINT_RENDERED,
        cluster::REASON_RENDERED,
        "the Secret with the endpoint is written",
    ),
    EventRule::warning(cluster::ENDPOINT_RENDERED, cluster::REASON_TEMPLATE_NOT_FOUND),
    EventRule::warning(cluster::ENDPOINT_RENDERED, cluster::REASON_TEMPLATE_FORBIDDEN),
    EventRule::warning(cluster::ENDPOINT_RENDERED, cluster::REASON_TEMPLATE_INVALID),
    EventRule::warning(cluster::ENDPOINT_RENDERED, cluster::REASON_SECRET_NOT_OURS),
    EventRule::warning(cluster::ENDPOINT_RENDERED, cluster::REASON_SECRET_REFUSED),
    EventRule::warning(cluster::ZONES_READY, cluster::REASON_DATA_TEMPLATE_NOT_FOUND),
    EventRule::warning(cluster::JOIN_PREFLIGHT, cluster::REASON_REQUISITES_MISSING),
    EventRule::warning(cluster::ENDPOINT_DRIFTED, cluster::REASON_SOURCE_CHANGED),
    EventRule::warning(cluster::ENDPOINT_DRIFTED, cluster::REASON_SOURCE_FORBIDDEN),
    EventRule::warning(cluster::ENDPOINT_DRIFTED, cluster::REASON_SOURCE_NOT_FOUND),
];

/// Phase of the object. Messages contain the remedy.
#[derive(PartialEq, Eq)]
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

/// State of the attachment, as reason and message of its condition.
pub(super) enum Attached {
    /// Belongs to a Cluster.
    Yes(Reason, String),
    /// Belongs to none.
    No(Reason, String),
    /// Detached earlier: the condition is kept.
    Left,
}

/// Input of the conditions.
pub(super) struct StatusReport {
    pub(super) phase: Phase,
    /// Attachment; `None` for an object without extension fields.
    pub(super) attached: Option<Attached>,
    /// Endpoint; `None` when not requested.
    pub(super) endpoint: Option<EndpointState>,
    /// Drift of the source; `None` when not requested.
    pub(super) drift: Option<Drift>,
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

    /// What the object waits for. A missing endpoint has a reason of its own.
    fn wait(&self) -> Option<(Reason, String)> {
        if let (Phase::Waiting(_), Some(EndpointState::Missing(missing))) = (&self.phase, &self.endpoint) {
            return Some((missing.reason, missing.message.clone()));
        }
        let (reason, message) = self.phase.not_ready()?;
        Some((reason, message))
    }
}

/// A draft with the status, if it changes, and its events.
pub(super) fn with_status(facts: &Facts, mut after: Metal3Cluster, report: &StatusReport) -> Draft {
    let phase = &report.phase;
    let (before, generation, now) = (&facts.object.status, facts.object.metadata.generation, facts.now);
    let older = after
        .status
        .deprecated
        .take()
        .and_then(|older| older.v1beta1)
        .unwrap_or_default();
    let (mut standard, mut conditions) = (std::mem::take(&mut after.status.conditions), older.conditions);
    set_condition(&mut standard, paused(phase, generation, now));
    let mut extensions = extension_conditions(report, generation, now);
    let is_live = !matches!(phase, Phase::Paused(_) | Phase::Deleting(_));
    let of_zones = zones::condition(&facts.zone_templates).filter(|_| is_live);
    extensions.extend(of_zones.map(|one| one.standard(generation, now)));
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
    // It is no part of the summary: what workers need is for their bootstrap provider to decide.
    let of_joins = facts.join.state.condition(generation, now).filter(|_| is_live);
    for condition in extensions.into_iter().chain(of_joins) {
        set_condition(&mut standard, condition);
    }
    remove_obsolete(&mut standard, report, facts);
    served::report(&mut standard, &unsupported_fields(&facts.object), generation, now);
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
    let has_changed = after.status != *before;
    let mut events = Vec::new();
    if has_changed {
        after.status.last_updated = Some(now);
        events = events_between(EVENT_RULES, &before.conditions, &after.status.conditions);
    }
    Draft {
        status: has_changed.then(|| Box::new(after.status)),
        events,
        wait: report.wait(),
        ..Draft::default()
    }
}

/// The fields that are stored without effect.
fn unsupported_fields(object: &Metal3Cluster) -> Unserved {
    let spec = &object.spec;
    let any = |is_set: fn(&DeploymentZone) -> bool| spec.deployment_zones.iter().any(is_set);
    let fields = [
        (
            "spec.deploymentZones[].identityRef",
            any(|zone| zone.identity_ref.is_some()),
        ),
        (
            "spec.deploymentZones[].hostNamespace",
            any(|zone| zone.host_namespace.is_some()),
        ),
        (
            "spec.deploymentZones[].hostSelector.inNamespace",
            any(|zone| {
                zone.host_selector
                    .as_ref()
                    .is_some_and(|one| one.in_namespace.is_some())
            }),
        ),
        ("spec.identityRef", spec.identity_ref.is_some()),
        ("spec.hostAPI: HostClaim", spec.host_api == Some(HostApi::HostClaim)),
    ];
    Unserved::of(fields, "it is stored, and machines are created as without it")
}

/// The conditions of objects that share a control plane.
fn extension_conditions(report: &StatusReport, generation: Option<i64>, now: Time) -> Vec<Condition> {
    let attached = report.attached.as_ref();
    let attached = attached.and_then(|one| one.condition(generation, now));
    let endpoint = report.endpoint.as_ref().map(|one| one.condition(generation, now));
    let drift = report.drift.as_ref().and_then(|one| one.condition(generation, now));
    let rendered = report.rendered.as_ref().map(|one| one.standard(generation, now));
    [attached, endpoint, drift, rendered].into_iter().flatten().collect()
}

/// Removes conditions that do not apply any more. During a pause and during deletion they are kept.
fn remove_obsolete(standard: &mut Vec<Condition>, report: &StatusReport, facts: &Facts) {
    if matches!(report.phase, Phase::Paused(_) | Phase::Deleting(_)) {
        return;
    }
    standard.retain(|one| match one.type_.as_str() {
        cluster::ATTACHED => report.attached.is_some(),
        cluster::ENDPOINT_READY => report.endpoint.is_some(),
        cluster::ENDPOINT_DRIFTED => report.drift.is_some(),
        cluster::ENDPOINT_RENDERED => report.rendered.is_some(),
        cluster::ZONES_READY => !facts.zone_templates.is_empty(),
        cluster::JOIN_PREFLIGHT => !facts.join.state.is_obsolete(),
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
    (!lines.is_empty())
        .then(|| ConditionBuilder::mark_false(cluster::READY, shared::REASON_NOT_READY, Severity::Info, message))
}

impl Attached {
    /// A Cluster uses the object by name.
    pub(super) fn not_adopted(cluster: &Cluster) -> Self {
        let name = cluster.metadata.name.as_deref().unwrap_or_default();
        let why = format!(
            "Cluster {name} uses the object for its name, but does not own it: it will not be moved, paused or deleted \
             with the Cluster; set spec.clusterName to {name} to have it adopted"
        );
        Self::No(cluster::REASON_NOT_ADOPTED, why)
    }

    fn condition(&self, generation: Option<i64>, now: Time) -> Option<Condition> {
        let (statement, message) = match self {
            Self::Left => return None,
            Self::Yes(reason, message) => (ConditionBuilder::mark_true(cluster::ATTACHED, *reason), message),
            Self::No(reason, message) => (
                ConditionBuilder::mark_false(cluster::ATTACHED, *reason, Severity::Warning, ""),
                message,
            ),
        };
        Some(with_message(statement.standard(generation, now), message))
    }
}

/// The paused condition has a message although it is true.
fn paused(phase: &Phase, generation: Option<i64>, now: Time) -> Condition {
    let (statement, message) = match phase {
        Phase::Paused(message) => (
            ConditionBuilder::mark_true(cluster::PAUSED, shared::REASON_PAUSED),
            message.as_str(),
        ),
        _ => {
            let reason = shared::REASON_NOT_PAUSED;
            (
                ConditionBuilder::mark_false(cluster::PAUSED, reason, Severity::Info, ""),
                "",
            )
        }
    };
    with_message(statement.standard(generation, now), message)
}

impl Phase {
    /// Reason and message of the summary, if the object is not ready.
    fn not_ready(&self) -> Option<(Reason, String)> {
        let not_ready = |message: &str| Some((shared::REASON_NOT_READY, message.to_owned()));
        match self {
            Self::Paused(_) | Self::Provisioned => None,
            Self::Invalid(why) => not_ready(&format!("* {}: {}", cluster::INFRASTRUCTURE_READY, invalid(why))),
            Self::Waiting(why) => not_ready(&format!("* {}: {why}", cluster::INFRASTRUCTURE_READY)),
            Self::Unattached => not_ready(
                "waiting for a Cluster to own the object; name it in spec.infrastructureRef of a Cluster, or name the \
                 Cluster in spec.clusterName",
            ),
            Self::NotAttached(why) => not_ready(why),
            Self::ClusterMissing(name) => Some((
                cluster::REASON_NO_OWNER_CLUSTER,
                format!("Cluster {name}, which the object belongs to, does not exist; create it, or delete the object"),
            )),
            // differs (`cluster-deleting`): the summary of the Go manager does not report the deletion.
            Self::Deleting(message) => Some((shared::REASON_DELETING, message.clone())),
        }
    }
}

fn invalid(why: &str) -> String {
    format!("Invalid Metal3Cluster provided: {why}")
}

/// The conditions of the infrastructure, those of the older generation, and the summary. `None` during a pause.
fn phase_conditions(phase: &Phase) -> Option<(Option<ConditionBuilder>, Vec<ConditionBuilder>, ConditionBuilder)> {
    let failed = |reason, severity, message: &str| {
        let older_reason = legacy::REASON_ENDPOINT_FAILED;
        let older = |type_| ConditionBuilder::mark_false(type_, older_reason, severity, message);
        let infrastructure = ConditionBuilder::mark_false(cluster::INFRASTRUCTURE_READY, reason, severity, message);
        let all = vec![older(legacy::INFRASTRUCTURE_READY), older(legacy::READY)];
        (Some(infrastructure), all)
    };
    let (infrastructure, older) = match phase {
        Phase::Paused(_) => return None,
        Phase::Provisioned => (
            Some(ConditionBuilder::mark_true(
                cluster::INFRASTRUCTURE_READY,
                shared::REASON_READY,
            )),
            vec![
                ConditionBuilder::mark_true(legacy::INFRASTRUCTURE_READY, shared::REASON_READY),
                ConditionBuilder::mark_true(legacy::READY, shared::REASON_READY),
            ],
        ),
        Phase::Invalid(why) => failed(cluster::REASON_INVALID_CONFIGURATION, Severity::Error, &invalid(why)),
        Phase::Waiting(why) => failed(cluster::REASON_ENDPOINT_FAILED, Severity::Info, why),
        Phase::Deleting(message) => {
            let reason = shared::REASON_DELETING;
            let older = ConditionBuilder::mark_false(legacy::READY, reason, Severity::Info, message);
            (None, vec![older])
        }
        Phase::Unattached | Phase::NotAttached(_) | Phase::ClusterMissing(_) => (None, Vec::new()),
    };
    let ready = match phase.not_ready() {
        Some((reason, message)) => ConditionBuilder::mark_false(cluster::READY, reason, Severity::Info, message),
        None => ConditionBuilder::mark_true(cluster::READY, shared::REASON_READY),
    };
    Some((infrastructure, older, ready))
}
