//! A simulated API server that holds recorded objects as they were stored, and what there is in it later.
//!
//! A server gives its own UIDs. References in what is put in are translated to them, and back in what is shown, so that
//! recordings and answers speak of the same objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, bail};
use chrono::{DateTime, Utc};
use metal3_domain::clock::Clock;
use metal3_sim_cluster::{Cluster, Options, TokioClock, cluster_api};
use serde_json::{Map, Value, json};

/// As whom the site itself asks.
pub(super) const USER: &str = "user";
/// What a server adds to metadata.
const ADDED: [&str; 6] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
];
/// Looks at a site until it is given up, and the time between two. Simulated, so it costs nothing.
const LOOKS: usize = 400;
const LOOK: std::time::Duration = std::time::Duration::from_secs(45);

/// A kind as requests name it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) group: String,
    version: String,
    pub(super) kind: String,
    plural: String,
}

/// The server, and which UID each recorded one became.
pub(super) struct Site {
    pub(super) cluster: Cluster,
    pub(super) clock: Arc<dyn Clock>,
    user: kube::Client,
    uids: BTreeMap<String, String>,
    places: BTreeSet<Place>,
}

/// Why an object could not be put in.
#[derive(Debug)]
pub(super) enum NotPut {
    /// The server refuses it, and why.
    Refused(String),
    /// Something else is wrong.
    Broken(anyhow::Error),
}

impl From<anyhow::Error> for NotPut {
    fn from(error: anyhow::Error) -> Self {
        Self::Broken(error)
    }
}

/// The server that every site begins with a copy of: with all kinds of ours and of Cluster API.
fn prepared() -> Result<&'static Cluster> {
    static PREPARED: OnceLock<Result<Cluster, String>> = OnceLock::new();
    let prepared = PREPARED.get_or_init(|| {
        let cluster = Cluster::start(&Options::seeded(1));
        let mut kinds = metal3_api::catalog::definitions();
        let known: BTreeSet<(&str, &str)> = kinds.iter().map(|kind| (kind.group, kind.kind)).collect();
        let foreign = cluster_api()
            .into_iter()
            .filter(|kind| !known.contains(&(kind.group, kind.kind)));
        let foreign: Vec<_> = foreign.collect();
        kinds.extend(foreign);
        cluster.install(&kinds).map_err(|refusal| format!("{refusal:?}"))?;
        Ok(cluster)
    });
    prepared
        .as_ref()
        .map_err(|why| anyhow::anyhow!("installing the kinds: {why}"))
}

/// Plays something on paused time: waiting costs nothing, and time goes on only when nobody has anything to do.
pub(super) fn play<T>(what: impl Future<Output = T>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()?;
    Ok(runtime.block_on(what))
}

impl Site {
    pub(super) fn new() -> Result<Self> {
        Self::at(Options::seeded(1).clock.now())
    }

