//! Random requests to two servers, whose answers must be the same.
//!
//! Uids, versions, times and texts that contain them are made alike first; everything else counts.

use metal3_faults::Random;
use serde_json::{Value, json};

use super::claims;
use super::outcome::Broken;
use super::subject::{Reply, Subject};

/// Sends `operations` requests to both servers. Each difference is described in a line; at the first the servers'
/// states part, so all after it may follow from it.
///
/// # Errors
/// When a server does not answer, or the suite's kind cannot be installed.
pub async fn differ(
    one: kube::Client,
    other: kube::Client,
    seed: u64,
    operations: u64,
    run: &str,
) -> Result<Vec<String>, Broken> {
    let namespace = format!("{run}-d{seed}");
    let sides = [Subject::new(one, &namespace), Subject::new(other, &namespace)];
    for side in &sides {
        side.install(&claims::definition()).await?;
        side.make_namespace().await?;
    }
    let mut random = Random::seeded(seed);
    let mut found = Vec::new();
    for number in 0..operations {
        let operation = Operation::draw(&mut random);
        let mut replies = Vec::new();
        for side in &sides {
            replies.push(alike(&operation.run(side).await?));
        }
        if let [left, right] = replies.as_slice()
            && left != right
        {
            found.push(format!(
                "operation {number} {operation:?}\n  one:   {left}\n  other: {right}"
            ));
        }
    }
    for side in &sides {
        side.remove(claims::DEFINITION).await?;
    }
    Ok(found)
}

/// A request that is the same for both servers but for versions, which are each server's own.
#[derive(Debug)]
struct Operation {
    method: &'static str,
    name: &'static str,
    path: &'static str,
    media_type: &'static str,
    body: Value,
    /// Whether the body carries the version, and which.
    version: Version,
}

#[derive(Debug, Clone, Copy)]
enum Version {
    None,
    Current,
    Old,
}

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "Bad_Name"];
/// No list from the server's cache: how old that is, is its own affair.
const LISTS: [&str; 7] = [
    "?",
    "?limit=2",
    "?labelSelector=x",
    "?labelSelector=x%3Dy",
    "?labelSelector=x%20notin%20(y,z)",
    "?labelSelector=%2Cx",
    "?fieldSelector=metadata.name%3Da",
];
const DRY: [&str; 4] = ["", "", "", "?dryRun=All"];
const PATHS: [&str; 5] = ["", "", "", "/status", "?dryRun=All"];

impl Operation {
    fn draw(random: &mut Random) -> Self {
        let name = random.pick(&NAMES).copied().unwrap_or_default();
        let (method, path, media_type) = match random.below(12) {
            0..=2 => (
                "POST",
                random.pick(&DRY).copied().unwrap_or_default(),
                "application/json",
            ),
            3 => (
                "PUT",
                random.pick(&PATHS).copied().unwrap_or_default(),
                "application/json",
            ),
            4..=5 => (
                "PATCH",
                random.pick(&PATHS).copied().unwrap_or_default(),
                "application/merge-patch+json",
            ),
            6 => (
                "PATCH",
                random.pick(&PATHS).copied().unwrap_or_default(),
                "application/json-patch+json",
            ),
            7..=8 => (
                "DELETE",
                random.pick(&DRY).copied().unwrap_or_default(),
                "application/json",
            ),
            9 => ("GET", "", "application/json"),
            _ => (
                "GET",
                random.pick(&LISTS).copied().unwrap_or_default(),
                "application/json",
            ),
        };
        let body = match (method, media_type) {
            ("POST" | "PUT", _) => whole(name, random),
            (_, "application/merge-patch+json") => partial(random),
            (_, "application/json-patch+json") => steps(random),
            _ => Value::Null,
        };
        let version = match (method, random.below(4)) {
            ("PUT", 0) => Version::Old,
            ("PUT", 1) => Version::None,
            ("PUT", _) => Version::Current,
            _ => Version::None,
        };
        Self {
            method,
            name,
            path,
            media_type,
            body,
            version,
        }
    }

