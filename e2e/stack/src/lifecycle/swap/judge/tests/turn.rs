//! Switches for the tests.

use serde_json::json;

use super::super::*;
use crate::lifecycle::swap::record::{MachineState, Secret};
use crate::lifecycle::swap::stage::stops;
use crate::lifecycle::swap::work::{FLASHED, REBUILT, SERVICED};
use crate::products::machines::NAMESPACE;

/// A switch in which nothing happens except what was ordered.
pub(in crate::lifecycle::swap::judge) fn quiet() -> Turn {
    let work = InFlight::of(0);
    let mut turn = Turn {
        to: Family::Ours,
        release: GoRelease::for_test(),
        way: Way::Scale,
        marks: [10, 20, 30].map(|revision| Mark {
            revision,
            ..Mark::default()
        }),
        orders: Vec::new(),
        since_prediction: Seen::default(),
        begun: begun_once(&work),
        writes: [Vec::new(), Vec::new()],
        gaps: [("hosts", Some(1)), ("addresses", Some(2)), ("machines", Some(3))],
        versions: Versions::new(),
        named: BTreeSet::new(),
        stops: stops(Family::Ours, &GoRelease::for_test()),
        late_stops: None,
        until_resumed: Vec::new(),
        conflicts: Vec::new(),
        first: First::of(&json!({"dryRun": {}})),
        leases: Vec::new(),
        refusals: Vec::new(),
        session: String::new(),
        predicted: String::new(),
        work,
    };
    let provisioned = turn.work.provisioned;
    add_failed(&mut turn);
    add_in_flight(&mut turn);
    for number in [7, 14, provisioned] {
        for (mark, writes) in [(0, 0), (2, u64::from(number == provisioned))] {
            let state = MachineState {
                writes,
                ..MachineState::default()
            };
            turn.marks[mark].machines.insert(number, state);
        }
        add(&mut turn, number, 5, json!({}));
    }
    let off = MachineState {
        power: "Off".to_owned(),
        ..MachineState::default()
    };
    turn.marks[2].machines.insert(SWITCHED, off);
    for (mark, boots) in [(0, 3), (2, 4)] {
        let on = MachineState {
            power: "On".to_owned(),
            boots,
            ..MachineState::default()
        };
        turn.marks[mark].machines.insert(REBOOTED, on);
    }
    let [hosts, ..] = products(&turn.release);
    let lead = leads(hosts.user(), hosts.lease);
    turn.leases.push(lead.clone());
    turn.writes[1].push(lead);
    renewed(&mut turn, 6_000);
    turn
}

pub(super) fn begun_once(work: &InFlight) -> Begun {
    let once = [
        (work.provisioned, "deploying"),
        (work.inspected, "inspecting"),
        (SERVICED, "servicing"),
        (FLASHED, "servicing"),
    ];
    Begun {
        times: once.map(|(number, state)| ((host(number), state.to_owned()), 1)).into(),
        by_go_again: BTreeMap::new(),
    }
}

/// The hosts that are prepared and serviced during the switch.
pub(super) fn add_in_flight(turn: &mut Turn) {
    let preparing = json!({"provisioning": {"state": "preparing"}});
    add_with(turn, REBUILT, 15, json!({}), preparing);
    for number in [SERVICED, FLASHED] {
        add_with(turn, number, 15, json!({}), json!({"operationalStatus": "servicing"}));
    }
}

/// The hosts that fail for ever, with their errors.
pub(super) fn add_failed(turn: &mut Turn) {
    for (number, what) in FAILED {
        let error = what.split(':').next();
        add_with(turn, *number, 5, json!({}), json!({"errorType": error}));
    }
}

pub(in crate::lifecycle::swap::judge) fn add(turn: &mut Turn, number: u64, revision: u64, spec: Value) {
    add_with(turn, number, revision, spec, json!({}));
}

pub(super) fn add_with(turn: &mut Turn, number: u64, revision: u64, spec: Value, status: Value) {
    let metadata = json!({"name": host(number), "uid": format!("u{number}")});
    let object = json!({"kind": HOST, "metadata": metadata, "spec": spec, "status": status});
    let key = (HOST.to_owned(), host(number));
    turn.versions.entry(key).or_default().push(Version {
        revision,
        is_deleted: false,
        object,
    });
}

pub(super) fn order(number: u64, what: Verb) -> Order {
    Order {
        host: host(number),
        what,
        text: "PUT".to_owned(),
    }
}

