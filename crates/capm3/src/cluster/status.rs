//! What is said of a Metal3Cluster, in both generations.

use metal3_api::infrastructure::conditions::{cluster, legacy, shared};
use metal3_api::infrastructure::v1beta2::{DeprecatedStatus, LegacyStatus, Metal3Cluster};
use metal3_api::meta::Condition;
use metal3_runtime::condition::{Severity, Statement, put};
use metal3_runtime::reason::Reason;

use super::{Action, Facts, Plan};

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
    /// It waits for its Cluster's endpoint.
    Waiting(String),
    /// It cannot be used as it stands.
    Invalid(String),
    /// It can be used, though it may say something else than the Cluster.
    Provisioned {
        /// What differs.
        conflict: Option<String>,
    },
    /// It waits for what belongs to it.
    Deleting(String),
}

/// The plan with what is to be said, if that is news.
pub(super) fn saying(facts: &Facts<'_>, mut after: Metal3Cluster, standing: &Standing, action: Option<Action>) -> Plan {
    let (generation, now) = (facts.object.metadata.generation, facts.now);
    let older = after
        .status
        .deprecated
        .take()
        .and_then(|older| older.v1beta1)
        .unwrap_or_default();
    let (mut standard, mut conditions) = (std::mem::take(&mut after.status.conditions), older.conditions);
    let paused = paused(standing).standard(generation, now);
    put(&mut standard, with_message(paused, standing));
    if let Some((infrastructure, older, ready)) = statements(standing) {
        if let Some(infrastructure) = infrastructure {
            put(&mut standard, infrastructure.standard(generation, now));
        }
        put(&mut standard, ready.standard(generation, now));
        for statement in older {
            put(&mut conditions, statement.legacy(now));
        }
    }
    if let Standing::Provisioned { conflict } = standing
        && after.status.control_plane_endpoint.is_some()
    {
        put(&mut standard, endpoint(conflict.as_deref()).standard(generation, now));
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
    }
}

fn paused(standing: &Standing) -> Statement {
    match standing {
        Standing::Paused(_) => Statement::holds(cluster::PAUSED, Reason::new(shared::REASON_PAUSED)),
        _ => Statement::fails(
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
fn statements(standing: &Standing) -> Option<(Option<Statement>, Vec<Statement>, Statement)> {
    let not_ready =
        |reason, message: &str| Statement::fails(cluster::READY, Reason::new(reason), Severity::Info, message);
    Some(match standing {
        Standing::Paused(_) => return None,
        Standing::Provisioned { .. } => (
            Some(Statement::holds(cluster::INFRASTRUCTURE_READY, READY)),
            vec![
                Statement::holds(legacy::INFRASTRUCTURE_READY, READY),
                Statement::holds(legacy::READY, READY),
            ],
            Statement::holds(cluster::READY, READY),
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
                Statement::fails(aspect, reason, severity, message.clone())
            };
            let summary = format!("* {}: {message}", cluster::INFRASTRUCTURE_READY);
            (
                Some(Statement::fails(
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
        Standing::WithoutCluster(name) => {
            let message =
                format!("Cluster {name}, which the object belongs to, does not exist; create it, or delete the object");
            (None, Vec::new(), not_ready(cluster::REASON_NO_OWNER_CLUSTER, &message))
        }
        // differs (`cluster-deleting`): for the Go manager the summary hides that the object goes.
        Standing::Deleting(message) => {
            let older = Statement::fails(
                legacy::READY,
                Reason::new(shared::REASON_DELETING),
                Severity::Info,
                message,
            );
            (None, vec![older], not_ready(shared::REASON_DELETING, message))
        }
    })
}

fn endpoint(conflict: Option<&str>) -> Statement {
    match conflict {
        Some(conflict) => {
            let reason = Reason::new(cluster::REASON_ENDPOINT_CONFLICT);
            Statement::fails(cluster::ENDPOINT_READY, reason, Severity::Warning, conflict)
        }
        None => Statement::holds(cluster::ENDPOINT_READY, READY),
    }
}
