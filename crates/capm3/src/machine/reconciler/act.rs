//! Executes the plan of a machine: one write after another, the status last.

use k8s_openapi::api::core::v1::Secret;
use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use metal3_api::infrastructure::v1beta2::{Metal3DataClaim, Metal3Machine};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::owner;
use metal3_runtime::cache::{Identity, Key};
use metal3_runtime::object_reader::Erased;
use metal3_runtime::patch::{Changes, MergePatch};
use metal3_runtime::plan::PlannedEvent;
use metal3_runtime::work::{Fault, Next};
use metal3_runtime::write::{Mode, NoCache, WriteError, WriteErrorKind, Writer, Written};
use serde_json::json;

use super::{ActError, Machines};
use crate::machine::action::{Action, HostChange, Plan, StatusWrite, Urgency};
use crate::machine::facts::Facts;
use crate::needs::Machines as Role;

/// Why one action failed.
enum ActionError {
    Write(WriteError),
    /// The object differs from the one that the plan is based on.
    Stale,
    Other(Fault),
}

impl From<WriteError> for ActionError {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

impl From<Fault> for ActionError {
    fn from(fault: Fault) -> Self {
        Self::Other(fault)
    }
}

impl Machines {
    pub(super) async fn act(
        &self,
        key: &Key,
        facts: &Facts,
        plan: Plan,
        writer: &Writer<Role>,
    ) -> Result<Next, ActError> {
        let mut latest = facts.machine.as_deref().cloned();
        if plan.status.is_none() {
            self.debounce.clear(key);
        }
        let has_acted = !plan.actions.is_empty();
        for action in plan.actions {
            match self.write(key, facts, &action, &mut latest, writer).await {
                Ok(()) => {}
                Err(ActionError::Stale) => return Ok(Next::Requeue),
                Err(ActionError::Other(fault)) => return Err(fault.into()),
                Err(ActionError::Write(error)) => {
                    let latest = latest.map(Box::new);
                    return Err(ActError::Write { action, error, latest });
                }
            }
        }
        let urgency = plan.status.as_ref().map(|write| write.urgency);
        let generation = |machine: Option<&Metal3Machine>| machine.and_then(|machine| machine.metadata.generation);
        if urgency != Some(Urgency::Record) && generation(latest.as_ref()) != generation(facts.machine.as_deref()) {
            // The status would have an outdated generation and be written twice.
            return Ok(Next::Requeue);
        }
        if let (Some(before), Some(write)) = (latest, plan.status) {
            let is_debounced = write.urgency == Urgency::Wait && writer.mode() == Mode::Perform;
            if let Some(left) = self.debounce.remaining(key).filter(|_| is_debounced) {
                return Ok(if has_acted {
                    Next::Requeue
                } else {
                    Next::RequeueAfter(left)
                });
            }
            self.write_status(&before, write, &plan.events, writer).await?;
            self.debounce.clear(key);
        }
        Ok(match plan.next {
            // Without effective writes another reconcile gives the same plan.
            Next::Requeue if writer.mode() == Mode::ObserveOnly => Next::Done,
            next => next,
        })
    }

    /// Writes the status to the machine at this version, and records the Events.
    pub(super) async fn write_status(
        &self,
        before: &Metal3Machine,
        write: StatusWrite,
        events: &[PlannedEvent],
        writer: &Writer<Role>,
    ) -> Result<(), Fault> {
        let mut after = before.clone();
        after.status = *write.status;
        writer.status(&self.caches.metal3_machines, before, &after).await?;
        for event in events {
            self.events
                .record(&after, event.importance, event.reason, event.message.as_str());
        }
        Ok(())
    }

    async fn write(
        &self,
        key: &Key,
        facts: &Facts,
        action: &Action,
        latest: &mut Option<Metal3Machine>,
        writer: &Writer<Role>,
    ) -> Result<(), ActionError> {
        let caches = &self.caches;
        match action {
            Action::PatchMachine(patch) => {
                let version = latest.as_ref().and_then(|machine| Identity::of(machine).ok());
                let version = version.ok_or(ActionError::Stale)?.version;
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
                    None => unlabel(&secret, &facts.cluster_key.name, writer).await?,
                }
            }
            Action::CreateClaim(claim) => match writer.create(&caches.claims, &**claim).await {
                // Another replica, or a request with a lost response, created it; the next reconcile reads its owner.
                Err(error) if error.kind == WriteErrorKind::AlreadyExists => return Err(ActionError::Stale),
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
            // differs (`node-id-once`): the Go manager writes it in every reconcile until it succeeds.
            Action::AdoptNode { node, provider_id } => {
                self.workloads
                    .set_provider_id(&facts.cluster_key, node, provider_id)
                    .await?;
            }
        }
        Ok(())
    }
}

fn labelled(cluster: Option<&str>) -> serde_json::Value {
    json!({ "metadata": { "labels": { CLUSTER_NAME_LABEL: cluster } } })
}

async fn label(secret: &Key, cluster: &str, writer: &Writer<Role>) -> Result<(), ActionError> {
    let Some(patch) = Changes::between(&labelled(None), &labelled(Some(cluster))).main else {
        return Ok(());
    };
    patch_secret(secret, patch, writer).await
}

/// Removes the cluster label from a Secret, if it names this Cluster.
async fn unlabel(secret: &Key, cluster: &str, writer: &Writer<Role>) -> Result<(), ActionError> {
    let Some(found) = writer.read::<Secret>(&NoCache, secret).await? else {
        return Ok(());
    };
    let found = Erased::new(found);
    let (Some(label), Ok(read)) = (owner::cluster_of(&found.metadata), Identity::of(&*found)) else {
        return Ok(());
    };
    let patch = Changes::between(&labelled(Some(label)), &labelled(None)).main;
    match patch.filter(|_| label == cluster) {
        Some(patch) => patch_secret(secret, patch.with_precondition(&read.version), writer).await,
        None => Ok(()),
    }
}

async fn patch_secret(secret: &Key, patch: MergePatch, writer: &Writer<Role>) -> Result<(), ActionError> {
    match writer.patch::<Secret>(&NoCache, secret, patch).await {
        Err(error) if error.kind == WriteErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
        Ok(written) => {
            drop(written.object().map(Erased::new));
            Ok(())
        }
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
