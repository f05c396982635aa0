//! Doing what was decided for a machine: one write after another, and the status last.

use k8s_openapi::api::core::v1::Secret;
use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use metal3_api::infrastructure::conditions::machine as words;
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

use super::{Machines, Seen};
use crate::controller::news::{Row, between};
use crate::machine::action::{Action, Deed, Plan};
use crate::machine::plan::after_failure;
use crate::needs::Machines as Role;

const PROVISIONED: Reason = Reason::new("Provisioned");

/// What is told by Events of a machine that had no host before.
const TAKEN: &[Row] = &[
    Row::good(words::ASSOCIATE_HOST, words::REASON_HOST_ASSOCIATED, "a host was taken"),
    Row::good(
        words::ASSOCIATE_HOST,
        words::REASON_HOST_REUSED,
        "the host that was kept was taken",
    ),
];

/// What is told by Events whenever it becomes so.
const NEWS: &[Row] = &[
    Row::good(
        words::DATA_READY,
        words::REASON_SECRETS_READY,
        "metadata and network data are there",
    ),
    Row::bad(words::ASSOCIATE_HOST, words::REASON_HOST_FAILED),
    Row::bad(words::ASSOCIATE_HOST, words::REASON_AMBIGUOUS_CLUSTER),
    Row::bad(words::ASSOCIATE_META_DATA, words::REASON_META_DATA_FAILED),
    Row::bad(words::ASSOCIATE_META_DATA, words::REASON_UPDATE_ERROR),
    Row::bad(words::ASSOCIATE_META_DATA, words::REASON_META_DATA_RELEASE_FAILED),
    Row::bad(words::ASSOCIATE_META_DATA, words::REASON_DELETION_FAILED),
    Row::bad(words::PAUSED, words::REASON_PAUSE_SET_FAILED),
    Row::bad(words::PAUSED, words::REASON_PAUSE_REMOVE_FAILED),
];

/// What an Event tells of this change.
fn told(before: &Metal3Machine, after: &Metal3Machine) -> Vec<(Importance, Reason, String)> {
    let (old, new) = (&before.status.conditions, &after.status.conditions);
    // Who was told of data has its host already: a pause or a doubt ended, and nothing was taken.
    let had_host = old.iter().any(|condition| condition.type_ == words::DATA_READY);
    let mut told = between(NEWS, old, new);
    if !had_host {
        told.extend(between(TAKEN, old, new));
    }
    told
}

