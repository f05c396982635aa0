//! Differences that the comparison of random requests tolerates: a table, which the committed matrix lists.
//!
//! Everything else is compared. A row for the real server only does not apply to the simulator.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::subject::Reply;

/// The server of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Simulated,
    Real,
}

/// A response, or an event as its body.
struct Response {
    /// Whether it is the response to an apply.
    applied: bool,
    code: u16,
    body: Value,
    warnings: Vec<String>,
}

enum Rule {
    /// Normalizes a response.
    Each(fn(&mut Response)),
    /// Filters events.
    Events(fn(Vec<Value>) -> Vec<Value>),
}

/// One row of the table.
pub(super) struct Tolerance {
    pub(super) text: &'static str,
    /// Whether it applies only to the real server.
    only_real: bool,
    rule: Rule,
}

impl Tolerance {
    /// The servers that it applies to.
    pub(super) fn of(&self) -> &'static str {
        if self.only_real { "the real server" } else { "both" }
    }

    fn applies_to(&self, side: Side) -> bool {
        side == Side::Real || !self.only_real
    }
}

const fn both(text: &'static str, rule: fn(&mut Response)) -> Tolerance {
    Tolerance {
        text,
        only_real: false,
        rule: Rule::Each(rule),
    }
}

const fn real(text: &'static str, rule: Rule) -> Tolerance {
    Tolerance {
        text,
        only_real: true,
        rule,
    }
}

pub(super) const TOLERANCES: [Tolerance; 13] = [
    both("uids, resource versions and continue tokens", drop_identities),
    both("values of times; their presence is compared", normalize_times),
    both(
        "the presence of a time of an applier: an apply of fields that it cannot set, such as a status on the \
         object's path, may or may not update the time",
        drop_apply_times,
    ),
    both("the order of field managers", sort_managers),
    both("the order of causes and of warnings", sort_causes),
    both(
        "the order of several causes in a message; `details` has all of them",
        normalize_invalid,
    ),
    both("the order of several errors of an apply", normalize_typed),
    both(
        "the message of a uid precondition, which has both uids and a storage key",
        normalize_uid,
    ),
    Tolerance {
        text: "events that change only the time of a field manager: they depend on the seconds between two writes",
        only_real: false,
        rule: Rule::Events(without_times),
    },
    real(
        "duplicate causes: some metadata is validated twice; the message has them once",
        Rule::Each(dedup_causes),
    ),
    real(
        "warnings of unknown fields in rejected requests",
        Rule::Each(drop_warnings),
    ),
    real(
        "nulls in labels and finalizers in the response to an apply that deletes the object",
        Rule::Each(drop_nulls),
    ),
    real(
        "events without a change: an apply of a null in metadata is stored",
        Rule::Events(without_idle),
    ),
];

/// A normalized response.
pub(super) fn normalized_reply(side: Side, applied: bool, reply: &Reply) -> Value {
    let response = Response {
        applied,
        code: reply.code,
        body: reply.body.clone(),
        warnings: reply.warnings.clone(),
    };
    normalized(&TOLERANCES.each_ref(), side, response)
}

fn normalized(table: &[&Tolerance], side: Side, mut response: Response) -> Value {
    for tolerance in table.iter().filter(|tolerance| tolerance.applies_to(side)) {
        if let Rule::Each(rule) = tolerance.rule {
            rule(&mut response);
        }
    }
    json!({"code": response.code, "body": response.body, "warnings": response.warnings})
}

/// Normalized events of a watch.
pub(super) fn normalized_events(side: Side, events: Vec<Value>) -> Vec<Value> {
    normalized_all(&TOLERANCES.each_ref(), side, events)
}

