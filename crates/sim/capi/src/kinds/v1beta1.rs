//! Conversion between `v1beta1` and `v1beta2` of Cluster API: moved fields and the form of references.
//!
//! Only fields that the stand-ins read are converted; all others are copied unchanged.

use serde_json::{Map, Value, json};

use super::find;

/// The older version.
pub const V1BETA1: &str = "v1beta1";

/// Kind, JSON pointer in `v1beta1`, JSON pointer in `v1beta2`, whether the field is an object reference.
type Change = (&'static str, &'static str, &'static str, bool);

const INFRASTRUCTURE: &str = "/spec/infrastructureRef";
const CONTROL_PLANE: &str = "/spec/controlPlaneRef";
const OF_MACHINES: &str = "/spec/machineTemplate/spec/infrastructureRef";
const OF_TEMPLATE: &str = "/spec/template/spec/infrastructureRef";
const BOOTSTRAP: &str = "/spec/template/spec/bootstrap/configRef";
const ROLLOUT: &str = "/spec/rollout/strategy";
const CHANGES: [Change; 7] = [
    ("Cluster", INFRASTRUCTURE, INFRASTRUCTURE, true),
    ("Cluster", CONTROL_PLANE, CONTROL_PLANE, true),
    (
        "KubeadmControlPlane",
        "/spec/machineTemplate/infrastructureRef",
        OF_MACHINES,
        true,
    ),
    ("KubeadmControlPlane", "/spec/rolloutStrategy", ROLLOUT, false),
    ("MachineDeployment", OF_TEMPLATE, OF_TEMPLATE, true),
    ("MachineDeployment", BOOTSTRAP, BOOTSTRAP, true),
    ("MachineDeployment", "/spec/strategy", ROLLOUT, false),
];

/// Converts an object to a version.
///
/// # Errors
/// None: unknown fields are copied unchanged.
pub fn convert(object: &Value, version: &str) -> Result<Value, String> {
    let mut converted = object.clone();
    let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default();
    let (kind, namespace) = (text("/kind"), text("/metadata/namespace"));
    for (_, was, is, refers) in CHANGES.iter().filter(|(of, ..)| *of == kind) {
        let (from, to) = if version == V1BETA1 { (is, was) } else { (was, is) };
        let Some(found) = take(&mut converted, from) else {
            continue;
        };
        let value = match (refers, version == V1BETA1) {
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

/// The newer form has a group and no namespace: it refers to the namespace of the referring object.
fn with_group(reference: &Value) -> Value {
    let (group, _) = member(reference, "apiVersion").split_once('/').unwrap_or_default();
    json!({ "apiGroup": group, "kind": member(reference, "kind"), "name": member(reference, "name") })
}

fn with_version(reference: &Value, namespace: &str) -> Value {
    let (group, kind) = (member(reference, "apiGroup"), member(reference, "kind"));
    let version = find(kind).map_or(V1BETA1, |known| known.version);
    json!({
        "apiVersion": format!("{group}/{version}"), "kind": kind, "name": member(reference, "name"), "namespace": namespace,
    })
}

fn take(object: &mut Value, pointer: &str) -> Option<Value> {
    let (above, last) = pointer.rsplit_once('/')?;
    object.pointer_mut(above)?.as_object_mut()?.remove(last)
}

fn put(object: &mut Value, pointer: &str, value: Value) {
    let mut at = object;
    for name in pointer.split('/').skip(1) {
        if !at.is_object() {
            *at = Map::new().into();
        }
        let Some(members) = at.as_object_mut() else { return };
        at = members.entry(name).or_insert(Value::Null);
    }
    *at = value;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moved_fields_and_references_convert_in_both_directions() {
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
        for (v1beta1, newer) in table {
            assert_eq!(convert(&v1beta1, "v1beta2").unwrap(), newer);
            let back = convert(&newer, V1BETA1).unwrap();
            assert_eq!(convert(&back, "v1beta2").unwrap(), newer);
            assert_eq!(
                back["spec"].get("infrastructureRef"),
                v1beta1["spec"].get("infrastructureRef")
            );
        }
    }

    #[test]
    fn other_fields_are_copied_unchanged() {
        let other = json!({ "kind": "Cluster", "spec": { "topology": { "class": "c" } } });
        assert_eq!(convert(&other, "v1beta2").unwrap(), other);
    }
}
