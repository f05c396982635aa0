//! Executes the plan of a machine: one write after another, the status last.

use k8s_openapi::api::core::v1::Secret;
use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use metal3_api::infrastructure::conditions::machine as conditions;
use metal3_api::infrastructure::v1beta2::{Metal3DataClaim, Metal3Machine};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::owner;
use metal3_runtime::cache::{Identity, Key};
use metal3_runtime::events::Importance;
use metal3_runtime::patch::{Changes, MergePatch};
use metal3_runtime::reason::Reason;
use metal3_runtime::work::{Fault, Next};
use metal3_runtime::write::{Mode, NoCache, WriteError, WriteErrorKind, Writer, Written};
use serde_json::json;

use super::{Machines, Snapshot};
use crate::controller::events::{EventRule, events_between};
use crate::machine::action::{Action, HostChange, Plan};
use crate::machine::plan::after_failure;
use crate::needs::Machines as Role;

const PROVISIONED: Reason = Reason::new("Provisioned");

/// Events of a machine that had no host before.
const CLAIM_EVENTS: &[EventRule] = &[
    EventRule::normal(
        conditions::ASSOCIATE_HOST,
        conditions::REASON_HOST_ASSOCIATED,
        "claimed a host",
    ),
    EventRule::normal(
        conditions::ASSOCIATE_HOST,
        conditions::REASON_HOST_REUSED,
        "claimed the host kept for node reuse",
    ),
];

/// Events whenever the condition starts.
const STATUS_EVENTS: &[EventRule] = &[
    EventRule::normal(
        conditions::DATA_READY,
        conditions::REASON_SECRETS_READY,
        "metadata and network data are rendered",
    ),
    EventRule::warning(conditions::ASSOCIATE_HOST, conditions::REASON_HOST_FAILED),
    EventRule::warning(conditions::ASSOCIATE_HOST, conditions::REASON_AMBIGUOUS_CLUSTER),
    EventRule::warning(conditions::ASSOCIATE_META_DATA, conditions::REASON_META_DATA_FAILED),
    EventRule::warning(conditions::ASSOCIATE_META_DATA, conditions::REASON_UPDATE_ERROR),
    EventRule::warning(
        conditions::ASSOCIATE_META_DATA,
        conditions::REASON_META_DATA_RELEASE_FAILED,
    ),
    EventRule::warning(conditions::ASSOCIATE_META_DATA, conditions::REASON_DELETION_FAILED),
    EventRule::warning(conditions::PAUSED, conditions::REASON_PAUSE_SET_FAILED),
    EventRule::warning(conditions::PAUSED, conditions::REASON_PAUSE_REMOVE_FAILED),
];

fn events_of(before: &Metal3Machine, after: &Metal3Machine) -> Vec<(Importance, Reason, String)> {
    let (old, new) = (&before.status.conditions, &after.status.conditions);
    // A machine with a data condition already has its host: a pause or read error ended, and no host was claimed.
    let had_host = old.iter().any(|condition| condition.type_ == conditions::DATA_READY);
    let mut events = events_between(STATUS_EVENTS, old, new);
    if !had_host {
        events.extend(events_between(CLAIM_EVENTS, old, new));
    }
    events
}

impl Machines {
    pub(super) async fn act(
        &self,
        key: &Key,
        snapshot: &Snapshot,
        plan: Plan,
        writer: &Writer<Role>,
    ) -> Result<Next, Fault> {
        let mut latest = snapshot.machine.as_deref().cloned();
        let was_idle = plan.is_idle() && plan.status.is_none();
        let is_debounced = plan.is_wait && writer.mode() == Mode::Perform;
        if plan.status.is_none() {
            self.debounce.clear(key);
        }
        for action in &plan.actions {
            match self.write(key, snapshot, action, &mut latest, writer).await {
                Ok(()) => {}
                Err(ActError::Stale) => return Ok(Next::Requeue),
                Err(ActError::Other(fault)) => return Err(fault),
                Err(ActError::Write(error)) => {
                    self.record_failure(snapshot, action, &error, latest, writer).await?;
                    return Err(error.into());
                }
            }
        }
        let generation = |machine: Option<&Metal3Machine>| machine.and_then(|machine| machine.metadata.generation);
        if !plan.must_record && generation(latest.as_ref()) != generation(snapshot.machine.as_deref()) {
            // The status would have an outdated generation and be written twice.
            return Ok(Next::Requeue);
        }
        if let (Some(before), Some(status)) = (latest, plan.status) {
            if let Some(left) = self.debounce.remaining(key).filter(|_| is_debounced) {
                let has_acted = !plan.actions.is_empty();
                return Ok(if has_acted {
                    Next::Requeue
                } else {
                    Next::RequeueAfter(left)
                });
            }
            let mut after = before.clone();
            after.status = *status;
            writer.status(&self.caches.metal3_machines, &before, &after).await?;
            self.debounce.clear(key);
            self.record_events(&before, &after);
        }
        // Without effective writes another reconcile gives the same plan.
        Ok(if was_idle || writer.mode() == Mode::ObserveOnly {
            Next::Done
        } else {
            Next::Requeue
        })
    }

