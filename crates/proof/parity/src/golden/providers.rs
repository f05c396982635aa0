//! `providers`: recordings of the real Kamaji and the real BYOH with a Metal3Cluster.
//!
//! Each state is loaded into a server twice: as recorded, and with Metal3Clusters that use the endpoint of their
//! control plane. The controllers run until they are idle. Then nothing is lost, deletions have finished, published
//! endpoints are used, user settings are kept, and conflicts with the Cluster are reported. In addition, the stand-ins
//! for both providers must write what the real ones wrote ([`sequence`]).

mod fields;
mod history;
mod recording;
mod replay;
mod script;
mod sequence;
mod timeline;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::adoption::{Takeover, losses, take_over};
use super::server::run_paused;
use crate::values::{list, text};
use metal3_files::documents;

/// Folder of the recordings.
pub(super) const FOLDER: &str = "providers";
/// Kinds that the controllers read.
const KINDS: [&str; 12] = [
    "Cluster",
    "Machine",
    "MachineSet",
    "MachineDeployment",
    "KubeadmControlPlane",
    "KamajiControlPlane",
    "ByoCluster",
    "ByoMachine",
    "Metal3Cluster",
    "Metal3Machine",
    "Metal3MachineTemplate",
    "BareMetalHost",
];
const METAL3_CLUSTER: &str = "Metal3Cluster";
const ENDPOINT: &str = "/spec/controlPlaneEndpoint";

/// Replays every state in both forms, and the recordings with the stand-ins; returns whether there was no error.
pub(super) fn run(folder: &Path) -> Result<bool> {
    Ok(replay_states(folder)? & sequence::run(folder)?)
}

fn replay_states(folder: &Path) -> Result<bool> {
    let (mut snapshots, mut errors) = (0_usize, 0_usize);
    for file in documents::files(folder, &["yaml"])? {
        let label = file.strip_prefix(folder).unwrap_or(&file).display().to_string();
        let documents = documents::parse(&documents::text(&file)?, &file)?;
        let stored = documents.into_iter().map(|document| in_fixed_namespace(document.value));
        let stored: Vec<Value> = stored.filter(|object| KINDS.contains(&text(object, "/kind"))).collect();
        if stored.is_empty() {
            continue;
        }
        for (form, objects) in [("as it was", stored.clone()), ("with a source", with_source(&stored))] {
            let all: Vec<&Value> = objects.iter().collect();
            let found = match run_paused(take_over(&all))?.with_context(|| label.clone())? {
                Err(refused) => vec![refused],
                Ok(takeover) => violations(&objects, &takeover),
            };
            found
                .iter()
                .for_each(|what| println!("{FOLDER}/{label}, {form}: {what}"));
            snapshots += 1;
            errors += found.len();
        }
    }
    println!("{FOLDER}: {snapshots} snapshots taken over, {errors} wrong");
    ensure!(snapshots > 0, "{FOLDER}: no snapshot was found in {}", folder.display());
    Ok(errors == 0)
}

/// The object in a fixed namespace: one recording has the namespace `y`, a boolean in YAML.
fn in_fixed_namespace(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("namespace".to_owned(), "recorded".into());
    }
    object
}

/// The objects with Metal3Clusters that join the Cluster of their name, and use the endpoint of a Kamaji control plane.
fn with_source(stored: &[Value]) -> Vec<Value> {
    let has_plane = stored
        .iter()
        .any(|object| text(object, "/kind") == "KamajiControlPlane");
    let mut objects = stored.to_vec();
    for object in objects
        .iter_mut()
        .filter(|object| text(object, "/kind") == METAL3_CLUSTER)
    {
        let name = text(object, "/metadata/name").to_owned();
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("clusterName".to_owned(), name.into());
            if has_plane {
                spec.insert(
                    "controlPlaneEndpointSource".to_owned(),
                    json!({ "type": "ControlPlane" }),
                );
            }
        }
    }
    objects
}

fn violations(stored: &[Value], takeover: &Takeover) -> Vec<String> {
    let mut errors = losses(&takeover.before, &takeover.after);
    let (clusters, planes) = (named(stored, "Cluster"), named(stored, "KamajiControlPlane"));
    for (name, before) in named(stored, METAL3_CLUSTER) {
        let cluster = clusters.get(name).copied();
        let lives = cluster.is_some_and(|cluster| cluster.pointer("/metadata/deletionTimestamp").is_none());
        if !lives {
            continue;
        }
        let Some(after) = takeover.after.metal3_cluster(name) else {
            errors.push(format!("{name} was deleted, but its Cluster exists"));
            continue;
        };
        let fixed = cluster.and_then(endpoint);
        let asks = !text(before, "/spec/controlPlaneEndpointSource/type").is_empty();
        let joins = !text(before, "/spec/clusterName").is_empty();
        let published = planes.get(name).and_then(|plane| endpoint(plane)).filter(|_| asks);
        let followed = fixed.clone().filter(|_| asks || joins);
        let expected = endpoint(before).or(followed).or(published);
        if endpoint(after) != expected {
            errors.push(format!(
                "{name} has the endpoint {:?} instead of {expected:?}",
                endpoint(after)
            ));
        }
        let typed = endpoint(before);
        let contradicts = typed.is_some() && fixed.is_some() && typed != fixed;
        if contradicts != reports_conflict(after, fixed.as_ref()) && (contradicts || fixed.is_some()) {
            errors.push(format!(
                "{name} has {typed:?}, its Cluster {fixed:?}; conflict reported: {}",
                !contradicts
            ));
        }
    }
    errors
}

/// The objects of a kind, by name.
fn named<'a>(stored: &'a [Value], kind: &str) -> BTreeMap<&'a str, &'a Value> {
    let own = stored.iter().filter(|object| text(object, "/kind") == kind);
    own.map(|object| (text(object, "/metadata/name"), object)).collect()
}

fn reports_conflict(object: &Value, fixed: Option<&(String, u64)>) -> bool {
    let is_conflict = |one: &Value| {
        let named = fixed.is_none_or(|(host, _)| text(one, "/message").contains(host.as_str()));
        text(one, "/reason") == "EndpointConflict" && named
    };
    list(object, "/status/conditions").any(is_conflict)
}

/// Host and port, if both are set.
fn endpoint(object: &Value) -> Option<(String, u64)> {
    let stated = object.pointer(ENDPOINT)?;
    let host = text(stated, "/host");
    (!host.is_empty()).then_some((host.to_owned(), stated.get("port")?.as_u64()?))
}
