//! Decision tables: for each state the facts and the expected plan.
#![expect(clippy::too_many_lines, reason = "each function is a table")]

mod agent_image;
mod available;
mod bios;
mod deletion;
mod deploy_step;
mod deprovisioning;
mod detached;
pub(in crate::tests) mod firmware;
pub(in crate::tests) mod given;
mod inspecting;
mod power;
mod provisioned;
mod provisioning;
mod registering;
mod service;

use crate::facts::NodeFreshness;
use crate::tests::fixture::{Fixture, node};

/// Facts, and the expected summary of the plan.
pub(crate) struct Row {
    pub(crate) given: &'static str,
    pub(crate) fixture: Fixture,
    pub(crate) then: &'static str,
}

impl Fixture {
    fn row(self, given: &'static str, then: &'static str) -> Row {
        let fixture = self;
        Row { given, fixture, then }
    }
}

pub(crate) fn rows() -> Vec<Row> {
    let tables: [fn() -> Vec<Row>; 19] = [
        agent_image::images,
        registering::object,
        registering::registration,
        inspecting::inspection,
        inspecting::preparation,
        available::waiting,
        bios::preparation,
        bios::elsewhere,
        firmware::preparation,
        firmware::elsewhere,
        provisioning::deployment,
        deploy_step::life,
        provisioned::running,
        service::begins,
        service::follows,
        power::power,
        deprovisioning::removal,
        deletion::deletion,
        detached::detached,
    ];
    tables.into_iter().flat_map(|table| table()).collect()
}

/// The node of the fixtures needs no change.
#[test]
fn node_of_the_fixtures_needs_no_change() {
    let fixture =
        given::provisioned().with(|fixture| fixture.node = Some(Some((node("active"), NodeFreshness::Current))));
    assert!(!fixture.summary().contains("change node"), "{}", fixture.summary());
}
