//! Worlds, put together from documents.

use serde_json::{Value, json};

use crate::kinds::find;
use crate::program::{Cast, writes};
use crate::view::{Object, SiteView, World};
use crate::write::{Deed, Write};

pub(super) const ENDPOINT: &str = "192.0.2.10:6443";

/// A world of these objects, each `(kind, name, the rest)`. An object's UID is its kind and name.
pub(super) fn world(objects: &[(&str, &str, Value)]) -> World {
    let mut world = World::default();
    for (number, (kind, name, rest)) in objects.iter().enumerate() {
        let known = find(kind).unwrap();
        let mut object = rest.clone();
        object["apiVersion"] = json!(known.api_version());
        object["kind"] = json!(kind);
        object["metadata"]["name"] = json!(name);
        object["metadata"]["namespace"] = json!("default");
        object["metadata"]["uid"] = json!(format!("{kind}/{name}"));
        object["metadata"]["resourceVersion"] = json!((number + 1).to_string());
        assert!(world.put(known, Object(object)));
    }
    world
}

/// A Cluster that is provisioned, and initialized or not.
pub(super) fn cluster(is_initialized: bool) -> Value {
    json!({
        "metadata": { "finalizers": ["cluster.cluster.x-k8s.io"] },
        "spec": {
            "controlPlaneEndpoint": { "host": "192.0.2.10", "port": 6443 },
            "infrastructureRef": { "kind": "Metal3Cluster", "name": "edge" },
        },
        "status": { "initialization": {
            "infrastructureProvisioned": true, "controlPlaneInitialized": is_initialized,
        } },
    })
}

pub(super) fn owner(kind: &str, name: &str) -> Value {
    json!([{ "kind": kind, "name": name, "uid": format!("{kind}/{name}"), "controller": true }])
}

pub(super) fn with_site(mut world: World, nodes: &[Value]) -> World {
    let nodes = nodes.iter().cloned().map(Object).collect();
    world.sites.insert(ENDPOINT.to_owned(), SiteView { is_up: true, nodes });
    world
}

/// The writes that are due, without those of a status, in few words.
pub(super) fn due(world: &World) -> Vec<String> {
    let word = |write: Write| match write {
        Write::Create(kind, object) => Some(format!("create {} {}", kind.kind, object["metadata"]["name"].as_str()?)),
        Write::Merge(kind, key, change) => {
            let what = change.as_object()?.values().next()?.as_object()?;
            let what: Vec<&str> = what
                .keys()
                .map(String::as_str)
                .filter(|key| *key != "resourceVersion")
                .collect();
            Some(format!("change {} {}: {}", kind.kind, key.name, what.join(" ")))
        }
        Write::Status(..) => None,
        Write::Paper(_, purpose, secret) => {
            Some(format!("create {}: {purpose:?}", secret["metadata"]["name"].as_str()?))
        }
        Write::Delete(kind, key) => Some(format!("delete {} {}", kind.kind, key.name)),
        Write::Site(_, Deed::Token(_)) => Some("token".to_owned()),
        Write::Site(_, deed) => Some(format!("{deed:?}")),
    };
    writes(world, Cast::Whole).into_iter().filter_map(word).collect()
}

/// What the status of an object is to become.
pub(super) fn status(world: &World, kind: &str, name: &str) -> Value {
    let of = |write: Write| match write {
        Write::Status(of, key, change) if of.kind == kind && key.name == name => Some(change["status"].clone()),
        _ => None,
    };
    writes(world, Cast::Whole).into_iter().find_map(of).unwrap_or_default()
}
