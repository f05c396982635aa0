//! What became of an order to update the firmware.

use chrono::TimeDelta;
use serde_json::{Value, json};

use super::super::Row;
use super::super::given::{failing, preparing, provisioned};
use super::{CHANGED, LATER, URL, asked, at_rest, cleaned, condition, failed, made, open_on, recorded, update};
use crate::facts::CleaningProgress;
use crate::node::firmware::Files;
use crate::tests::fixture::{Fixture, OTHER_UID};

pub(super) fn outcomes() -> Vec<Row> {
    let mut rows = under_way();
    rows.extend(ended());
    rows.extend(lost());
    rows.extend(taken_over());
    rows
}

/// This process saw the updates begin and end.
fn saw_it(fixture: &mut Fixture) {
    if let Some(order) = &mut fixture.cleaning_order {
        order.left = Some(Files::new());
    }
}

fn under_way() -> Vec<Row> {
    vec![
        asked()
            .node_with("clean wait", cleaned(URL))
            .row("an order that is not recorded", "records UpdateBegun, replan"),
        asked()
            .node_with("clean wait", cleaned("http://192.0.2.9/other"))
            .row("an order of another file that is not recorded", "waits for the node"),
        recorded("UpdateOrdered")
            .node_with("clean wait", cleaned(URL))
            .row("Ironic begins", "records UpdateBegun, replan"),
        recorded("UpdateOrdered")
            .node_with("clean wait", json!({ "target_provision_state": "available" }))
            .row("an automated cleaning of an operator", "waits for the node"),
        recorded("UpdateOrdered")
            .node_with("clean wait", cleaned("http://192.0.2.9/other"))
            .row("a cleaning of an operator with another file", "waits for the node"),
        recorded("UpdateOrdered")
            .node_with("cleaning", cleaned(URL))
            .row("a cleaning whose steps may be those of the last one", "waits for the node"),
        recorded("UpdateBegun")
            .node_with("clean wait", cleaned(URL))
            .row("under way", "waits for the node"),
        recorded("UpdateBegun")
            .node_with("clean failed", failed())
            .row("failed", "records UpdateFailed, replan"),
        preparing()
            .components(
                update(URL),
                json!([]),
                vec![condition("Updating", "False", "UpdateFailed", "bios: the update failed; it is repeated")],
            )
            .node_with("clean failed", failed())
            .row(
                "failed, and recorded",
                "writes the status, preparation error: the cleaning with updates of the firmware (bios) failed: Timeout, waits for a \
                 time",
            ),
    ]
}

fn ended() -> Vec<Row> {
    vec![
        recorded("UpdateBegun")
            .node_with("manageable", at_rest(LATER))
            .row("ended, not compared", "reads Versions, replan"),
        recorded("UpdateBegun")
            .node_with("manageable", at_rest(LATER))
            .machine_has("2")
            .row("ended", "records UpdateMade, replan"),
        recorded("UpdateBegun")
            .node_with("manageable", at_rest(LATER))
            .machine_has("1")
            .with(|fixture| fixture.began_elsewhere = true)
            .row("ended somehow, and no other version", "records no update, replan"),
        recorded("UpdateBegun")
            .node_with("manageable", at_rest(LATER))
            .ordered(CleaningProgress::Failed)
            .machine_has("1")
            .row("failed while the host was paused", "records UpdateFailed, replan"),
        recorded("UpdateOrdered")
            .node_with("manageable", at_rest(LATER))
            .ordered(CleaningProgress::Begun)
            .with(saw_it)
            .machine_has("1")
            .row("ended with the same version", "records UpdateMade, replan"),
        recorded("UpdateBegun")
            .node_with("manageable", at_rest(LATER))
            .ordered(CleaningProgress::Begun)
            .machine_has("1")
            .row("ended before its step, unseen", "records no update, replan"),
        recorded("UpdateOrdered")
            .node_with("manageable", at_rest(CHANGED))
            .ordered(CleaningProgress::Begun)
            .machine_has("1")
            .row(
                "accepted, and Ironic knows nothing of it any more",
                "records no update, replan",
            ),
        recorded("UpdateOrdered")
            .node_with("manageable", at_rest(CHANGED))
            .row("not begun", "records no update, replan"),
        recorded("UpdateOrdered")
            .node_with("manageable", at_rest(CHANGED))
            .unanswered(30)
            .row("perhaps still to begin", "waits for a time"),
        recorded("UpdateOrdered").node_with("manageable", at_rest(LATER)).row(
            "Ironic changed the state, and may have found no worker",
            "reads Versions, replan",
        ),
        recorded("UpdateOrdered")
            .node_with("manageable", at_rest(LATER))
            .machine_has("1")
            .row("Ironic found no worker", "records no update, replan"),
    ]
}

