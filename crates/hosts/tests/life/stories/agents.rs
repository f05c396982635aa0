//! The invariants of agents of their own: what boots is what the image of the host named when it was ready, and no image is left of
//! a deleted host.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use metal3_api::metal3::v1alpha1::PreprovisioningImage;
use metal3_hosts::node::{Ramdisk, Ramdisks};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::grammar::{AgentKind, Builds, HOST};
use super::history::{History, is_deleting, is_external};
use super::judge::{Order, SLACK};
use super::run::StoryRun;
use crate::env::{NAMESPACE, TestEnv, name};

const FINALIZER: &str = "preprovisioningimage.metal3.io";
/// How long the image of a former request may boot: a slow reconcile, and the pause of a retry.
const MEMORY: Duration = Duration::from_mins(2);
/// More than the pause between two attempts at an image.
const PATIENCE: Duration = Duration::from_hours(2);

pub(super) fn configured(kind: AgentKind) -> Option<Ramdisks> {
    let own = |file: &str| (kind == AgentKind::Configured).then(|| format!("http://192.0.2.9/{file}"));
    // Some BMCs boot no ISO.
    let usual = Ramdisk {
        kernel: own("agent-kernel"),
        initramfs: own("agent-ramdisk"),
        iso: own("agent.iso"),
    };
    let ramdisks = Ramdisks {
        usual,
        ..Ramdisks::default()
    };
    (kind != AgentKind::Usual).then_some(ramdisks)
}

/// Another builder of agents, and the versions of the image.
pub(super) struct Builder {
    kind: AgentKind,
    history: Arc<Mutex<History>>,
    builds: Arc<Mutex<Builds>>,
    changed: Arc<Notify>,
    /// Dropping it stops the builder.
    _task: JoinSet<()>,
}

impl Builder {
    pub(super) fn start(env: &TestEnv, kind: AgentKind) -> Self {
        let mut builder = Self {
            kind,
            history: Arc::default(),
            builds: Arc::new(Mutex::new(Builds::Served)),
            changed: Arc::new(Notify::new()),
            _task: JoinSet::new(),
        };
        if kind == AgentKind::Usual {
            return builder;
        }
        if kind == AgentKind::Built {
            let (changed, builds) = (Arc::clone(&builder.changed), Arc::clone(&builder.builds));
            let client = env.cluster.client("builder");
            builder._task.spawn(async move {
                loop {
                    changed.notified().await;
                    sleep(Duration::from_secs(2)).await;
                    let builds = *builds.lock();
                    build(&client, builds).await;
                }
            });
        }
        builder
    }

    /// Records a stored version of an image.
    pub(super) fn recorder(&self) -> impl Fn(&Value, bool) + Send + 'static {
        let (history, changed) = (Arc::clone(&self.history), Arc::clone(&self.changed));
        move |image, is_deleted| {
            if image["metadata"]["name"] == name(HOST) {
                let stored = (!is_deleted).then(|| image.clone());
                history.lock().record(stored.unwrap_or_default());
            }
            changed.notify_one();
        }
    }

    /// The versions of the image; `None`: there is none of its own.
    pub(super) fn history(&self) -> Option<Arc<Mutex<History>>> {
        (self.kind != AgentKind::Usual).then(|| Arc::clone(&self.history))
    }

    pub(super) fn newest(&self) -> Value {
        self.history.lock().newest().clone()
    }

    pub(super) fn change(&self, builds: Builds) {
        *self.builds.lock() = builds;
        self.changed.notify_one();
    }
}

/// One pass of another builder. The host that needs a slot has an image, too.
async fn build(client: &kube::Client, builds: Builds) {
    let api: Api<PreprovisioningImage> = Api::namespaced(client.clone(), NAMESPACE);
    for host in [HOST, HOST + 1] {
        let found = api.get_opt(&name(host)).await;
        if let (Ok(Some(image)), true) = (found, builds != Builds::Stopped) {
            build_one(client, &name(host), &image, builds).await;
        }
    }
}

async fn build_one(client: &kube::Client, host: &str, image: &PreprovisioningImage, builds: Builds) {
    let api: Api<PreprovisioningImage> = Api::namespaced(client.clone(), NAMESPACE);
    let params = PatchParams::default();
    let mut finalizers = image.metadata.finalizers.clone().unwrap_or_default();
    if image.metadata.deletion_timestamp.is_some() {
        // It discards its image when no other finalizer is left.
        if finalizers == [FINALIZER] {
            let released = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
            drop(api.patch(host, &params, &released).await);
        }
        return;
    }
    if !finalizers.iter().any(|one| one == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
        let owned = Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }));
        drop(api.patch(host, &params, &owned).await);
    }
    let network = match image.spec.network_data_name.as_deref() {
        None => Value::Null,
        Some(name) => {
            let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
            let secret = secrets.get_opt(name).await.ok().flatten();
            json!({ "name": name, "version": secret.and_then(|secret| secret.metadata.resource_version) })
        }
    };
    let generation = image.metadata.generation;
    let uid = image.metadata.uid.clone().unwrap_or_default();
    let condition = |kind: &str, holds: bool| {
        let status = if holds { "True" } else { "False" };
        json!({ "type": kind, "status": status, "reason": "ImageSuccess", "message": "it is built", "observedGeneration": generation,
            "lastTransitionTime": "2026-01-01T00:00:00Z" })
    };
    let is_built = builds == Builds::Served;
    let url = format!("http://builder.example/{uid}-{}", generation.unwrap_or_default());
    let status = json!({ "imageUrl": is_built.then_some(url), "kernelUrl": is_built.then_some("http://builder.example/kernel"),
        "format": "initrd", "architecture": image.spec.architecture, "networkData": network,
        "conditions": [condition("Ready", is_built), condition("Error", !is_built)] });
    if serde_json::to_value(&image.status).ok().as_ref() != Some(&status) {
        let status = Patch::Merge(json!({ "status": status }));
        drop(api.patch_status(host, &params, &status).await);
    }
}

