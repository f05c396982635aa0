//! Versions of owners that an older release does not serve.
//!
//! Cluster-api-provider-metal3 up to 1.12 has `v1beta1` only. The garbage collector deletes no object one of whose owners is
//! of a version that is not served. Whether such a release follows is read from the definitions: no object of theirs may be
//! stored as `v1beta2` then, and `status.storedVersions` says so.
//!
//! Objects are read and written as `v1beta1`, which every release serves: this program, which converts, does not run.

use std::collections::BTreeSet;

use anyhow::Result;
use kube::Client;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use metal3_api::cluster::IPAddressClaim;
use metal3_api::infrastructure::names::GROUP;
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde_json::{Value, json};

use super::{Change, HandBack, items, resource, secret};

const OLDER: &str = "v1beta1";
const NEWER: &str = "v1beta2";

impl HandBack {
    /// Gives owners the version that is left, in all objects that may have some.
    pub(super) async fn owners(&self, client: &Client, report: &mut impl FnMut(String)) -> Result<()> {
        let definitions = definition();
        let all = kube::Api::<DynamicObject>::all_with(client.clone(), &definitions);
        let all = items(&definitions, all.list(&ListParams::default()).await)?;
        let older: Vec<ApiResource> = all.iter().filter_map(without_newer).collect();
        if older.is_empty() {
            return Ok(());
        }
        let kinds = older.iter().map(|one| one.kind.clone()).collect();
        let others = [
            secret(),
            resource::<BareMetalHost>(),
            resource::<IPClaim>(),
            resource::<IPAddressClaim>(),
        ];
        for resource in older.iter().chain(&others) {
            for object in self.metadata(client, resource).await? {
                self.change(client, resource, &object, Change::Owners(&kinds), report)
                    .await?;
            }
        }
        Ok(())
    }

    /// All objects of a kind, without their content: a Secret's is not needed.
    async fn metadata(&self, client: &Client, resource: &ApiResource) -> Result<Vec<DynamicObject>> {
        let list = self.api(client, resource).list_metadata(&ListParams::default()).await;
        let objects = items(resource, list)?.into_iter().map(|object| DynamicObject {
            types: None,
            metadata: object.metadata,
            data: Value::Null,
        });
        Ok(objects.collect())
    }
}

fn definition() -> ApiResource {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    ApiResource::from_gvk_with_plural(&kind, "customresourcedefinitions")
}

/// The kind of a definition of which all objects are stored as `v1beta1`. Other providers have kinds in the same group.
fn without_newer(definition: &DynamicObject) -> Option<ApiResource> {
    let text = |pointer| definition.data.pointer(pointer).and_then(Value::as_str);
    let (group, plural) = (text("/spec/group")?, text("/spec/names/plural")?);
    let stored = definition.data.pointer("/status/storedVersions")?;
    let is_older = group == GROUP && plural.starts_with("metal3") && *stored == json!([OLDER]);
    let kind = GroupVersionKind::gvk(GROUP, OLDER, text("/spec/names/kind")?);
    is_older.then(|| ApiResource::from_gvk_with_plural(&kind, plural))
}

/// All owners, those of these kinds in the older version; `None` if they are that already.
pub(super) fn patch(object: &DynamicObject, kinds: &BTreeSet<String>) -> Option<Value> {
    let newer = format!("{GROUP}/{NEWER}");
    let mut owners = object.metadata.owner_references.clone()?;
    let mut is_changed = false;
    for owner in &mut owners {
        if owner.api_version == newer && kinds.contains(&owner.kind) {
            owner.api_version = format!("{GROUP}/{OLDER}");
            is_changed = true;
        }
    }
    is_changed.then(|| json!({ "metadata": { "ownerReferences": owners } }))
}
