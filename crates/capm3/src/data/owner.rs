//! Owner references of what is made here, and who owns what is found.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use metal3_api::kind::Kind;

/// A reference to an object of ours.
pub(crate) fn reference<K: Kind>(metadata: &ObjectMeta, controller: bool) -> OwnerReference {
    OwnerReference {
        api_version: K::group_version(),
        kind: K::KIND.to_owned(),
        name: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        controller: controller.then_some(true),
        block_owner_deletion: None,
    }
}

/// The first owner of a kind, whatever version its reference was written in.
pub(crate) fn first<'a, K: Kind>(metadata: &'a ObjectMeta) -> Option<&'a OwnerReference> {
    let is_kind = |owner: &&'a OwnerReference| {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        owner.kind == K::KIND && group == K::GROUP
    };
    metadata.owner_references.iter().flatten().find(is_kind)
}

/// Whether an object is owned by the one with this UID. One without UID owns nothing.
pub(crate) fn is_owned_by(metadata: &ObjectMeta, uid: Option<&str>) -> bool {
    let uid = uid.filter(|uid| !uid.is_empty());
    uid.is_some_and(|uid| metadata.owner_references.iter().flatten().any(|owner| owner.uid == uid))
}