pub(super) fn write(user: &str, agent: &str, number: u64) -> Write {
    Write {
        user: user.to_owned(),
        agent: agent.to_owned(),
        verb: "patch".to_owned(),
        resource: "baremetalhosts/status".to_owned(),
        namespace: NAMESPACE.to_owned(),
        name: host(number),
        at: 0,
    }
}

/// This program renews a lease, and thereby leads.
pub(super) fn leads(user: &str, lease: &str) -> Write {
    Write {
        resource: "leases".to_owned(),
        name: lease.to_owned(),
        ..write(user, "capm3/v1", 7)
    }
}

/// A Secret with this owner is there at first, and not at the end.
pub(super) fn lose_secret(turn: &mut Turn, owner: &str) {
    let secret = Secret {
        owners: vec![Owner {
            uid: owner.to_owned(),
            ..Owner::default()
        }],
        ..Secret::default()
    };
    turn.marks[0].secrets.insert("s".to_owned(), secret);
}

pub(super) fn rebooted(turn: &mut Turn) -> &mut MachineState {
    turn.marks[2].machines.get_mut(&REBOOTED).unwrap()
}

/// The invariants that do not hold.
pub(super) fn broken(turn: &Turn) -> Vec<&'static str> {
    let failed = INVARIANTS.iter().filter(|(_, proof)| proof(turn).is_err());
    failed.map(|(name, _)| *name).collect()
}

/// Each of three leaders renews with this period for ten minutes, past midnight.
pub(super) fn renewed(turn: &mut Turn, period: u64) {
    let lead = turn.leases.remove(0);
    let times = (0..600_000 / period).flat_map(|number| [number * period; 3]);
    let at = |passed: u64| (86_300_000 + passed) % 86_400_000;
    turn.leases = times
        .map(|passed| Write {
            at: at(passed),
            ..lead.clone()
        })
        .collect();
}

/// The switch is one to the Go managers, before which preflight waits for all services.
pub(super) fn back(turn: &mut Turn) {
    turn.to = Family::Go;
    let hosts = [SERVICED, FLASHED].map(host);
    turn.late_stops = Some(hosts.map(|host| format!("BareMetalHost {NAMESPACE}/{host}")).into());
}

/// A host of the Cluster is paused when the switch begins, and not any more at its end.
pub(super) fn paused(turn: &mut Turn) {
    turn.work.is_paused = true;
    add_paused(turn, 5, false);
    add_paused(turn, 15, true);
    add_paused(turn, 24, false);
}

pub(super) fn add_paused(turn: &mut Turn, revision: u64, is_paused: bool) {
    let by = is_paused.then_some("metal3.io/capm3");
    let metadata = json!({"name": host(1), "uid": "u1", "annotations": {"baremetalhost.metal3.io/paused": by}});
    let key = (HOST.to_owned(), host(1));
    turn.versions.entry(key).or_default().push(Version {
        revision,
        is_deleted: false,
        object: json!({"kind": HOST, "metadata": metadata, "spec": {}, "status": {}}),
    });
}

/// A dry run that saw these changes of hosts.
pub(in crate::lifecycle::swap::judge) fn predicted(changes: &[(&str, u64)]) -> Option<First> {
    let change = |(verb, number): &(&str, u64)| {
        let object = format!("BareMetalHost metal/{}", host(*number));
        json!({"verb": verb, "object": object, "interrupts": false})
    };
    let changes: Vec<Value> = changes.iter().map(change).collect();
    First::of(&json!({"dryRun": {"changes": changes}}))
}

/// A host at rest with two writes, of which one removed an owner of this kind.
pub(super) fn written_twice(kind: &str) -> Turn {
    let (mut turn, [hosts, ..]) = (quiet(), products(&GoRelease::for_test()));
    turn.writes[1].extend(["capm3/v1"; 2].map(|agent| write(hosts.user(), agent, 7)));
    turn.first = predicted(&[("patch status", 7); 2]);
    let owned = json!({"kind": HOST, "metadata": {
        "name": host(7), "uid": "u7", "ownerReferences": [{"kind": kind, "name": "m", "uid": "m"}],
    }});
    let versions = turn.versions.get_mut(&(HOST.to_owned(), host(7))).unwrap();
    versions[0].object = owned;
    add(&mut turn, 7, 25, json!({}));
    turn
}
