//! One watch for each kind, with the rights of the kubeconfig.
//!
//! A kind that may not be listed in all namespaces is listed in that of the kubeconfig. Silence, errors and stale versions lead to
//! a new list; what was read stays, with the fault next to it. All watches end with the login, and begin again with the next one.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt as _;
use kube::api::{ApiResource, DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::core::GroupVersionKind;
use kube::error::DiscoveryError;
use kube::{Api, discovery};
use metal3_explain::{ObjectId, Unread};
use metal3_runtime::client::served_kind;
use metal3_runtime::work::{Class, classify};
use serde::Serialize;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::kinds;
use crate::login::{Login, Session, State, is_of_login, is_silence};
use crate::objects::Objects;
use crate::shared::Shared;

/// Objects of a page of a list.
const PAGE: u32 = 500;
/// The pause after an error, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// How often a kind is looked for that is not installed, or may not be listed: both change by hand.
const AGAIN: Duration = Duration::from_secs(120);
/// A server ends a watch after this time, in seconds.
const WATCH: u32 = 290;
/// A connection on which no watch ends is broken.
const SILENCE: Duration = Duration::from_secs(330);

/// The namespaces to read.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    /// The only one.
    pub(crate) only: Option<String>,
    /// That of the kubeconfig.
    pub(crate) default: String,
}

/// Watches all kinds while there is a login. What was read is marked as old at its end, and removed when another user logs in.
pub(crate) async fn all(login: Arc<Login>, shared: Arc<Shared>, scope: Scope) {
    let mut turns = login.subscribe();
    loop {
        let state = turns.borrow_and_update().state.clone();
        let mut tasks = JoinSet::new();
        match state {
            State::Live(session) => {
                let follower = Follower {
                    login: Arc::clone(&login),
                    session,
                    shared: Arc::clone(&shared),
                    kind: kinds::events(),
                    scope: scope.clone(),
                };
                tokio::select! {
                    () = follow_all(&mut tasks, &follower) => {}
                    _ = turns.changed() => {}
                }
                // Nothing is written by them after this.
                tasks.shutdown().await;
                shared.change(Objects::outdate);
            }
            State::Ended(ended) => {
                if ended.is_hidden {
                    shared.change(Objects::clear);
                }
                if turns.changed().await.is_err() {
                    return;
                }
            }
        }
    }
}

/// One watch for each kind, and for those of other providers once a page needs them.
async fn follow_all(tasks: &mut JoinSet<()>, any: &Follower) {
    let mut known = BTreeSet::new();
    loop {
        for kind in kinds::first().into_iter().chain(any.shared.wanted()) {
            if !kinds::is_secret(&kind) && known.insert(kind.clone()) {
                tasks.spawn(Follower { kind, ..any.clone() }.run());
            }
        }
        any.shared.wants.notified().await;
    }
}

#[derive(Clone)]
struct Follower {
    login: Arc<Login>,
    session: Session,
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
            Some(namespace) => Api::namespaced_with(self.session.client.clone(), namespace, resource),
            None => Api::all_with(self.session.client.clone(), resource),
        };
        let (objects, mut version) = match list(&api, resource).await {
            Ok(listed) => listed,
            Err(error) => return self.failure(&error, "list", resource).await,
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
            Err(error) => return Some(self.failure(&error, "watch", resource).await),
        };
        let mut stream = pin!(stream);
        let mut is_empty = true;
        loop {
            let Ok(next) = tokio::time::timeout(SILENCE, stream.try_next()).await else {
                return None;
            };
            let event = match next {
                Ok(Some(event)) => event,
                // A server that ends each watch at once is not asked without a pause.
                Ok(None) if is_empty => {
                    tokio::time::sleep(PAUSES.0).await;
                    return None;
                }
                Ok(None) => return None,
                Err(error) => return Some(self.failure(&error, "watch", resource).await),
            };
            is_empty = false;
            let (object, is_left) = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, true),
                WatchEvent::Deleted(object) => (object, false),
                WatchEvent::Bookmark(bookmark) => {
                    *version = bookmark.metadata.resource_version;
                    continue;
                }
                WatchEvent::Error(status) => {
                    return Some(self.failure(&kube::Error::Api(status), "watch", resource).await);
                }
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
        let group = self.group().await?;
        served_kind(&group, &self.kind.kind).ok_or(Unread::NotInstalled)
    }

    /// The version in which an older release serves the kind.
    async fn other_version(&self, than: &ApiResource) -> Result<ApiResource, Unread> {
        let group = self.group().await?;
        let others = group.versions().filter(|version| *version != than.version);
        let mut others = others.flat_map(|version| group.versioned_resources(version));
        let found = others.find(|(known, _)| known.kind == self.kind.kind);
        found.map(|(resource, _)| resource).ok_or(Unread::NotInstalled)
    }

    async fn group(&self) -> Result<discovery::ApiGroup, Unread> {
        match discovery::group(&self.session.client, &self.kind.group).await {
            Ok(group) => Ok(group),
            Err(error) if is_of_login(&error) => Err(self.login_failed().await),
            Err(error) => Err(undiscovered(&error)),
        }
    }

    async fn failure(&self, error: &kube::Error, verb: &str, resource: &ApiResource) -> Failure {
        if is_of_login(error) {
            return Failure::Other(self.login_failed().await);
        }
        if is_silence(error) {
            self.login.doubt();
        }
        failure(error, verb, resource)
    }

    /// Has the API server asked about the login. If it has ended, this watch ends with all others.
    async fn login_failed(&self) -> Unread {
        let is_accepted = self.login.check(self.session.number).await;
        if !self.login.is_live(self.session.number) {
            return std::future::pending().await;
        }
        let why = match is_accepted {
            true => {
                "its server does not accept the login, which the API server accepts: look at the APIService of its group"
            }
            false => "the login was not accepted, and the API server does not say more",
        };
        Unread::Failed(why.to_owned())
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

#[cfg(test)]
#[path = "follow_tests.rs"]
mod tests;
