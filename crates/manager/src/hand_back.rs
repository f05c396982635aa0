//! `capm3 hand-back`: removes from objects what Go managers would leave on them for ever.
//!
//! It is for the way back to such a manager, after this program was scaled down. It changes annotations, finalizers and
//! versions of owners only, and each object only at the version that it has read.
//!
//! | Object | Removed | Releases that leave it | Left on, it |
//! |---|---|---|---|
//! | host of a machine | the annotation that blocks moves | up to 1.13 | makes every `clusterctl move` time out |
//! | Secret with network data of an agent | this program's finalizer | up to 1.13 | keeps the Secret when it is deleted |
//! | PreprovisioningImage | the finalizer of its host | up to 0.13 | keeps the image when it is deleted, and a new host of that name waits for it |
//! | claim on an endpoint | the finalizer of Metal3Clusters | all | keeps the claim when its Cluster is deleted |
//! | object with an owner in `v1beta2` | that version, which becomes `v1beta1` | up to 1.12 | keeps the object when its owner is deleted |
//!
//! A claim on an endpoint that is being deleted already is left to the user, because its address may be in use.

mod owners;

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ApiResource, DynamicObject, ListParams, ObjectList, Patch, PatchParams};
use kube::{Api, Client};
use metal3_api::cluster::IPAddressClaim;
use metal3_api::infrastructure::names::{BLOCK_MOVE_ANNOTATION, CLUSTER_FINALIZER};
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_api::kind::Kind;
use metal3_api::metal3::names::{AGENT_IMAGE_HOST_FINALIZER, SECRET_FINALIZER};
use metal3_api::metal3::v1alpha1::{BareMetalHost, PreprovisioningImage};
use metal3_flags::{Owner, Request};
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

/// What is changed in an object.
#[derive(Debug, Clone, Copy)]
enum Change<'a> {
    /// The block on moves is removed from a host of a machine.
    Block,
    /// A finalizer is removed, also while the object is being deleted.
    Finalizer(&'static str),
    /// A finalizer is removed, unless the object is being deleted: then it may still protect what is in use.
    FinalizerOfLive(&'static str),
    /// Owners of these kinds get the version that is left.
    Owners(&'a BTreeSet<String>),
}

/// What one version of an object needs.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Nothing,
    Patch(Value),
    /// Only a user can decide; says what to do.
    Left(String),
}

/// Requests for an object that other clients change at the same time.
const ATTEMPTS: usize = 5;

impl HandBack {
    /// Changes all objects, and reports a line for each after its change.
    ///
    /// # Errors
    /// When this program still runs, a request fails, or objects are left to the user. Running it again continues.
    pub async fn run(&self, client: &Client, report: &mut impl FnMut(String)) -> Result<()> {
        let running = running(&list_deployments(client).await?, self.namespace.as_deref());
        ensure!(
            running.is_empty(),
            "{} still runs and would write the same again; scale it to 0 first",
            running.join(", ")
        );
        let kind = resource::<BareMetalHost>();
        let hosts = self.list(client, &kind).await?;
        for host in &hosts {
            self.change(client, &kind, host, Change::Block, report).await?;
        }
        for (namespace, name) in network_secrets(&hosts) {
            let secrets: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &secret());
            let found = secrets.get_opt(&name).await;
            let found = found.with_context(|| format!("read Secret {namespace}/{name}"))?;
            if let Some(found) = found {
                let wanted = Change::Finalizer(SECRET_FINALIZER);
                self.change(client, &secret(), &found, wanted, report).await?;
            }
        }
        // A release that knows the finalizer adds it again.
        let kind = resource::<PreprovisioningImage>();
        for image in self.list(client, &kind).await? {
            let wanted = Change::Finalizer(AGENT_IMAGE_HOST_FINALIZER);
            self.change(client, &kind, &image, wanted, report).await?;
        }
        let mut left = 0_usize;
        for kind in [resource::<IPClaim>(), resource::<IPAddressClaim>()] {
            for claim in self.list(client, &kind).await? {
                let wanted = Change::FinalizerOfLive(CLUSTER_FINALIZER);
                let is_left = self.change(client, &kind, &claim, wanted, report).await?;
                left = left.saturating_add(usize::from(is_left));
            }
        }
        self.owners(client, report).await?;
        ensure!(
            left == 0,
            "{left} claims are being deleted and left to you; the lines above say what to do"
        );
        Ok(())
    }

    fn api(&self, client: &Client, resource: &ApiResource) -> Api<DynamicObject> {
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
            None => Api::all_with(client.clone(), resource),
        }
    }

    /// All objects of a kind; none when it is not installed.
    async fn list(&self, client: &Client, resource: &ApiResource) -> Result<Vec<DynamicObject>> {
        let api = self.api(client, resource);
        items(resource, api.list(&ListParams::default()).await)
    }

    /// Changes one object, and returns whether it is left to the user. An object that another client changes is read
    /// and examined again; one that is deleted needs nothing.
    async fn change(
        &self,
        client: &Client,
        resource: &ApiResource,
        object: &DynamicObject,
        wanted: Change<'_>,
        report: &mut impl FnMut(String),
    ) -> Result<bool> {
        let metadata = &object.metadata;
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let name = metadata.name.as_deref().unwrap_or_default();
        let what = format!("{} {namespace}/{name}", resource.kind);
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, resource);
        let mut object = object.clone();
        for _ in 0..ATTEMPTS {
            let patch = match wanted.step(&object) {
                Step::Nothing => return Ok(false),
                Step::Left(why) => {
                    report(format!("{what}: {why}"));
                    return Ok(true);
                }
                Step::Patch(patch) => patch,
            };
            if self.dry_run {
                report(what);
                return Ok(false);
            }
            match api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await {
                Ok(_) => {
                    report(what);
                    return Ok(false);
                }
                Err(kube::Error::Api(status)) if status.code == 404 => return Ok(false),
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(error).with_context(|| format!("change {what}")),
            }
            match api.get_opt(name).await.with_context(|| format!("read {what}"))? {
                Some(read) => object = read,
                None => return Ok(false),
            }
        }
        bail!("change {what}: other clients changed it {ATTEMPTS} times at the same moment; run this again")
    }
}

