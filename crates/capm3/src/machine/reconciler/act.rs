//! Executes the plan of a machine: one write after another, the status last.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use metal3_api::infrastructure::v1beta2::{Metal3DataClaim, Metal3Machine};
use metal3_api::metal3::names::{ENVIRONMENT_BAREMETAL, ENVIRONMENT_LABEL};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::cache::{Identity, Key};
use metal3_runtime::patch::MergePatch;
use metal3_runtime::plan::PlannedEvent;
use metal3_runtime::work::{DEBOUNCE, Fault, Next};
use metal3_runtime::write::{LabelChange, Mode, WriteError, WriteErrorKind, Writer, Written};

use super::{ActError, Machines};
use crate::label_sync::CopiedLabels;
use crate::machine::action::{Action, HostChange, Plan, StatusWrite, Urgency};
use crate::machine::facts::Facts;
use crate::needs::Machines as Role;

/// How long the numbers of a reported wait may be out of date.
pub(super) const RECOUNT: Duration = Duration::from_mins(1);

/// Why one action failed.
enum ActionError {
    Write(WriteError),
    /// The object differs from the one that the plan is based on.
    Stale,
    /// The workload cluster did not do it.
    Workload(Fault),
}

impl From<WriteError> for ActionError {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
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
                Err(ActionError::Workload(fault)) => {
                    let latest = latest.map(Box::new);
                    return Err(ActError::Workload { action, fault, latest });
                }
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
            let delay = match write.urgency {
                Urgency::Recount => RECOUNT,
                Urgency::Wait => DEBOUNCE,
                Urgency::Report | Urgency::Record => Duration::ZERO,
            };
            let is_debounced = writer.mode() == Mode::Perform;
            if let Some(left) = self.debounce.remaining(key, delay).filter(|_| is_debounced) {
                return Ok(if has_acted {
                    Next::Requeue
                } else {
                    earlier(plan.next, left)
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
                if *change == HostChange::Disown {
                    self.refused.remove(key);
                }
            }
            Action::LabelSecret { secret, cluster } => {
                let change = login_label(cluster.as_deref(), &facts.cluster_key.name);
                writer.label::<Secret>(&key.sibling(secret), &change).await?;
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
                    .set_provider_id(&facts.cluster_key, node, provider_id, key)
                    .await
                    .map_err(ActionError::Workload)?;
            }
            Action::CopyLabels { patch, copied } => {
                let request = self.copy_labels(key, facts, patch.as_ref(), copied);
                request.await.map_err(ActionError::Workload)?;
            }
        }
        Ok(())
    }

    /// Changes the labels of the Node, and records what they are copied from. A refused change is not recorded.
    async fn copy_labels(
        &self,
        key: &Key,
        facts: &Facts,
        patch: Option<&MergePatch>,
        copied: &CopiedLabels,
    ) -> Result<(), Fault> {
        if let Some(patch) = patch
            && !self
                .workloads
                .patch_labels(&facts.cluster_key, &copied.node, patch.clone(), key)
                .await?
        {
            return Ok(());
        }
        let now = self.clock.monotonic();
        self.copied.lock().insert(key.clone(), (copied.clone(), now));
        Ok(())
    }
}

/// What a plan waits for, and this time at the latest.
fn earlier(next: Next, left: Duration) -> Next {
    let planned = match next {
        Next::RequeueAfter(after) => Some(after),
        Next::Waiting(on) => on.recheck,
        Next::Done | Next::Requeue => None,
    };
    Next::RequeueAfter(planned.map_or(left, |planned| planned.min(left)))
}

/// Sets the label of a Cluster, or removes that of `own`. Only from the login of a host: a host names any Secret.
///
/// differs (`login-label`): the Go manager changes every Secret that a host names.
fn login_label(cluster: Option<&str>, own: &str) -> LabelChange {
    let mut required = BTreeMap::from([(ENVIRONMENT_LABEL.to_owned(), ENVIRONMENT_BAREMETAL.to_owned())]);
    if cluster.is_none() {
        required.insert(CLUSTER_NAME_LABEL.to_owned(), own.to_owned());
    }
    LabelChange {
        required,
        label: CLUSTER_NAME_LABEL.to_owned(),
        value: cluster.map(ToOwned::to_owned),
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