/// Ironic lost the node of the order.
fn lost() -> Vec<Row> {
    let lost = |reason: &str| preparing().components(update(URL), update(URL), open_on(OTHER_UID, reason));
    let held = "writes the status, preparation error: Ironic lost the node while it updated the firmware of the machine (bios), so the \
         machine is not touched until its BMC must have ended that, about two hours after the node was lost; what is not made then \
         is made again, withheld: FirmwareUpdatesLeft, waits for a time";
    vec![
        lost("UpdateBegun")
            .node_with("manageable", at_rest(LATER))
            .row("not compared", "reads Versions, replan"),
        lost("UpdateBegun")
            .node_with("manageable", at_rest(LATER))
            .machine_has("1")
            .row("a machine that may be flashed", held),
        lost("UpdateOrdered")
            .node_with("manageable", at_rest(LATER))
            .machine_has("1")
            .hours_later(2)
            .row("the same after two hours", held),
        lost("UpdateBegun")
            .node_with("manageable", at_rest(LATER))
            .machine_has("1")
            .hours_later(3)
            .row("its BMC has ended", "records no update, replan"),
        lost("UpdateBegun")
            .node_with("manageable", at_rest(LATER))
            .machine_has("1")
            .hours_later(3)
            .with(|fixture| {
                let just_now = (fixture.now.get() - TimeDelta::minutes(5)).to_rfc3339();
                if let Some(Some((node, _))) = &mut fixture.node {
                    node["created_at"] = json!(just_now);
                }
            })
            .row("the cleaning began long before the update", held),
        lost("UpdateBegun")
            .node_with("manageable", at_rest(LATER))
            .machine_has("2")
            .row("the machine has another version", "records UpdateMade, replan"),
    ]
}

/// The node of a service with the update.
fn serviced() -> Value {
    let mut node = cleaned(URL);
    if let Some(info) = node.pointer_mut("/driver_internal_info").and_then(Value::as_object_mut)
        && let Some(steps) = info.remove("clean_steps")
    {
        info.insert("service_steps".to_owned(), steps);
    }
    node
}

fn taken_over() -> Vec<Row> {
    let elsewhere = |fixture: Fixture| fixture.with(|fixture| fixture.began_elsewhere = true);
    let recorded = |conditions| preparing().components(update(URL), update(URL), conditions);
    vec![
        elsewhere(recorded(made(URL)).node("manageable"))
            .row("made, before a restart", "writes the status, to available, replan"),
        elsewhere(recorded(made(URL)).node_with("clean failed", failed())).row(
            "made, and another cleaning failed",
            "writes the status, preparation error: Timeout, waits for a time",
        ),
        elsewhere(recorded(made("http://192.0.2.9/1")).node_with("clean failed", failed())).row(
            "a Go manager failed after an update was made",
            "records UpdateFailed, replan",
        ),
        elsewhere(recorded(Vec::new()).node_with("clean failed", failed())).row(
            "a Go manager failed, and did not record it",
            "records UpdateFailed, replan",
        ),
        elsewhere(
            recorded(Vec::new())
                .node("manageable")
                .status(failing("preparation error", "Clean step failed", 1)),
        )
        .row("a Go manager failed, and recorded it", "records UpdateFailed, replan"),
        elsewhere(
            provisioned()
                .components(update(URL), update(URL), Vec::new())
                .node_with("service failed", failed()),
        )
        .row("the service of a Go manager failed", "records UpdateFailed, replan"),
        elsewhere(
            provisioned()
                .components(update(URL), json!([]), Vec::new())
                .node_with("service wait", serviced()),
        )
        .row(
            "a Go manager ended before it recorded its service",
            "records UpdateBegun, replan",
        ),
        provisioned()
            .components(update(URL), json!([]), Vec::new())
            .node_with("service wait", serviced())
            .row("a service of another client", "writes the status, waits for the node"),
    ]
}
