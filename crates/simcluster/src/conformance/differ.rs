//! Random requests to two servers, whose answers must be the same.
//!
//! Uids, versions, times and texts that contain them are made alike first; everything else counts.

use std::collections::BTreeMap;

use futures::future::try_join_all;
use futures::try_join;
use metal3_faults::Random;
use serde_json::{Value, json};

use super::claims;
use super::operation::Operation;
use super::outcome::Broken;
use super::subject::{Reply, Subject};

/// What a seed found.
#[derive(Debug)]
pub struct Compared {
    /// The seed.
    pub seed: u64,
    /// Events of the watch that ran along, the same number on both sides unless they are among the differences.
    pub events: usize,
    /// Each difference in a line. At the first the servers' states part, so all after it may follow from it.
    pub differences: Vec<String>,
}

/// Sends `operations` requests of each seed to both servers, and compares what a watch saw of them. The seeds run side
/// by side, each in a namespace of its own, because most of the time is spent waiting for the real server.
///
/// # Errors
/// When a server does not answer, or the suite's kind cannot be installed.
pub async fn differ(
    one: kube::Client,
    other: kube::Client,
    seeds: &[u64],
    operations: u64,
    run: &str,
) -> Result<Vec<Compared>, Broken> {
    let sides = [one, other].map(|client| Subject::new(client, "default", Value::Null));
    for side in &sides {
        side.install(&claims::definition()).await?;
    }
    let compared = seeds.iter().map(|seed| {
        let namespace = format!("{run}-d{seed}");
        compare(
            sides.each_ref().map(|side| side.in_namespace(&namespace)),
            *seed,
            operations,
        )
    });
    let compared = try_join_all(compared).await?;
    for side in &sides {
        side.remove(claims::DEFINITION).await?;
    }
    Ok(compared)
}

async fn compare(sides: [Subject; 2], seed: u64, operations: u64) -> Result<Compared, Broken> {
    let mut starts = Vec::new();
    for side in &sides {
        side.make_namespace().await?;
        starts.push(side.get(&side.widget("")).await?.text("/metadata/resourceVersion"));
    }
    let watches = sides.iter().zip(&starts).map(|(side, start)| follow(side, start));
    let (seen, mut differences) = try_join!(try_join_all(watches), send(&sides, seed, operations))?;
    let [left, right] = seen.as_slice() else {
        return Err(Broken("two servers are compared".to_owned()));
    };
    let events = left.len().max(right.len());
    let at = |events: &[Value], number: usize| events.get(number).cloned().unwrap_or_default();
    let parted = (0..events).find(|number| left.get(*number) != right.get(*number));
    differences.extend(parted.map(|number| {
        format!(
            "event {number}\n  one:   {}\n  other: {}",
            at(left, number),
            at(right, number)
        )
    }));
    Ok(Compared {
        seed,
        events,
        differences,
    })
}

/// The name of the object that is made last, to end the watch. No operation draws it.
const END: &str = "the-end";

/// All events of the namespace after a version up to the end, made alike.
async fn follow(side: &Subject, start: &str) -> Result<Vec<Value>, Broken> {
    let ends = |event: &Value| event.pointer("/object/metadata/name") == Some(&END.into());
    let mut events = side
        .watch_until(&side.widget(&format!("?watch=1&resourceVersion={start}")), ends)
        .await?;
    events.iter_mut().for_each(level);
    Ok(without_idle(events))
}

/// Listed difference: a write that changes nothing but the time in `managedFields` is stored only if a second has passed
/// since the last, and the real server stores some that change nothing at all: an apply of a null in metadata. Watchers
/// see the object modified into what it was.
fn without_idle(events: Vec<Value>) -> Vec<Value> {
    let mut last = BTreeMap::new();
    let mut is_idle = |event: &Value| {
        let object = event.get("object").cloned().unwrap_or_default();
        let name = object.pointer("/metadata/name").map(Value::to_string);
        let modified = event.get("type").and_then(Value::as_str) == Some("MODIFIED");
        last.insert(name, object.clone())
            .is_some_and(|before| modified && before == object)
    };
    events.into_iter().filter(|event| !is_idle(event)).collect()
}

async fn send(sides: &[Subject; 2], seed: u64, operations: u64) -> Result<Vec<String>, Broken> {
    let mut random = Random::seeded(seed);
    let mut found = Vec::new();
    for number in 0..operations {
        let operation = Operation::draw(&mut random);
        let [left, right] = sides;
        let (left, right) = try_join!(operation.run(left), operation.run(right))?;
        let (left, right) = (alike(&left), alike(&right));
        if left != right {
            found.push(format!(
                "operation {number} {operation:?}\n  one:   {left}\n  other: {right}"
            ));
        }
    }
    for side in sides {
        side.make(END).await?;
    }
    Ok(found)
}

/// An answer without what differs by nature.
fn alike(reply: &Reply) -> Value {
    let mut body = reply.body.clone();
    level(&mut body);
    // Listed difference: the real server warns of unknown fields in requests that it then refuses, the simulator only
    // in those that it takes.
    let mut warnings = if reply.code < 300 {
        reply.warnings.clone()
    } else {
        Vec::new()
    };
    warnings.sort();
    json!({"code": reply.code, "body": body, "warnings": warnings})
}

const BY_NATURE: [&str; 4] = ["uid", "resourceVersion", "continue", "remainingItemCount"];

fn level(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for name in BY_NATURE {
                map.remove(name);
            }
            for name in ["creationTimestamp", "deletionTimestamp", "time"] {
                if let Some(time) = map.get_mut(name) {
                    *time = "time".into();
                }
            }
            // The real server checks some metadata twice and lists the causes twice; the message has them once.
            if let Some(Value::Array(causes)) = map.get_mut("causes") {
                causes.sort_by_key(Value::to_string);
                causes.dedup();
            }
            // Listed difference: an object that an apply lets go is shown by the real server with the nulls that were applied.
            if map.get("finalizers") == Some(&Value::Null) {
                map.remove("finalizers");
            }
            if let Some(Value::Object(labels)) = map.get_mut("labels") {
                labels
                    .values_mut()
                    .filter(|value| value.is_null())
                    .for_each(|value| *value = "".into());
            }
            // Listed difference: an apply of nothing but what cannot be set, such as a status on the object's path, leaves
            // its time on the real server or does not, from one run to the next.
            if map.get("operation").and_then(Value::as_str) == Some("Apply") {
                map.remove("time");
            }
            // Owners come by age, which is each server's own.
            if let Some(Value::Array(owners)) = map.get_mut("managedFields") {
                owners.iter_mut().for_each(level);
                owners.sort_by_key(Value::to_string);
            }
            map.values_mut().for_each(level);
        }
        Value::Array(items) => items.iter_mut().for_each(level),
        // Several causes come in any order; `details` has them all.
        Value::String(text) if text.contains(" is invalid: [") => "several causes".clone_into(text),
        Value::String(text) if text.contains("typed patch object") && text.contains("errors:") => {
            "several errors".clone_into(text);
        }
        Value::String(text) if text.contains("UID in object meta") => "uid precondition".clone_into(text),
        _ => {}
    }
}
