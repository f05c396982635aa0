//! `capm3 hand-back`: removes from objects what Go managers up to 1.13 would leave on them for ever.
//!
//! It is for the way back to such a manager, after this program was scaled down. It changes annotations and finalizers
//! only, and each object only at the version that it has read.
//!
//! | Object | Removed | Left on, it |
//! |---|---|---|
//! | host of a machine | the annotation that blocks moves | makes every `clusterctl move` time out |
//! | Secret with network data of an agent | this program's finalizer | keeps the Secret when it is deleted |
//! | claim on an endpoint | the finalizer of Metal3Clusters | keeps the claim when its Cluster is deleted |

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use metal3_api::cluster::IPAddressClaim;
use metal3_api::infrastructure::names::{BLOCK_MOVE_ANNOTATION, CLUSTER_FINALIZER};
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_api::kind::Kind;
use metal3_api::metal3::names::SECRET_FINALIZER;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::guard::PART_OF_LABEL;
use serde_json::{Value, json};

/// What to hand back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HandBack {
    /// The namespace; `None` for all.
    pub namespace: Option<String>,
    /// Whether nothing is written.
    pub dry_run: bool,
}

/// A change of one object.
#[derive(Debug, Clone, PartialEq)]
struct Change {
    resource: ApiResource,
    namespace: String,
    name: String,
    patch: Value,
}

impl HandBack {
    /// Changes all objects, and returns a line for each.
    ///
    /// # Errors
    /// When this program still runs, or a request fails. Running it again continues.
    pub async fn run(&self, client: &Client) -> Result<Vec<String>> {
        let running = running(&list_deployments(client).await?);
        ensure!(
            running.is_empty(),
            "{} still runs and would write the same again; scale it to 0 first",
            running.join(", ")
        );
        let hosts = self.list(client, &resource::<BareMetalHost>()).await?;
        let mut changes: Vec<Change> = hosts.iter().filter_map(host_change).collect();
        for (namespace, name) in network_secrets(&hosts) {
            let secrets: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &secret());
            let found = secrets.get_opt(&name).await;
            let found = found.with_context(|| format!("read Secret {namespace}/{name}"))?;
            changes.extend(found.and_then(|found| finalizer_change(&secret(), &found, SECRET_FINALIZER)));
        }
        for resource in [resource::<IPClaim>(), resource::<IPAddressClaim>()] {
            let claims = self.list(client, &resource).await?;
            let held = claims
                .iter()
                .filter(|claim| claim.metadata.deletion_timestamp.is_none());
            changes.extend(held.filter_map(|claim| finalizer_change(&resource, claim, CLUSTER_FINALIZER)));
        }
        let mut lines = Vec::new();
        for change in changes {
            lines.push(format!("{} {}/{}", change.resource.kind, change.namespace, change.name));
            if !self.dry_run {
                change.perform(client).await?;
            }
        }
        Ok(lines)
    }

    /// All objects of a kind; none when it is not installed.
    async fn list(&self, client: &Client, resource: &ApiResource) -> Result<Vec<DynamicObject>> {
        let api: Api<DynamicObject> = match &self.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
            None => Api::all_with(client.clone(), resource),
        };
        match api.list(&ListParams::default()).await {
            Ok(list) => Ok(list.items),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
            Err(error) => Err(error).with_context(|| format!("list {}", resource.plural)),
        }
    }
}

impl Change {
    fn of(resource: &ApiResource, object: &DynamicObject, mut patch: Value) -> Self {
        let metadata = &object.metadata;
        if let Some(members) = patch.pointer_mut("/metadata").and_then(Value::as_object_mut) {
            members.insert("resourceVersion".to_owned(), json!(metadata.resource_version));
        }
        Self {
            resource: resource.clone(),
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            patch,
        }
    }

    async fn perform(&self, client: &Client) -> Result<()> {
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &self.namespace, &self.resource);
        let patched = api
            .patch(&self.name, &PatchParams::default(), &Patch::Merge(&self.patch))
            .await;
        let what = || format!("change {} {}/{}", self.resource.kind, self.namespace, self.name);
        patched.map(drop).with_context(what)
    }
}

