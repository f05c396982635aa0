//! Event subscriptions. They are stored; no event is sent.

use serde_json::{Value, json};

use super::{Answer, Request, Verb, collection};
use crate::machine::Machine;

const SERVICE: &str = "/redfish/v1/EventService";
const HEADERS: &str = "HttpHeaders";

pub(super) fn answer(machine: &mut Machine, request: &Request<'_>, path: &[&str]) -> Answer {
    match (request.verb, path) {
        (Verb::Get, []) => Answer::ok(service()),
        (Verb::Get, ["Subscriptions"]) => Answer::ok(collection(
            "EventDestination",
            &format!("{SERVICE}/Subscriptions"),
            machine.subscriptions.keys().map(ToString::to_string),
        )),
        (Verb::Post, ["Subscriptions"]) => subscribe(machine, request.body),
        (Verb::Get, ["Subscriptions", id]) => match find(machine, id) {
            Some((_, subscription)) => Answer::ok(shown(subscription)),
            None => Answer::not_found(request.path),
        },
        (Verb::Delete, ["Subscriptions", id]) => match find(machine, id) {
            Some((number, _)) => {
                machine.subscriptions.remove(&number);
                Answer::done()
            }
            None => Answer::not_found(request.path),
        },
        _ => Answer::not_found(request.path),
    }
}

fn find<'a>(machine: &'a Machine, id: &str) -> Option<(u64, &'a Value)> {
    let number = id.parse().ok()?;
    Some((number, machine.subscriptions.get(&number)?))
}

fn service() -> Value {
    json!({
        "@odata.id": SERVICE,
        "@odata.type": "#EventService.v1_0_6.EventService",
        "Id": "EventService",
        "Name": "Event Service",
        "ServiceEnabled": true,
        "EventTypesForSubscription": ["Alert"],
        "Subscriptions": { "@odata.id": format!("{SERVICE}/Subscriptions") },
        "Actions": {},
    })
}

fn subscribe(machine: &mut Machine, body: &Value) -> Answer {
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
    if text("Destination").is_empty() {
        return Answer::error(400, "Destination is required");
    }
    let number = machine
        .subscriptions
        .keys()
        .last()
        .map_or(1, |last| last.saturating_add(1));
    let path = format!("{SERVICE}/Subscriptions/{number}");
    let subscription = json!({
        "@odata.id": path,
        "@odata.type": "#EventDestination.v1_4_0.EventDestination",
        "Id": number.to_string(),
        "Name": "Event Subscription",
        "Destination": text("Destination"),
        "Context": text("Context"),
        "Protocol": text("Protocol"),
        "EventTypes": body.get("EventTypes").cloned().unwrap_or_default(),
        HEADERS: body.get(HEADERS).cloned().unwrap_or_default(),
    });
    let answer = Answer {
        status: 201,
        location: Some(path),
        ..Answer::ok(shown(&subscription))
    };
    machine.subscriptions.insert(number, subscription);
    answer
}

/// A BMC never returns the HTTP headers.
fn shown(subscription: &Value) -> Value {
    let mut shown = subscription.clone();
    if let Some(members) = shown.as_object_mut() {
        members.remove(HEADERS);
    }
    shown
}
