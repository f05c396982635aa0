use serde_json::json;

use super::super::record::{MachineState, Owner, Secret};
use super::*;
use crate::lifecycle::conflicts;
use crate::lifecycle::swap::stage::stops;
use crate::lifecycle::swap::work::{CUT, FLASHED, REBUILT, RETUNED, SERVICED, UPDATED};
use crate::products::machines::NAMESPACE;

/// A switch in which nothing happens except what was ordered.
pub(super) fn quiet() -> Turn {
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

fn begun_once(work: &InFlight) -> Begun {
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
fn add_in_flight(turn: &mut Turn) {
    let preparing = json!({"provisioning": {"state": "preparing"}});
    add_with(turn, REBUILT, 15, json!({}), preparing);
    for number in [SERVICED, FLASHED] {
        add_with(turn, number, 15, json!({}), json!({"operationalStatus": "servicing"}));
    }
}

/// The hosts that fail for ever, with their errors.
fn add_failed(turn: &mut Turn) {
    for (number, what) in FAILED {
        let error = what.split(':').next();
        add_with(turn, *number, 5, json!({}), json!({"errorType": error}));
    }
}

fn add(turn: &mut Turn, number: u64, revision: u64, spec: Value) {
    add_with(turn, number, revision, spec, json!({}));
}

fn add_with(turn: &mut Turn, number: u64, revision: u64, spec: Value, status: Value) {
    let metadata = json!({"name": host(number), "uid": format!("u{number}")});
    let object = json!({"kind": HOST, "metadata": metadata, "spec": spec, "status": status});
    let key = (HOST.to_owned(), host(number));
    turn.versions.entry(key).or_default().push(Version {
        revision,
        is_deleted: false,
        object,
    });
}

fn order(number: u64, what: Verb) -> Order {
    Order {
        host: host(number),
        what,
        text: "PUT".to_owned(),
    }
}

fn write(user: &str, agent: &str, number: u64) -> Write {
    Write {
        user: user.to_owned(),
        agent: agent.to_owned(),
        verb: "patch".to_owned(),
        resource: "baremetalhosts/status".to_owned(),
        name: host(number),
        at: 0,
    }
}

/// This program renews a lease, and thereby leads.
fn leads(user: &str, lease: &str) -> Write {
    Write {
        resource: "leases".to_owned(),
        name: lease.to_owned(),
        ..write(user, "capm3/v1", 7)
    }
}

/// A Secret with this owner is there at first, and not at the end.
fn lose_secret(turn: &mut Turn, owner: &str) {
    let secret = Secret {
        owners: vec![Owner {
            uid: owner.to_owned(),
            ..Owner::default()
        }],
        ..Secret::default()
    };
    turn.marks[0].secrets.insert("s".to_owned(), secret);
}

fn rebooted(turn: &mut Turn) -> &mut MachineState {
    turn.marks[2].machines.get_mut(&REBOOTED).unwrap()
}

/// The invariants that do not hold.
fn broken(turn: &Turn) -> Vec<&'static str> {
    let failed = INVARIANTS.iter().filter(|(_, proof)| proof(turn).is_err());
    failed.map(|(name, _)| *name).collect()
}

#[test]
fn quiet_switch_breaks_nothing() {
    assert!(broken(&quiet()).is_empty(), "{:?}", broken(&quiet()));
}

#[test]
fn product_whose_leader_was_killed_waits_for_its_lease() {
    let mut turn = quiet();
    turn.way = Way::Killed;
    turn.gaps[0].1 = Some(35_000);
    assert!(broken(&turn).is_empty());
    turn.gaps[0].1 = Some(35_001);
    assert_eq!(broken(&turn), ["no_product_is_long_without_a_manager"]);
}

/// Each of three leaders renews with this period for ten minutes, past midnight.
fn renewed(turn: &mut Turn, period: u64) {
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

#[test]
fn leader_may_renew_its_lease_every_six_seconds_and_start_with_more() {
    let mut turn = quiet();
    renewed(&mut turn, 6_000);
    let first = turn.leases[0].clone();
    turn.leases.extend(std::iter::repeat_n(first, 20));
    assert!(broken(&turn).is_empty(), "{:?}", broken(&turn));
}

/// The switch is one to the Go managers, before which preflight waits for all services.
fn back(turn: &mut Turn) {
    turn.to = Family::Go;
    let hosts = [SERVICED, FLASHED].map(host);
    turn.late_stops = Some(hosts.map(|host| format!("BareMetalHost {NAMESPACE}/{host}")).into());
}

/// A host of the Cluster is paused when the switch begins, and not any more at its end.
fn paused(turn: &mut Turn) {
    turn.work.is_paused = true;
    add_paused(turn, 5, false);
    add_paused(turn, 15, true);
    add_paused(turn, 24, false);
}

fn add_paused(turn: &mut Turn, revision: u64, is_paused: bool) {
    let by = is_paused.then_some("metal3.io/capm3");
    let metadata = json!({"name": host(1), "uid": "u1", "annotations": {"baremetalhost.metal3.io/paused": by}});
    let key = (HOST.to_owned(), host(1));
    turn.versions.entry(key).or_default().push(Version {
        revision,
        is_deleted: false,
        object: json!({"kind": HOST, "metadata": metadata, "spec": {}, "status": {}}),
    });
}

#[test]
fn preflight_may_stop_for_updates_that_have_not_ended_too() {
    let mut turn = quiet();
    back(&mut turn);
    let object = format!("HostFirmwareComponents {NAMESPACE}/{}", host(FLASHED));
    turn.late_stops.as_mut().unwrap().insert(object);
    let broken = broken(&turn);
    assert!(
        !broken.iter().any(|name| name.starts_with("preflight_waits")),
        "{broken:?}"
    );
}

/// One controller takes the pause off and blocks moves, another one removes the saved status.
#[test]
fn host_of_a_paused_cluster_gets_two_writes_more() {
    for (writes, holds) in [(3, true), (4, false)] {
        let mut turn = quiet();
        let user = products(&turn.release)[0].user();
        paused(&mut turn);
        turn.writes[1].extend((0..writes).map(|_| write(user, "capm3/v1", 1)));
        turn.first = predicted(&vec![("patch status", 1); writes]);
        assert_eq!(broken(&turn).is_empty(), holds, "{writes}: {:?}", broken(&turn));
    }
}

/// The beginning of an invariant's name, and what violates it.
type Violation = (&'static str, Box<dyn Fn(&mut Turn)>);

#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn each_invariant_has_a_violation() {
    let [hosts, addresses, _] = products(&GoRelease::for_test());
    let (user, of_addresses) = (hosts.user(), addresses.user());
    let table: [Violation; 38] = [
        ("no_product", Box::new(|turn| turn.gaps[1].1 = None)),
        ("no_product", Box::new(|turn| turn.gaps[2].1 = Some(20_001))),
        ("leases_cost", Box::new(|turn| turn.leases.clear())),
        ("leases_cost", Box::new(|turn| renewed(turn, 5_000))),
        (
            "preflight_saw",
            Box::new(|turn| {
                let change = json!({ "verb": "patch", "object": format!("BareMetalHost metal/{}", host(7)) });
                turn.first = First::of(&json!({ "dryRun": { "changes": [change] } }));
            }),
        ),
        ("preflight_saw", Box::new(|turn| turn.first = None)),
        (
            "preflight_stops",
            Box::new(|turn| turn.stops.extend(["HostClaim metal/claim".to_owned()])),
        ),
        (
            "preflight_names",
            Box::new(|turn| {
                turn.refusals.push(Refusal {
                    plain: "kubectl apply".to_owned(),
                    is_refused: true,
                    is_named: false,
                });
            }),
        ),
        ("no_order", Box::new(|turn| turn.orders.push(order(14, Verb::Power)))),
        (
            "no_order",
            Box::new(|turn| turn.orders.push(order(22, Verb::Provision))),
        ),
        ("work_in", Box::new(|turn| add(turn, REBUILT, 20, json!({})))),
        (
            "work_in",
            Box::new(|turn| {
                turn.begun.times.insert((host(16), "deploying".to_owned()), 2);
            }),
        ),
        (
            "no_machine",
            Box::new(|turn| {
                turn.marks[2].machines.insert(7, MachineState::default());
                turn.marks[0].machines.insert(
                    7,
                    MachineState {
                        boots: 1,
                        ..MachineState::default()
                    },
                );
            }),
        ),
        (
            "no_uid",
            Box::new(|turn| {
                add(turn, 7, 6, json!({"consumerRef": {"name": "a"}}));
                add(turn, 7, 15, json!({}));
            }),
        ),
        (
            "no_secret",
            Box::new(|turn| {
                turn.marks[0].secrets.insert("s".to_owned(), Secret::default());
            }),
        ),
        (
            "no_secret",
            Box::new(|turn| {
                lose_secret(turn, "not recorded");
                turn.work.workers = InFlight::of(1).workers;
            }),
        ),
        (
            "each_owner",
            Box::new(|turn| {
                (turn.to, turn.release) = (Family::Go, GoRelease::older_for_test());
                lose_secret(turn, "u");
                let mut secret = turn.marks[0].secrets["s"].clone();
                "infrastructure.cluster.x-k8s.io/v1beta2".clone_into(&mut secret.owners[0].api_version);
                turn.marks[2].secrets.insert("s".to_owned(), secret);
            }),
        ),
        ("work_in", Box::new(|turn| turn.begun.times.clear())),
        (
            "running_machines",
            Box::new(|turn| rebooted(turn).power = "Off".to_owned()),
        ),
        ("running_machines", Box::new(|turn| rebooted(turn).boots = 3)),
        ("running_machines", Box::new(|turn| rebooted(turn).boots = 5)),
        (
            "running_machines",
            Box::new(|turn| turn.marks[2].machines.get_mut(&SWITCHED).unwrap().power = "On".to_owned()),
        ),
        (
            "no_old_manager",
            Box::new(move |turn| {
                let late = Write {
                    at: 1,
                    ..write(user, "manager/v0", 7)
                };
                turn.writes[1].push(late);
            }),
        ),
        // Past midnight.
        (
            "no_old_manager",
            Box::new(move |turn| {
                turn.writes[1][0].at = 86_399_000;
                turn.writes[1].push(write(user, "manager/v0", 7));
            }),
        ),
        // A manager that elects no leader leads from its first write.
        (
            "no_old_manager",
            Box::new(move |turn| {
                let mut writes = ["capm3/v1", "manager/v0"].map(|agent| write(of_addresses, agent, 7));
                writes[1].at = 1;
                turn.writes[1].extend(writes);
            }),
        ),
        ("no_old_manager", Box::new(|turn| turn.writes[1].clear())),
        (
            "each_host_at_rest_has",
            Box::new(|turn| add_with(turn, 7, 25, json!({}), json!({"errorType": "power management error"}))),
        ),
        (
            "each_host_at_rest_has",
            Box::new(|turn| add(turn, FAILED[0].0, 25, json!({}))),
        ),
        (
            "each_host_at_rest_has",
            Box::new(|turn| {
                add_with(
                    turn,
                    FAILED[1].0,
                    25,
                    json!({}),
                    json!({"errorType": "registration error"}),
                );
            }),
        ),
        (
            "each_host_at_rest_gets",
            Box::new(move |turn| turn.writes[1].extend(["capm3/v1"; 2].map(|agent| write(user, agent, 7)))),
        ),
        (
            "preflight_named",
            Box::new(|turn| turn.orders.push(order(14, Verb::Provision))),
        ),
        (
            "preflight_waits",
            Box::new(|turn| {
                back(turn);
                turn.late_stops.as_mut().unwrap().pop_first();
            }),
        ),
        (
            "preflight_waits",
            Box::new(|turn| {
                back(turn);
                let other = format!("BareMetalHost {NAMESPACE}/{}", host(7));
                turn.late_stops.as_mut().unwrap().insert(other);
            }),
        ),
        ("preflight_waits", Box::new(|turn| turn.to = Family::Go)),
        ("hosts_of_a_paused", Box::new(|turn| turn.work.is_paused = true)),
        (
            "hosts_of_a_paused",
            Box::new(|turn| {
                paused(turn);
                turn.until_resumed.push(order(1, Verb::Power));
            }),
        ),
        (
            "hosts_of_a_paused",
            Box::new(|turn| {
                paused(turn);
                add_paused(turn, 25, true);
            }),
        ),
        (
            "no_write_conflicts",
            Box::new(|turn| turn.conflicts = conflicts::own_for_test()),
        ),
    ];
    for (name, _) in INVARIANTS {
        assert!(table.iter().any(|(wanted, _)| name.starts_with(wanted)), "{name}");
    }
    for (wanted, change) in table {
        let mut turn = quiet();
        change(&mut turn);
        let broken = broken(&turn);
        assert!(
            broken.iter().any(|name| name.starts_with(wanted)),
            "{wanted}: {broken:?}"
        );
    }
}

/// A dry run that saw these changes of hosts.
fn predicted(changes: &[(&str, u64)]) -> Option<First> {
    let change = |(verb, number): &(&str, u64)| {
        let object = format!("BareMetalHost metal/{}", host(*number));
        json!({"verb": verb, "object": object, "interrupts": false})
    };
    let changes: Vec<Value> = changes.iter().map(change).collect();
    First::of(&json!({"dryRun": {"changes": changes}}))
}

/// A host at rest with two writes, of which one removed an owner of this kind.
fn written_twice(kind: &str) -> Turn {
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

#[test]
fn removal_of_the_machine_from_the_owners_of_a_host_is_one_write_more() {
    assert!(broken(&written_twice("Metal3Machine")).is_empty());
    let other = broken(&written_twice("Rack"));
    assert!(
        other.iter().any(|name| name.starts_with("each_host_at_rest_gets")),
        "{other:?}"
    );
}

#[test]
fn asked_work_breaks_nothing() {
    let mut turn = quiet();
    turn.orders.extend([
        order(22, Verb::Power),
        order(16, Verb::Provision),
        order(14, Verb::Describe),
    ]);
    turn.named.insert(host(16));
    // The writes of the old manager, before the new one leads, are not counted.
    let user = products(&turn.release)[0].user();
    turn.writes[1].splice(0..0, ["manager/v0"; 2].map(|agent| write(user, agent, 7)));
    turn.writes[1].push(write(user, "capm3/v1", 7));
    turn.first = predicted(&[("patch status", 7), ("order change node", 14)]);
    assert!(broken(&turn).is_empty(), "{:?}", broken(&turn));
}

/// While it is tried again it has no error, which preflight would name.
#[test]
fn orders_to_a_failed_host_are_no_surprise_when_it_was_tried_again() {
    let (number, what) = FAILED[2];
    for (error, holds) in [("", true), (what.split(':').next().unwrap(), false)] {
        let mut turn = quiet();
        add_with(&mut turn, number, 15, json!({}), json!({"errorType": error}));
        add_with(
            &mut turn,
            number,
            25,
            json!({}),
            json!({"errorType": what.split(':').next()}),
        );
        turn.orders.push(order(number, Verb::Power));
        assert_eq!(broken(&turn).is_empty(), holds, "{error:?}: {:?}", broken(&turn));
    }
}

#[test]
fn remediated_machine_boots_once_and_gets_power_orders_only() {
    for (boots, what, holds) in [
        (1, Verb::Power, true),
        (0, Verb::Power, false),
        (2, Verb::Power, false),
        (1, Verb::Provision, false),
    ] {
        let mut turn = quiet();
        turn.work.remediated = Some(3);
        for (mark, boots) in [(0, 5), (2, 5 + boots)] {
            let on = MachineState {
                power: "On".to_owned(),
                boots,
                ..MachineState::default()
            };
            turn.marks[mark].machines.insert(3, on);
        }
        turn.orders.push(order(3, what));
        assert_eq!(broken(&turn).is_empty(), holds, "{boots} {what:?}: {:?}", broken(&turn));
    }
}

#[test]
fn host_that_is_asked_after_the_prediction_is_no_surprise() {
    for number in [REBUILT, RETUNED, SERVICED, FLASHED] {
        let mut turn = quiet();
        turn.orders.push(order(number, Verb::Provision));
        assert!(broken(&turn).is_empty(), "{number}: {:?}", broken(&turn));
    }
}

/// Otherwise the switch does not show that it is continued.
#[test]
fn work_that_ended_before_the_switch_was_not_in_flight() {
    for (number, status) in [
        (REBUILT, json!({"provisioning": {"state": "available"}})),
        (SERVICED, json!({"operationalStatus": "OK"})),
        (FLASHED, json!({"operationalStatus": "OK"})),
    ] {
        let mut turn = quiet();
        add_with(&mut turn, number, 16, json!({}), status);
        assert_eq!(broken(&turn), ["work_in_flight_is_not_begun_again"], "{number}");
    }
}

/// The shortest service may have ended by then, and the Lease of the killed leader stays for a while.
#[test]
fn service_that_was_ordered_right_before_a_kill_begins_once() {
    for (times, holds) in [(0, false), (1, true), (2, false)] {
        let mut turn = quiet();
        turn.work.is_cut = true;
        turn.gaps[0].1 = Some(35_000);
        add_with(&mut turn, SERVICED, 16, json!({}), json!({"operationalStatus": "OK"}));
        let work = (host(CUT), "servicing".to_owned());
        turn.begun.times.extend((times > 0).then_some((work, times)));
        turn.orders.push(order(CUT, Verb::Provision));
        assert_eq!(broken(&turn).is_empty(), holds, "{times}: {:?}", broken(&turn));
    }
}

/// It cleans and services again until it has read the settings; nothing else that it repeats is excused.
#[test]
fn a_go_manager_may_repeat_what_brings_settings_only() {
    for (number, state, holds) in [
        (RETUNED, "cleaning", true),
        (SERVICED, "servicing", true),
        (REBUILT, "cleaning", false),
        (UPDATED, "cleaning", false),
        (FLASHED, "servicing", false),
        (CUT, "servicing", false),
        (16, "deploying", false),
        (17, "cleaning", false),
    ] {
        let mut turn = quiet();
        turn.begun.by_go_again.insert((host(number), state.to_owned()), 3);
        assert_eq!(broken(&turn).is_empty(), holds, "{number} {state}: {:?}", broken(&turn));
    }
}

/// A retry has no error until it fails, which may be after the last mark.
#[test]
fn a_failed_deployment_may_be_repeated_and_not_forgotten() {
    let (number, _) = FAILED[1];
    for (state, error, is_ordered, holds) in [
        ("provisioning", "", true, true),
        ("provisioning", "", false, false),
        ("provisioned", "", true, false),
        ("available", "", true, false),
        ("provisioning", "registration error", true, false),
    ] {
        let mut turn = quiet();
        let status = json!({ "provisioning": { "state": state }, "errorType": error });
        add_with(&mut turn, number, 25, json!({}), status);
        turn.named.insert(host(number));
        turn.orders.extend(is_ordered.then(|| order(number, Verb::Provision)));
        let broken = broken(&turn);
        let is_broken = broken.iter().any(|name| name.starts_with("each_host_at_rest_has"));
        assert_eq!(!is_broken, holds, "{state} {error:?} {is_ordered}: {broken:?}");
    }
}

/// Ironic takes minutes to give up on a BMC that does nothing, and the next attempt begins without an error.
#[test]
fn a_machine_that_cannot_be_powered_off_is_shown_as_on_or_has_its_error() {
    let (number, _) = FAILED[2];
    for (powered, count, error, holds) in [
        (true, 1, "", true),
        (true, 0, "", false),
        (false, 1, "", false),
        (false, 0, "power management error", true),
    ] {
        let mut turn = quiet();
        let versions = turn.versions.get_mut(&(HOST.to_owned(), host(number))).unwrap();
        versions.clear();
        let status = json!({ "provisioning": { "state": "provisioned" }, "errorType": error, "errorCount": count, "poweredOn": powered });
        add_with(&mut turn, number, 5, json!({ "online": false }), status);
        let is_broken = broken(&turn)
            .iter()
            .any(|name| name.starts_with("each_host_at_rest_has"));
        assert_eq!(!is_broken, holds, "{powered} {count} {error:?}");
    }
}

#[test]
fn a_secret_may_end_with_its_owner_only() {
    // The UIDs of an object's versions; a deletion has none.
    let table: [(&[Option<&str>], bool); 5] = [
        (&[Some("a"), None], true),
        (&[Some("a"), None, Some("b")], true),
        (&[Some("b"), None, Some("a"), None], true),
        (&[Some("b"), None, Some("a")], false),
        (&[Some("b"), None], false),
    ];
    for (uids, may_end) in table {
        let mut turn = quiet();
        lose_secret(&mut turn, "a");
        let version = |(number, uid): (u64, &Option<&str>)| Version {
            revision: 21 + number,
            is_deleted: uid.is_none(),
            object: json!({"metadata": {"uid": uid.unwrap_or_default()}}),
        };
        let versions = (0..).zip(uids).map(version).collect();
        turn.versions.insert(("Owner".to_owned(), "o".to_owned()), versions);
        assert_eq!(!broken(&turn).contains(&"no_secret_changes"), may_end, "{uids:?}");
    }
}

#[test]
fn a_deleted_machine_gives_its_host_back() {
    let mut turn = quiet();
    add(&mut turn, 1, 5, json!({"consumerRef": {"name": "m"}}));
    add(&mut turn, 1, 25, json!({}));
    assert!(broken(&turn).contains(&"no_uid_address_consumer_or_provider_id_changes"));
    let machine = ("Metal3Machine".to_owned(), "m".to_owned());
    turn.versions.insert(
        machine,
        vec![Version {
            revision: 24,
            is_deleted: true,
            object: json!({"metadata": {"name": "m"}}),
        }],
    );
    assert!(broken(&turn).is_empty(), "{:?}", broken(&turn));
}
