//! Objects of Cluster API in the version before: what stands elsewhere there, and how it refers to others.
//!
//! Only what somebody here reads is converted. All else is left as it was written, in either version.

use serde_json::{Map, Value, json};

use super::find;

/// The version before.
pub const OLDER: &str = "v1beta1";

/// What changes of a kind: where it was, where it is, and whether it refers to an object.
type Change = (&'static str, &'static [&'static str], &'static [&'static str], bool);

const CHANGES: &[Change] = &[
    (
        "Cluster",
        &["spec", "infrastructureRef"],
        &["spec", "infrastructureRef"],
        true,
    ),
    (
        "Cluster",
        &["spec", "controlPlaneRef"],
        &["spec", "controlPlaneRef"],
        true,
    ),
    (
        "KubeadmControlPlane",
        &["spec", "machineTemplate", "infrastructureRef"],
        &["spec", "machineTemplate", "spec", "infrastructureRef"],
        true,
    ),
    (
        "KubeadmControlPlane",
        &["spec", "rolloutStrategy"],
        &["spec", "rollout", "strategy"],
        false,
    ),
    (
        "MachineDeployment",
        &["spec", "template", "spec", "infrastructureRef"],
        &["spec", "template", "spec", "infrastructureRef"],
        true,
    ),
    (
        "MachineDeployment",
        &["spec", "template", "spec", "bootstrap", "configRef"],
        &["spec", "template", "spec", "bootstrap", "configRef"],
        true,
    ),
    (
        "MachineDeployment",
        &["spec", "strategy"],
        &["spec", "rollout", "strategy"],
        false,
    ),
];

/// The same object in another version.
///
/// # Errors
/// None: what is not known is left as it is.
pub fn convert(object: &Value, version: &str) -> Result<Value, String> {
    let mut converted = object.clone();
    let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default();
    let (kind, namespace) = (text("/kind"), text("/metadata/namespace"));
    for (_, was, is, refers) in CHANGES.iter().filter(|(of, ..)| *of == kind) {
        let (from, to) = if version == OLDER { (is, was) } else { (was, is) };
        let Some(found) = take(&mut converted, from) else {
            continue;
        };
        let value = match (refers, version == OLDER) {
            (false, _) => found,
            (true, true) => with_version(&found, namespace),
            (true, false) => with_group(&found),
        };
        put(&mut converted, to, value);
    }
    Ok(converted)
}

fn member<'a>(reference: &'a Value, name: &str) -> &'a str {
    reference.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The newer form says a group, and no namespace: it is that of who refers.
fn with_group(reference: &Value) -> Value {
    let (group, _) = member(reference, "apiVersion").split_once('/').unwrap_or_default();
    json!({ "apiGroup": group, "kind": member(reference, "kind"), "name": member(reference, "name") })
}

fn with_version(reference: &Value, namespace: &str) -> Value {
    let (group, kind) = (member(reference, "apiGroup"), member(reference, "kind"));
    let version = find(kind).map_or(OLDER, |known| known.version);
    json!({
        "apiVersion": format!("{group}/{version}"), "kind": kind, "name": member(reference, "name"), "namespace": namespace,
    })
}

fn take(object: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, above) = path.split_last()?;
    let mut at = object;
    for name in above {
        at = at.get_mut(name)?;
    }
    at.as_object_mut()?.remove(*last)
}

fn put(object: &mut Value, path: &[&str], value: Value) {
    let Some((first, rest)) = path.split_first() else {
        *object = value;
        return;
    };
    if !object.is_object() {
        *object = Map::new().into();
    }
    if let Some(members) = object.as_object_mut() {
        put(members.entry(*first).or_insert(Value::Null), rest, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_and_what_stands_elsewhere_come_and_go() {
        let reference = |group: &str, kind: &str| json!({ "apiVersion": format!("{group}/v1beta1"), "kind": kind, "name": "n", "namespace": "metal" });
        let infrastructure = reference("infrastructure.cluster.x-k8s.io", "ByoMachineTemplate");
        let config = reference("bootstrap.cluster.x-k8s.io", "Other");
        let metadata = json!({ "namespace": "metal" });
        let newer = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "ByoMachineTemplate", "name": "n" });
        let table = [
            (
                json!({ "kind": "Cluster", "metadata": metadata, "spec": { "infrastructureRef": infrastructure, "paused": true } }),
                json!({ "kind": "Cluster", "metadata": metadata, "spec": { "infrastructureRef": newer, "paused": true } }),
            ),
            (
                json!({ "kind": "KubeadmControlPlane", "metadata": metadata, "spec": {
                    "machineTemplate": { "infrastructureRef": infrastructure }, "rolloutStrategy": { "type": "x" } } }),
                json!({ "kind": "KubeadmControlPlane", "metadata": metadata, "spec": {
                    "machineTemplate": { "spec": { "infrastructureRef": newer } }, "rollout": { "strategy": { "type": "x" } } } }),
            ),
            (
                json!({ "kind": "MachineDeployment", "metadata": metadata, "spec": { "strategy": { "type": "x" },
                    "template": { "spec": { "bootstrap": { "configRef": config } } } } }),
                json!({ "kind": "MachineDeployment", "metadata": metadata, "spec": { "rollout": { "strategy": { "type": "x" } },
                    "template": { "spec": { "bootstrap": { "configRef":
                        { "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "Other", "name": "n" } } } } } }),
            ),
        ];
        for (older, newer) in table {
            assert_eq!(convert(&older, "v1beta2").unwrap(), newer);
            let back = convert(&newer, OLDER).unwrap();
            assert_eq!(convert(&back, "v1beta2").unwrap(), newer);
            assert_eq!(
                back["spec"].get("infrastructureRef"),
                older["spec"].get("infrastructureRef")
            );
        }
    }

    #[test]
    fn what_nobody_here_reads_is_left_alone() {
        let other = json!({ "kind": "Cluster", "spec": { "topology": { "class": "c" } } });
        assert_eq!(convert(&other, "v1beta2").unwrap(), other);
    }
}
