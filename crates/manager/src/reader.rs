//! The reads of commands, with the viewer's own rights.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiGroup;
use kube::error::DiscoveryError;
use kube::{Api, Client, discovery};
use metal3_explain::{Answer, ObjectId, Read, SECRET, Snapshot, Unread};
use metal3_runtime::client::served_kind;
use metal3_runtime::work::{Class, classify};
use serde::Serialize;
use serde_json::Value;

/// More rounds of reads than any answer needs.
const ROUNDS: usize = 64;
/// Objects of a page.
const PAGE: u32 = 500;
/// How often a list begins again whose pages expired.
const RESTARTS: usize = 3;

/// Objects, and the version of their list.
pub(crate) struct Listed {
    pub(crate) objects: Vec<Value>,
    pub(crate) version: String,
}

/// Reads objects of one namespace, or of all.
pub(crate) struct Reader {
    client: Client,
    namespace: Option<String>,
    /// By their names. Few.
    groups: Vec<(String, ApiGroup)>,
    /// Kinds that the server has only in another version than the preferred one, by group and kind.
    others: Vec<((String, String), ApiResource)>,
}

/// Why a request has no result.
enum Refused {
    /// For good.
    Unread(Unread),
    /// The kind is served in this version only.
    OtherVersion(ApiResource),
}

impl From<Unread> for Refused {
    fn from(why: Unread) -> Self {
        Self::Unread(why)
    }
}

impl Refused {
    /// For a caller that reads the preferred version only.
    fn into_unread(self, wanted: &ApiResource) -> Unread {
        match self {
            Self::Unread(why) => why,
            Self::OtherVersion(_) => Unread::Failed(format!(
                "{}.{} is not served in the version {}",
                wanted.plural, wanted.group, wanted.version
            )),
        }
    }
}

impl Reader {
    pub(crate) fn new(client: &Client, namespace: Option<&str>) -> Self {
        Self {
            client: client.clone(),
            namespace: namespace.map(ToOwned::to_owned),
            groups: Vec::new(),
            others: Vec::new(),
        }
    }

    /// Reads until a question is answered.
    ///
    /// # Errors
    /// When it never is.
    pub(crate) async fn ask<T>(&mut self, question: impl Fn(&Snapshot) -> Result<T, BTreeSet<Read>>) -> Result<T> {
        let mut snapshot = Snapshot::default();
        for _ in 0..ROUNDS {
            let wanted = match question(&snapshot) {
                Ok(answer) => return Ok(answer),
                Err(wanted) => wanted,
            };
            for read in wanted {
                let answer = self.read(&read).await;
                snapshot.insert(read, answer);
            }
        }
        bail!("the answer is not complete after {ROUNDS} rounds of reads")
    }

    pub(crate) async fn read(&mut self, read: &Read) -> Answer {
        let kind = match read {
            Read::Object(kind) | Read::List { kind, .. } => kind,
            Read::Events(object) => return self.events(object).await,
        };
        let resource = self.resource(kind).await?;
        match self.answer(read, &resource).await {
            Err(Refused::OtherVersion(other)) => {
                let key = (kind.group.clone(), kind.kind.clone());
                self.others.push((key, other.clone()));
                let answer = self.answer(read, &other).await;
                answer.map_err(|why| why.into_unread(&other))
            }
            answer => answer.map_err(|why| why.into_unread(&resource)),
        }
    }

    async fn answer(&self, read: &Read, resource: &ApiResource) -> Result<Vec<Value>, Refused> {
        match read {
            Read::Object(object) => self.object(object, resource).await,
            Read::List { labels, .. } => {
                let listed = self.pages(resource, ListParams::default().labels(labels)).await?;
                Ok(listed.objects)
            }
            Read::Events(object) => Ok(self.events(object).await?),
        }
    }

    async fn events(&self, object: &ObjectId) -> Answer {
        let mut wanted = ListParams::default();
        if !object.name.is_empty() {
            let (kind, name) = (&object.kind, &object.name);
            wanted = wanted.fields(&format!("involvedObject.kind={kind},involvedObject.name={name}"));
        }
        let kind = GroupVersionKind::gvk("", "v1", "Event");
        let resource = ApiResource::from_gvk_with_plural(&kind, "events");
        Ok(self.list(&resource, wanted).await?.objects)
    }

    /// All objects of a list, in this version.
    pub(crate) async fn list(&self, resource: &ApiResource, wanted: ListParams) -> Result<Listed, Unread> {
        let listed = self.pages(resource, wanted).await;
        listed.map_err(|why| why.into_unread(resource))
    }

