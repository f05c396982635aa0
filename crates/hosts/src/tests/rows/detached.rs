//! A host that Ironic is to forget.

use serde_json::json;

use super::given::{
    available, deprovisioning, external, held, inspecting, powering_off, preparing, provisioned, provisioning,
    registering,
};
use super::{Row, row};
use crate::tests::scene::Scene;

pub(super) fn detached() -> Vec<Row> {
    let mark = "baremetalhost.metal3.io/detached";
    let apart = |scene: Scene| {
        scene
            .annotated(mark, "")
            .status(json!({ "operationalStatus": "detached" }))
    };
    let going = |scene: Scene| scene.annotated(mark, r#"{"deleteAction":"delete"}"#).deleted();
    vec![
        row(
            "to be detached",
            provisioned().annotated(mark, "").node("active"),
            "asks set maintenance, asks delete node, again",
        ),
        row(
            "to be detached, in maintenance",
            provisioned()
                .annotated(mark, "")
                .node_with("active", json!({ "maintenance": true })),
            "asks delete node, again",
        ),
        row(
            "to be detached, and the node serves another",
            provisioned()
                .annotated(mark, "")
                .node_with("active", json!({ "instance_uuid": crate::tests::scene::OTHER_UID })),
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
            "writes the status, again",
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
            "asks abort, waits for the node",
        ),
        row(
            "detached and deleted, delayed",
            apart(provisioned()).deleted(),
            "waits for the user",
        ),
        row(
            "held, to be detached and deleted, delayed",
            held().annotated(mark, "").deleted(),
            "held: DeprovisionBudgetSpent, waits for the user",
        ),
        row(
            "held, and to be detached",
            held().asks("b").annotated(mark, "").no_node(),
            "writes the status, held: DeprovisionBudgetSpent, waits for the user",
        ),
        row(
            "detached and deleted",
            going(apart(provisioned())),
            "writes the status, to deleting, again",
        ),
        row(
            "available, detached and deleted",
            going(available()),
            "writes the status, to deleting, again",
        ),
        row(
            "external, detached and deleted",
            going(external()),
            "writes the status, to deleting, again",
        ),
        row(
            "provisioning, detached and deleted",
            going(provisioning()),
            "writes the status, to deleting, again",
        ),
        row(
            "deprovisioning, detached and deleted",
            going(deprovisioning()),
            "writes the status, to deleting, again",
        ),
        row(
            "powering off, detached and deleted",
            going(powering_off()),
            "writes the status, to deleting, again",
        ),
        row(
            "registering, detached and deleted",
            going(registering()),
            "writes the status, to deleting, again",
        ),
        row(
            "inspecting, detached and deleted",
            going(inspecting()),
            "writes the status, to deleting, again",
        ),
        row(
            "preparing, detached and deleted",
            going(preparing()),
            "writes the status, to deleting, again",
        ),
    ]
}