    fn record_events(&self, before: &Metal3Machine, after: &Metal3Machine) {
        for (importance, reason, note) in events_of(before, after) {
            self.events.record(after, importance, reason, note);
        }
        let is_provisioned = |machine: &Metal3Machine| {
            let progress = machine.status.initialization.as_ref();
            progress.is_some_and(|progress| progress.provisioned == Some(true))
        };
        if is_provisioned(after) && !is_provisioned(before) {
            let id = after.spec.provider_id.as_deref().unwrap_or_default();
            let note = format!("the host is provisioned and its Node is known: {id}");
            self.events.record(after, Importance::Normal, PROVISIONED, note);
        }
    }

    /// Writes the status for an error that only the user can correct.
    async fn record_failure(
        &self,
        snapshot: &Snapshot,
        failed: &Action,
        error: &WriteError,
        latest: Option<Metal3Machine>,
        writer: &Writer<Role>,
    ) -> Result<(), Fault> {
        if !matches!(error.kind, WriteErrorKind::Invalid | WriteErrorKind::Forbidden) {
            return Ok(());
        }
        let source = std::error::Error::source(error)
            .map(ToString::to_string)
            .unwrap_or_default();
        let why = format!("{error}: {source}");
        let failed_plan = self.with_facts(snapshot, true, |facts| after_failure(facts, failed, &why));
        if let (Some(before), Some(status)) = (latest, failed_plan.and_then(|failed_plan| failed_plan.status)) {
            let mut after = before.clone();
            after.status = *status;
            writer.status(&self.caches.metal3_machines, &before, &after).await?;
            self.record_events(&before, &after);
        }
        Ok(())
    }

    async fn write(
        &self,
        key: &Key,
        snapshot: &Snapshot,
        action: &Action,
        latest: &mut Option<Metal3Machine>,
        writer: &Writer<Role>,
    ) -> Result<(), ActError> {
        let caches = &self.caches;
        match action {
            Action::PatchMachine(patch) => {
                let version = latest.as_ref().and_then(|machine| Identity::of(machine).ok());
                let version = version.ok_or(ActError::Stale)?.version;
                let written = writer
                    .patch(&caches.metal3_machines, key, patch.clone().with_precondition(&version))
                    .await?;
                *latest = written.object();
            }
            Action::PatchHost { host, change, patch } => {
                let host = key.sibling(host);
                let written = writer.patch::<BareMetalHost>(&caches.hosts, &host, patch.clone()).await;
                if *change == HostChange::Deprovision {
                    audit(key, &host, &written);
                }
                written?;
            }
            Action::LabelSecret { secret, cluster } => {
                let secret = key.sibling(secret);
                match cluster {
                    Some(cluster) => label(&secret, cluster, writer).await?,
                    None => unlabel(&secret, &snapshot.cluster_key.name, writer).await?,
                }
            }
            Action::CreateClaim(claim) => match writer.create(&caches.claims, &**claim).await {
                // Another replica, or a request with a lost response, created it; the next reconcile reads its owner.
                Err(error) if error.kind == WriteErrorKind::AlreadyExists => return Err(ActError::Stale),
                written => drop(written?),
            },
            Action::PatchClaim { claim, patch } => {
                writer
                    .patch::<Metal3DataClaim>(&caches.claims, &key.sibling(claim), patch.clone())
                    .await?;
            }
            Action::DeleteClaim { claim, uid, version } => {
                let last = Identity {
                    key: key.sibling(claim),
                    uid: uid.clone(),
                    version: version.clone(),
                };
                writer.delete_at::<Metal3DataClaim>(&caches.claims, &last).await?;
            }
            Action::AdoptNode { node, provider_id } => {
                let adopted = self
                    .workloads
                    .set_provider_id(&snapshot.cluster_key, node, provider_id)
                    .await;
                adopted.map_err(ActError::Other)?;
            }
        }
        Ok(())
    }
}