    /// All pages of a list. The content of Secrets is of no interest, and is not requested.
    async fn pages(&self, resource: &ApiResource, wanted: ListParams) -> Result<Listed, Refused> {
        let api = self.api(resource);
        let (mut objects, mut token, mut restarts) = (Vec::new(), None, 0);
        loop {
            let mut page = wanted.clone().limit(PAGE);
            page.continue_token = token.take();
            let found = if is_secret(&resource.group, &resource.kind) {
                let found = api.list_metadata(&page).await;
                found.map(|found| (found.items.iter().map(value).collect::<Answer>(), found.metadata))
            } else {
                let found = api.list(&page).await;
                found.map(|found| (found.items.iter().map(value).collect::<Answer>(), found.metadata))
            };
            match found {
                Ok((found, metadata)) => {
                    objects.extend(found?.into_iter().map(|object| typed(object, resource)));
                    token = metadata.continue_.filter(|token| !token.is_empty());
                    if token.is_none() {
                        let version = metadata.resource_version.unwrap_or_default();
                        return Ok(Listed { objects, version });
                    }
                }
                Err(error) if classify(&error) == Class::Expired && restarts < RESTARTS => {
                    restarts += 1;
                    objects.clear();
                }
                Err(error) if classify(&error) == Class::NotFound => return Err(self.unserved(resource).await),
                Err(error) => return Err(unread(&error, "list", resource).into()),
            }
        }
    }

    /// Why a kind is not found: it is not installed, or an older release serves it in other versions only.
    async fn unserved(&self, resource: &ApiResource) -> Refused {
        let group = match discovery::group(&self.client, &resource.group).await {
            Ok(group) => group,
            Err(error) => return undiscovered(&error).into(),
        };
        let others = group.versions().filter(|version| *version != resource.version);
        let mut others = others.flat_map(|version| group.versioned_resources(version));
        match others.find(|(known, _)| known.kind == resource.kind) {
            Some((other, _)) => Refused::OtherVersion(other),
            None => Unread::NotInstalled.into(),
        }
    }

    /// One object, or none.
    async fn object(&self, object: &ObjectId, resource: &ApiResource) -> Result<Vec<Value>, Refused> {
        let api = self.api(resource);
        let found = if is_secret(&object.group, &object.kind) {
            api.get_metadata(&object.name).await.map(|found| value(&found))
        } else {
            api.get(&object.name).await.map(|found| value(&found))
        };
        match found {
            Ok(found) => Ok(vec![typed(found?, resource)]),
            Err(error) if classify(&error) == Class::NotFound => self.absent(resource).await,
            Err(error) => Err(unread(&error, "get", resource).into()),
        }
    }

    /// Whether an object that is not found is absent, or its kind is. Who may not list the kind gets the first answer. Of the
    /// object that the list has only the metadata are read.
    async fn absent(&self, resource: &ApiResource) -> Result<Vec<Value>, Refused> {
        // The API server itself serves the kinds of the core, such as Secrets.
        if resource.group.is_empty() {
            return Ok(Vec::new());
        }
        let one = ListParams::default().limit(1);
        match self
            .api(resource)
            .list_metadata(&one)
            .await
            .map_err(|error| (classify(&error), error))
        {
            Ok(_) | Err((Class::Forbidden, _)) => Ok(Vec::new()),
            Err((Class::NotFound, _)) => Err(self.unserved(resource).await),
            Err((_, error)) => Err(unread(&error, "list", resource).into()),
        }
    }

    pub(crate) fn api(&self, resource: &ApiResource) -> Api<DynamicObject> {
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        }
    }

    /// Version and plural of a kind. Those of other providers' kinds are discovered, once for a group.
    pub(crate) async fn resource(&mut self, object: &ObjectId) -> Result<ApiResource, Unread> {
        let key = (object.group.clone(), object.kind.clone());
        if let Some((_, other)) = self.others.iter().find(|(of, _)| *of == key) {
            return Ok(other.clone());
        }
        if let Some(known) = object.served() {
            let kind = GroupVersionKind::gvk(known.group, known.version, known.kind);
            return Ok(ApiResource::from_gvk_with_plural(&kind, known.plural));
        }
        if !self.groups.iter().any(|(name, _)| *name == object.group) {
            let group = discovery::group(&self.client, &object.group).await;
            let group = group.map_err(|error| undiscovered(&error))?;
            self.groups.push((object.group.clone(), group));
        }
        let found = self
            .groups
            .iter()
            .find(|(name, _)| *name == object.group)
            .and_then(|(_, group)| served_kind(group, &object.kind));
        found.ok_or(Unread::NotInstalled)
    }
}

fn undiscovered(error: &kube::Error) -> Unread {
    let is_missing = matches!(error, kube::Error::Discovery(DiscoveryError::MissingApiGroup(_)));
    match classify(error) {
        _ if is_missing => Unread::NotInstalled,
        Class::NotFound => Unread::NotInstalled,
        _ => Unread::Failed(error.to_string()),
    }
}

fn is_secret(group: &str, kind: &str) -> bool {
    kind == SECRET.kind && group == SECRET.group
}

fn value(object: &impl Serialize) -> Result<Value, Unread> {
    serde_json::to_value(object).map_err(|why| Unread::Undecodable(why.to_string()))
}

/// An object with its kind, which lists of built-in kinds and metadata omit.
fn typed(mut object: Value, resource: &ApiResource) -> Value {
    if let Some(members) = object.as_object_mut() {
        members.insert("apiVersion".to_owned(), Value::from(resource.api_version.clone()));
        members.insert("kind".to_owned(), Value::from(resource.kind.clone()));
    }
    object
}

pub(crate) fn unread(error: &kube::Error, verb: &str, resource: &ApiResource) -> Unread {
    // The login is at fault, and no right.
    if matches!(error, kube::Error::Api(status) if status.code == 401) {
        return Unread::Failed("the API server does not accept the login; log in again".to_owned());
    }
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