impl Machines {
    pub(super) async fn act(&self, key: &Key, seen: &Seen, plan: Plan, writer: &Writer<Role>) -> Result<Next, Fault> {
        let mut latest = seen.machine.as_deref().cloned();
        let was_idle = plan.is_idle() && plan.status.is_none();
        let is_kept_back = plan.is_wait && writer.mode() == Mode::Perform;
        if plan.status.is_none() {
            self.patience.clear(key);
        }
        for action in &plan.actions {
            match self.write(key, seen, action, &mut latest, writer).await {
                Ok(()) => {}
                Err(Broken::Stale) => return Ok(Next::Requeue),
                Err(Broken::Elsewhere(fault)) => return Err(fault),
                Err(Broken::Write(error)) => {
                    self.tell_failure(seen, action, &error, latest, writer).await?;
                    return Err(error.into());
                }
            }
        }
        let generation = |machine: Option<&Metal3Machine>| machine.and_then(|machine| machine.metadata.generation);
        if !plan.tells_once && generation(latest.as_ref()) != generation(seen.machine.as_deref()) {
            // The status would be of a generation that is over by now, and be written twice.
            return Ok(Next::Requeue);
        }
        if let (Some(before), Some(status)) = (latest, plan.status) {
            if let Some(left) = self.patience.remaining(key).filter(|_| is_kept_back) {
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
            self.patience.clear(key);
            self.tell(&before, &after);
        }
        // Where nothing is performed, another look would show the same again.
        Ok(if was_idle || writer.mode() == Mode::ObserveOnly {
            Next::Done
        } else {
            Next::Requeue
        })
    }

    fn tell(&self, before: &Metal3Machine, after: &Metal3Machine) {
        for (importance, reason, note) in told(before, after) {
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

    /// Says what only somebody else can cure.
    async fn tell_failure(
        &self,
        seen: &Seen,
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
        let said = self.with_facts(seen, true, |facts| after_failure(facts, failed, &why));
        if let (Some(before), Some(status)) = (latest, said.and_then(|said| said.status)) {
            let mut after = before.clone();
            after.status = *status;
            writer.status(&self.caches.metal3_machines, &before, &after).await?;
            self.tell(&before, &after);
        }
        Ok(())
    }

    async fn write(
        &self,
        key: &Key,
        seen: &Seen,
        action: &Action,
        latest: &mut Option<Metal3Machine>,
        writer: &Writer<Role>,
    ) -> Result<(), Broken> {
        let caches = &self.caches;
        match action {
            Action::PatchMachine(patch) => {
                let version = latest.as_ref().and_then(|machine| Identity::of(machine).ok());
                let version = version.ok_or(Broken::Stale)?.version;
                let written = writer
                    .patch(&caches.metal3_machines, key, patch.clone().with_precondition(&version))
                    .await?;
                *latest = written.object();
            }
            Action::PatchHost { host, deed, patch } => {
                let host = key.sibling(host);
                let written = writer.patch::<BareMetalHost>(&caches.hosts, &host, patch.clone()).await;
                if *deed == Deed::Deprovision {
                    audit(key, &host, &written);
                }
                written?;
            }
            Action::LabelSecret { secret, cluster } => {
                let secret = key.sibling(secret);
                match cluster {
                    Some(cluster) => label(&secret, cluster, writer).await?,
                    None => unlabel(&secret, &seen.cluster_key.name, writer).await?,
                }
            }
            Action::CreateClaim(claim) => match writer.create(&caches.claims, &**claim).await {
                // Somebody made it, or we did and the answer was lost: the next pass sees whose it is.
                Err(error) if error.kind == WriteErrorKind::AlreadyExists => return Err(Broken::Stale),
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
                    .set_provider_id(&seen.cluster_key, node, provider_id)
                    .await;
                adopted.map_err(Broken::Elsewhere)?;
            }
        }
        Ok(())
    }
}

fn labelled(cluster: Option<&str>) -> serde_json::Value {
    json!({ "metadata": { "labels": { CLUSTER_NAME_LABEL: cluster } } })
}

async fn label(secret: &Key, cluster: &str, writer: &Writer<Role>) -> Result<(), Broken> {
    let Some(patch) = Changes::between(&labelled(None), &labelled(Some(cluster))).main else {
        return Ok(());
    };
    patch_secret(secret, patch, writer).await
}

/// Takes the label off a Secret that says it belongs to this Cluster. Another's stays.
async fn unlabel(secret: &Key, cluster: &str, writer: &Writer<Role>) -> Result<(), Broken> {
    let found = writer.read::<Secret>(&NoCache, secret).await;
    let Some(found) = found.map_err(Broken::Elsewhere)? else {
        return Ok(());
    };
    let (Some(label), Ok(seen)) = (owner::cluster_of(&found.metadata), Identity::of(&found)) else {
        return Ok(());
    };
    let patch = Changes::between(&labelled(Some(label)), &labelled(None)).main;
    match patch.filter(|_| label == cluster) {
        Some(patch) => patch_secret(secret, patch.with_precondition(&seen.version), writer).await,
        None => Ok(()),
    }
}

async fn patch_secret(secret: &Key, patch: MergePatch, writer: &Writer<Role>) -> Result<(), Broken> {
    match writer.patch::<Secret>(&NoCache, secret, patch).await {
        Err(error) if error.kind == WriteErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(()),
    }
}

/// Why a chain ended early.
enum Broken {
    /// The server refused, or nobody knows.
    Write(WriteError),
    /// What is there is not what the plan saw.
    Stale,
    /// A read failed, or the workload cluster refused or cannot be reached.
    Elsewhere(Fault),
}

impl From<WriteError> for Broken {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

/// Who asked for what cannot be undone, once it is asked for; where the answer was lost, perhaps it was.
fn audit(machine: &Key, host: &Key, written: &Result<Written<BareMetalHost>, WriteError>) {
    let (perhaps, version) = match written {
        Ok(Written::Object(host)) => ("", host.metadata.resource_version.as_deref()),
        Err(error) if matches!(error.kind, WriteErrorKind::OutcomeUnknown | WriteErrorKind::Unreadable) => {
            ("perhaps ", None)
        }
        Ok(Written::Deleted | Written::Unchanged | Written::DryRun) | Err(_) => return,
    };
    tracing::info!(
        target: "metal3::audit", %machine, %host, version = version.unwrap_or_default(),
        "{perhaps}deprovisioning the host, because its machine is deleted"
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
    fn the_end_of_a_pause_does_not_tell_again_that_a_host_was_taken() {
        let (host, taken) = (words::ASSOCIATE_HOST, words::REASON_HOST_ASSOCIATED);
        let rendered = (words::DATA_READY, words::REASON_SECRETS_READY);
        let after = machine(&[(host, taken), rendered]);
        assert_eq!(told(&machine(&[(host, "Paused"), rendered]), &after), []);
        let first = told(&machine(&[(host, "Paused")]), &after);
        let notes: Vec<&str> = first.iter().map(|(.., note)| note.as_str()).collect();
        assert_eq!(notes, ["metadata and network data are there", "a host was taken"]);
    }
}
