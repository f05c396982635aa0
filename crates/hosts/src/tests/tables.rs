//! Every row of the decision tables holds, and every edge of the graph is reached by one.

use std::collections::BTreeSet;

use super::rows::rows;
use crate::state::graph::{self, EDGES};

#[test]
fn each_row_of_the_decision_tables_is_decided_as_it_says() {
    let mut wrong = Vec::new();
    for row in rows() {
        let found = row.scene.tells();
        if found != row.then {
            wrong.push(format!(
                "{}: {}\n    expected {}\n    found    {found}",
                row.scene.state(),
                row.given,
                row.then
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_edge_of_the_graph_is_reached_by_a_row() {
    let mut reached = BTreeSet::new();
    for row in rows() {
        let plan = row.scene.plan();
        let after = row.scene.after(&plan).status.provisioning.state;
        reached.insert((graph::name(&row.scene.state()), graph::name(&after)));
    }
    let missed: Vec<_> = EDGES
        .iter()
        .filter(|edge| !reached.contains(&(graph::name(&edge.from), graph::name(&edge.to))))
        .collect();
    assert!(missed.is_empty(), "{missed:#?}");
}
