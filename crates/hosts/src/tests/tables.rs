//! Every row of the decision tables holds, and every edge of the graph is reached by a row.

use std::collections::BTreeSet;

use super::rows::rows;
use crate::plan::state::graph::{self, EDGES};

#[test]
fn each_row_of_the_decision_tables_holds() {
    let mut violations = Vec::new();
    for row in rows() {
        let found = row.fixture.summary();
        if found != row.then {
            violations.push(format!(
                "{}: {}\n    expected {}\n    found    {found}",
                row.fixture.state(),
                row.given,
                row.then
            ));
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

#[test]
fn each_edge_of_the_graph_is_reached_by_a_row() {
    let mut reached = BTreeSet::new();
    for row in rows() {
        let plan = row.fixture.plan();
        let after = row.fixture.after(&plan).status.provisioning.state;
        reached.insert((graph::name(&row.fixture.state()), graph::name(&after)));
    }
    let missed: Vec<_> = EDGES
        .iter()
        .filter(|edge| !reached.contains(&(graph::name(&edge.from), graph::name(&edge.to))))
        .collect();
    assert!(missed.is_empty(), "{missed:#?}");
}
