//! A host that is detached.

use serde_json::json;

use super::given::{
    available, deprovisioning, external, inspecting, powering_off, preparing, provisioned, provisioning, registering,
    withheld,
};
use super::{Row, row};
use crate::tests::fixture::Fixture;

pub(super) fn detached() -> Vec<Row> {
    let mark = "baremetalhost.metal3.io/detached";
    let apart = |fixture: Fixture| {
        fixture
            .annotated(mark, "")
            .status(json!({ "operationalStatus": "detached" }))
    };
    let going = |fixture: Fixture| fixture.annotated(mark, r#"{"deleteAction":"delete"}"#).deleted();
    vec![
        row(
            "to be detached",
            provisioned().annotated(mark, "").node("active"),
            "requests set maintenance, requests delete node, replan",
        ),
        row(
            "to be detached, in maintenance",
            provisioned()
                .annotated(mark, "")
                .node_with("active", json!({ "maintenance": true })),
            "requests delete node, replan",
        ),
        row(
            "to be detached, and the node serves another instance",
            provisioned()
                .annotated(mark, "")
                .node_with("active", json!({ "instance_uuid": crate::tests::fixture::OTHER_UID })),
            "writes the status, waits for the user",
        ),
        row(
            "to be detached, no node",
            provisioned().annotated(mark, "").no_node(),
            "writes the status, waits for the user",
        ),
        row("detached", apart(provisioned()), "waits for the user"),
        row(
            "attached again",
            apart(provisioned()).host(json!({ "metadata": { "annotations": { mark: null } } })),
            "writes the status, replan",
        ),
        row(
            "to be detached in the middle",
            provisioning().annotated(mark, "").node("wait call-back"),
            "waits for the node",
        ),
        row(
            "to be detached in the middle, by force",
            provisioning()
                .annotated(mark, r#"{"force":true}"#)
                .node("wait call-back"),
            "requests abort, waits for the node",
        ),
        row(
            "detached and deleted, delayed",
            apart(provisioned()).deleted(),
            "waits for the user",
        ),
        row(
            "withheld, to be detached and deleted, delayed",
            withheld().annotated(mark, "").deleted(),
            "withheld: DeprovisionBudgetSpent, waits for the user",
        ),
        row(
            "withheld, and to be detached",
            withheld().spec_image("b").annotated(mark, "").no_node(),
            "writes the status, withheld: DeprovisionBudgetSpent, waits for the user",
        ),
        row(
            "detached and deleted",
            going(apart(provisioned())),
            "writes the status, to deleting, replan",
        ),
        row(
            "available, detached and deleted",
            going(available()),
            "writes the status, to deleting, replan",
        ),
        row(
            "external, detached and deleted",
            going(external()),
            "writes the status, to deleting, replan",
        ),
        row(
            "provisioning, detached and deleted",
            going(provisioning()),
            "writes the status, to deleting, replan",
        ),
        row(
            "deprovisioning, detached and deleted",
            going(deprovisioning()),
            "writes the status, to deleting, replan",
        ),
        row(
            "powering off, detached and deleted",
            going(powering_off()),
            "writes the status, to deleting, replan",
        ),
        row(
            "registering, detached and deleted",
            going(registering()),
            "writes the status, to deleting, replan",
        ),
        row(
            "inspecting, detached and deleted",
            going(inspecting()),
            "writes the status, to deleting, replan",
        ),
        row(
            "preparing, detached and deleted",
            going(preparing()),
            "writes the status, to deleting, replan",
        ),
    ]
}
