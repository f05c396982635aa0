//! What to do for a machine: the decision, from facts alone.
//!
//! The machine first names the host it is about to take, then takes it, then says that it has it; each step can be found
//! again after a crash. Invariants, whatever the caches lag and whoever else runs:
//!
//! - a host is taken, told what to run and given back only at the version that was decided on, and taken or given back
//!   only when a live read, or a write of this very pass, has shown that the machine still stands as it did; the machine
//!   goes only when a live read has shown that the host it names is not its any more;
//! - a host is told what to run once, together with all data it will ever get, and only when the machine says that it has
//!   that host: replicas that take two at once settle it by the machine's version, and the other is given back;
//! - what a host ran is removed before the host loses its consumer, the host is given back before the data, and both
//!   before the machine goes;
//! - what cannot be read is waited for. A machine that goes needs neither its Machine, its Metal3Cluster nor the
//!   workload cluster; of the Cluster it needs to know whether it is paused.

mod data;
pub(super) mod documents;
mod host;
mod node;
mod release;
mod status;

use metal3_api::cluster::Machine;
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3Machine};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::{Sight, pause, progress};
use metal3_runtime::patch::Changes;

use super::action::{Action, Deed, Plan};
use super::conditions::{Deletion, Prerequisite, Stage};
use super::facts::{self, Facts};
use super::resolve::{Resolved, resolve, stated};
use super::rules::Rules;
use crate::documents::{changes, version};

/// What to do, given the facts.
#[must_use]
pub fn plan(facts: &Facts<'_>) -> Plan {
    plan_under(facts, &Rules::ALL)
}

/// The same under a part of the rules. Only tests leave any out.
pub(crate) fn plan_under(facts: &Facts<'_>, rules: &Rules) -> Plan {
    if rules.heed_move && pause::is_moved_away(&facts.machine.metadata) {
        return Plan::default();
    }
    let mut pass = Pass {
        facts,
        rules,
        machine: facts.machine.clone(),
        actions: Vec::new(),
        wants_nodes: false,
    };
    match pass.decide() {
        Verdict::Say(stage) => pass.saying(&stage),
        Verdict::Quiet => pass.quiet(),
        Verdict::Confirm => Plan::confirm(),
        Verdict::ConfirmHost => Plan::confirm_host(facts::named(facts.machine).unwrap_or_default()),
    }
}

/// What to say about a failure that only somebody else can cure, where the plan's writes did not get through.
#[must_use]
pub fn after_failure(facts: &Facts<'_>, failed: &Action, why: &str) -> Plan {
    let mut pass = Pass {
        facts,
        rules: &Rules::ALL,
        machine: facts.machine.clone(),
        actions: Vec::new(),
        wants_nodes: false,
    };
    let stage = pass.stage_of_failure(failed, why);
    pass.actions.clear();
    stage.map_or_else(Plan::default, |stage| pass.saying(&stage))
}

/// How a decision ends.
enum Verdict {
    /// With something to say.
    Say(Stage),
    /// With nothing new to say.
    Quiet,
    /// With a question: nothing may be done before the machine was read live.
    Confirm,
    /// With a question: nothing may be done before the host that the machine names was read live.
    ConfirmHost,
}

/// What everything but the host is known to be.
#[derive(Clone, Copy)]
struct Surroundings<'a> {
    owner: &'a Machine,
    metal3_cluster: &'a Metal3Cluster,
}

/// One decision under way.
struct Pass<'a> {
    facts: &'a Facts<'a>,
    rules: &'a Rules,
    /// The machine as the writes so far leave it, with the status as it will be.
    machine: Metal3Machine,
    actions: Vec<Action>,
    wants_nodes: bool,
}