fn normalized_all(table: &[&Tolerance], side: Side, events: Vec<Value>) -> Vec<Value> {
    let each = |event: Value| {
        let response = Response {
            applied: false,
            code: 200,
            body: event,
            warnings: Vec::new(),
        };
        let mut event = normalized(table, side, response);
        event.get_mut("body").map(Value::take).unwrap_or_default()
    };
    let concerned = table.iter().filter(|tolerance| tolerance.applies_to(side));
    let left = concerned.fold(events, |events, tolerance| match tolerance.rule {
        Rule::Events(filter) => filter(events),
        Rule::Each(_) => events,
    });
    left.into_iter().map(each).collect()
}

/// Visits all maps, outer before inner.
fn each_map(value: &mut Value, work: &mut dyn FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(map) => {
            work(map);
            map.values_mut().for_each(|value| each_map(value, work));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_map(item, work)),
        _ => {}
    }
}

/// Visits the metadata of objects and lists.
fn each_metadata(value: &mut Value, work: &mut dyn FnMut(&mut Map<String, Value>)) {
    each_map(value, &mut |map| {
        if let Some(Value::Object(metadata)) = map.get_mut("metadata") {
            work(metadata);
        }
    });
}

fn each_manager(value: &mut Value, work: &mut dyn FnMut(&mut Map<String, Value>)) {
    each_metadata(value, &mut |metadata| {
        let managers = metadata.get_mut("managedFields").and_then(Value::as_array_mut);
        managers
            .into_iter()
            .flatten()
            .filter_map(Value::as_object_mut)
            .for_each(&mut *work);
    });
}

fn drop_identities(response: &mut Response) {
    each_metadata(&mut response.body, &mut |metadata| {
        for name in ["uid", "resourceVersion", "continue"] {
            metadata.remove(name);
        }
    });
    // The `Status` of a deletion has the uid of the object.
    if let Some(Value::Object(details)) = response.body.get_mut("details") {
        details.remove("uid");
    }
}

fn normalize_times(response: &mut Response) {
    let normalize = |map: &mut Map<String, Value>, name: &str| {
        if let Some(time) = map.get_mut(name) {
            *time = "time".into();
        }
    };
    each_metadata(&mut response.body, &mut |metadata| {
        normalize(metadata, "creationTimestamp");
        normalize(metadata, "deletionTimestamp");
    });
    each_manager(&mut response.body, &mut |manager| normalize(manager, "time"));
}

fn drop_apply_times(response: &mut Response) {
    each_manager(&mut response.body, &mut |manager| {
        if manager.get("operation").and_then(Value::as_str) == Some("Apply") {
            manager.remove("time");
        }
    });
}

fn sort_managers(response: &mut Response) {
    sort_managers_of(&mut response.body);
}

fn sort_managers_of(object: &mut Value) {
    each_metadata(object, &mut |metadata| {
        if let Some(Value::Array(managers)) = metadata.get_mut("managedFields") {
            managers.sort_by_key(Value::to_string);
        }
    });
}

fn causes(response: &mut Response) -> Option<&mut Vec<Value>> {
    response.body.pointer_mut("/details/causes")?.as_array_mut()
}

fn sort_causes(response: &mut Response) {
    response.warnings.sort();
    if let Some(causes) = causes(response) {
        causes.sort_by_key(Value::to_string);
    }
}

fn dedup_causes(response: &mut Response) {
    if let Some(causes) = causes(response) {
        causes.dedup();
    }
}

fn message(response: &mut Response, matches: impl Fn(&str) -> bool, otherwise: impl Fn(&str) -> String) {
    if let Some(Value::String(text)) = response.body.get_mut("message")
        && matches(text)
    {
        *text = otherwise(text);
    }
}

fn normalize_invalid(response: &mut Response) {
    let several = |text: &str| text.contains(" is invalid: [");
    message(response, several, |_| "several causes".to_owned());
}

fn normalize_typed(response: &mut Response) {
    let several = |text: &str| text.contains("typed patch object") && text.contains("errors:");
    message(response, several, |text| {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        lines.join("\n")
    });
}

