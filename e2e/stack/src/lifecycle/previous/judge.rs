//! What a step must not do, judged from Ironic's log, the audit log and the machines. Pure.

use std::collections::BTreeMap;

use super::work::{AT_REST, Work, host};
use crate::lifecycle::swap::logs::{Order, Verb, Write};
use crate::lifecycle::swap::record::MachineState;

/// What happened from the moment before the work was asked.
pub(super) struct Happened {
    pub(super) orders: Vec<Order>,
    /// Work that Ironic began, by host and state.
    pub(super) begun: BTreeMap<(String, String), usize>,
    /// Of the managers, since the step.
    pub(super) writes: Vec<Write>,
    /// The machines before and after.
    pub(super) machines: [BTreeMap<u64, MachineState>; 2],
    /// The identities of the hosts and of the addresses, before and after.
    pub(super) kept: [BTreeMap<String, String>; 2],
}

/// Each violation, in words.
pub(super) fn violations(work: &Work, happened: &Happened) -> Vec<String> {
    let mut found = unasked_orders(work, happened);
    found.extend(begun_again(work, happened));
    found.extend(not_at_rest(happened));
    let [before, after] = &happened.machines;
    for (number, was) in before {
        let wanted = was.writes.saturating_add(u64::from(*number == work.provisioned));
        let now = after.get(number).map_or(0, |machine| machine.writes);
        if now != wanted {
            found.push(format!(
                "{} got {} images before and {now} after",
                host(*number),
                was.writes
            ));
        }
    }
    let [before, after] = &happened.kept;
    found.extend(
        before
            .iter()
            .filter(|(name, was)| after.get(*name) != Some(was))
            .map(|(name, was)| {
                let now = after.get(name).map_or("gone", String::as_str);
                format!("{name} was {was}, is {now}")
            }),
    );
    found
}

fn unasked_orders(work: &Work, happened: &Happened) -> Vec<String> {
    let asked = work.hosts();
    let acting = happened.orders.iter().filter(|order| order.what.acts());
    // A new node has no host yet.
    let unasked = acting.filter(|order| order.what != Verb::Create && !asked.contains(&order.host));
    let mut found: Vec<String> = unasked.map(|order| format!("{}: {}", order.host, order.text)).collect();
    let created = happened
        .orders
        .iter()
        .filter(|order| order.what == Verb::Create)
        .count();
    if created != 1 {
        found.push(format!("{created} nodes were created for one new host"));
    }
    let removed = happened
        .orders
        .iter()
        .filter(|order| order.what == Verb::Delete)
        .count();
    if removed != usize::from(work.deleted.is_some()) {
        found.push(format!("{removed} nodes were removed"));
    }
    found
}

fn begun_again(work: &Work, happened: &Happened) -> Vec<String> {
    let again = happened.begun.iter().filter(|(_, number)| **number > 1);
    let again = again.map(|((host, state), number)| format!("{host}: {state} {number} times"));
    let missing = work.begun().into_iter().filter(|one| !happened.begun.contains_key(one));
    let asked = work.begun();
    // A host is cleaned before it is free for the first time, which may end after the host says so, and before it is deleted.
    let is_usual = |(name, state): &(String, String)| {
        let free = [work.created, work.provisioned];
        let cleaned = free.into_iter().chain(work.deleted).any(|number| *name == host(number));
        cleaned && state == "cleaning"
    };
    let unasked = happened
        .begun
        .keys()
        .filter(|one| !asked.contains(one) && !is_usual(one));
    again
        .chain(unasked.map(|(host, state)| format!("{host}: {state} was not asked")))
        .chain(missing.map(|(host, state)| format!("{host}: no {state} is in the log")))
        .collect()
}

