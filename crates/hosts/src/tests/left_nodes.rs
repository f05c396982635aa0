//! A node that stays in Ironic after its host is reported.

use metal3_domain::ids::NodeUuid;

use super::fixture::{Fixture, NODE};
use super::rows::given::{deleting, provisioned};
use crate::facts::ForeignNode;
use crate::names::reason;

fn renamed(fixture: Fixture) -> Fixture {
    let uuid = NodeUuid::parse(NODE).unwrap();
    fixture.with(|fixture| fixture.foreign = Some(ForeignNode::Recorded { uuid }))
}

#[test]
fn node_of_another_name_that_a_deletion_leaves_is_reported() {
    let mut deleted = renamed(deleting());
    let is_reported = |fixture: &Fixture| {
        let events = fixture.plan().events;
        events.iter().any(|event| event.reason == reason::NODE_LEFT)
    };
    for _ in 0..4 {
        if is_reported(&deleted) {
            return;
        }
        deleted = deleted.performed();
    }
    panic!("{}", deleted.summary());
}

#[test]
fn node_of_another_name_that_a_detachment_leaves_is_reported_once() {
    let detached = renamed(provisioned()).annotated("baremetalhost.metal3.io/detached", "");
    let is_reported = |fixture: &Fixture| {
        let events = fixture.plan().events;
        events.iter().any(|event| event.reason == reason::NODE_LEFT)
    };
    assert!(is_reported(&detached));
    assert!(!is_reported(&detached.performed()));
}
