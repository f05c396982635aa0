//! Owner references of any API version.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use metal3_api::cluster::Machine;
use metal3_api::cluster::names::{CLUSTER_NAME_LABEL, CONTROL_PLANE_GROUP, CONTROL_PLANE_LABEL, DEPLOYMENT_NAME_LABEL};
use metal3_api::kind::Kind;

/// The group of `group/version`; empty for the core group.
#[must_use]
pub fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Whether the owner is of a kind, in any version.
#[must_use]
pub fn is_of_kind<K: Kind>(owner: &OwnerReference) -> bool {
    owner.kind == K::KIND && group_of(&owner.api_version) == K::GROUP
}

/// The first owner of a kind.
#[must_use]
pub fn first<K: Kind>(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.find(|owner| is_of_kind::<K>(owner))
}

/// Whether the object with this UID is an owner. An object without UID owns nothing.
#[must_use]
pub fn is_owned_by(metadata: &ObjectMeta, uid: Option<&str>) -> bool {
    let uid = uid.filter(|uid| !uid.is_empty());
    uid.is_some_and(|uid| metadata.owner_references.iter().flatten().any(|owner| owner.uid == uid))
}

/// A controller reference to an object. It does not block the owner's deletion.
#[must_use]
pub fn reference<K: Kind>(metadata: &ObjectMeta) -> OwnerReference {
    OwnerReference {
        api_version: K::group_version(),
        kind: K::KIND.to_owned(),
        name: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: None,
    }
}

/// A label of an object.
#[must_use]
pub fn label<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.labels.as_ref()?.get(key).map(String::as_str)
}

/// The Cluster that the label of an object names.
#[must_use]
pub fn cluster_of(metadata: &ObjectMeta) -> Option<&str> {
    label(metadata, CLUSTER_NAME_LABEL).filter(|name| !name.is_empty())
}

/// The owner of a Machine in the value that reserves a host for node reuse: `cp-` and its control plane, or `md-` and
/// its MachineDeployment.
#[must_use]
pub fn node_reuse_owner(machine: &Machine) -> Option<String> {
    let metadata = &machine.metadata;
    if label(metadata, CONTROL_PLANE_LABEL).is_some() {
        let mut owners = metadata.owner_references.iter().flatten();
        let owner = owners.find(|owner| group_of(&owner.api_version) == CONTROL_PLANE_GROUP)?;
        Some(format!("cp-{}", owner.name))
    } else {
        label(metadata, DEPLOYMENT_NAME_LABEL).map(|name| format!("md-{name}"))
    }
}

#[cfg(test)]
mod tests {
    use metal3_api::cluster::Cluster;
    use serde_json::json;

    use super::*;

    fn meta(document: serde_json::Value) -> ObjectMeta {
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn owner_is_found_by_group_and_kind_in_any_version() {
        let owners = json!([
            { "apiVersion": "other.io/v1", "kind": "Cluster", "name": "a", "uid": "1" },
            { "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": "b", "uid": "2" },
        ]);
        let owned = meta(json!({ "ownerReferences": owners }));
        assert_eq!(first::<Cluster>(&owned).unwrap().name, "b");
        assert!(first::<Machine>(&owned).is_none());
        assert!(is_owned_by(&owned, Some("1")) && !is_owned_by(&owned, Some("3")) && !is_owned_by(&owned, Some("")));
    }

    #[test]
    fn node_reuse_owner_is_the_control_plane_or_the_deployment() {
        let machine = |metadata| {
            node_reuse_owner(&Machine {
                metadata: meta(metadata),
                ..Machine::default()
            })
        };
        let control_plane = json!({
            "labels": { "cluster.x-k8s.io/control-plane": "", "cluster.x-k8s.io/deployment-name": "no" },
            "ownerReferences": [{ "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane", "name": "edge", "uid": "1" }],
        });
        assert_eq!(machine(control_plane).as_deref(), Some("cp-edge"));
        let worker = json!({ "labels": { "cluster.x-k8s.io/deployment-name": "workers" } });
        assert_eq!(machine(worker).as_deref(), Some("md-workers"));
        assert_eq!(machine(json!({})), None);
    }
}
