//! Decision tables: for each state, what is given and what is done.
#![expect(clippy::too_many_lines, reason = "each function is a table")]

mod available;
mod deprovisioning;
mod detached;
pub(super) mod given;
mod inspecting;
mod leaving;
mod power;
mod provisioned;
mod provisioning;
mod registering;

use crate::facts::NodeSeen;
use crate::tests::scene::{Scene, node};

/// Given, and what the plan says.
pub(crate) struct Row {
    pub(crate) given: &'static str,
    pub(crate) scene: Scene,
    pub(crate) then: &'static str,
}

fn row(given: &'static str, scene: Scene, then: &'static str) -> Row {
    Row { given, scene, then }
}

pub(crate) fn rows() -> Vec<Row> {
    let tables: [fn() -> Vec<Row>; 11] = [
        registering::object,
        registering::registration,
        inspecting::inspection,
        inspecting::preparation,
        available::waiting,
        provisioning::deployment,
        provisioned::running,
        power::power,
        deprovisioning::removal,
        leaving::leaving,
        detached::detached,
    ];
    tables.into_iter().flat_map(|table| table()).collect()
}

/// Not a state: a node that is read by these tables.
#[test]
fn a_node_of_these_tables_is_as_the_host_wants_it() {
    let scene = given::provisioned().with(|scene| scene.node = Some(Some((node("active"), NodeSeen::Current))));
    assert!(!scene.tells().contains("change node"), "{}", scene.tells());
}