fn resource<K: Kind>() -> ApiResource {
    ApiResource::erase::<K>(&())
}

fn secret() -> ApiResource {
    ApiResource::erase::<Secret>(&())
}

async fn list_deployments(client: &Client) -> Result<Vec<Deployment>> {
    let deployments: Api<Deployment> = Api::all(client.clone());
    let list = deployments.list(&ListParams::default()).await;
    Ok(list
        .context("list Deployments, to see whether this program runs")?
        .items)
}

/// The Deployments of this program that want or have replicas.
fn running(deployments: &[Deployment]) -> Vec<String> {
    let is_ours = |deployment: &&Deployment| {
        let template = deployment
            .spec
            .as_ref()
            .and_then(|spec| spec.template.metadata.as_ref());
        let labels = template.and_then(|template| template.labels.as_ref());
        labels
            .and_then(|labels| labels.get(PART_OF_LABEL.0))
            .map(String::as_str)
            == Some(PART_OF_LABEL.1)
    };
    let has_replicas = |deployment: &&Deployment| {
        let wanted = deployment.spec.as_ref().map_or(0, |spec| spec.replicas.unwrap_or(1));
        let present = deployment.status.as_ref().and_then(|status| status.replicas);
        wanted > 0 || present.unwrap_or(0) > 0
    };
    let names = deployments
        .iter()
        .filter(is_ours)
        .filter(has_replicas)
        .map(|deployment| {
            let metadata = &deployment.metadata;
            let name = metadata.name.as_deref().unwrap_or_default();
            format!(
                "Deployment {}/{name}",
                metadata.namespace.as_deref().unwrap_or_default()
            )
        });
    names.collect()
}

/// Removes the block on moves from a host of a machine.
fn host_change(host: &DynamicObject) -> Option<Change> {
    let consumer = host.data.pointer("/spec/consumerRef/kind").and_then(Value::as_str);
    let annotations = host.metadata.annotations.as_ref()?;
    let is_blocked = annotations.contains_key(BLOCK_MOVE_ANNOTATION) && consumer == Some(Metal3Machine::KIND);
    let patch = json!({ "metadata": { "annotations": { BLOCK_MOVE_ANNOTATION: null } } });
    is_blocked.then(|| Change::of(&resource::<BareMetalHost>(), host, patch))
}

/// The Secrets with network data for agents, without those that are also a host's credentials: Go managers release these.
fn network_secrets(hosts: &[DynamicObject]) -> BTreeSet<(String, String)> {
    let named = |pointer: &'static str| {
        let name = move |host: &DynamicObject| {
            let name = host.data.pointer(pointer).and_then(Value::as_str)?;
            (!name.is_empty()).then(|| (host.metadata.namespace.clone().unwrap_or_default(), name.to_owned()))
        };
        hosts.iter().filter_map(name).collect::<BTreeSet<_>>()
    };
    let credentials = named("/spec/bmc/credentialsName");
    let networks = named("/spec/preprovisioningNetworkDataName");
    networks.difference(&credentials).cloned().collect()
}

fn finalizer_change(resource: &ApiResource, object: &DynamicObject, finalizer: &str) -> Option<Change> {
    let present = object.metadata.finalizers.as_deref().unwrap_or_default();
    let others: Vec<&String> = present.iter().filter(|name| *name != finalizer).collect();
    (others.len() != present.len())
        .then(|| Change::of(resource, object, json!({ "metadata": { "finalizers": others } })))
}

/// Parses the arguments after `hand-back`, and returns the kubeconfig too.
///
/// # Errors
/// Names the argument and the valid ones.
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<(HandBack, Option<String>)> {
    let (mut wanted, mut kubeconfig) = (HandBack::default(), None);
    for argument in arguments {
        match argument.split_once('=') {
            Some(("--namespace", value)) => wanted.namespace = Some(value.to_owned()),
            Some(("--kubeconfig", value)) => kubeconfig = Some(value.to_owned()),
            None if argument == "--dry-run" => wanted.dry_run = true,
            _ => anyhow::bail!("{argument:?}: use --dry-run, --namespace=NAME and --kubeconfig=FILE"),
        }
    }
    Ok((wanted, kubeconfig))
}
