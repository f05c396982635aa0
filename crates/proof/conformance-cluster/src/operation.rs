//! Random requests for widgets: all supported verbs on few names, so that requests interact.

use metal3_sim_faults::Random;
use serde_json::{Value, json};

use super::claims;
use super::outcome::Violation;
use super::subject::{Reply, Subject};

/// A request for both servers. Resource versions are read from each server.
#[derive(Debug)]
pub(super) struct Operation {
    request: Shape,
    name: &'static str,
    accept: &'static str,
    body: Value,
    /// The resource version of the body.
    version: Version,
}

#[derive(Debug, Clone, Copy)]
struct Shape {
    method: &'static str,
    /// Whether it addresses the collection.
    is_collection: bool,
    /// The path after the name.
    path: &'static str,
    media_type: &'static str,
}

#[derive(Debug, Clone, Copy)]
enum Version {
    None,
    Current,
    Old,
}

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const STEPS: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "Bad_Name"];
/// No lists from the server's cache, whose age is not deterministic.
const LISTS: [&str; 7] = [
    "?",
    "?limit=2",
    "?labelSelector=x",
    "?labelSelector=x%3Dy",
    "?labelSelector=x%20notin%20(y,z)",
    "?labelSelector=%2Cx",
    "?fieldSelector=metadata.name%3Da",
];
const COLLECTIONS: [&str; 4] = [
    "?labelSelector=x",
    "?labelSelector=z",
    "?fieldSelector=metadata.name%3Da",
    "?labelSelector=x%3Dy&dryRun=All",
];
const ACCEPTS: [&str; 5] = [
    JSON,
    JSON,
    JSON,
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
];
const DRY: [&str; 4] = ["", "", "", "?dryRun=All"];
const APPLIES: [&str; 8] = [
    "?fieldManager=one",
    "?fieldManager=one",
    "?fieldManager=two",
    "?fieldManager=two&force=true",
    "?fieldManager=one&force=true",
    "?fieldManager=two&dryRun=All",
    "/status?fieldManager=two",
    "/status?fieldManager=three&force=true",
];
const PATHS: [&str; 6] = ["", "", "", "/status", "?dryRun=All", "?fieldManager=one"];

impl Operation {
    pub(super) fn draw(random: &mut Random) -> Self {
        let name = random.pick(&NAMES).copied().unwrap_or_default();
        let accept = random.pick(&ACCEPTS).copied().unwrap_or_default();
        let request = Self::request(random);
        let (method, media_type) = (request.method, request.media_type);
        let body = match (method, media_type) {
            ("POST" | "PUT", _) | (_, APPLY) => whole(name, random),
            (_, MERGE) => partial(random),
            (_, STEPS) => steps(random),
            _ => Value::Null,
        };
        let version = match (method, random.below(4)) {
            ("PUT", 0) => Version::Old,
            ("PUT", 1) => Version::None,
            ("PUT", _) => Version::Current,
            _ => Version::None,
        };
        Self {
            request,
            name,
            accept,
            body,
            version,
        }
    }

    fn request(random: &mut Random) -> Shape {
        let mut any = |paths: &[&'static str]| random.pick(paths).copied().unwrap_or_default();
        let (all, one, write, apply) = (any(&DRY), any(&DRY), any(&PATHS), any(&APPLIES));
        let (list, collection) = (any(&LISTS), any(&COLLECTIONS));
        let shape = |method, is_collection, path, media_type| Shape {
            method,
            is_collection,
            path,
            media_type,
        };
        match random.below(62) {
            0..=12 => shape("POST", true, all, JSON),
            13..=16 => shape("PUT", false, write, JSON),
            17..=24 => shape("PATCH", false, write, MERGE),
            25..=28 => shape("PATCH", false, write, STEPS),
            29..=36 => shape("DELETE", false, one, JSON),
            37 => shape("DELETE", true, collection, JSON),
            38..=41 => shape("GET", false, "", JSON),
            42..=49 => shape("GET", true, list, JSON),
            _ => shape("PATCH", false, apply, APPLY),
        }
    }

    /// Whether it is an apply.
    pub(super) fn applies(&self) -> bool {
        self.request.media_type == APPLY
    }

    pub(super) async fn run(&self, side: &Subject) -> Result<Reply, Violation> {
        let Shape {
            method,
            is_collection,
            path,
            media_type,
        } = self.request;
        let name = if is_collection { "" } else { self.name };
        let path = side.widget(&format!("{name}{path}"));
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
        side.send(method, &path, (media_type, self.accept), bytes).await
    }
}

fn whole(name: &str, random: &mut Random) -> Value {
    let mut widget = claims::widget(name);
    let changes = partial(random);
    for part in ["spec", "status"] {
        if let (Some(changes), Some(map)) = (changes.get(part), widget.as_object_mut()) {
            map.insert(part.to_owned(), changes.clone());
        }
    }
    if let (Some(Value::Object(changes)), Some(Value::Object(metadata))) =
        (changes.get("metadata"), widget.get_mut("metadata"))
    {
        metadata.extend(changes.clone());
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
        json!({"spec": {"size": 6, "roles": ["a", "b"], "ports": [{"name": "p", "port": 1}]}}),
        json!({"spec": {"size": 6, "roles": ["b", "c", "a"], "ports": [{"name": "q"}, {"name": "p", "port": 2}]}}),
        json!({"spec": {"size": 7, "roles": [], "ports": [], "notes": {}}}),
        json!({"spec": {"size": 7, "roles": ["d"], "ports": [{"name": "r", "port": null}]}}),
        json!({"spec": {"size": 8, "ports": [{"port": 5}]}}),
        json!({"spec": {"size": 8, "roles": ["a", "a"]}}),
        json!({"spec": {"size": 8, "notes": {"k": "v"}, "pair": {"left": "l"}}}),
        json!({"spec": {"size": 9, "notes": {"k": "w", "l": "m"}, "pair": {"right": "r"}}}),
        json!({"metadata": {"managedFields": [{}]}}),
        json!({"metadata": {"managedFields": null, "annotations": {"a/b": "d"}}}),
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
