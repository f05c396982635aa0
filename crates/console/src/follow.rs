//! One watch for each kind, with the rights of the kubeconfig.
//!
//! A kind that may not be listed in all namespaces is listed in that of the kubeconfig. Silence, errors and stale versions lead to
//! a new list; what was read stays, with the fault next to it.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt as _;
use kube::api::{ApiResource, DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::core::GroupVersionKind;
use kube::error::DiscoveryError;
use kube::{Api, Client, discovery};
use metal3_explain::{ObjectId, Unread};
use metal3_runtime::client::served_kind;
use metal3_runtime::work::{Class, classify};
use serde::Serialize;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::kinds;
use crate::shared::Shared;

/// Objects of a page of a list.
const PAGE: u32 = 500;
/// The pause after an error, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// How often a kind is looked for that is not installed, or may not be listed: both change by hand.
const AGAIN: Duration = Duration::from_secs(120);
/// A server ends a watch after this time, in seconds.
const WATCH: u32 = 290;

/// The namespaces to read.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    /// The only one.
    pub(crate) only: Option<String>,
    /// That of the kubeconfig.
    pub(crate) default: String,
}

/// Watches all kinds, and those of other providers once a page needs them.
pub(crate) async fn all(client: Client, shared: Arc<Shared>, scope: Scope) {
    let (mut tasks, mut known) = (JoinSet::new(), BTreeSet::new());
    let mut kinds: BTreeSet<ObjectId> = kinds::first().into_iter().collect();
    loop {
        for kind in kinds.into_iter().filter(|kind| !kinds::is_secret(kind)) {
            if known.insert(kind.clone()) {
                let (client, shared, scope) = (client.clone(), Arc::clone(&shared), scope.clone());
                tasks.spawn(async move {
                    Follower {
                        client,
                        shared,
                        kind,
                        scope,
                    }
                    .run()
                    .await
                });
            }
        }
        shared.wants.notified().await;
        kinds = shared.wanted();
    }
}

struct Follower {
    client: Client,
    shared: Arc<Shared>,
    kind: ObjectId,
    scope: Scope,
}

/// Why a list or a watch has no result.
enum Failure {
    Forbidden(Unread),
    NotFound,
    Expired,
    Other(Unread),
}

