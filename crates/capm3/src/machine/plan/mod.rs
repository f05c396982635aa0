//! The plan for a machine, from facts alone.
//!
//! The machine first records the host that it chooses, then claims it, then records that it has it; each step can be
//! found again after a crash. Invariants, with any cache lag and any number of replicas:
//!
//! - A host is claimed, provisioned and released only at the version that the plan is based on. It is claimed or
//!   released only after a live read, or a write of the same reconcile, confirms the machine's version. The machine's
//!   finalizer is removed only after a live read confirms that its recorded host does not belong to it.
//! - A host is provisioned once, with all its data, and only when the machine records that host. When two replicas
//!   claim two hosts at once, the machine's resource version decides, and the other host is released.
//! - A host is deprovisioned before its consumer is removed, released before the data, and both before the machine's
//!   finalizer is removed.
//! - The plan waits for unreadable objects. A deletion needs neither Machine, Metal3Cluster nor workload cluster; of
//!   the Cluster it needs only whether it is paused.

mod claim_again;
mod cleanup;
mod data;
mod events;
mod host;
mod host_changes;
mod join;
mod labels;
mod node;
pub(crate) mod owners;
mod release;
mod reuse;
mod status;
mod template;
mod zone;

use metal3_api::cluster::Machine;
use metal3_api::infrastructure::conditions::machine::HOST_GONE;
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3Machine};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::{pause, progress};
use metal3_runtime::patch::Changes;
use metal3_runtime::plan::Observed;

use super::action::{Action, HostChange, Plan, Reads};
use super::conditions::{Deletion, Prerequisite, Stage};
use super::facts::{self, Facts};
use super::resolve::{Resolved, may_be_unreadable};
use super::rules::Rules;
use crate::diff::{changes, version};

/// The plan for the facts.
#[must_use]
pub fn plan(facts: &Facts) -> Plan {
    plan_under(facts, &Rules::ALL)
}

/// The plan with a subset of the safety rules. Only tests omit rules.
pub(crate) fn plan_under(facts: &Facts, rules: &Rules) -> Plan {
    let Some(before) = facts.machine.as_deref() else {
        return cleanup::plan(facts);
    };
    if rules.respect_move() && pause::is_moved_away(&before.metadata) {
        return Plan::default();
    }
    let mut planner = Planner::new(facts, before, rules);
    match planner.decide() {
        Decision::UpdateStatus(stage) => planner.with_status(Some(&stage)),
        Decision::Unchanged => planner.with_status(None),
        Decision::Read(reads) => Plan::reading(reads),
    }
}

/// Why an action was not performed.
#[derive(Clone, Copy)]
pub enum Undone<'a> {
    /// Its request to the workload cluster waits for others.
    Busy,
    /// What the user must correct.
    Failed(&'a str),
}

/// The status after an action that was not performed.
#[must_use]
pub fn after_failure(facts: &Facts, failed: &Action, why: Undone<'_>) -> Plan {
    let Some(before) = facts.machine.as_deref() else {
        return Plan::default();
    };
    let mut planner = Planner::new(facts, before, &Rules::ALL);
    let stage = planner.stage_of_failure(failed, why);
    planner.actions.clear();
    planner.with_status(stage.as_ref())
}

enum Decision {
    UpdateStatus(Stage),
    Unchanged,
    /// Read before any action.
    Read(Reads),
}

/// The objects that a machine needs before it can claim a host.
#[derive(Clone, Copy)]
struct Prerequisites<'a> {
    owner: &'a Machine,
    metal3_cluster: &'a Metal3Cluster,
}

struct Planner<'a> {
    facts: &'a Facts,
    rules: &'a Rules,
    /// The machine of the facts.
    before: &'a Metal3Machine,
    /// The machine after the actions so far, with its new status.
    machine: Metal3Machine,
    actions: Vec<Action>,
}

