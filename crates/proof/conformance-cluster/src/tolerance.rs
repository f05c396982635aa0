//! What the comparison of random requests overlooks: a table of which each row is told in the committed matrix.
//!
//! Nothing else is made alike. A row that says `Side::Real` is not looked for in what the simulator says: there it is a
//! difference.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::subject::Reply;

/// Who said it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Simulated,
    Real,
}

/// An answer, or an event as the body of one.
struct Said {
    /// Whether it answers an apply.
    applied: bool,
    code: u16,
    body: Value,
    warnings: Vec<String>,
}

enum Level {
    /// Makes what was said alike.
    Each(fn(&mut Said)),
    /// Leaves events out.
    Events(fn(Vec<Value>) -> Vec<Value>),
}

/// One row of the table.
pub(super) struct Tolerance {
    pub(super) says: &'static str,
    /// Of the real server alone, or of both.
    only_real: bool,
    level: Level,
}

impl Tolerance {
    /// Whose saying is overlooked.
    pub(super) fn of(&self) -> &'static str {
        if self.only_real { "the real server" } else { "both" }
    }

    fn concerns(&self, side: Side) -> bool {
        side == Side::Real || !self.only_real
    }
}

const fn both(says: &'static str, level: fn(&mut Said)) -> Tolerance {
    Tolerance {
        says,
        only_real: false,
        level: Level::Each(level),
    }
}

const fn real(says: &'static str, level: Level) -> Tolerance {
    Tolerance {
        says,
        only_real: true,
        level,
    }
}

pub(super) const TOLERANCES: [Tolerance; 13] = [
    both(
        "uids, versions of objects and lists, and tokens of pages are each server's own",
        drop_identities,
    ),
    both("times are each server's own; whether there is one counts", level_times),
    both(
        "whether an owner by apply has a time: an apply of nothing but what cannot be set, such as a status on the \
         object's path, leaves its time or does not, from one run to the next",
        drop_apply_times,
    ),
    both("the order of owners, which come by age", sort_owners),
    both("the order of causes and of warnings", sort_causes),
    both(
        "the order of several causes in a message, of which `details` has them all",
        level_invalid,
    ),
    both("the order of several errors of an apply", level_typed),
    both(
        "the message about another uid, which quotes both and a key of the storage",
        level_uid,
    ),
    Tolerance {
        says: "events in which nothing changes but the time of an owner: whether a second has passed since the last write \
               is each run's own",
        only_real: false,
        level: Level::Events(without_times),
    },
    real(
        "causes that are listed twice, since some metadata is checked twice; the message has them once",
        Level::Each(dedup_causes),
    ),
    real(
        "warnings of unknown fields in requests that are then refused",
        Level::Each(drop_warnings),
    ),
    real(
        "nulls in labels and finalizers in the answer to an apply that lets an object go: it is shown as it was applied",
        Level::Each(drop_nulls),
    ),
    real(
        "events in which nothing changes: an apply of a null in metadata is stored",
        Level::Events(without_idle),
    ),
];

/// An answer without what is tolerated.
pub(super) fn reply_alike(side: Side, applied: bool, reply: &Reply) -> Value {
    let said = Said {
        applied,
        code: reply.code,
        body: reply.body.clone(),
        warnings: reply.warnings.clone(),
    };
    alike(&TOLERANCES.each_ref(), side, said)
}

fn alike(table: &[&Tolerance], side: Side, mut said: Said) -> Value {
    for tolerance in table.iter().filter(|tolerance| tolerance.concerns(side)) {
        if let Level::Each(level) = tolerance.level {
            level(&mut said);
        }
    }
    json!({"code": said.code, "body": said.body, "warnings": said.warnings})
}

/// The events of a watch without what is tolerated.
pub(super) fn events_alike(side: Side, events: Vec<Value>) -> Vec<Value> {
    all_alike(&TOLERANCES.each_ref(), side, events)
}

fn all_alike(table: &[&Tolerance], side: Side, events: Vec<Value>) -> Vec<Value> {
    let each = |event: Value| {
        let said = Said {
            applied: false,
            code: 200,
            body: event,
            warnings: Vec::new(),
        };
        let mut alike = alike(table, side, said);
        alike.get_mut("body").map(Value::take).unwrap_or_default()
    };
    let concerned = table.iter().filter(|tolerance| tolerance.concerns(side));
    let left = concerned.fold(events, |events, tolerance| match tolerance.level {
        Level::Events(thin) => thin(events),
        Level::Each(_) => events,
    });
    left.into_iter().map(each).collect()
}

