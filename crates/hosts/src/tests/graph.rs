use std::collections::BTreeSet;

use metal3_api::metal3::v1alpha1::ProvisioningState as State;

use crate::state::graph::{EDGES, STATES, name, page};

const BEGIN: &str = "<!-- states: rendered from the table in crates/hosts/src/state/graph.rs -->\n";
const END: &str = "<!-- end of states -->";

#[test]
fn the_page_about_hosts_shows_the_graph_of_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/controllers/baremetalhost.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, rest) = text.split_once(BEGIN).expect("the section begins");
    let (section, _) = rest.split_once(END).expect("the section ends");
    assert_eq!(section, page(), "replace the section by the text on the right");
}

#[test]
fn a_reason_leads_from_a_state_to_one_other() {
    let mut seen = BTreeSet::new();
    for edge in EDGES {
        assert!(seen.insert((name(&edge.from), edge.why)), "{edge:?}");
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