/// The relation of the machine to its host.
enum HostOwnership<'a> {
    None,
    /// The machine is the consumer.
    Claimed(&'a BareMetalHost),
    /// The machine records this host, which has no consumer.
    Unclaimed(&'a BareMetalHost),
    /// The machine records this host, which has another consumer.
    Taken(&'a BareMetalHost),
    /// The machine records this host, which does not exist.
    Missing(&'a str),
    Unknown {
        host: &'a str,
        why: String,
    },
}

impl<'a> Planner<'a> {
    fn new(facts: &'a Facts, before: &'a Metal3Machine, rules: &'a Rules) -> Self {
        Self {
            facts,
            rules,
            before,
            machine: before.clone(),
            actions: Vec::new(),
        }
    }

    fn decide(&mut self) -> Decision {
        if let Some(why) = self.facts.cluster.unknown() {
            return self.unreadable(&format!("the Cluster cannot be read: {why}"));
        }
        if let Some(decision) = self.apply_pause() {
            return decision;
        }
        if let Err(error) = facts::check_host(self.before) {
            return self.with_invalid_host(error.to_string());
        }
        // differs (`machine-deletion-alone`): the Go manager requires Machine, Cluster and Metal3Cluster first.
        if self.before.metadata.deletion_timestamp.is_some() {
            return self.release();
        }
        if self.copy_template() {
            // The written machine is planned next.
            return Decision::Unchanged;
        }
        match self.prerequisites() {
            Ok(prerequisites) => self.plan_active(prerequisites),
            Err(decision) => decision,
        }
    }

    /// Ends the plan while the machine is paused, and pauses its host with it. Resumes the host when the Cluster is not
    /// paused.
    fn apply_pause(&mut self) -> Option<Decision> {
        if !self.rules.respect_pause() {
            return None;
        }
        let cluster = self.facts.cluster.as_deref().into_present();
        let by_cluster = pause::is_cluster_paused(cluster);
        let why = pause::why_paused(cluster, "Metal3Machine", &self.before.metadata);
        // During a move the Cluster may be missing and arrive paused. Only this controller resumes the host of a
        // machine in deletion.
        let may_resume = cluster.is_some() || self.before.metadata.deletion_timestamp.is_some();
        match self.host_ownership() {
            HostOwnership::Claimed(host) if by_cluster => self.patch_host(host, HostChange::Pause, host_changes::pause),
            HostOwnership::Claimed(host) if host.is_paused() && may_resume => {
                let cluster = self.cluster_name();
                self.patch_host(host, HostChange::Resume, |host| host_changes::resume(host, cluster));
            }
            HostOwnership::Unknown { host, why } if by_cluster => {
                let message = format!("BareMetalHost {host} cannot be read: {why}");
                return Some(Decision::UpdateStatus(Stage::HostPauseFailed {
                    pausing: true,
                    message,
                }));
            }
            _ => {}
        }
        if let Some(message) = why {
            return Some(Decision::UpdateStatus(Stage::Paused { message }));
        }
        // A resumed host is observed again.
        (!self.actions.is_empty()).then_some(Decision::Unchanged)
    }

    /// Checks the prerequisites of a machine that is not in deletion.
    fn prerequisites(&mut self) -> Result<Prerequisites<'a>, Decision> {
        let before = |prerequisite| Err(Decision::UpdateStatus(Stage::Before(prerequisite)));
        let owner = match self.facts.owner.as_deref() {
            Observed::Present(owner) => owner,
            Observed::Absent => return before(Prerequisite::Owner),
            Observed::Unknown(why) => return Err(self.unreadable(&format!("the Machine cannot be read: {why}"))),
        };
        let Some(cluster) = self.facts.cluster.as_deref().into_present() else {
            return before(Prerequisite::Cluster);
        };
        if !progress::has_infrastructure(cluster) {
            return before(Prerequisite::Infrastructure);
        }
        let resolved = self.resolved(cluster);
        if let Some(unreadable) = &self.facts.unreadable_cluster
            && may_be_unreadable(resolved, self.before, self.recorded(), cluster)
        {
            return Err(self.unreadable(&format!(
                "Metal3Cluster {unreadable} cannot be read and may be the machine's; correct it"
            )));
        }
        let metal3_cluster = match resolved {
            Resolved::One(found) => found,
            Resolved::None => {
                let message = self.without_metal3_cluster(cluster);
                return Err(Decision::UpdateStatus(Stage::WithoutCluster { message }));
            }
            Resolved::Ambiguous(first, second) => {
                let message = format!(
                    "the Metal3Clusters {first} and {second} both joined the Cluster; name one in spec.metal3ClusterRef, or \
                     in spec.failureDomain of the Machine a zone that only one of them has"
                );
                return Err(Decision::UpdateStatus(Stage::Ambiguous { message }));
            }
            Resolved::NotOfCluster(found) => {
                let message = self.not_of_cluster(found, cluster);
                return Err(Decision::UpdateStatus(Stage::NotOfCluster { message }));
            }
        };
        self.machine
            .status
            .metal3_cluster
            .clone_from(&metal3_cluster.metadata.name);
        Ok(Prerequisites { owner, metal3_cluster })
    }

    fn plan_active(&mut self, prerequisites: Prerequisites<'a>) -> Decision {
        if self.machine.status.user_data.is_none() {
            let Some(secret) = progress::bootstrap_secret(prerequisites.owner) else {
                return Decision::UpdateStatus(match self.join_note() {
                    Some(note) => Stage::WithoutBootstrap { note },
                    None => Stage::Before(Prerequisite::Bootstrap),
                });
            };
            self.machine.status.user_data = Some(host_changes::secret_reference(secret, self.namespace()));
        }
        if let Some(decision) = self.end_lost_claim() {
            return decision;
        }
        if let Some(decision) = self.release_surplus_hosts() {
            return decision;
        }
        match self.host_ownership() {
            HostOwnership::None => self.choose_and_claim(prerequisites),
            HostOwnership::Claimed(host) => self.provision_on(host, prerequisites),
            HostOwnership::Unclaimed(host) => self.claim_again(host, prerequisites),
            HostOwnership::Taken(host) => {
                let consumer = host.spec.consumer_ref.clone().unwrap_or_default();
                let names = [consumer.kind, consumer.name, host.metadata.name.clone()];
                let [kind, name, host] = names.map(Option::unwrap_or_default);
                Decision::UpdateStatus(Stage::WithoutHost {
                    is_rechecked: false,
                    message: format!(
                        "BareMetalHost {host}, which the machine had, is in use by {kind} {name}; delete the Machine"
                    ),
                })
            }
            HostOwnership::Missing(host) => Decision::UpdateStatus(Stage::WithoutHost {
                is_rechecked: false,
                message: format!("BareMetalHost {host}, {HOST_GONE}; restore it, or delete the Machine"),
            }),
            HostOwnership::Unknown { host, why } => {
                self.unreadable(&format!("BareMetalHost {host} cannot be read: {why}; correct it"))
            }
        }
    }

    /// The machine's host. A host with the machine as consumer takes precedence over a recorded one.
    fn host_ownership(&self) -> HostOwnership<'a> {
        let hosts = &self.facts.hosts;
        let name = facts::associated(self.before);
        let is_named = |host: &&BareMetalHost| host.metadata.name.as_deref() == facts::named(self.before);
        let claimed = hosts.claimed().find(is_named);
        let any = hosts.claimed().next().filter(|_| name.is_none());
        if let Some(host) = claimed.or(any) {
            return HostOwnership::Claimed(host);
        }
        let Some(name) = name else { return HostOwnership::None };
        match hosts.named.as_deref() {
            Observed::Present(host) if self.is_consumer(host) => HostOwnership::Claimed(host),
            Observed::Present(host) if host.spec.consumer_ref.is_none() => HostOwnership::Unclaimed(host),
            Observed::Present(host) => HostOwnership::Taken(host),
            Observed::Unknown(why) if self.rules.respect_unreadable() => HostOwnership::Unknown {
                host: name,
                why: why.to_string(),
            },
            Observed::Absent | Observed::Unknown(_) => HostOwnership::Missing(name),
        }
    }

    fn is_consumer(&self, host: &BareMetalHost) -> bool {
        let consumer = host.spec.consumer_ref.as_ref();
        consumer.is_some_and(|consumer| facts::is_machine(consumer, self.namespace(), self.name()))
    }

    fn name(&self) -> &'a str {
        self.before.metadata.name.as_deref().unwrap_or_default()
    }

    fn namespace(&self) -> &'a str {
        self.before.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// The Cluster's name, from the Cluster, the Machine or the machine's label.
    fn cluster_name(&self) -> &'a str {
        let cluster = self.facts.cluster.present();
        let cluster = cluster.and_then(|cluster| cluster.metadata.name.as_deref());
        let owner = self.facts.owner.present();
        let stated = || owner.map(|owner| owner.spec.cluster_name.as_str());
        let labelled = || metal3_capi::owner::cluster_of(&self.before.metadata);
        cluster.or_else(stated).or_else(labelled).unwrap_or_default()
    }

    /// Adds a patch of the machine, if it changes anything.
    fn patch_machine(&mut self, change: impl FnOnce(&mut Metal3Machine)) {
        let before = self.machine.clone();
        change(&mut self.machine);
        if let Some(patch) = changes(&before, &self.machine).main {
            self.actions.push(Action::PatchMachine(patch));
        }
    }

    /// Adds a patch of a host, if it changes anything. The API server rejects it when the host's version differs.
    fn patch_host(&mut self, host: &BareMetalHost, change: HostChange, apply: impl FnOnce(&mut BareMetalHost)) {
        let mut after = host.clone();
        apply(&mut after);
        let Changes { main: Some(patch), .. } = changes(host, &after) else {
            return;
        };
        let patch = match version(&host.metadata) {
            Some(at) if self.rules.at_version() => patch.with_precondition(&at),
            Some(_) => patch,
            // An object without a version is not stored.
            None => return,
        };
        let host = host.metadata.name.clone().unwrap_or_default();
        self.actions.push(Action::PatchHost { host, change, patch });
    }

    /// A machine whose annotation names no host of its namespace: which host it has is unknown.
    fn with_invalid_host(&self, message: String) -> Decision {
        if self.before.metadata.deletion_timestamp.is_none() {
            return Decision::UpdateStatus(Stage::WithoutHost {
                message,
                is_rechecked: false,
            });
        }
        // Without this finalizer the machine has claimed nothing.
        if !self.has_finalizer() {
            return Decision::Unchanged;
        }
        Decision::UpdateStatus(Stage::Deleting(Deletion::HostNotReleased(message)))
    }

    fn unreadable(&self, message: &str) -> Decision {
        let message = message.to_owned();
        Decision::UpdateStatus(if self.before.metadata.deletion_timestamp.is_some() {
            Stage::Deleting(Deletion::HostNotReleased(message))
        } else {
            Stage::Unreadable { message }
        })
    }
}