    /// One whose clock begins at a time.
    pub(super) fn at(time: DateTime<Utc>) -> Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::start_at(time));
        let cluster = prepared()?.fork(&clock);
        Ok(Self {
            user: cluster.client(USER),
            cluster,
            clock,
            uids: BTreeMap::new(),
            places: BTreeSet::new(),
        })
    }

    pub(super) async fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value, kube::Error> {
        let kind = if method == "PATCH" {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", kind)
            .body(body.to_string().into_bytes())
            .map_err(kube::Error::HttpError)?;
        self.user.request::<Value>(request).await
    }

    pub(super) async fn namespace(&self, name: &str) -> Result<()> {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        self.send("POST", "/api/v1/namespaces", &namespace).await?;
        Ok(())
    }

    /// Puts objects in as they were stored: with status, owners, and on their way out where they were.
    pub(super) async fn put(&mut self, objects: &[&Value]) -> Result<(), NotPut> {
        for object in objects {
            self.create(object).await?;
        }
        for object in objects {
            self.complete(object).await?;
        }
        for object in objects {
            if !at(object, "/metadata/deletionTimestamp").is_null() {
                self.delete(object).await?;
            }
        }
        Ok(())
    }

    async fn create(&mut self, object: &Value) -> Result<(), NotPut> {
        let place = Place::of(object)?;
        if !self.places.contains(&place) {
            self.know(&place).await?;
            self.places.insert(place.clone());
        }
        let mut bare = object.clone();
        if let Some(members) = bare.as_object_mut() {
            members.remove("status");
        }
        if let Some(metadata) = bare.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|name, _| !ADDED.contains(&name.as_str()));
            metadata.remove("deletionTimestamp");
            // Owners may come later.
            metadata.remove("ownerReferences");
        }
        let made = match self
            .send("POST", &place.path(text(object, "/metadata/namespace"), ""), &bare)
            .await
        {
            Ok(made) => made,
            Err(kube::Error::Api(status)) if matches!(status.code, 400 | 403 | 422) => {
                return Err(NotPut::Refused(status.message.clone()));
            }
            Err(error) => return Err(NotPut::Broken(error.into())),
        };
        let recorded = match text(object, "/metadata/uid") {
            "" => format!("uid:{}:{}:{}", place.group, place.kind, text(object, "/metadata/name")),
            uid => uid.to_owned(),
        };
        self.uids.insert(recorded, text(&made, "/metadata/uid").to_owned());
        Ok(())
    }

    /// Adds owners and status, which name other objects.
    async fn complete(&self, object: &Value) -> Result<(), NotPut> {
        let place = Place::of(object)?;
        let path = place.path(text(object, "/metadata/namespace"), text(object, "/metadata/name"));
        let owners = at(object, "/metadata/ownerReferences");
        if !owners.is_null() {
            let change = json!({ "metadata": { "ownerReferences": self.translated(owners, false) } });
            self.send("PATCH", &path, &change).await.map_err(anyhow::Error::from)?;
        }
        if let Some(status) = object.get("status") {
            let change = json!({ "status": self.translated(status, false) });
            match self.send("PATCH", &format!("{path}/status"), &change).await {
                Ok(_) => {}
                Err(kube::Error::Api(refusal)) if refusal.code == 422 => {
                    return Err(NotPut::Refused(refusal.message.clone()));
                }
                Err(error) => return Err(NotPut::Broken(error.into())),
            }
        }
        Ok(())
    }

    pub(super) async fn delete(&self, object: &Value) -> Result<()> {
        let path = Place::of(object)?.path(text(object, "/metadata/namespace"), text(object, "/metadata/name"));
        self.send("DELETE", &path, &json!({})).await?;
        Ok(())
    }

    /// Makes a kind known that neither we nor Cluster API's core define: of any content.
    async fn know(&self, place: &Place) -> Result<()> {
        if self.send("GET", &place.path("", ""), &json!({})).await.is_ok() {
            return Ok(());
        }
        let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let version = json!({
            "name": place.version, "served": true, "storage": true, "subresources": { "status": {} },
            "schema": { "openAPIV3Schema": any },
        });
        let names = json!({ "plural": place.plural, "singular": place.kind.to_lowercase(), "kind": place.kind, "listKind": format!("{}List", place.kind) });
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{}.{}", place.plural, place.group) },
            "spec": { "group": place.group, "scope": "Namespaced", "names": names, "versions": [version] },
        });
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let made = self.send("POST", path, &definition).await;
        made.map(drop)
            .with_context(|| format!("a kind of its own for {}", place.kind))
    }

    /// Every object of a kind in a namespace, as the recordings would show it.
    pub(super) async fn all(&self, place: &Place, namespace: &str) -> Result<Vec<Value>> {
        let mut list = self.send("GET", &place.path(namespace, ""), &json!({})).await?;
        let items = list.get_mut("items").map(Value::take).unwrap_or_default();
        let items = items.as_array().cloned().unwrap_or_default();
        Ok(items.iter().map(|item| self.shown(place, item)).collect())
    }

    /// An object without what a server adds, and with the UIDs of the recording.
    fn shown(&self, place: &Place, object: &Value) -> Value {
        let mut shown = self.translated(object, true);
        if let Some(members) = shown.as_object_mut() {
            members.insert("apiVersion".into(), place.api_version().into());
            members.insert("kind".into(), place.kind.clone().into());
        }
        if let Some(metadata) = shown.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|name, _| !ADDED.contains(&name.as_str()));
        }
        shown
    }

    /// A recorded value as it is in this site: with the UIDs that this server gave.
    pub(super) fn within(&self, recorded: &Value) -> Value {
        self.translated(recorded, false)
    }

    fn translated(&self, value: &Value, back: bool) -> Value {
        match value {
            Value::String(text) => {
                let other = if back {
                    self.uids
                        .iter()
                        .find(|(_, given)| *given == text)
                        .map(|(recorded, _)| recorded)
                } else {
                    self.uids.get(text)
                };
                other.unwrap_or(text).clone().into()
            }
            Value::Array(items) => items.iter().map(|item| self.translated(item, back)).collect(),
            Value::Object(members) => {
                let members = members
                    .iter()
                    .map(|(name, member)| (name.clone(), self.translated(member, back)));
                Value::Object(members.collect::<Map<_, _>>())
            }
            other => other.clone(),
        }
    }

    /// Waits until nothing was written for a while. `meanwhile` is done at each look.
    pub(super) async fn rest(&self, meanwhile: impl AsyncFn(&Self) -> Result<()>) -> Result<()> {
        let (mut before, mut quiet) = (self.cluster.version(), 0_usize);
        for _ in 0..LOOKS {
            tokio::time::sleep(LOOK).await;
            meanwhile(self).await?;
            let now = self.cluster.version();
            quiet = if now == before { quiet + 1 } else { 0 };
            if quiet == 3 {
                return Ok(());
            }
            before = now;
        }
        bail!("the controllers do not come to rest: {:?}", self.cluster.audit())
    }
}

impl Place {
    pub(super) fn new(group: &str, version: &str, kind: &str) -> Self {
        let lower = kind.to_lowercase();
        let plural = match lower.as_str() {
            "hardwaredata" => lower,
            word if word.ends_with("ss") => format!("{word}es"),
            word if word.ends_with('s') => word.to_owned(),
            word => format!("{word}s"),
        };
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural,
        }
    }

    /// Where an object belongs.
    pub(super) fn of(object: &Value) -> Result<Self> {
        let (version, kind) = (text(object, "/apiVersion"), text(object, "/kind"));
        if version.is_empty() || kind.is_empty() {
            bail!("an object without apiVersion or kind: {object}");
        }
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        Ok(Self::new(group, version, kind))
    }

    fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The path of an object, or of all of a namespace.
    pub(super) fn path(&self, namespace: &str, name: &str) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let mut path = format!("{root}/{}", self.api_version());
        if !namespace.is_empty() {
            path = format!("{path}/namespaces/{namespace}");
        }
        path = format!("{path}/{}", self.plural);
        if !name.is_empty() {
            path = format!("{path}/{name}");
        }
        path
    }
}

/// Text at a place; empty if there is none.
fn text<'a>(value: &'a Value, place: &str) -> &'a str {
    at(value, place).as_str().unwrap_or_default()
}

fn at<'a>(value: &'a Value, place: &str) -> &'a Value {
    value.pointer(place).unwrap_or(&Value::Null)
}