    async fn run(&self, side: &Subject) -> Result<Reply, Broken> {
        let path = match (self.method, self.path.starts_with('?')) {
            ("POST", _) | ("GET", true) => side.widget(self.path),
            _ => side.widget(&format!("{}{}", self.name, self.path)),
        };
        let mut body = self.body.clone();
        if let Some(Value::Object(metadata)) = body.get_mut("metadata") {
            match self.version {
                Version::None => {}
                Version::Old => drop(metadata.insert("resourceVersion".into(), "1".into())),
                Version::Current => {
                    let current = side.get(&side.widget(self.name)).await?.at("/metadata/resourceVersion");
                    metadata.insert("resourceVersion".into(), current);
                }
            }
        }
        let bytes = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        side.send(self.method, &path, (self.media_type, "application/json"), bytes)
            .await
    }
}

fn whole(name: &str, random: &mut Random) -> Value {
    let mut widget = claims::widget(name);
    let wish = partial(random);
    for part in ["spec", "status"] {
        if let (Some(wish), Some(map)) = (wish.get(part), widget.as_object_mut()) {
            map.insert(part.to_owned(), wish.clone());
        }
    }
    if let (Some(Value::Object(wish)), Some(Value::Object(metadata))) =
        (wish.get("metadata"), widget.get_mut("metadata"))
    {
        metadata.extend(wish.clone());
    }
    widget
}

fn partial(random: &mut Random) -> Value {
    let parts = [
        json!({"spec": {"size": 1}}),
        json!({"spec": {"size": 2, "colour": "blue"}}),
        json!({"spec": {"size": 3, "tags": ["p", "q"]}}),
        json!({"spec": {"size": 0}}),
        json!({"spec": {"size": "x", "colour": 3}}),
        json!({"spec": {"size": 4, "other": {"deep": 1}}}),
        json!({"spec": null}),
        json!({"spec": {"size": 5, "colour": null}}),
        json!({"metadata": {"labels": {"x": "y"}}, "spec": {"size": 1}}),
        json!({"metadata": {"labels": {"x": null, "z": "1"}}}),
        json!({"metadata": {"labels": {"-bad": "1"}}}),
        json!({"metadata": {"annotations": {"a/b": "c"}}}),
        json!({"metadata": {"finalizers": ["example.org/hold"]}}),
        json!({"metadata": {"finalizers": ["example.org/hold", "example.org/more"]}}),
        json!({"metadata": {"finalizers": null}}),
        json!({"metadata": {"finalizers": []}}),
        json!({"metadata": {"deletionTimestamp": null}}),
        json!({"metadata": {"generation": 99}}),
        json!({"status": {"ready": true}}),
        json!({"status": {"ready": "no"}}),
        json!({"status": null}),
        json!({}),
    ];
    random.pick(&parts).cloned().unwrap_or_default()
}

fn steps(random: &mut Random) -> Value {
    let parts = [
        json!([{"op": "replace", "path": "/spec/size", "value": 6}]),
        json!([{"op": "test", "path": "/spec/size", "value": 1}, {"op": "replace", "path": "/spec/size", "value": 7}]),
        json!([{"op": "add", "path": "/spec/tags", "value": ["r"]}]),
        json!([{"op": "add", "path": "/spec/tags/0", "value": "s"}]),
        json!([{"op": "remove", "path": "/spec/tags/0"}]),
        json!([{"op": "remove", "path": "/metadata/finalizers"}]),
        json!([{"op": "remove", "path": "/metadata/labels/x"}]),
        json!([{"op": "copy", "from": "/spec/colour", "path": "/spec/tags/-"}]),
        json!([{"op": "add", "path": "/status", "value": {"ready": false}}]),
    ];
    random.pick(&parts).cloned().unwrap_or_default()
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

const BY_NATURE: [&str; 5] = [
    "uid",
    "resourceVersion",
    "managedFields",
    "continue",
    "remainingItemCount",
];

fn level(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for name in BY_NATURE {
                map.remove(name);
            }
            for name in ["creationTimestamp", "deletionTimestamp"] {
                if let Some(time) = map.get_mut(name) {
                    *time = "time".into();
                }
            }
            // The real server checks some metadata twice and lists the causes twice; the message has them once.
            if let Some(Value::Array(causes)) = map.get_mut("causes") {
                causes.sort_by_key(Value::to_string);
                causes.dedup();
            }
            map.values_mut().for_each(level);
        }
        Value::Array(items) => items.iter_mut().for_each(level),
        // Several causes come in any order; `details` has them all.
        Value::String(text) if text.contains(" is invalid: [") => "several causes".clone_into(text),
        Value::String(text) if text.contains("UID in object meta") => "uid precondition".clone_into(text),
        _ => {}
    }
}
