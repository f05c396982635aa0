//! What stays recorded of an order of several updates after its cleaning failed.

use serde_json::{Value, json};

use super::fixture::{Fixture, without_version};
use super::rows::firmware::order_of_two;
use crate::action::Action;

fn recorded(fixture: &Fixture) -> Value {
    let plan = fixture.plan();
    let mut records = plan.actions.iter().filter_map(|action| match action {
        Action::RecordUpdates(patch) => Some(without_version(patch)),
        _ => None,
    });
    records
        .next()
        .map(|record| record["status"]["updates"].clone())
        .unwrap()
}

/// The cleaning failed before its step for the firmware, and the node shows what an earlier one left.
#[test]
fn update_that_an_earlier_cleaning_left_says_nothing_about_the_others() {
    assert_eq!(recorded(&order_of_two(None)), Value::Null);
}

/// This process saw that the first one had ended.
#[test]
fn update_that_was_seen_to_end_stays_recorded() {
    let left = recorded(&order_of_two(Some("bmc")));
    assert_eq!(left.as_array().map(Vec::len), Some(1));
    assert_eq!(left[0]["component"], json!("bios"));
}