/// The items of a list; none of a kind that is not installed.
fn items<T: Clone>(resource: &ApiResource, list: kube::Result<ObjectList<T>>) -> Result<Vec<T>> {
    match list {
        Ok(list) => Ok(list.items),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("list {}", resource.plural)),
    }
}

impl Change<'_> {
    fn step(self, object: &DynamicObject) -> Step {
        match self {
            Self::Block => host_patch(object).map_or(Step::Nothing, |patch| at_version(object, patch)),
            Self::Finalizer(finalizer) => match finalizer_patch(object, finalizer) {
                Some(patch) => at_version(object, patch),
                None => Step::Nothing,
            },
            Self::FinalizerOfLive(finalizer) => match finalizer_patch(object, finalizer) {
                Some(_) if object.metadata.deletion_timestamp.is_some() => Step::Left(format!(
                    "is being deleted; remove finalizer {finalizer} once no control plane uses its address"
                )),
                Some(patch) => at_version(object, patch),
                None => Step::Nothing,
            },
            Self::Owners(kinds) => {
                owners::patch(object, kinds).map_or(Step::Nothing, |patch| at_version(object, patch))
            }
        }
    }
}

/// A patch of the observed version only.
fn at_version(object: &DynamicObject, mut patch: Value) -> Step {
    if let Some(members) = patch.pointer_mut("/metadata").and_then(Value::as_object_mut) {
        members.insert("resourceVersion".to_owned(), json!(object.metadata.resource_version));
    }
    Step::Patch(patch)
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

/// The Deployments of this program that want or have replicas, and serve the namespace.
fn running(deployments: &[Deployment], namespace: Option<&str>) -> Vec<String> {
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
        .filter(|deployment| namespace.is_none_or(|namespace| may_serve(deployment, namespace)))
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

/// Whether the arguments and variables do not say that only another namespace is served. The variable is that of the controllers of
/// hosts.
fn may_serve(deployment: &Deployment, namespace: &str) -> bool {
    let pod = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let Some(container) = pod.and_then(|pod| pod.containers.first()) else {
        return true;
    };
    let Ok(Request::Run(options)) = metal3_flags::parse(container.args.iter().flatten().cloned()) else {
        return true;
    };
    let mut variables = container.env.iter().flatten();
    let of_variable = variables.find(|one| one.name == "WATCH_NAMESPACE");
    let of_variable = of_variable.and_then(|one| one.value.as_deref());
    let of_hosts = of_variable.filter(|_| options.controllers == [Owner::Hosts]);
    let served = options.namespace.as_deref().or(of_hosts);
    let served = served.filter(|one| !one.is_empty() && !one.contains('$'));
    served.is_none_or(|served| served == namespace)
}

/// Removes the block on moves from a host of a machine.
fn host_patch(host: &DynamicObject) -> Option<Value> {
    let consumer = host.data.pointer("/spec/consumerRef/kind").and_then(Value::as_str);
    let annotations = host.metadata.annotations.as_ref()?;
    let is_blocked = annotations.contains_key(BLOCK_MOVE_ANNOTATION) && consumer == Some(Metal3Machine::KIND);
    is_blocked.then(|| json!({ "metadata": { "annotations": { BLOCK_MOVE_ANNOTATION: null } } }))
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

fn finalizer_patch(object: &DynamicObject, finalizer: &str) -> Option<Value> {
    let present = object.metadata.finalizers.as_deref().unwrap_or_default();
    let others: Vec<&String> = present.iter().filter(|name| *name != finalizer).collect();
    (others.len() != present.len()).then(|| json!({ "metadata": { "finalizers": others } }))
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
            _ => bail!("{argument:?}: use --dry-run, --namespace=NAME and --kubeconfig=FILE"),
        }
    }
    Ok((wanted, kubeconfig))
}