fn normalize_uid(response: &mut Response) {
    let quotes = |text: &str| text.contains("UID in object meta");
    message(response, quotes, |_| "uid precondition".to_owned());
}

fn drop_warnings(response: &mut Response) {
    if response.code >= 300 {
        response.warnings.clear();
    }
}

fn drop_nulls(response: &mut Response) {
    let terminating = response.applied && response.body.pointer("/metadata/deletionTimestamp").is_some();
    let Some(metadata) = response.body.get_mut("metadata").filter(|_| terminating) else {
        return;
    };
    if metadata.get("finalizers") == Some(&Value::Null)
        && let Value::Object(metadata) = metadata
    {
        metadata.remove("finalizers");
    }
    if let Some(Value::Object(labels)) = metadata.get_mut("labels") {
        for value in labels.values_mut().filter(|value| value.is_null()) {
            *value = "".into();
        }
    }
}

/// What an event changes, compared with the previous event of the object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Nothing,
    ManagerTime,
    More,
}

fn change(before: Option<&Value>, event: &Value) -> Change {
    let Some(before) = before.filter(|_| event.get("type").and_then(Value::as_str) == Some("MODIFIED")) else {
        return Change::More;
    };
    let [mut old, mut new] = [before, event].map(|event| event.get("object").cloned().unwrap_or_default());
    for object in [&mut old, &mut new] {
        each_metadata(object, &mut |metadata| drop(metadata.remove("resourceVersion")));
    }
    if old == new {
        return Change::Nothing;
    }
    for object in [&mut old, &mut new] {
        each_manager(object, &mut |manager| drop(manager.remove("time")));
        // A new time changes the order.
        sort_managers_of(object);
    }
    if old == new { Change::ManagerTime } else { Change::More }
}

fn without(events: Vec<Value>, idle: Change) -> Vec<Value> {
    let mut last: BTreeMap<Option<String>, Value> = BTreeMap::new();
    let mut is_idle = |event: &Value| {
        let name = event.pointer("/object/metadata/name").map(Value::to_string);
        let found = change(last.get(&name), event);
        last.insert(name, event.clone());
        found == idle
    };
    events.into_iter().filter(|event| !is_idle(event)).collect()
}

fn without_times(events: Vec<Value>) -> Vec<Value> {
    without(events, Change::ManagerTime)
}

