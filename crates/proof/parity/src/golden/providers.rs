//! `providers`: the real Kamaji and the real BYOH beside a Metal3Cluster, moment by moment.
//!
//! Each moment is put into a server of its own as it was stored, twice: as it was, and with Metal3Clusters that take the
//! endpoint of their control plane. Our controllers run until they rest. Then nobody has lost anything, machines on their
//! way out are gone, what a control plane said is taken, what a person typed stays, and who contradicts a Cluster says so.
//! And our stand-ins for both write what the real ones wrote ([`sequence`]).

mod facts;
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

use super::adoption::{Handover, handed_over, losses};
use super::site::play;
use metal3_files::documents;

/// Folder of the recordings, beside the cases.
pub(super) const FOLDER: &str = "providers";
/// What our controllers look at, or may. Everything else that a provider has is its own affair.
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

/// Takes every moment over, in both forms, and has the stand-ins play the recordings; says whether nothing went wrong.
pub(super) fn run(folder: &Path) -> Result<bool> {
    Ok(take_over(folder)? & sequence::run(folder)?)
}

fn take_over(folder: &Path) -> Result<bool> {
    let (mut moments, mut wrong) = (0_usize, 0_usize);
    for file in documents::files(folder, &["yaml"])? {
        let label = file.strip_prefix(folder).unwrap_or(&file).display().to_string();
        let documents = documents::parse(&documents::text(&file)?, &file)?;
        let stored = documents.into_iter().map(|document| at_home(document.value));
        let stored: Vec<Value> = stored.filter(|object| KINDS.contains(&text(object, "/kind"))).collect();
        if stored.is_empty() {
            continue;
        }
        for (form, objects) in [("as it was", stored.clone()), ("with a source", with_source(&stored))] {
            let all: Vec<&Value> = objects.iter().collect();
            let found = match play(handed_over(&all))?.with_context(|| label.clone())? {
                Err(refused) => vec![refused],
                Ok(taken) => violations(&objects, &taken),
            };
            found
                .iter()
                .for_each(|what| println!("{FOLDER}/{label}, {form}: {what}"));
            moments += 1;
            wrong += found.len();
        }
    }
    println!("{FOLDER}: {moments} moments taken over, {wrong} wrong");
    ensure!(moments > 0, "{FOLDER}: no moment was found in {}", folder.display());
    Ok(wrong == 0)
}

/// The same in a namespace that has a name. One recording was made in `y`, which is a truth in YAML, and no text.
fn at_home(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("namespace".to_owned(), "recorded".into());
    }
    object
}

/// The same with Metal3Clusters that join the Cluster of their name, and leave the endpoint to the control plane where
/// there is one of Kamaji.
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

fn violations(stored: &[Value], taken: &Handover) -> Vec<String> {
    let mut wrong = losses(&taken.before, &taken.after);
    let (clusters, planes) = (named(stored, "Cluster"), named(stored, "KamajiControlPlane"));
    for (name, before) in named(stored, METAL3_CLUSTER) {
        let cluster = clusters.get(name).copied();
        let lives = cluster.is_some_and(|cluster| cluster.pointer("/metadata/deletionTimestamp").is_none());
        if !lives {
            continue;
        }
        let Some(after) = taken.after.metal3_cluster(name) else {
            wrong.push(format!("{name} is gone although its Cluster lives"));
            continue;
        };
        let fixed = cluster.and_then(endpoint);
        let asks = !text(before, "/spec/controlPlaneEndpointSource/type").is_empty();
        let joins = !text(before, "/spec/clusterName").is_empty();
        let published = planes.get(name).and_then(|plane| endpoint(plane)).filter(|_| asks);
        let followed = fixed.clone().filter(|_| asks || joins);
        let expected = endpoint(before).or(followed).or(published);
        if endpoint(after) != expected {
            wrong.push(format!(
                "{name} has the endpoint {:?} instead of {expected:?}",
                endpoint(after)
            ));
        }
        let typed = endpoint(before);
        let contradicts = typed.is_some() && fixed.is_some() && typed != fixed;
        if contradicts != says_conflict(after, fixed.as_ref()) && (contradicts || fixed.is_some()) {
            wrong.push(format!(
                "{name} has {typed:?}, its Cluster {fixed:?}; conflict said: {}",
                !contradicts
            ));
        }
    }
    wrong
}

/// The objects of a kind, by name.
fn named<'a>(stored: &'a [Value], kind: &str) -> BTreeMap<&'a str, &'a Value> {
    let own = stored.iter().filter(|object| text(object, "/kind") == kind);
    own.map(|object| (text(object, "/metadata/name"), object)).collect()
}

fn says_conflict(object: &Value, fixed: Option<&(String, u64)>) -> bool {
    let all = object.pointer("/status/conditions").and_then(Value::as_array);
    let is_conflict = |one: &Value| {
        let named = fixed.is_none_or(|(host, _)| text(one, "/message").contains(host.as_str()));
        text(one, "/reason") == "EndpointConflict" && named
    };
    all.into_iter().flatten().any(is_conflict)
}

/// Host and port, where both are there.
fn endpoint(object: &Value) -> Option<(String, u64)> {
    let stated = object.pointer(ENDPOINT)?;
    let host = text(stated, "/host");
    (!host.is_empty()).then_some((host.to_owned(), stated.get("port")?.as_u64()?))
}

fn text<'a>(value: &'a Value, place: &str) -> &'a str {
    value.pointer(place).and_then(Value::as_str).unwrap_or_default()
}