/// Works on all maps, the outer before the inner.
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

/// Works on the metadata of objects and lists.
fn each_metadata(value: &mut Value, work: &mut dyn FnMut(&mut Map<String, Value>)) {
    each_map(value, &mut |map| {
        if let Some(Value::Object(metadata)) = map.get_mut("metadata") {
            work(metadata);
        }
    });
}

fn each_owner(value: &mut Value, work: &mut dyn FnMut(&mut Map<String, Value>)) {
    each_metadata(value, &mut |metadata| {
        let owners = metadata.get_mut("managedFields").and_then(Value::as_array_mut);
        owners
            .into_iter()
            .flatten()
            .filter_map(Value::as_object_mut)
            .for_each(&mut *work);
    });
}

fn drop_identities(said: &mut Said) {
    each_metadata(&mut said.body, &mut |metadata| {
        for name in ["uid", "resourceVersion", "continue"] {
            metadata.remove(name);
        }
    });
    // The `Status` of a deletion names the uid of what went.
    if let Some(Value::Object(details)) = said.body.get_mut("details") {
        details.remove("uid");
    }
}

fn level_times(said: &mut Said) {
    let level = |map: &mut Map<String, Value>, name: &str| {
        if let Some(time) = map.get_mut(name) {
            *time = "time".into();
        }
    };
    each_metadata(&mut said.body, &mut |metadata| {
        level(metadata, "creationTimestamp");
        level(metadata, "deletionTimestamp");
    });
    each_owner(&mut said.body, &mut |owner| level(owner, "time"));
}

fn drop_apply_times(said: &mut Said) {
    each_owner(&mut said.body, &mut |owner| {
        if owner.get("operation").and_then(Value::as_str) == Some("Apply") {
            owner.remove("time");
        }
    });
}

fn sort_owners(said: &mut Said) {
    sort_owners_of(&mut said.body);
}

fn sort_owners_of(object: &mut Value) {
    each_metadata(object, &mut |metadata| {
        if let Some(Value::Array(owners)) = metadata.get_mut("managedFields") {
            owners.sort_by_key(Value::to_string);
        }
    });
}

fn causes(said: &mut Said) -> Option<&mut Vec<Value>> {
    said.body.pointer_mut("/details/causes")?.as_array_mut()
}

fn sort_causes(said: &mut Said) {
    said.warnings.sort();
    if let Some(causes) = causes(said) {
        causes.sort_by_key(Value::to_string);
    }
}

fn dedup_causes(said: &mut Said) {
    if let Some(causes) = causes(said) {
        causes.dedup();
    }
}

fn message(said: &mut Said, is_so: impl Fn(&str) -> bool, otherwise: impl Fn(&str) -> String) {
    if let Some(Value::String(text)) = said.body.get_mut("message")
        && is_so(text)
    {
        *text = otherwise(text);
    }
}

fn level_invalid(said: &mut Said) {
    let several = |text: &str| text.contains(" is invalid: [");
    message(said, several, |_| "several causes".to_owned());
}

fn level_typed(said: &mut Said) {
    let several = |text: &str| text.contains("typed patch object") && text.contains("errors:");
    message(said, several, |text| {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        lines.join("\n")
    });
}

fn level_uid(said: &mut Said) {
    let quotes = |text: &str| text.contains("UID in object meta");
    message(said, quotes, |_| "uid precondition".to_owned());
}

fn drop_warnings(said: &mut Said) {
    if said.code >= 300 {
        said.warnings.clear();
    }
}

fn drop_nulls(said: &mut Said) {
    let going = said.applied && said.body.pointer("/metadata/deletionTimestamp").is_some();
    let Some(metadata) = said.body.get_mut("metadata").filter(|_| going) else {
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

/// What an event changes of the object that watchers know.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Nothing,
    OwnersTime,
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
        each_owner(object, &mut |owner| drop(owner.remove("time")));
        // A new time is a new place.
        sort_owners_of(object);
    }
    if old == new { Change::OwnersTime } else { Change::More }
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
    without(events, Change::OwnersTime)
}

