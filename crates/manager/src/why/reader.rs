//! The reads of an explanation, with the viewer's own rights.

use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, discovery};
use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use metal3_explain::{Answer, ObjectId, Read, SECRET, Unread};
use metal3_runtime::work::{Class, classify};
use serde_json::Value;

/// Reads objects of one namespace.
pub(super) struct Reader {
    pub(super) client: Client,
    pub(super) namespace: String,
}

impl Reader {
    pub(super) async fn read(&self, read: &Read) -> Answer {
        match read {
            Read::Object(object) => {
                let resource = self.resource(object).await?;
                self.object(object, &resource).await
            }
            Read::List { kind, cluster } => {
                let resource = self.resource(kind).await?;
                let mut wanted = ListParams::default();
                if let Some(cluster) = cluster {
                    wanted = wanted.labels(&format!("{CLUSTER_NAME_LABEL}={cluster}"));
                }
                let found = self.api(&resource).list(&wanted).await;
                let found = found.map_err(|error| unread(&error, "list", &resource))?;
                found.items.iter().map(value).collect()
            }
        }
    }

    /// One object, or none.
    async fn object(&self, object: &ObjectId, resource: &ApiResource) -> Answer {
        let api = self.api(resource);
        // The content of a Secret is of no interest, and is not requested.
        let found = if object.kind == SECRET.kind && object.group == SECRET.group {
            let found = api.get_metadata(&object.name).await;
            found.map(|found| serde_json::to_value(&found.metadata))
        } else {
            let found = api.get(&object.name).await;
            found.map(|found| serde_json::to_value(&found))
        };
        match found {
            Ok(found) => Ok(vec![found.map_err(|why| Unread::Undecodable(why.to_string()))?]),
            Err(error) if classify(&error) == Class::NotFound => self.absent(resource).await,
            Err(error) => Err(unread(&error, "get", resource)),
        }
    }

    /// Whether an object that is not found is absent, or its kind is. Who may not list the kind gets the first answer.
    async fn absent(&self, resource: &ApiResource) -> Answer {
        match self.api(resource).list(&ListParams::default().limit(1)).await {
            Err(error) if classify(&error) == Class::NotFound => Err(Unread::NotInstalled),
            _ => Ok(Vec::new()),
        }
    }

    fn api(&self, resource: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, resource)
    }

    /// Version and plural of a kind. Those of other providers' kinds are discovered.
    async fn resource(&self, object: &ObjectId) -> Result<ApiResource, Unread> {
        if let Some(known) = object.known() {
            let kind = GroupVersionKind::gvk(known.group, known.version, known.kind);
            return Ok(ApiResource::from_gvk_with_plural(&kind, known.plural));
        }
        let group = discovery::group(&self.client, &object.group).await;
        let group = group.map_err(|error| match classify(&error) {
            Class::NotFound => Unread::NotInstalled,
            _ => Unread::Failed(error.to_string()),
        })?;
        let found = group.recommended_kind(&object.kind);
        found.map(|(resource, _)| resource).ok_or(Unread::NotInstalled)
    }
}

fn value(object: &DynamicObject) -> Result<Value, Unread> {
    serde_json::to_value(object).map_err(|why| Unread::Undecodable(why.to_string()))
}

fn unread(error: &kube::Error, verb: &str, resource: &ApiResource) -> Unread {
    match classify(error) {
        Class::Forbidden => Unread::Forbidden {
            verb: verb.to_owned(),
            resource: match resource.group.as_str() {
                "" => resource.plural.clone(),
                group => format!("{}.{group}", resource.plural),
            },
        },
        Class::NotFound => Unread::NotInstalled,
        _ => Unread::Failed(error.to_string()),
    }
}
