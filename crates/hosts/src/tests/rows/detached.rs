//! A host that is detached.

use serde_json::json;

use super::Row;
use super::given::{
    FORCED, available, deprovisioning, external, inspecting, new, powering_off, preparing, provisioned, provisioning,
    registering, withheld, written_for,
};
use crate::facts::{NodeFreshness, RefusalClass};
use crate::tests::fixture::{Fixture, UID};

pub(super) fn detached() -> Vec<Row> {
    let mark = "baremetalhost.metal3.io/detached";
    let apart = |fixture: Fixture| {
        fixture
            .annotated(mark, "")
            .status(json!({ "operationalStatus": "detached" }))
    };
    let going = |fixture: Fixture| fixture.annotated(mark, r#"{"deleteAction":"delete"}"#).deleted();
    let delayed = |fixture: Fixture| fixture.annotated(mark, r#"{"deleteAction":"delay"}"#).deleted();
    let unmanaged = || Fixture::new("unmanaged").spec(json!({ "bmc": null }));
    vec![
        provisioned()
            .annotated(mark, "")
            .node("active")
            .row("to be detached, from the feed", "reads Node, reads Host, replan"),
        provisioned()
            .annotated(mark, "")
            .node("active")
            .freshness(NodeFreshness::Live)
            .row("to be detached, and the host is from the cache", "reads Host, replan"),
        available()
            .annotated(mark, "")
            .node("available")
            .row("idle, to be detached, and the host is from the cache", "reads Node, reads Host, replan"),
        provisioned().annotated(mark, "").node("active").live().row(
            "to be detached",
            "requests set maintenance, requests delete node, replan",
        ),
        provisioned()
            .annotated(mark, "")
            .node_with("active", json!({ "maintenance": true }))
            .live()
            .row("to be detached, in maintenance", "requests delete node, replan"),
        provisioned()
            .annotated(mark, "")
            .node_with("active", json!({ "instance_uuid": crate::tests::fixture::OTHER_UID }))
            .row(
                "to be detached, and the node serves another instance",
                "writes the status, waits for the user",
            ),
        provisioned()
            .annotated(mark, "")
            .node_with("active", json!({ "maintenance": true }))
            .refused("delete node", RefusalClass::Persistent, "no")
            .row(
                "to be detached, and Ironic keeps the node",
                "writes the status, provisioned registration error: Ironic rejected the request (delete node): no, waits \
                 for a time",
            ),
        available()
            .annotated(mark, "")
            .node_with("available", json!({ "instance_uuid": UID }))
            .live()
            .refused("change node", RefusalClass::Invalid, "no")
            .row(
                "to be detached, and Ironic keeps the instance of the node",
                "writes the status, preparation error: Ironic rejected the request (change node): no, waits for a time",
            ),
        provisioning()
            .annotated(mark, FORCED)
            .node_with("wait call-back", written_for("a", UID))
            .live()
            .with(|fixture| fixture.aborts_deployments = false)
            .refused("deleted", RefusalClass::Access, "protected")
            .row(
                "to be detached by force, and Ironic protects the node",
                "writes the status, provisioning error: Ironic rejected the request (deleted): protected, waits for a \
                 time",
            ),
        provisioned()
            .annotated(mark, "")
            .no_node()
            .row("to be detached, no node", "writes the status, waits for the user"),
        provisioned()
            .node_with(
                "active",
                json!({ "maintenance": true, "maintenance_reason": "forcing deletion in baremetal-operator" }),
            )
            .row(
                "no longer to be detached, after the maintenance and before the deletion of the node, from the feed",
                "reads Node, replan",
            ),
        provisioned()
            .node_with(
                "active",
                json!({ "maintenance": true, "maintenance_reason": "forcing deletion in baremetal-operator" }),
            )
            .freshness(NodeFreshness::Live)
            .row(
                "no longer to be detached, after the maintenance and before the deletion of the node",
                "requests clear maintenance, waits for the node",
            ),
        deprovisioning()
            .deleted()
            .node_with(
                "active",
                json!({ "maintenance": true, "maintenance_reason": "forcing deletion in baremetal-operator" }),
            )
            .freshness(NodeFreshness::Live)
            .row(
                "no longer to be detached, and deleted",
                "requests clear maintenance, waits for the node",
            ),
        provisioned()
            .node_with("active", json!({ "maintenance": true, "maintenance_reason": "repair" }))
            .row(
                "in maintenance for another reason",
                "writes the status, provisioned registration error: the node is in maintenance (repair), so Ironic does \
                 not operate it; end its maintenance in Ironic, waits for the node",
            ),
        apart(provisioned()).row("detached", "waits for the user"),
        apart(provisioned())
            .host(json!({ "metadata": { "annotations": { mark: null } } }))
            .row("attached again", "writes the status, replan"),
        provisioning()
            .annotated(mark, "")
            .node("wait call-back")
            .row("to be detached in the middle", "waits for the node"),
        provisioning()
            .annotated(mark, r#"{"force":true}"#)
            .node("wait call-back")
            .row(
                "to be detached in the middle, by force, and the host is from the cache",
                "reads Node, reads Host, replan",
            ),
        provisioning()
            .annotated(mark, r#"{"force":true}"#)
            .node("wait call-back")
            .live()
            .row(
                "to be detached in the middle, by force",
                "requests abort, waits for the node",
            ),
        delayed(apart(provisioned())).row(
            "detached and deleted, delayed",
            "withheld: DeletionDelayed, waits for the user",
        ),
        delayed(provisioned()).node("active").live().row(
            "to be detached and deleted, delayed",
            "requests set maintenance, requests delete node, withheld: DeletionDelayed, replan",
        ),
        delayed(deprovisioning()).node("active").row(
            "deprovisioning, to be detached and deleted, delayed",
            "withheld: DeletionDelayed, waits for the user",
        ),
        delayed(provisioning())
            .annotated(mark, r#"{"deleteAction":"delay","force":true}"#)
            .node("wait call-back")
            .live()
            .row(
                "to be detached by force and deleted, delayed",
                "requests abort, withheld: DeletionDelayed, waits for the node",
            ),
        delayed(unmanaged()).row(
            "unmanaged, to be detached and deleted, delayed",
            "withheld: DeletionDelayed, waits for the user",
        ),
        delayed(withheld()).no_node().row(
            "withheld, to be detached and deleted, delayed",
            "writes the status, withheld: DeprovisionBudgetSpent, waits for the user",
        ),
        withheld()
            .annotated(mark, "")
            .deleted()
            .row("withheld, detached and deleted", "writes the status, to deleting, replan"),
        apart(provisioned()).deleted().row(
            "detached and deleted, without an action on deletion",
            "writes the status, to deleting, replan",
        ),
        provisioned().annotated(mark, "for repair").deleted().row(
            "detached for another reason and deleted",
            "writes the status, to deleting, replan",
        ),
        going(new()).row("new, detached and deleted", "writes the status, to deleting, replan"),
        going(unmanaged()).row("unmanaged, detached and deleted", "writes the status, to deleting, replan"),
        going(Fixture::new("match profile")).row(
            "in a former state, detached and deleted",
            "writes the status, to deleting, replan",
        ),
        going(Fixture::new("polishing")).row(
            "in an unknown state, detached and deleted",
            "writes the status, registration error: status.provisioning.state is \"polishing\", which this version does \
             not support; the host is not changed. Return to the version that wrote it, waits for the user",
        ),
        withheld().spec_image("b").annotated(mark, "").no_node().row(
            "withheld, and to be detached",
            "writes the status, withheld: DeprovisionBudgetSpent, waits for the user",
        ),
        going(apart(provisioned())).row("detached and deleted", "writes the status, to deleting, replan"),
        going(available()).row(
            "available, detached and deleted",
            "writes the status, to deleting, replan",
        ),
        going(external()).row(
            "external, detached and deleted",
            "writes the status, to deleting, replan",
        ),
        going(provisioning()).row(
            "provisioning, detached and deleted",
            "writes the status, to deleting, replan",
        ),
        going(deprovisioning()).row(
            "deprovisioning, detached and deleted",
            "writes the status, to deleting, replan",
        ),
        going(powering_off()).row(
            "powering off, detached and deleted",
            "writes the status, to deleting, replan",
        ),
        going(registering()).row(
            "registering, detached and deleted",
            "writes the status, to deleting, replan",
        ),
        going(inspecting()).row(
            "inspecting, detached and deleted",
            "writes the status, to deleting, replan",
        ),
        going(preparing()).row(
            "preparing, detached and deleted",
            "writes the status, to deleting, replan",
        ),
    ]
}