/// Where the machine's host is.
enum Mine<'a> {
    /// The machine has none.
    None,
    /// This one, and it says so.
    Claimed(&'a BareMetalHost),
    /// The machine says this one, which has no consumer.
    Unclaimed(&'a BareMetalHost),
    /// The machine says this one, and somebody else has it.
    Taken(&'a BareMetalHost),
    /// The machine says this one, and there is none of the name.
    Gone(&'a str),
    /// Nobody can say.
    Unknown {
        /// Name of the host.
        host: &'a str,
        /// Why.
        why: &'a str,
    },
}

impl<'a> Pass<'a> {
    fn decide(&mut self) -> Verdict {
        if let Some(why) = self.facts.cluster.unknown() {
            return self.unclear(&format!("the Cluster cannot be read: {why}"));
        }
        if let Some(verdict) = self.heed_pause() {
            return verdict;
        }
        // differs (`machine-deletion-alone`): the Go manager asks for Machine, Cluster and Metal3Cluster first.
        if self.facts.machine.metadata.deletion_timestamp.is_some() {
            return self.release();
        }
        match self.surroundings() {
            Ok(surroundings) => self.serve(surroundings),
            Err(verdict) => verdict,
        }
    }

    /// Stops here while the machine is paused, its host with it; wakes the host when the Cluster goes on.
    fn heed_pause(&mut self) -> Option<Verdict> {
        if !self.rules.heed_pause {
            return None;
        }
        let cluster = self.facts.cluster.seen();
        let by_cluster = pause::is_cluster_paused(cluster);
        let why = pause::why_paused(cluster, "Metal3Machine", &self.facts.machine.metadata);
        // A Cluster that is not there may be on its way, paused, in a move. Nobody but us wakes the host of a machine
        // that goes.
        let goes_on = cluster.is_some() || self.facts.machine.metadata.deletion_timestamp.is_some();
        match self.mine() {
            Mine::Claimed(host) if by_cluster => self.patch_host(host, Deed::Pause, documents::pause),
            Mine::Claimed(host) if host.is_paused() && goes_on => {
                let cluster = self.cluster_name();
                self.patch_host(host, Deed::Resume, |host| documents::resume(host, cluster));
            }
            Mine::Unknown { host, why } if by_cluster => {
                let message = format!("BareMetalHost {host} cannot be read: {why}");
                return Some(Verdict::Say(Stage::PauseNotPassedOn { pausing: true, message }));
            }
            _ => {}
        }
        if let Some(message) = why {
            return Some(Verdict::Say(Stage::Paused { message }));
        }
        // A host that was just resumed is looked at again.
        (!self.actions.is_empty()).then_some(Verdict::Quiet)
    }

    /// What a machine needs around it before it is served.
    fn surroundings(&mut self) -> Result<Surroundings<'a>, Verdict> {
        let before = |prerequisite| Err(Verdict::Say(Stage::Before(prerequisite)));
        let owner = match self.facts.owner {
            Sight::Seen(owner) => owner,
            Sight::Absent => return before(Prerequisite::Owner),
            Sight::Unknown(why) => return Err(self.unclear(&format!("the Machine cannot be read: {why}"))),
        };
        let Some(cluster) = self.facts.cluster.seen() else {
            return before(Prerequisite::Cluster);
        };
        if !progress::has_infrastructure(cluster) {
            return before(Prerequisite::Infrastructure);
        }
        let has_host = facts::associated(self.facts.machine).is_some();
        let recorded = self.facts.machine.status.metal3_cluster.as_deref().filter(|_| has_host);
        let resolved = resolve(self.facts.machine, recorded, cluster, self.facts.metal3_clusters);
        if let Some(hidden) = self.facts.unreadable_cluster {
            let stated = stated(self.facts.machine, recorded, cluster);
            let found = resolved.one().and_then(|found| found.metadata.name.as_deref());
            if found.is_none() || found != stated {
                return Err(self.unclear(&format!(
                    "Metal3Cluster {hidden} cannot be read and may be the machine's; correct it"
                )));
            }
        }
        let metal3_cluster = match resolved {
            Resolved::One(found) => found,
            Resolved::None => return before(Prerequisite::Metal3Cluster),
            Resolved::Ambiguous(first, second) => {
                let message = format!(
                    "the Metal3Clusters {first} and {second} both joined the Cluster; name one in spec.metal3ClusterRef"
                );
                return Err(Verdict::Say(Stage::Ambiguous { message }));
            }
        };
        self.machine
            .status
            .metal3_cluster
            .clone_from(&metal3_cluster.metadata.name);
        Ok(Surroundings { owner, metal3_cluster })
    }

    fn serve(&mut self, around: Surroundings<'a>) -> Verdict {
        if self.machine.status.user_data.is_none() {
            let Some(secret) = progress::bootstrap_secret(around.owner) else {
                return Verdict::Say(Stage::Before(Prerequisite::Bootstrap));
            };
            self.machine.status.user_data = Some(documents::secret(secret, self.namespace()));
        }
        if let Some(verdict) = self.forget_earlier_claim() {
            return verdict;
        }
        if let Some(verdict) = self.give_back_surplus() {
            return verdict;
        }
        match self.mine() {
            Mine::None => self.take_a_host(around),
            Mine::Claimed(host) => self.run_on(host, around),
            Mine::Unclaimed(host) => self.take_again(host, around),
            Mine::Taken(host) => {
                let consumer = host.spec.consumer_ref.clone().unwrap_or_default();
                let words = [consumer.kind, consumer.name, host.metadata.name.clone()];
                let [kind, name, host] = words.map(Option::unwrap_or_default);
                Verdict::Say(Stage::WithoutHost {
                    message: format!(
                        "BareMetalHost {host}, which the machine had, is in use by {kind} {name}; delete the Machine"
                    ),
                })
            }
            Mine::Gone(host) => Verdict::Say(Stage::WithoutHost {
                message: format!(
                    "BareMetalHost {host}, which the machine had, does not exist; restore it, or delete the Machine"
                ),
            }),
            Mine::Unknown { host, why } => {
                self.unclear(&format!("BareMetalHost {host} cannot be read: {why}; correct it"))
            }
        }
    }

    /// The machine's host. One that is claimed counts before one that is merely named.
    fn mine(&self) -> Mine<'a> {
        let hosts = &self.facts.hosts;
        let name = facts::associated(self.facts.machine);
        let is_named = |host: &&&BareMetalHost| host.metadata.name.as_deref() == facts::named(self.facts.machine);
        let claimed = hosts.claimed.iter().find(is_named);
        let any = hosts.claimed.first().filter(|_| name.is_none());
        if let Some(host) = claimed.or(any) {
            return Mine::Claimed(host);
        }
        let Some(name) = name else { return Mine::None };
        match hosts.named {
            Sight::Seen(host) if self.is_my(host) => Mine::Claimed(host),
            Sight::Seen(host) if host.spec.consumer_ref.is_none() => Mine::Unclaimed(host),
            Sight::Seen(host) => Mine::Taken(host),
            Sight::Unknown(why) if self.rules.heed_unknown => Mine::Unknown { host: name, why },
            Sight::Absent | Sight::Unknown(_) => Mine::Gone(name),
        }
    }

    fn is_my(&self, host: &BareMetalHost) -> bool {
        let consumer = host.spec.consumer_ref.as_ref();
        consumer.is_some_and(|consumer| facts::is_machine(consumer, self.namespace(), self.name()))
    }

    fn name(&self) -> &'a str {
        self.facts.machine.metadata.name.as_deref().unwrap_or_default()
    }

    fn namespace(&self) -> &'a str {
        self.facts.machine.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// The Cluster, by the Machine's word or else the machine's own label.
    fn cluster_name(&self) -> &'a str {
        let cluster = self
            .facts
            .cluster
            .seen()
            .and_then(|cluster| cluster.metadata.name.as_deref());
        let stated = || self.facts.owner.seen().map(|owner| owner.spec.cluster_name.as_str());
        let labelled = || metal3_capi::owner::cluster_of(&self.facts.machine.metadata);
        cluster.or_else(stated).or_else(labelled).unwrap_or_default()
    }

    /// Adds the write that brings the machine to what it is to be by now.
    fn patch_machine(&mut self, change: impl FnOnce(&mut Metal3Machine)) {
        let before = self.machine.clone();
        change(&mut self.machine);
        if let Some(patch) = changes(&before, &self.machine).main {
            self.actions.push(Action::PatchMachine(patch));
        }
    }

    /// Adds a write to a host, if it changes anything. It is refused when the host is not what the facts show.
    fn patch_host(&mut self, host: &BareMetalHost, deed: Deed, change: impl FnOnce(&mut BareMetalHost)) {
        let mut after = host.clone();
        change(&mut after);
        let Changes { main: Some(patch), .. } = changes(host, &after) else {
            return;
        };
        let patch = match version(&host.metadata) {
            Some(at) if self.rules.at_version => patch.with_precondition(&at),
            Some(_) => patch,
            // An object without a version was never stored: there is nothing to change.
            None => return,
        };
        let host = host.metadata.name.clone().unwrap_or_default();
        self.actions.push(Action::PatchHost { host, deed, patch });
    }

    /// What cannot be read is waited for.
    fn unclear(&self, message: &str) -> Verdict {
        let message = message.to_owned();
        Verdict::Say(if self.facts.machine.metadata.deletion_timestamp.is_some() {
            Stage::Deleting(Deletion::HostNotReleased(message))
        } else {
            Stage::Unclear { message }
        })
    }
}