fn not_at_rest(happened: &Happened) -> Vec<String> {
    let mut found = Vec::new();
    let [before, after] = &happened.machines;
    for number in AT_REST {
        let (was, now) = (before.get(&number), after.get(&number));
        if was.is_none() || was != now {
            found.push(format!("{} was {was:?}, is {now:?}", host(number)));
        }
        let of_host = |one: &&Write| one.resource.starts_with("baremetalhosts") && one.name == host(number);
        let writes = happened.writes.iter().filter(of_host).count();
        if writes > 1 {
            found.push(format!("{} was written {writes} times", host(number)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::work::STEPS;
    use super::*;

    fn machine(writes: u64) -> MachineState {
        MachineState {
            power: "On".to_owned(),
            writes,
            ..MachineState::default()
        }
    }

    fn order(number: u64, what: Verb) -> Order {
        Order {
            host: host(number),
            what,
            text: "PUT".to_owned(),
        }
    }

    fn write(number: u64) -> Write {
        Write {
            user: "manager".to_owned(),
            agent: "capm3".to_owned(),
            verb: "patch".to_owned(),
            resource: "baremetalhosts/status".to_owned(),
            namespace: "metal".to_owned(),
            name: host(number),
            at: 1,
        }
    }

    /// What a step without a mistake does.
    fn right(work: &Work) -> Happened {
        let machines = |writes| BTreeMap::from([(1, machine(1)), (2, machine(0)), (work.provisioned, machine(writes))]);
        let kept = BTreeMap::from([("host-1".to_owned(), "u1".to_owned())]);
        Happened {
            orders: vec![
                order(work.provisioned, Verb::Provision),
                order(0, Verb::Create),
                order(1, Verb::Describe),
            ]
            .into_iter()
            .chain(work.deleted.map(|number| order(number, Verb::Delete)))
            .collect(),
            begun: work.begun().into_iter().map(|one| (one, 1)).collect(),
            writes: vec![write(1), write(2), write(work.provisioned), write(work.provisioned)],
            machines: [machines(4), machines(5)],
            kept: [kept.clone(), kept],
        }
    }

    #[test]
    fn each_violation_is_found_and_nothing_else() {
        type Change = fn(&mut Happened);
        let changes: [(Option<&str>, Change); 13] = [
            (None, |_| {}),
            (Some("host-1: PUT"), |all| all.orders.push(order(1, Verb::Power))),
            (Some("host-2: PUT"), |all| all.orders.push(order(2, Verb::Provision))),
            (Some("2 nodes"), |all| all.orders.push(order(0, Verb::Create))),
            (Some("cleaning 2 times"), |all| {
                for ((_, state), number) in &mut all.begun {
                    *number += usize::from(state == "cleaning");
                }
            }),
            (Some("no deploying"), |all| {
                all.begun.retain(|(_, state), _| state != "deploying")
            }),
            (Some("host-4: inspecting was not asked"), |all| {
                all.begun.insert((host(4), "inspecting".to_owned()), 1);
            }),
            (Some("nodes were removed"), |all| {
                all.orders.push(order(5, Verb::Delete))
            }),
            (Some("host-1 was Some"), |all| {
                all.machines[1].get_mut(&1).unwrap().power = "Off".to_owned();
            }),
            (Some("host-2 was written 2 times"), |all| all.writes.push(write(2))),
            (Some("images before"), |all| {
                for machine in all.machines[1].values_mut() {
                    machine.writes += u64::from(machine.writes == 5);
                }
            }),
            (Some("host-1 was u1, is gone"), |all| all.kept[1].clear()),
            (Some("host-1 was u1, is u2"), |all| {
                all.kept[1].insert("host-1".to_owned(), "u2".to_owned());
            }),
        ];
        for work in &STEPS {
            for (wanted, change) in changes {
                let mut happened = right(work);
                change(&mut happened);
                let found = violations(work, &happened);
                let is_right = match wanted {
                    Some(wanted) => matches!(&found[..], [one] if one.contains(wanted)),
                    None => found.is_empty(),
                };
                assert!(is_right, "{wanted:?}: {found:?}");
            }
        }
    }
}
