//! A simulated API server that is loaded with recorded objects and read back.
//!
//! The server assigns its own UIDs. They are translated in both directions, so that recordings and results
//! use the same ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, bail};
use chrono::{DateTime, Utc};
use metal3_domain::clock::Clock;
use metal3_sim_cluster::{Cluster, Options, TokioClock, cluster_api};
use serde_json::{Map, Value, json};

use crate::values::text;

/// User of the test itself.
pub(super) const USER: &str = "user";
/// Metadata fields that the server sets.
const ADDED: [&str; 6] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
];
/// Maximum number of checks until the controllers are idle, and their interval under paused time.
const MAX_CHECKS: usize = 400;
const CHECK_INTERVAL: std::time::Duration = std::time::Duration::from_secs(45);

/// A resource type of the API.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Resource {
    pub(super) group: String,
    version: String,
    pub(super) kind: String,
    plural: String,
}

/// The server, and the local UID of each recorded one.
pub(super) struct TestServer {
    pub(super) cluster: Cluster,
    pub(super) clock: Arc<dyn Clock>,
    user: kube::Client,
    uids: BTreeMap<String, String>,
    resources: BTreeSet<Resource>,
}

/// Why an object could not be stored.
#[derive(Debug)]
pub(super) enum PutError {
    /// Rejected by the server, with the reason.
    Rejected(String),
    /// Another error.
    Other(anyhow::Error),
}

impl From<anyhow::Error> for PutError {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

/// A server with the kinds of this project and of Cluster API; each test server is a copy.
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

/// Runs a future under paused time.
pub(super) fn run_paused<T>(future: impl Future<Output = T>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()?;
    Ok(runtime.block_on(future))
}

impl TestServer {
    pub(super) fn new() -> Result<Self> {
        Self::at(Options::seeded(1).clock.now())
    }

    /// A server whose clock starts at this time.
    pub(super) fn at(time: DateTime<Utc>) -> Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::start_at(time));
        let cluster = prepared()?.fork(&clock);
        Ok(Self {
            user: cluster.client(USER),
            cluster,
            clock,
            uids: BTreeMap::new(),
            resources: BTreeSet::new(),
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

    /// Stores objects with their status, owners and deletion.
    pub(super) async fn put(&mut self, objects: &[&Value]) -> Result<(), PutError> {
        for object in objects {
            self.create(object).await?;
        }
        for object in objects {
            self.complete(object).await?;
        }
        for object in objects {
            if object.pointer("/metadata/deletionTimestamp").is_some() {
                self.delete(object).await?;
            }
        }
        Ok(())
    }

    async fn create(&mut self, object: &Value) -> Result<(), PutError> {
        let resource = Resource::of(object)?;
        if !self.resources.contains(&resource) {
            self.define_kind(&resource).await?;
            self.resources.insert(resource.clone());
        }
        let mut bare = object.clone();
        if let Some(members) = bare.as_object_mut() {
            members.remove("status");
        }
        if let Some(metadata) = bare.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|name, _| !ADDED.contains(&name.as_str()));
            metadata.remove("deletionTimestamp");
            // Owners are set later.
            metadata.remove("ownerReferences");
        }
        let created = match self
            .send("POST", &resource.path(text(object, "/metadata/namespace"), ""), &bare)
            .await
        {
            Ok(created) => created,
            Err(kube::Error::Api(status)) if matches!(status.code, 400 | 403 | 422) => {
                return Err(PutError::Rejected(status.message.clone()));
            }
            Err(error) => return Err(PutError::Other(error.into())),
        };
        let recorded = match text(object, "/metadata/uid") {
            "" => format!(
                "uid:{}:{}:{}",
                resource.group,
                resource.kind,
                text(object, "/metadata/name")
            ),
            uid => uid.to_owned(),
        };
        self.uids.insert(recorded, text(&created, "/metadata/uid").to_owned());
        Ok(())
    }

    /// Sets owners and status, which refer to other objects.
    async fn complete(&self, object: &Value) -> Result<(), PutError> {
        let resource = Resource::of(object)?;
        let path = resource.path(text(object, "/metadata/namespace"), text(object, "/metadata/name"));
        if let Some(owners) = object.pointer("/metadata/ownerReferences") {
            let change = json!({ "metadata": { "ownerReferences": self.translated(owners, false) } });
            self.send("PATCH", &path, &change).await.map_err(anyhow::Error::from)?;
        }
        if let Some(status) = object.get("status") {
            let change = json!({ "status": self.translated(status, false) });
            match self.send("PATCH", &format!("{path}/status"), &change).await {
                Ok(_) => {}
                Err(kube::Error::Api(refusal)) if refusal.code == 422 => {
                    return Err(PutError::Rejected(refusal.message.clone()));
                }
                Err(error) => return Err(PutError::Other(error.into())),
            }
        }
        Ok(())
    }

