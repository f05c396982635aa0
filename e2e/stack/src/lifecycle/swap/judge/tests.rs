mod turn;
mod work;

use serde_json::json;

use super::super::record::{MachineState, Secret};
use super::*;
use crate::lifecycle::conflicts;
use crate::lifecycle::swap::work::{FLASHED, REBUILT, SERVICED};
use crate::products::machines::NAMESPACE;
use turn::*;
pub(super) use turn::{add, predicted, quiet};

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

#[test]
fn leader_may_renew_its_lease_every_six_seconds_and_start_with_more() {
    let mut turn = quiet();
    renewed(&mut turn, 6_000);
    let first = turn.leases[0].clone();
    turn.leases.extend(std::iter::repeat_n(first, 20));
    assert!(broken(&turn).is_empty(), "{:?}", broken(&turn));
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
    let table: [Violation; 41] = [
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
            "no_uid",
            Box::new(|turn| {
                let address = |revision, is_deleted| Version {
                    revision,
                    is_deleted,
                    object: json!({"metadata": {"ownerReferences": [{"uid": "not recorded"}]}}),
                };
                let versions = vec![address(5, false), address(15, true)];
                turn.versions.insert(("IPAddress".to_owned(), "a".to_owned()), versions);
            }),
        ),
        (
            "no_order",
            Box::new(|turn| turn.orders.extend((0..3).map(|_| order(SERVICED, Verb::Power)))),
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
        // A new one that does not lead yet.
        (
            "no_old_manager",
            Box::new(move |turn| turn.writes[1].insert(0, write(user, "capm3/v1", 7))),
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

#[test]
fn removal_of_the_machine_from_the_owners_of_a_host_is_one_write_more() {
    assert!(broken(&written_twice("Metal3Machine")).is_empty());
    let other = broken(&written_twice("Rack"));
    assert!(
        other.iter().any(|name| name.starts_with("each_host_at_rest_gets")),
        "{other:?}"
    );
}
