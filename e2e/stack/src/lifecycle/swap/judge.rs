//! The invariants of a switch. Pure: from what was recorded to a line per violation.

mod begun;
mod first;
mod identities;
mod leases;
mod owners;
mod pause;
mod preflight;
mod services;
mod states;
mod writes;

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use serde_json::Value;

use super::first::First;
use super::logs::{Begun, Order, Verb, Write};
use super::managers::Way;
use super::plain::Refusal;
use super::products::{Family, products};
use super::record::{Mark, Owner, Version, Versions};
use super::release::GoRelease;
use super::stage::{FAILED, MACHINES, OF_CLUSTER, host};
use super::work::{FLASHED, InFlight, REBOOTED, SERVICED, SWITCHED};
use crate::claim::Proof;
use crate::lifecycle::conflicts::{Conflict, none_is_own};

/// Longer than a lease that ends without being released. It holds for a way back with `hand-back` too, before which all
/// managers are stopped.
const WITHOUT_MANAGER: u64 = 20_000;
/// The lease of a killed manager stays for 15 seconds.
const WITHOUT_KILLED: u64 = WITHOUT_MANAGER + 15_000;
/// Power orders of one reboot.
const OF_A_REBOOT: usize = 2;
const HOST: &str = "BareMetalHost";

/// Writes and orders.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) writes: Vec<Write>,
    pub(super) orders: Vec<Order>,
}

