//! Nodes by their keys, and what is known of a new endpoint.

use std::time::Duration;

use super::super::Step;
use super::fixture::{Fixture, uuid};
use crate::model::node::Node;

fn keys(node: &Node) -> Vec<String> {
    node.name.iter().cloned().chain(["all".to_owned()]).collect()
}

#[test]
fn node_is_found_by_the_keys_of_its_present_record_until_it_is_deleted() {
    let mut fixture = Fixture::with_nodes(3);
    fixture.tracker = std::mem::take(&mut fixture.tracker).with_keys(keys);
    fixture.run(Duration::from_secs(1));
    let name = |fixture: &Fixture, number| fixture.record(number).name.unwrap();
    let (first, second) = (name(&fixture, 0), name(&fixture, 1));
    assert_eq!(fixture.tracker.with_key(&first), [uuid(0)]);
    assert_eq!(fixture.tracker.with_key("all"), [uuid(0), uuid(1), uuid(2)]);
    fixture.change(0, 0);
    fixture.run(Duration::from_secs(20));
    assert!(fixture.tracker.with_key(&first).is_empty(), "the former name");
    assert_eq!(fixture.tracker.with_key(&name(&fixture, 0)), [uuid(0)]);
    // One that this process deletes, and one that another deletes.
    fixture.delete(1);
    let now = fixture.now();
    fixture.tracker.forget(&uuid(1), now);
    assert!(fixture.tracker.with_key(&second).is_empty());
    fixture.delete(2);
    fixture.run(Duration::from_mins(10));
    assert_eq!(fixture.tracker.with_key("all"), [uuid(0)]);
}

#[test]
fn nodes_of_another_endpoint_are_listed_before_they_count_as_known() {
    let mut fixture = Fixture::with_nodes(3);
    fixture.run(Duration::from_secs(30));
    assert!(fixture.tracker.has_listed());
    let now = fixture.now();
    fixture.tracker.destination_changed(now);
    assert!(fixture.tracker.has_listed(), "another login to the same endpoint");
    fixture.tracker.endpoint_changed(now);
    assert!(!fixture.tracker.has_listed());
    assert!(matches!(fixture.tracker.next(now), Step::Fetch(_)));
    // There are others, of which none has changed lately.
    (0..3).for_each(|number| fixture.delete(number));
    fixture.create(7);
    fixture.run(Duration::from_secs(1));
    assert!(fixture.tracker.has_listed());
    let known: Vec<_> = fixture.tracker.nodes().map(|node| node.uuid.clone()).collect();
    assert_eq!(known, [uuid(7)]);
}
