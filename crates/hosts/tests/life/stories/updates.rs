//! The invariants of updates of the firmware: a cleaning makes what the user asks for, not twice for the same request, and at rest the
//! machine has it or a message says why not.

use serde_json::Value;
use tokio::time::Instant;

use super::history::{History, state};
use super::judge::{Order, SLACK};

/// An order that was sent, and what the machine had then.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    updates: Vec<(String, String)>,
    at: Instant,
    node: Value,
    /// The number of updates that were made before.
    made: usize,
}

/// The updates of an order: component and URL.
fn updates(order: &Order<'_>) -> Vec<(String, String)> {
    let steps = order.steps();
    let steps = steps.filter(|step| step["interface"] == "firmware");
    let settings = steps.filter_map(|step| step["args"]["settings"].as_array()).flatten();
    settings.map(pair).collect()
}

fn pair(update: &Value) -> (String, String) {
    let text = |name: &str| update[name].as_str().unwrap_or_default().to_owned();
    (text("component"), text("url"))
}

fn asks(object: &Value, wanted: &(String, String)) -> bool {
    let asked = object["spec"]["updates"].as_array().into_iter().flatten();
    asked.map(pair).any(|update| update == *wanted)
}

/// The violated invariant of a cleaning or a service with updates, if any. `made`: the updates that the machine made so far. A cleaning may fail
/// after its updates, and Ironic may lose what it did: then they are made again.
pub(super) fn violated_updates(
    order: &Order<'_>,
    asked: &History,
    made: &[(String, String)],
    last: &mut Option<Sent>,
) -> Option<String> {
    if ["clean failed", "service failed"]
        .iter()
        .any(|state| order.node["provision_state"] == *state)
    {
        *last = None;
    }
    let updates = updates(order);
    if updates.is_empty() {
        return None;
    }
    if let Some(update) = updates
        .iter()
        .find(|update| !asked.ever(SLACK, |object| asks(object, update)))
    {
        return Some(format!("clean: the user does not ask for the update of {}", update.0));
    }
    let before = last.replace(Sent {
        updates: updates.clone(),
        at: Instant::now(),
        node: order.node["uuid"].clone(),
        made: made.len(),
    });
    let before = before.filter(|before| before.node == order.node["uuid"])?;
    let since = made.get(before.made..).unwrap_or_default();
    let has_ended = before.updates.iter().all(|update| since.contains(update));
    let is_same_request = |update: &&(String, String)| {
        before.updates.contains(update)
            && asked
                .since(|object| asks(object, update))
                .is_some_and(|at| at <= before.at)
    };
    let again = updates.iter().find(is_same_request).filter(|_| has_ended)?;
    Some(format!("clean: the update of {} was made already", again.0))
}

/// `Err`: an update that the machine has not made and that no message names.
pub(super) fn unmade_update(host: &Value, object: &Value, made: &[(String, String)]) -> Result<(), String> {
    let messages = object["status"]["conditions"].as_array().into_iter().flatten();
    let messages = messages.filter(|one| one["observedGeneration"] == object["metadata"]["generation"]);
    let messages: Vec<_> = messages.filter_map(|one| one["message"].as_str()).collect();
    let shown = format!("{} {}", host["status"]["errorMessage"], messages.join(" "));
    for update in object["spec"]["updates"].as_array().into_iter().flatten() {
        let update = pair(update);
        if !made.contains(&update) && (state(host) == "available" || !shown.contains(&update.0)) {
            return Err(format!(
                "the update of {} is not made: {shown}, state {:?}",
                update.0,
                state(host)
            ));
        }
    }
    Ok(())
}