    pub(super) async fn delete(&self, object: &Value) -> Result<()> {
        let path = Resource::of(object)?.path(text(object, "/metadata/namespace"), text(object, "/metadata/name"));
        self.send("DELETE", &path, &json!({})).await?;
        Ok(())
    }

    /// Defines a foreign kind with any content.
    async fn define_kind(&self, resource: &Resource) -> Result<()> {
        if self.send("GET", &resource.path("", ""), &json!({})).await.is_ok() {
            return Ok(());
        }
        let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let version = json!({
            "name": resource.version, "served": true, "storage": true, "subresources": { "status": {} },
            "schema": { "openAPIV3Schema": any },
        });
        let names = json!({ "plural": resource.plural, "singular": resource.kind.to_lowercase(), "kind": resource.kind, "listKind": format!("{}List", resource.kind) });
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{}.{}", resource.plural, resource.group) },
            "spec": { "group": resource.group, "scope": "Namespaced", "names": names, "versions": [version] },
        });
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let created = self.send("POST", path, &definition).await;
        created
            .map(drop)
            .with_context(|| format!("define the kind {}", resource.kind))
    }

    /// All objects of a kind in a namespace, in the form of recordings.
    pub(super) async fn all(&self, resource: &Resource, namespace: &str) -> Result<Vec<Value>> {
        let mut list = self.send("GET", &resource.path(namespace, ""), &json!({})).await?;
        let items = list.get_mut("items").map(Value::take).unwrap_or_default();
        let items = items.as_array().cloned().unwrap_or_default();
        Ok(items.iter().map(|item| self.recorded_form(resource, item)).collect())
    }

    /// An object without fields of the server, with recorded UIDs.
    fn recorded_form(&self, resource: &Resource, object: &Value) -> Value {
        let mut recorded_form = self.translated(object, true);
        if let Some(members) = recorded_form.as_object_mut() {
            members.insert("apiVersion".into(), resource.api_version().into());
            members.insert("kind".into(), resource.kind.clone().into());
        }
        if let Some(metadata) = recorded_form.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|name, _| !ADDED.contains(&name.as_str()));
        }
        recorded_form
    }

    /// A recorded value with the UIDs of this server.
    pub(super) fn with_local_uids(&self, recorded: &Value) -> Value {
        self.translated(recorded, false)
    }

    fn translated(&self, value: &Value, to_recorded: bool) -> Value {
        match value {
            Value::String(text) => {
                let other = if to_recorded {
                    self.uids
                        .iter()
                        .find(|(_, given)| *given == text)
                        .map(|(recorded, _)| recorded)
                } else {
                    self.uids.get(text)
                };
                other.unwrap_or(text).clone().into()
            }
            Value::Array(items) => items.iter().map(|item| self.translated(item, to_recorded)).collect(),
            Value::Object(members) => {
                let members = members
                    .iter()
                    .map(|(name, member)| (name.clone(), self.translated(member, to_recorded)));
                Value::Object(members.collect::<Map<_, _>>())
            }
            other => other.clone(),
        }
    }

    /// Waits until the controllers stop writing; calls `meanwhile` at each check.
    pub(super) async fn settle(&self, meanwhile: impl AsyncFn(&Self) -> Result<()>) -> Result<()> {
        let (mut before, mut quiet) = (self.cluster.version(), 0_usize);
        for _ in 0..MAX_CHECKS {
            tokio::time::sleep(CHECK_INTERVAL).await;
            meanwhile(self).await?;
            let now = self.cluster.version();
            quiet = if now == before { quiet + 1 } else { 0 };
            if quiet == 3 {
                return Ok(());
            }
            before = now;
        }
        bail!("the controllers do not become idle: {:?}", self.cluster.audit())
    }
}

impl Resource {
    pub(super) fn new(group: &str, version: &str, kind: &str) -> Self {
        let lower = kind.to_lowercase();
        let plural = match lower.as_str() {
            "hardwaredata" => lower,
            word if word.ends_with("ss") => format!("{word}es"),
            word if word.ends_with('s') => word.to_owned(),
            word => match word.strip_suffix('y') {
                Some(stem) => format!("{stem}ies"),
                None => format!("{word}s"),
            },
        };
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural,
        }
    }

    /// The resource type of an object.
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

    /// The path of an object, or of all objects of a namespace.
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
