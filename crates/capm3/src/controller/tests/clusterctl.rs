//! The effects of `clusterctl move` on objects, and of the host controllers after it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::data::reconciler::tests::lab::{HOSTS, User};

const STATUS: &str = "baremetalhost.metal3.io/status";

/// An object with its path.
pub(super) type Saved = (&'static str, &'static str, Value);
/// A kind with its path.
pub(super) type Place = (&'static str, &'static str);

pub(super) async fn save(user: &User, moved: &[Place]) -> Vec<Saved> {
    let mut saved = Vec::new();
    for (place, plural) in moved {
        let found = user.list(place, plural).await;
        saved.extend(found.into_iter().map(|object| (*place, *plural, object)));
    }
    saved
}

/// Creates the objects on another server: with new UIDs and owner references, without status, and with the Cluster
/// paused as before. `uids` maps the old UIDs of objects created before to new ones.
pub(super) async fn copy(user: &User, saved: &[Saved], uids: &mut BTreeMap<String, Value>) {
    for (place, plural, object) in saved {
        let mut copy = object.clone();
        copy.as_object_mut().unwrap().remove("status");
        let meta = copy["metadata"].as_object_mut().unwrap();
        for member in [
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "generation",
            "managedFields",
        ] {
            meta.remove(member);
        }
        for owner in meta
            .get_mut("ownerReferences")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            owner["uid"] = uids[owner["uid"].as_str().unwrap()].clone();
        }
        let made = user.make(place, plural, copy).await;
        let old = object["metadata"]["uid"].as_str().unwrap().to_owned();
        uids.insert(old, made["metadata"]["uid"].clone());
    }
}

/// Deletes the objects, dependents first.
pub(super) async fn delete_moved(user: &User, moved: &[Place]) {
    for (place, plural) in moved.iter().rev() {
        for object in user.list(place, plural).await {
            let meta = &object["metadata"];
            let name = format!("{plural}/{}", meta["name"].as_str().unwrap());
            let mut annotations = json!({ "clusterctl.cluster.x-k8s.io/delete-for-move": "" });
            for key in meta["annotations"].as_object().into_iter().flat_map(|all| all.keys()) {
                annotations[key] = Value::Null;
            }
            user.change(place, &name, json!({ "metadata": { "annotations": annotations } }))
                .await;
            user.delete(place, &name).await;
            if meta["finalizers"].is_array() {
                // Between the two requests the controllers observe an object in deletion that only the pause protects.
                tokio::time::sleep(Duration::from_secs(1)).await;
                // Not every controller respects a pause.
                let left = user.list(place, plural).await;
                if left.iter().any(|one| one["metadata"]["name"] == meta["name"]) {
                    user.change(place, &name, json!({ "metadata": { "finalizers": null } }))
                        .await;
                }
            }
        }
    }
}

/// The host controllers restore the saved status.
pub(super) async fn restore_status(lab: &User) {
    for host in lab.list(HOSTS, "baremetalhosts").await {
        let name = format!("baremetalhosts/{}", host["metadata"]["name"].as_str().unwrap());
        let kept = host["metadata"]["annotations"][STATUS].as_str().unwrap();
        let status: Value = serde_json::from_str(kept).unwrap();
        lab.change(HOSTS, &format!("{name}/status"), json!({ "status": status }))
            .await;
        lab.change(HOSTS, &name, json!({ "metadata": { "annotations": { STATUS: null } } }))
            .await;
    }
}