/// Events without those that repeat the previous state of their object.
fn without_idle(events: Vec<Value>) -> Vec<Value> {
    without(events, Change::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Responses of both servers: the first is the response to an apply, the others are events.
    struct Example {
        simulated: Vec<Value>,
        real: Vec<Value>,
    }

    fn answers(simulated: Value, real: Value) -> Example {
        Example {
            simulated: vec![simulated],
            real: vec![real],
        }
    }

    fn with_metadata(metadata: Value) -> Value {
        json!({"body": {"metadata": metadata}})
    }

    fn with_managers(managers: Value) -> Value {
        with_metadata(json!({"managedFields": managers}))
    }

    fn refused(body: Value) -> Value {
        json!({"code": 422, "body": body})
    }

    /// One example for each row, in order.
    fn examples() -> [Example; 13] {
        let message = |message: &str| refused(json!({"message": message}));
        let causes = |causes: Value| refused(json!({"details": {"causes": causes}}));
        let event = |size: u8| json!({"type": "MODIFIED", "object": {"metadata": {"name": "a"}, "size": size}});
        let timed = |size: u8, time: &str| {
            let managers = json!([{"manager": "a", "time": time}]);
            json!({"type": "MODIFIED", "object": {"metadata": {"name": "a", "managedFields": managers}, "size": size}})
        };
        let terminating =
            |finalizers: Value| with_metadata(json!({"deletionTimestamp": "t", "finalizers": finalizers}));
        [
            answers(with_metadata(json!({"uid": "1"})), with_metadata(json!({"uid": "2"}))),
            answers(
                with_metadata(json!({"creationTimestamp": "1"})),
                with_metadata(json!({"creationTimestamp": "2"})),
            ),
            answers(
                with_managers(json!([{"operation": "Apply", "time": "1"}])),
                with_managers(json!([{"operation": "Apply"}])),
            ),
            answers(
                with_managers(json!([{"manager": "a"}, {"manager": "b"}])),
                with_managers(json!([{"manager": "b"}, {"manager": "a"}])),
            ),
            answers(causes(json!([1, 2])), causes(json!([2, 1]))),
            answers(message("a is invalid: [b, c]"), message("a is invalid: [c, b]")),
            answers(
                message("typed patch object: errors:\n  a\n  b"),
                message("typed patch object: errors:\n  b\n  a"),
            ),
            answers(message("UID in object meta: 1"), message("UID in object meta: 2")),
            Example {
                simulated: vec![json!({}), timed(1, "1"), timed(1, "2"), timed(2, "3")],
                real: vec![json!({}), timed(1, "1"), timed(2, "3")],
            },
            answers(causes(json!([1])), causes(json!([1, 1]))),
            answers(
                refused(json!({})),
                json!({"code": 422, "body": {}, "warnings": ["unknown field"]}),
            ),
            answers(
                with_metadata(json!({"deletionTimestamp": "t"})),
                terminating(Value::Null),
            ),
            Example {
                simulated: vec![json!({}), event(1), event(2)],
                real: vec![json!({}), event(1), event(1), event(2)],
            },
        ]
    }

    /// The compared values of one server.
    fn compared(table: &[&Tolerance], side: Side, response: &[Value]) -> (Value, Vec<Value>) {
        let (answer, events) = response.split_first().unwrap();
        let warnings = answer.get("warnings").and_then(Value::as_array).into_iter().flatten();
        let reply = Response {
            applied: true,
            code: answer
                .get("code")
                .map_or(200, |code| u16::try_from(code.as_u64().unwrap()).unwrap()),
            body: answer.get("body").cloned().unwrap_or_default(),
            warnings: warnings.map(ToString::to_string).collect(),
        };
        (
            normalized(table, side, reply),
            normalized_all(table, side, events.to_vec()),
        )
    }

    fn differ(table: &[&Tolerance], simulated: &[Value], real: &[Value]) -> bool {
        compared(table, Side::Simulated, simulated) != compared(table, Side::Real, real)
    }

    #[test]
    fn each_row_tolerates_a_difference_that_no_other_row_does() {
        let table = TOLERANCES.each_ref();
        for (number, Example { simulated, real }) in examples().into_iter().enumerate() {
            let text = TOLERANCES[number].text;
            assert!(!differ(&table, &simulated, &real), "tolerated: {text}");
            let mut others = table.to_vec();
            others.remove(number);
            assert!(differ(&others, &simulated, &real), "tolerated by another row: {text}");
        }
    }

    #[test]
    fn difference_tolerated_only_of_the_real_server_counts_for_the_simulator() {
        let table = TOLERANCES.each_ref();
        for (tolerance, Example { simulated, real }) in TOLERANCES.iter().zip(examples()) {
            assert_eq!(
                differ(&table, &real, &simulated),
                tolerance.only_real,
                "{}",
                tolerance.text
            );
        }
    }

    #[test]
    fn null_is_compared_unless_an_apply_deletes_the_object() {
        let null = with_metadata(json!({"finalizers": null}));
        assert!(differ(&TOLERANCES.each_ref(), &[with_metadata(json!({}))], &[null]));
    }

    #[test]
    fn fields_outside_of_metadata_are_compared() {
        let [one, other] = ["1", "2"].map(|uid| json!({"body": {"spec": {"uid": uid, "time": uid}}}));
        assert!(differ(&TOLERANCES.each_ref(), &[one], &[other]));
    }
}
