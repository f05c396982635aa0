use std::collections::BTreeSet;

use metal3_api::metal3::v1alpha1::ProvisioningState as State;

use crate::plan::state::graph::{EDGES, STATES, name, page};

const BEGIN: &str = "<!-- states: rendered from the table in crates/hosts/src/plan/state/graph.rs -->\n";
const END: &str = "<!-- end of states -->";

#[test]
fn page_contains_the_rendered_graph() {
    let path = "../../docs/controllers/baremetalhost.md";
    let text = std::fs::read_to_string(path).unwrap();
    let (_, rest) = text.split_once(BEGIN).expect("the section begins");
    let (section, _) = rest.split_once(END).expect("the section ends");
    assert_eq!(section, page(), "replace the section by the text on the right");
}

#[test]
fn trigger_leads_to_one_other_state() {
    let mut found = BTreeSet::new();
    for edge in EDGES {
        assert!(found.insert((name(&edge.from), edge.trigger)), "{edge:?}");
        assert_ne!(edge.from, edge.to, "{edge:?}");
    }
}

#[test]
fn every_state_can_be_reached_and_left() {
    for state in &STATES {
        assert!(
            *state == State::None || *state == State::MatchProfile || EDGES.iter().any(|edge| edge.to == *state),
            "{state}"
        );
        assert!(
            *state == State::Deleting || EDGES.iter().any(|edge| edge.from == *state),
            "{state}"
        );
    }
}