/// Watchers see the object modified into what it was.
fn without_idle(events: Vec<Value>) -> Vec<Value> {
    without(events, Change::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the simulator and the real server say, each as events of which the first is the answer to an apply.
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

    fn with_owners(owners: Value) -> Value {
        with_metadata(json!({"managedFields": owners}))
    }

    fn refused(body: Value) -> Value {
        json!({"code": 422, "body": body})
    }

    /// One for each row of the table, in its order.
    fn examples() -> [Example; 13] {
        let told = |message: &str| refused(json!({"message": message}));
        let causes = |causes: Value| refused(json!({"details": {"causes": causes}}));
        let event = |size: u8| json!({"type": "MODIFIED", "object": {"metadata": {"name": "a"}, "size": size}});
        let timed = |size: u8, time: &str| {
            let owners = json!([{"manager": "a", "time": time}]);
            json!({"type": "MODIFIED", "object": {"metadata": {"name": "a", "managedFields": owners}, "size": size}})
        };
        let going = |finalizers: Value| with_metadata(json!({"deletionTimestamp": "t", "finalizers": finalizers}));
        [
            answers(with_metadata(json!({"uid": "1"})), with_metadata(json!({"uid": "2"}))),
            answers(
                with_metadata(json!({"creationTimestamp": "1"})),
                with_metadata(json!({"creationTimestamp": "2"})),
            ),
            answers(
                with_owners(json!([{"operation": "Apply", "time": "1"}])),
                with_owners(json!([{"operation": "Apply"}])),
            ),
            answers(
                with_owners(json!([{"manager": "a"}, {"manager": "b"}])),
                with_owners(json!([{"manager": "b"}, {"manager": "a"}])),
            ),
            answers(causes(json!([1, 2])), causes(json!([2, 1]))),
            answers(told("a is invalid: [b, c]"), told("a is invalid: [c, b]")),
            answers(
                told("typed patch object: errors:\n  a\n  b"),
                told("typed patch object: errors:\n  b\n  a"),
            ),
            answers(told("UID in object meta: 1"), told("UID in object meta: 2")),
            Example {
                simulated: vec![json!({}), timed(1, "1"), timed(1, "2"), timed(2, "3")],
                real: vec![json!({}), timed(1, "1"), timed(2, "3")],
            },
            answers(causes(json!([1])), causes(json!([1, 1]))),
            answers(
                refused(json!({})),
                json!({"code": 422, "body": {}, "warnings": ["unknown field"]}),
            ),
            answers(with_metadata(json!({"deletionTimestamp": "t"})), going(Value::Null)),
            Example {
                simulated: vec![json!({}), event(1), event(2)],
                real: vec![json!({}), event(1), event(1), event(2)],
            },
        ]
    }

    /// What is compared of one side.
    fn seen(table: &[&Tolerance], side: Side, said: &[Value]) -> (Value, Vec<Value>) {
        let (answer, events) = said.split_first().unwrap();
        let warnings = answer.get("warnings").and_then(Value::as_array).into_iter().flatten();
        let reply = Said {
            applied: true,
            code: answer
                .get("code")
                .map_or(200, |code| u16::try_from(code.as_u64().unwrap()).unwrap()),
            body: answer.get("body").cloned().unwrap_or_default(),
            warnings: warnings.map(ToString::to_string).collect(),
        };
        (alike(table, side, reply), all_alike(table, side, events.to_vec()))
    }

    fn differ(table: &[&Tolerance], simulated: &[Value], real: &[Value]) -> bool {
        seen(table, Side::Simulated, simulated) != seen(table, Side::Real, real)
    }

    #[test]
    fn each_row_of_the_table_overlooks_what_no_other_does() {
        let table = TOLERANCES.each_ref();
        for (number, Example { simulated, real }) in examples().into_iter().enumerate() {
            let says = TOLERANCES[number].says;
            assert!(!differ(&table, &simulated, &real), "overlooked: {says}");
            let mut others = table.to_vec();
            others.remove(number);
            assert!(differ(&others, &simulated, &real), "overlooked by another: {says}");
        }
    }

    #[test]
    fn what_is_overlooked_of_the_real_server_alone_is_a_difference_in_the_simulator() {
        let table = TOLERANCES.each_ref();
        for (tolerance, Example { simulated, real }) in TOLERANCES.iter().zip(examples()) {
            assert_eq!(
                differ(&table, &real, &simulated),
                tolerance.only_real,
                "{}",
                tolerance.says
            );
        }
    }

    #[test]
    fn a_null_counts_where_no_apply_lets_the_object_go() {
        let null = with_metadata(json!({"finalizers": null}));
        assert!(differ(&TOLERANCES.each_ref(), &[with_metadata(json!({}))], &[null]));
    }

    #[test]
    fn what_only_has_the_name_of_metadata_counts() {
        let [one, other] = ["1", "2"].map(|uid| json!({"body": {"spec": {"uid": uid, "time": uid}}}));
        assert!(differ(&TOLERANCES.each_ref(), &[one], &[other]));
    }
}