/// Whether Ironic boots the agent for this order. What is erased for a deleted host, or for one whose system is removed, waits for no
/// builder.
fn boots_agent(order: &Order<'_>, host: &History) -> bool {
    let cleans = order.node["automated_clean"] != false;
    let boots = match order.transition() {
        Some("inspect") => order.node["inspect_interface"] == "agent",
        Some("active") => order.node["deploy_interface"] != "ramdisk",
        Some("clean") => true,
        Some("provide") => cleans,
        _ => false,
    };
    let waits_for_none = |host: &Value| {
        is_deleting(host) || is_external(host) || host["status"]["provisioning"]["state"] == "deprovisioning"
    };
    boots && !host.ever(MEMORY, waits_for_none)
}

/// The agent that the node boots was ready for some version of the image.
pub(super) fn violated_agents(
    order: &Order<'_>,
    host: &History,
    images: Option<&Arc<Mutex<History>>>,
) -> Option<String> {
    let images = images?.lock();
    if !boots_agent(order, host) {
        return None;
    }
    let info = &order.node["driver_info"];
    let agents = ["deploy_iso", "deploy_ramdisk"].map(|key| info[key].as_str());
    let named = |image: &Value| {
        let conditions = image["status"]["conditions"].as_array().into_iter().flatten();
        let mut ready = conditions.filter(|one| one["type"] == "Ready" && one["status"] == "True");
        // The deletion of an object changes its generation, and what it names can be booted until it is gone.
        let is_ready =
            ready.any(|one| is_deleting(image) || one["observedGeneration"] == image["metadata"]["generation"]);
        let url = image["status"]["imageUrl"].as_str();
        is_ready && url.is_some() && agents.contains(&url)
    };
    let is_named = images.ever(SLACK.max(MEMORY), named);
    (!is_named).then(|| {
        format!(
            "{:?}: the image of the host names none of the agents {agents:?}",
            order.transition()
        )
    })
}

impl StoryRun {
    pub(super) async fn delete_agent_image(&self) {
        let api = self.env.api::<PreprovisioningImage>();
        drop(api.delete(&name(HOST), &DeleteParams::default()).await);
    }

    /// The garbage collector deletes it with its host, and nothing keeps it.
    pub(super) async fn require_no_agent_image(&self) -> Result<(), String> {
        let api = self.env.api::<PreprovisioningImage>();
        let mut waited = Duration::ZERO;
        while let Some(left) = api.get_opt(&name(HOST)).await.unwrap() {
            self.env.cluster.collect_garbage();
            if waited > PATIENCE {
                return Err(format!(
                    "the image of a deleted host stays: {:?}",
                    left.metadata.finalizers
                ));
            }
            sleep(Duration::from_mins(1)).await;
            waited += Duration::from_mins(1);
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn agent_that_no_image_named_is_booted_by_no_order() {
    let image = |url: &str, generation: u32| {
        let ready = json!({ "type": "Ready", "status": "True", "observedGeneration": 1 });
        json!({ "metadata": { "generation": generation }, "status": { "imageUrl": url, "conditions": [ready] } })
    };
    let deleted = |url: &str| {
        let mut image = image(url, 2);
        image["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        image
    };
    for (target, image, state, is_allowed) in [
        ("active", image("http://a/", 1), "provisioning", true),
        ("active", image("http://b/", 1), "provisioning", false),
        // The builder has not seen the last request.
        ("active", image("http://a/", 2), "provisioning", false),
        ("provide", image("http://b/", 1), "preparing", false),
        ("clean", deleted("http://a/"), "preparing", true),
        ("clean", deleted("http://b/"), "preparing", false),
        ("provide", image("http://b/", 1), "deprovisioning", true),
        ("deleted", image("http://b/", 1), "provisioned", true),
    ] {
        let mut host = History::default();
        host.record(json!({ "metadata": {}, "spec": {}, "status": { "provisioning": { "state": state } } }));
        let images = Arc::new(Mutex::new(History::default()));
        images.lock().record(image.clone());
        let request = http::Request::put("/v1/nodes/1/states/provision");
        let request = request
            .body(json!({ "target": target }).to_string().into_bytes())
            .unwrap();
        let node = json!({ "driver_info": { "deploy_iso": "http://a/" }, "deploy_interface": "direct" });
        let order = Order::of(&request, &node, None, None);
        let broken = violated_agents(&order, &host, Some(&images));
        assert_eq!(broken.is_none(), is_allowed, "{target} {image} {state}: {broken:?}");
        assert_eq!(
            violated_agents(&order, &host, None),
            None,
            "without agents of their own"
        );
    }
}
