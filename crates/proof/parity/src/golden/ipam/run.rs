//! Runs one case: a cluster, the controller, and the steps of a user.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use metal3_domain::clock::{Clock, SystemClock};
use metal3_ipam::controller::caches::Caches;
use metal3_ipam::controller::{Parts, controller};
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::watch::WatchConfig;
use metal3_runtime::write::{Mode, Writer};
use metal3_sim_cluster::{Cluster, Options, cluster_api};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::view;

/// Longer than any pause between two writes of the controller.
const QUIET_PERIOD: Duration = Duration::from_secs(30);

/// Runs a case and returns the objects after each step and at the end.
pub(super) fn run_case(input: &Value, in_full: bool) -> Result<Value> {
    // Time is paused: waiting is free.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()?;
    runtime.block_on(run_steps(input, in_full))
}

async fn run_steps(input: &Value, in_full: bool) -> Result<Value> {
    let cluster = Cluster::start(&Options::seeded(1));
    let mut kinds = metal3_api::ipam::definitions();
    kinds.extend(cluster_api());
    cluster
        .install(&kinds)
        .map_err(|refusal| anyhow::anyhow!("{refusal:?}"))?;
    let user = cluster.client("user");
    for namespace in ["metal", "elsewhere"] {
        create(
            &user,
            &json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } }),
        )
        .await?;
    }
    for object in view::list(input, "/objects") {
        create(&user, object).await?;
    }
    let _controller = start(&cluster);
    settle(&cluster).await?;
    let mut steps = Vec::new();
    for step in view::list(input, "/steps") {
        apply_step(&user, step).await?;
        settle(&cluster).await?;
        steps.push(json!({ "claims": view::claims(&objects(&user).await?) }));
    }
    let objects = objects(&user).await?;
    let end = json!({ "addresses": view::addresses(&objects, in_full), "pools": view::pools(&objects) });
    Ok(json!({ "final": end, "steps": steps }))
}

fn start(cluster: &Cluster) -> JoinSet<()> {
    let (caches, stop) = (Caches::default(), CancellationToken::new());
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let client = cluster.client("ipam");
    let (events, _) = EventRecorder::bounded(1);
    let parts = Parts {
        caches: caches.clone(),
        clock: Arc::clone(&clock),
        events,
        metrics: Metrics::new(),
        identity: "golden".to_owned(),
        watch_filter: None,
        workers: 1,
    };
    let controller = controller(parts, Writer::new(client.clone(), Mode::Perform));
    let watches = caches.watches(&WatchConfig::everywhere(&client, &clock, &stop));
    let mut tasks = JoinSet::new();
    for task in watches.into_tasks() {
        tasks.spawn(task);
    }
    tasks.spawn(async move {
        controller.run(stop).await;
    });
    tasks
}

/// Waits until the controller stops writing.
async fn settle(cluster: &Cluster) -> Result<()> {
    let writes = || -> u64 {
        let audit = cluster.audit();
        let of_ours = audit
            .counts()
            .filter(|((user, verb, _), _)| user == "ipam" && !["get", "list", "watch"].contains(verb));
        of_ours.map(|(_, count)| count).sum()
    };
    let mut before = None;
    for _ in 0..200 {
        tokio::time::sleep(QUIET_PERIOD).await;
        let now = Some(writes());
        if now == before {
            return Ok(());
        }
        before = now;
    }
    bail!("the controller does not become idle")
}

async fn apply_step(user: &Client, step: &Value) -> Result<()> {
    for object in view::list(step, "/apply") {
        create(user, object).await?;
    }
    for object in view::list(step, "/delete") {
        api(user, object)?
            .delete(name(object)?, &DeleteParams::default())
            .await?;
    }
    for object in view::list(step, "/mergePatch") {
        let change = json!({ "spec": object.get("spec") });
        api(user, object)?
            .patch(name(object)?, &PatchParams::default(), &Patch::Merge(change))
            .await?;
    }
    Ok(())
}

async fn create(user: &Client, object: &Value) -> Result<()> {
    let typed: DynamicObject = serde_json::from_value(object.clone())?;
    let created = api(user, object)?.create(&PostParams::default(), &typed).await;
    created.map(drop).with_context(|| format!("create {object}"))
}

fn name(object: &Value) -> Result<&str> {
    object
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .context("metadata.name: missing")
}

fn api(user: &Client, object: &Value) -> Result<Api<DynamicObject>> {
    let text = |member: &str| {
        object
            .get(member)
            .and_then(Value::as_str)
            .with_context(|| format!("{member}: missing"))
    };
    let (version, kind) = (text("apiVersion")?, text("kind")?);
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    if kind == "Namespace" {
        return Ok(Api::all_with(user.clone(), &resource));
    }
    let namespace = object
        .pointer("/metadata/namespace")
        .and_then(Value::as_str)
        .unwrap_or("metal");
    Ok(Api::namespaced_with(user.clone(), namespace, &resource))
}

/// All objects that are compared.
async fn objects(user: &Client) -> Result<Vec<Value>> {
    let mut objects = Vec::new();
    let kinds = [
        ("ipam.metal3.io", "v1alpha1", "IPPool"),
        ("ipam.metal3.io", "v1alpha1", "IPClaim"),
        ("ipam.cluster.x-k8s.io", "v1beta2", "IPAddressClaim"),
        ("ipam.metal3.io", "v1alpha1", "IPAddress"),
        ("ipam.cluster.x-k8s.io", "v1beta2", "IPAddress"),
        ("cluster.x-k8s.io", "v1beta2", "Cluster"),
    ];
    for (group, version, kind) in kinds {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = Api::all_with(user.clone(), &resource);
        for object in api.list(&kube::api::ListParams::default()).await? {
            let mut document = serde_json::to_value(object)?;
            if let Some(members) = document.as_object_mut() {
                members.insert("apiVersion".to_owned(), format!("{group}/{version}").into());
                members.insert("kind".to_owned(), kind.into());
            }
            objects.push(document);
        }
    }
    Ok(objects)
}