/// A switch, as it was recorded.
pub(super) struct Turn {
    pub(super) to: Family,
    pub(super) release: GoRelease,
    pub(super) way: Way,
    pub(super) work: InFlight,
    /// Before the work was ordered, when the switch began, and when all was at rest again.
    pub(super) marks: [Mark; 3],
    /// Orders since the switch began.
    pub(super) orders: Vec<Order>,
    /// What all managers did since the prediction began: the old one goes on until the switch.
    pub(super) since_prediction: Seen,
    /// Work that began since it was ordered.
    pub(super) begun: Begun,
    /// Writes since the work was ordered, and since the switch began.
    pub(super) writes: [Vec<Write>; 2],
    /// Requests for Leases since the switch began.
    pub(super) leases: Vec<Write>,
    pub(super) versions: Versions,
    /// Milliseconds without a manager, by Deployment; `None` when no new one began.
    pub(super) gaps: [(&'static str, Option<u64>); 3],
    /// Hosts that preflight expects work on.
    pub(super) named: BTreeSet<String>,
    /// Objects that preflight stops the switch for.
    pub(super) stops: BTreeSet<String>,
    /// The same, asked again when services are in flight, on a way back on which no manager is killed: that follows an order at once.
    pub(super) late_stops: Option<BTreeSet<String>>,
    /// Orders from the begin of the switch until a paused Cluster is resumed.
    pub(super) until_resumed: Vec<Order>,
    /// Writes that were refused since the work was ordered.
    pub(super) conflicts: Vec<Conflict>,
    /// What its dry run saw; none of the way back.
    pub(super) first: Option<First>,
    /// Whether Kubernetes refuses a plain command, and whether preflight names the one that works.
    pub(super) refusals: Vec<Refusal>,
    /// The commands and their output.
    pub(super) session: String,
    pub(super) predicted: String,
}

/// An invariant and its proof.
pub(super) type Invariant = (&'static str, fn(&Turn) -> Proof);

pub(super) const INVARIANTS: &[Invariant] = &[
    ("no_product_is_long_without_a_manager", Turn::led),
    (
        "no_order_reaches_a_machine_that_none_was_asked_of",
        Turn::no_order_at_rest,
    ),
    ("work_in_flight_is_not_begun_again", Turn::begun_once),
    ("running_machines_do_what_was_asked", Turn::obeyed),
    ("no_old_manager_writes_after_a_new_one_leads", Turn::one_leader),
    ("no_machine_at_rest_changes_power_or_disks", Turn::machines_at_rest),
    ("no_uid_address_consumer_or_provider_id_changes", Turn::identities),
    ("no_secret_changes", Turn::secrets),
    ("each_owner_reference_is_of_a_served_version", Turn::owners),
    ("each_host_at_rest_gets_at_most_one_write", Turn::one_write),
    ("each_host_at_rest_has_the_same_state_and_error", Turn::states),
    ("preflight_stops_the_switch_for_what_is_lost_only", Turn::stopped),
    (
        "preflight_names_the_command_where_kubernetes_refuses_the_plain_one",
        Turn::refusals,
    ),
    ("preflight_named_each_host_that_something_happens_to", Turn::predicted),
    ("preflight_waits_for_each_service_on_the_way_back", Turn::waited_for),
    (
        "hosts_of_a_paused_cluster_are_left_alone_until_it_is_resumed",
        Turn::resumed,
    ),
    ("no_write_conflicts_with_one_of_this_program", Turn::conflicts),
    ("leases_cost_at_most_half_a_request_a_second", Turn::leases),
    ("preflight_saw_the_first_writes_and_orders", Turn::first_changes),
];

fn none(violations: Vec<String>, figures: String) -> Proof {
    anyhow::ensure!(violations.is_empty(), "{}", violations.join("\n       "));
    Ok(figures)
}

/// What each process writes, whether it leads or not.
const BEFORE_LEADING: [&str; 6] = [
    "leases",
    "events",
    "secrets",
    "customresourcedefinitions",
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
];

impl Turn {
    /// The version of an object at a mark, if it exists.
    fn at(&self, versions: &[Version], mark: usize) -> Option<Value> {
        let revision = self.marks.get(mark).map_or(0, |mark| mark.revision);
        let last = versions.iter().rfind(|version| version.revision <= revision)?;
        (!last.is_deleted).then(|| last.object.clone())
    }

    fn host_at(&self, name: &str, mark: usize) -> Option<Value> {
        let versions = self.versions.get(&(HOST.to_owned(), name.to_owned()))?;
        self.at(versions, mark)
    }

    /// Each version of a host since the switch began, and the last one, which may be older.
    fn since_switch(&self, name: &str) -> impl Iterator<Item = Value> {
        let [_, from, to] = self.marks.each_ref().map(|mark| mark.revision);
        let versions = self.versions.get(&(HOST.to_owned(), name.to_owned()));
        let versions = versions.into_iter().flatten();
        let later = versions.filter(move |one| one.revision > from && one.revision <= to);
        later.map(|one| one.object.clone()).chain(self.host_at(name, 2))
    }

    /// Hosts of the cluster that a machine takes or gives back.
    fn taken(&self) -> BTreeSet<String> {
        let consumer = |name: &String, mark| self.host_at(name, mark).map(|host| host["spec"]["consumerRef"].clone());
        let hosts = OF_CLUSTER.iter().map(|number| host(*number));
        hosts.filter(|name| consumer(name, 0) != consumer(name, 2)).collect()
    }

    /// Hosts of which something is asked, and the only kind of order if there is one.
    fn asked(&self) -> BTreeMap<String, Option<Verb>> {
        let power_only = |what: &str| (what.contains("power") || what.contains("reboot")).then_some(Verb::Power);
        let ordered = self
            .work
            .hosts()
            .into_iter()
            .map(|(number, what)| (host(number), power_only(what)));
        let failed = FAILED.iter().map(|(number, _)| (host(*number), None));
        let taken = self.taken().into_iter().map(|name| (name, None));
        ordered.chain(failed).chain(taken).collect()
    }

    fn at_rest(&self) -> BTreeSet<String> {
        let asked = self.asked();
        let all = (1..=u64::try_from(MACHINES).unwrap_or_default()).map(host);
        all.filter(|name| !asked.contains_key(name) && self.host_at(name, 1).is_some())
            .collect()
    }

    fn led(&self) -> Proof {
        let (mut violations, mut figures) = (Vec::new(), Vec::new());
        let limit = match self.way {
            Way::Scale | Way::Upgrade if !self.work.is_cut => WITHOUT_MANAGER,
            Way::Scale | Way::Upgrade | Way::Killed => WITHOUT_KILLED,
        };
        for (deployment, gap) in self.gaps {
            let Some(millis) = gap else {
                violations.push(format!(
                    "{deployment}: the logs have no request of the old manager, or none of the new one"
                ));
                continue;
            };
            let line = format!("{deployment} {}.{} s", millis / 1000, millis % 1000 / 100);
            if millis > limit {
                violations.push(line.clone());
            }
            figures.push(line);
        }
        none(
            violations,
            format!("at most {} s: {}", limit / 1000, figures.join(", ")),
        )
    }

    fn conflicts(&self) -> Proof {
        none_is_own(&self.conflicts)
    }

    fn no_order_at_rest(&self) -> Proof {
        let asked = self.asked();
        let mut power: BTreeMap<&str, usize> = BTreeMap::new();
        let mut violations = Vec::new();
        let acting = || self.orders.iter().filter(|order| order.what.acts());
        for order in acting() {
            // A new node has no host yet.
            let only = match asked.get(&order.host) {
                Some(only) => only,
                None if order.what == Verb::Create => continue,
                None => {
                    violations.push(format!("{}: {}", order.host, order.text));
                    continue;
                }
            };
            if only.is_some_and(|only| only != order.what) {
                violations.push(format!("{}: {}", order.host, order.text));
            }
            if only.is_some() {
                *power.entry(&order.host).or_default() += 1;
            }
        }
        if self.to == Family::Ours {
            // The Go manager begins a service by itself; this program once, at the reboot that asks for it.
            for name in [SERVICED, FLASHED].map(host) {
                let orders = |what| {
                    acting()
                        .filter(|order| order.host == name && order.what == what)
                        .count()
                };
                let (power, provision) = (orders(Verb::Power), orders(Verb::Provision));
                if power > OF_A_REBOOT || provision > OF_A_REBOOT {
                    violations.push(format!("{name}: {power} power and {provision} provision orders"));
                }
            }
        }
        let created = acting().filter(|order| order.what == Verb::Create).count();
        if created > 2 {
            violations.push(format!("{created} nodes were created for at most 2 new hosts"));
        }
        let too_many = power.iter().filter(|(_, number)| **number > OF_A_REBOOT);
        violations.extend(too_many.map(|(host, number)| format!("{host}: {number} power orders")));
        let described = self.orders.len().saturating_sub(acting().count());
        none(
            violations,
            format!(
                "{} orders to {} hosts, {described} descriptions",
                acting().count(),
                asked.len()
            ),
        )
    }

    fn obeyed(&self) -> Proof {
        let mut violations = Vec::new();
        let [before, _, after] = &self.marks;
        for number in iter::once(REBOOTED).chain(self.work.remediated) {
            let (was, now) = (before.machines.get(&number), after.machines.get(&number));
            let is_once = was
                .zip(now)
                .is_some_and(|(was, now)| now.boots == was.boots.saturating_add(1));
            if !is_once || now.is_none_or(|now| now.power != "On") {
                violations.push(format!(
                    "{} was to be rebooted once: it was {was:?}, is {now:?}",
                    host(number)
                ));
            }
        }
        let wanted = if self.work.online { "On" } else { "Off" };
        let power = after.machines.get(&SWITCHED).map(|machine| machine.power.as_str());
        if power != Some(wanted) {
            violations.push(format!("{} is {power:?}, and was to be {wanted}", host(SWITCHED)));
        }
        none(violations, String::new())
    }

    /// In the order of the log. A manager that elects no leader leads from its first write. Leases and Events may come late, and a
    /// process that does not lead yet writes its certificates only.
    fn one_leader(&self) -> Proof {
        let [_, after] = &self.writes;
        let is_new = |one: &&Write| one.is_ours() == (self.to == Family::Ours);
        let (mut violations, mut judged) = (Vec::new(), 0_usize);
        let all = products(&self.release);
        for product in &all {
            let writes: Vec<&Write> = after.iter().filter(|one| product.has(&one.user)).collect();
            let elected = writes.iter().position(|one| is_new(one) && one.renews(product.lease));
            let Some(led) = elected.or_else(|| writes.iter().position(is_new)) else {
                continue;
            };
            judged = judged.saturating_add(1);
            let late = writes.iter().skip(led).filter(|one| !is_new(one));
            let late = late.filter(|one| !["leases", "events"].contains(&one.resource.as_str()));
            let early = writes
                .iter()
                .take(elected.unwrap_or_default())
                .filter(|one| is_new(one));
            let early = early.filter(|one| !BEFORE_LEADING.contains(&one.resource.as_str()));
            violations.extend(
                late.chain(early)
                    .map(|one| format!("{}: {} {} {}", product.deployment, one.verb, one.resource, one.name)),
            );
        }
        if judged == 0 {
            violations.push("no write of a new manager is in the log".to_owned());
        }
        let quiet = all.len().saturating_sub(judged);
        none(
            violations,
            match quiet {
                0 => format!("{judged} products"),
                _ => format!("{judged} products; of {quiet} no new manager wrote"),
            },
        )
    }

    fn machines_at_rest(&self) -> Proof {
        let [before, _, after] = &self.marks;
        let at_rest = self.at_rest();
        let mut violations = Vec::new();
        for (number, was) in &before.machines {
            let now = after.machines.get(number);
            if at_rest.contains(&host(*number)) && now != Some(was) {
                violations.push(format!("machine {number} was {was:?}, is {now:?}"));
            }
        }
        let writes = |mark: &Mark| {
            mark.machines
                .get(&self.work.provisioned)
                .map_or(0, |machine| machine.writes)
        };
        let written = writes(after).saturating_sub(writes(before));
        if written != 1 {
            violations.push(format!(
                "machine {}: {written} writes of one image",
                self.work.provisioned
            ));
        }
        none(violations, format!("{} machines", at_rest.len()))
    }

    fn secrets(&self) -> Proof {
        let [before, _, after] = &self.marks;
        let deleted = format!("bmc-{}", self.work.deleted);
        let mut violations = Vec::new();
        for (name, secret) in &before.secrets {
            match after.secrets.get(name) {
                Some(now) if (&now.uid, &now.content) != (&secret.uid, &secret.content) => {
                    violations.push(format!("Secret {name} has changed"));
                }
                None if *name != deleted && !self.ended_with(&secret.owners) => {
                    violations.push(format!("Secret {name} is gone"));
                }
                _ => {}
            }
        }
        none(violations, format!("{} Secrets", before.secrets.len()))
    }

    /// Whether one of these owners is recorded, and does not exist any more. An object that was created again has another
    /// UID.
    fn ended_with(&self, owners: &[Owner]) -> bool {
        let has = |object: &Value, uid: &str| object["metadata"]["uid"] == uid;
        owners.iter().any(|Owner { uid, .. }| {
            let mut all = self.versions.values();
            let recorded = all.find(|versions| versions.iter().any(|one| has(&one.object, uid)));
            recorded.is_some_and(|versions| self.at(versions, 2).is_none_or(|now| !has(&now, uid)))
        })
    }
}

#[cfg(test)]
mod tests;
