//! Hosts with many network cards.

use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde_json::{Value, json};

use super::fixture::{Fixture, requests};
use crate::action::Request;
use crate::node::ports;

fn cards(number: u32) -> Vec<Value> {
    let mac = |card: u32| format!("02:00:00:00:{:02x}:{:02x}", card >> 8, card & 255);
    (0..number).map(|card| json!({ "mac": mac(card) })).collect()
}

fn with_cards(state: &str, number: u32) -> Fixture {
    Fixture::new(state)
        .status(json!({ "hardware": { "nics": cards(number) } }))
        .with(|fixture| fixture.ports = Some(Vec::new()))
}

fn creations(fixture: &Fixture) -> usize {
    let plan = fixture.plan();
    requests(&plan)
        .filter(|request| matches!(request, Request::CreatePort { .. }))
        .count()
}

/// A plan is performed without a break, while other hosts wait.
#[test]
fn plan_creates_a_bounded_number_of_ports() {
    for (state, node) in [("registering", "enroll"), ("preparing", "manageable")] {
        let host = with_cards(state, 2_000).node(node);
        let number = creations(&host);
        assert!((1..=16).contains(&number), "{state}: {number}");
        assert!(!host.summary().contains("requests manage"), "{}", host.summary());
    }
    let few = with_cards("registering", 3).node("enroll").summary();
    assert!(few.contains("requests manage"), "{few}");
}

#[test]
fn host_gets_a_bounded_number_of_ports_and_its_boot_port_first() {
    let host: BareMetalHost = serde_json::from_value(with_cards("registering", 9_000).host).unwrap();
    let wanted = ports::wanted(&host, host.status.hardware.as_ref()).unwrap();
    assert_eq!(wanted.len(), ports::MOST);
    assert_eq!(
        wanted.first().map(|port| port.address),
        ports::boot_address(&host).unwrap()
    );
}
