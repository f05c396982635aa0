//! What is asked during a switch.

use serde_json::json;

use super::super::*;
use super::turn::*;
use crate::lifecycle::swap::record::MachineState;
use crate::lifecycle::swap::work::{CUT, FLASHED, REBUILT, RETUNED, SERVICED, UPDATED};

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