impl Follower {
    async fn run(self) {
        let (mut pause, mut resource, mut only) = (PAUSES.0, None, self.scope.only.clone());
        loop {
            let wanted = match resource.take() {
                Some(resource) => resource,
                None => match self.resource().await {
                    Ok(resource) => resource,
                    Err(why) => {
                        self.unread(why);
                        tokio::time::sleep(AGAIN).await;
                        continue;
                    }
                },
            };
            match self.follow(&wanted, only.as_deref(), &mut pause).await {
                Failure::Expired => {
                    // Not at once, whatever the server does.
                    tokio::time::sleep(PAUSES.0).await;
                    resource = Some(wanted);
                }
                Failure::Forbidden(_) if only.is_none() => {
                    // Who may not list all may list the own namespace.
                    (resource, only) = (Some(wanted), Some(self.scope.default.clone()));
                }
                Failure::Forbidden(why) => {
                    self.shared.change(|objects| objects.refuse(&self.kind, why));
                    tokio::time::sleep(AGAIN).await;
                    only.clone_from(&self.scope.only);
                }
                Failure::NotFound => match self.other_version(&wanted).await {
                    Ok(other) => {
                        tokio::time::sleep(PAUSES.0).await;
                        resource = Some(other);
                    }
                    Err(why) => {
                        self.unread(why);
                        tokio::time::sleep(AGAIN).await;
                    }
                },
                Failure::Other(why) => {
                    self.shared.change(|objects| objects.fault(&self.kind, Some(why)));
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSES.1);
                    resource = Some(wanted);
                }
            }
        }
    }

    fn unread(&self, why: Unread) {
        self.shared.change(|objects| match why {
            Unread::Failed(_) => objects.fault(&self.kind, Some(why)),
            why => objects.refuse(&self.kind, why),
        });
    }

    /// Lists, then watches until it fails.
    async fn follow(&self, resource: &ApiResource, only: Option<&str>, pause: &mut Duration) -> Failure {
        let api: Api<DynamicObject> = match only {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        };
        let (objects, mut version) = match list(&api, resource).await {
            Ok(listed) => listed,
            Err(error) => return failure(&error, "list", resource),
        };
        self.shared.change(|all| {
            all.replace(&self.kind, only.map(ToOwned::to_owned), objects);
            all.fault(&self.kind, None);
        });
        *pause = PAUSES.0;
        loop {
            if let Some(failed) = self.watch(&api, resource, &mut version).await {
                return failed;
            }
        }
    }

    /// Applies the events of one watch. `None`: the server ended it, as it does after minutes.
    async fn watch(&self, api: &Api<DynamicObject>, resource: &ApiResource, version: &mut String) -> Option<Failure> {
        let wanted = WatchParams::default().timeout(WATCH);
        let stream = match api.watch(&wanted, version).await {
            Ok(stream) => stream,
            Err(error) => return Some(failure(&error, "watch", resource)),
        };
        let mut stream = pin!(stream);
        let mut is_empty = true;
        loop {
            let event = match stream.try_next().await {
                Ok(Some(event)) => event,
                // A server that ends each watch at once is not asked without a pause.
                Ok(None) if is_empty => {
                    tokio::time::sleep(PAUSES.0).await;
                    return None;
                }
                Ok(None) => return None,
                Err(error) => return Some(failure(&error, "watch", resource)),
            };
            is_empty = false;
            let (object, is_left) = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, true),
                WatchEvent::Deleted(object) => (object, false),
                WatchEvent::Bookmark(bookmark) => {
                    *version = bookmark.metadata.resource_version;
                    continue;
                }
                WatchEvent::Error(status) => return Some(failure(&kube::Error::Api(status), "watch", resource)),
            };
            if let Some(reached) = &object.metadata.resource_version {
                version.clone_from(reached);
            }
            let Some(object) = document(&object, resource) else {
                continue;
            };
            self.shared.change(|all| match is_left {
                true => all.put(&self.kind, object),
                false => all.remove(&self.kind, &object),
            });
        }
    }

    /// Version and plural of the kind: known, or discovered for another provider's.
    async fn resource(&self) -> Result<ApiResource, Unread> {
        if self.kind == kinds::events() {
            let kind = GroupVersionKind::gvk("", "v1", "Event");
            return Ok(ApiResource::from_gvk_with_plural(&kind, "events"));
        }
        if let Some(known) = self.kind.served() {
            let kind = GroupVersionKind::gvk(known.group, known.version, known.kind);
            return Ok(ApiResource::from_gvk_with_plural(&kind, known.plural));
        }
        let group = discovery::group(&self.client, &self.kind.group).await;
        let group = group.map_err(|error| undiscovered(&error))?;
        served_kind(&group, &self.kind.kind).ok_or(Unread::NotInstalled)
    }

    /// The version in which an older release serves the kind.
    async fn other_version(&self, than: &ApiResource) -> Result<ApiResource, Unread> {
        let group = discovery::group(&self.client, &self.kind.group).await;
        let group = group.map_err(|error| undiscovered(&error))?;
        let others = group.versions().filter(|version| *version != than.version);
        let mut others = others.flat_map(|version| group.versioned_resources(version));
        let found = others.find(|(known, _)| known.kind == self.kind.kind);
        found.map(|(resource, _)| resource).ok_or(Unread::NotInstalled)
    }
}

async fn list(api: &Api<DynamicObject>, resource: &ApiResource) -> kube::Result<(Vec<Value>, String)> {
    let (mut objects, mut page) = (Vec::new(), ListParams::default().limit(PAGE));
    loop {
        let found = api.list(&page).await?;
        objects.extend(found.items.iter().filter_map(|object| document(object, resource)));
        page.continue_token = found.metadata.continue_.filter(|token| !token.is_empty());
        if page.continue_token.is_none() {
            return Ok((objects, found.metadata.resource_version.unwrap_or_default()));
        }
    }
}

/// An object with its kind, which lists of built-in kinds omit.
fn document(object: &impl Serialize, resource: &ApiResource) -> Option<Value> {
    let mut object = serde_json::to_value(object).ok()?;
    let members = object.as_object_mut()?;
    members.insert("apiVersion".to_owned(), Value::from(resource.api_version.clone()));
    members.insert("kind".to_owned(), Value::from(resource.kind.clone()));
    Some(object)
}

fn undiscovered(error: &kube::Error) -> Unread {
    let is_missing = matches!(error, kube::Error::Discovery(DiscoveryError::MissingApiGroup(_)));
    match classify(error) {
        _ if is_missing => Unread::NotInstalled,
        Class::NotFound => Unread::NotInstalled,
        _ => Unread::Failed(error.to_string()),
    }
}

fn failure(error: &kube::Error, verb: &str, resource: &ApiResource) -> Failure {
    if matches!(error, kube::Error::Api(status) if status.code == 401) {
        let why = "the API server does not accept the login; log in again, and start the console again";
        return Failure::Other(Unread::Failed(why.to_owned()));
    }
    if matches!(error, kube::Error::Api(status) if status.code == 410) {
        return Failure::Expired;
    }
    match classify(error) {
        Class::Expired => Failure::Expired,
        Class::NotFound => Failure::NotFound,
        Class::Forbidden => Failure::Forbidden(Unread::Forbidden {
            verb: verb.to_owned(),
            resource: match resource.group.as_str() {
                "" => resource.plural.clone(),
                group => format!("{}.{group}", resource.plural),
            },
        }),
        _ => Failure::Other(Unread::Failed(error.to_string())),
    }
}