fn labelled(cluster: Option<&str>) -> serde_json::Value {
    json!({ "metadata": { "labels": { CLUSTER_NAME_LABEL: cluster } } })
}

async fn label(secret: &Key, cluster: &str, writer: &Writer<Role>) -> Result<(), ActError> {
    let Some(patch) = Changes::between(&labelled(None), &labelled(Some(cluster))).main else {
        return Ok(());
    };
    patch_secret(secret, patch, writer).await
}

/// Removes the cluster label from a Secret, if it names this Cluster.
async fn unlabel(secret: &Key, cluster: &str, writer: &Writer<Role>) -> Result<(), ActError> {
    let found = writer.read::<Secret>(&NoCache, secret).await;
    let Some(found) = found.map_err(ActError::Other)? else {
        return Ok(());
    };
    let (Some(label), Ok(read)) = (owner::cluster_of(&found.metadata), Identity::of(&found)) else {
        return Ok(());
    };
    let patch = Changes::between(&labelled(Some(label)), &labelled(None)).main;
    match patch.filter(|_| label == cluster) {
        Some(patch) => patch_secret(secret, patch.with_precondition(&read.version), writer).await,
        None => Ok(()),
    }
}

async fn patch_secret(secret: &Key, patch: MergePatch, writer: &Writer<Role>) -> Result<(), ActError> {
    match writer.patch::<Secret>(&NoCache, secret, patch).await {
        Err(error) if error.kind == WriteErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(()),
    }
}

enum ActError {
    /// The API server rejected a write, or its outcome is unknown.
    Write(WriteError),
    /// The object differs from the one that the plan is based on.
    Stale,
    /// A read failed, or the request to the workload cluster.
    Other(Fault),
}

impl From<WriteError> for ActError {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

/// Writes the audit log of a deprovisioning once it is requested, or may have been when the response is lost.
fn audit(machine: &Key, host: &Key, written: &Result<Written<BareMetalHost>, WriteError>) {
    let (certainty, version) = match written {
        Ok(Written::Object(host)) => ("", host.metadata.resource_version.as_deref()),
        Err(error) if matches!(error.kind, WriteErrorKind::OutcomeUnknown | WriteErrorKind::Unreadable) => {
            ("perhaps ", None)
        }
        Ok(Written::Deleted | Written::Unchanged | Written::DryRun) | Err(_) => return,
    };
    tracing::info!(
        target: "metal3::audit", %machine, %host, version = version.unwrap_or_default(),
        "{certainty}deprovisioning the host, because its machine is deleted"
    );
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn machine(conditions: &[(&str, &str)]) -> Metal3Machine {
        let stated = |(kind, reason): &(&str, &str)| {
            json!({
                "type": kind, "status": "True", "reason": reason, "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        };
        let stated: Vec<Value> = conditions.iter().map(stated).collect();
        serde_json::from_value(json!({ "metadata": { "name": "m0" }, "status": { "conditions": stated } })).unwrap()
    }

    #[test]
    fn end_of_a_pause_records_no_second_claim_event() {
        let (host, taken) = (conditions::ASSOCIATE_HOST, conditions::REASON_HOST_ASSOCIATED);
        let rendered = (conditions::DATA_READY, conditions::REASON_SECRETS_READY);
        let after = machine(&[(host, taken), rendered]);
        assert_eq!(events_of(&machine(&[(host, "Paused"), rendered]), &after), []);
        let first = events_of(&machine(&[(host, "Paused")]), &after);
        let notes: Vec<&str> = first.iter().map(|(.., note)| note.as_str()).collect();
        assert_eq!(notes, ["metadata and network data are rendered", "claimed a host"]);
    }
}
