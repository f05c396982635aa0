//! A Pod's worker: creates network and volumes, runs the containers, writes the status, and cleans up.
//!
//! Invariant: when it ends, only the logs of the Pod are left on the machine, and the object is deleted.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodSpec, PodStatus};
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use serde_json::json;
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::JoinSet;

use super::container::ContainerTask;
use super::fetch::Fetcher;
use crate::clock::{self, bounded};
use crate::context::Context;
use crate::events::EventType;
use crate::machine::files;
use crate::machine::network::Network;
use crate::plan::fields::Placement;
use crate::plan::refusal::refusals;
use crate::plan::sources::Sources;
use crate::plan::status::{ContainerView, status};
use crate::plan::user::Users;
use crate::plan::volume::content;

/// The newest version of the Pod; `None` after its deletion.
pub(crate) type Pods = watch::Receiver<Option<Arc<Pod>>>;

const RETRY: Duration = Duration::from_secs(2);

/// The machine resources of a Pod.
struct PodResources {
    network: Network,
    address: Ipv4Addr,
    placement: Placement,
    folder: PathBuf,
}

struct Worker {
    cx: Arc<Context>,
    pod: Arc<Pod>,
    views: Vec<ContainerView>,
    placement: Option<Placement>,
    since: Timestamp,
    sent: Option<PodStatus>,
}

/// Runs a Pod from its binding to its removal.
pub(crate) async fn run(cx: Arc<Context>, mut pods: Pods) {
    let Some(pod) = pods.borrow_and_update().clone() else {
        return;
    };
    let Some(spec) = pod.spec.clone() else { return };
    let views = spec
        .containers
        .iter()
        .map(|_| ContainerView::waiting("ContainerCreating", ""))
        .collect();
    let mut worker = Worker {
        cx,
        pod,
        views,
        placement: None,
        since: clock::now(),
        sent: None,
    };
    let reasons = refusals(&worker.pod, worker.cx.users);
    if !reasons.is_empty() {
        worker.refuse(&reasons.join("; ")).await;
        deletion(&mut pods).await;
        return worker.finalize().await;
    }
    let Some(resources) = worker.resources(&mut pods).await else {
        return worker.finalize().await;
    };
    worker.placement = Some(resources.placement.clone());
    worker.supervise(&spec, &resources, &mut pods).await;
    worker.release(resources).await;
    // A finished Pod is kept until it is deleted.
    deletion(&mut pods).await;
    worker.finalize().await;
}

impl Worker {
    async fn refuse(&mut self, message: &str) {
        for view in &mut self.views {
            *view = ContainerView::waiting("Refused", message);
        }
        self.cx
            .event(&self.pod, EventType::Warning, "Refused", message.to_owned())
            .await;
        self.write_status().await;
    }

    /// Creates network and directory; `None` when the Pod is deleted first.
    async fn resources(&mut self, pods: &mut Pods) -> Option<PodResources> {
        loop {
            let reason = match self.create_resources().await {
                Ok(resources) => return Some(resources),
                Err(error) => format!("{error:#}"),
            };
            for view in &mut self.views {
                *view = ContainerView::waiting("ContainerCreating", &reason);
            }
            self.cx
                .event(&self.pod, EventType::Warning, "FailedCreatePodSandBox", reason)
                .await;
            self.write_status().await;
            if tokio::time::timeout(RETRY, deletion(pods)).await.is_ok() {
                return None;
            }
        }
    }

    async fn create_resources(&self) -> anyhow::Result<PodResources> {
        let cx = &self.cx;
        let address = cx
            .take_address()
            .ok_or_else(|| anyhow::anyhow!("no free address for the Pod"))?;
        let spec_name = self.pod.spec.as_ref().and_then(|spec| spec.hostname.as_deref());
        let name = spec_name.or(self.pod.metadata.name.as_deref()).unwrap_or("pod");
        match Network::create(&cx.bridge, &cx.node_address, address, name).await {
            Ok(network) => {
                let placement = Placement {
                    node_name: cx.node_name.clone(),
                    node_address: cx.node_address.clone(),
                    pod_address: address.to_string(),
                };
                let folder = cx.state.join(self.pod.metadata.uid.as_deref().unwrap_or("none"));
                Ok(PodResources {
                    network,
                    address,
                    placement,
                    folder,
                })
            }
            Err(error) => {
                cx.release(address);
                Err(error)
            }
        }
    }

    /// Runs the containers until all have ended.
    async fn supervise(&mut self, spec: &PodSpec, resources: &PodResources, pods: &mut Pods) {
        let (stop, stopped) = watch::channel(None);
        let (views, mut changes) = mpsc::unbounded_channel();
        let fetcher = Arc::new(Mutex::new(Fetcher::default()));
        let mut tasks = JoinSet::new();
        for (index, container) in spec.containers.iter().enumerate() {
            let task = ContainerTask {
                cx: self.cx.clone(),
                pod: self.pod.clone(),
                spec: spec.clone(),
                container: container.clone(),
                index,
                placement: resources.placement.clone(),
                holder: resources.network.holder_process,
                folder: resources.folder.clone(),
                fetcher: fetcher.clone(),
                views: views.clone(),
                stop: stopped.clone(),
            };
            tasks.spawn(task.run());
        }
        let mut refresh = tokio::time::interval_at(clock::instant() + self.cx.limits.refresh, self.cx.limits.refresh);
        self.write_status().await;
        while !tasks.is_empty() {
            tokio::select! {
                Some(change) = changes.recv() => {
                    self.record(change);
                    while let Ok(change) = changes.try_recv() {
                        self.record(change);
                    }
                    self.write_status().await;
                }
                grace = deletion(pods), if stop.borrow().is_none() => {
                    self.update(pods);
                    let record = "Stopping all containers of the Pod".to_owned();
                    self.cx.event(&self.pod, EventType::Normal, "Killing", record).await;
                    stop.send_replace(Some(grace));
                }
                _ = refresh.tick() => self.refresh(resources, &fetcher).await,
                Some(ended) = tasks.join_next() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "a container's task failed");
                    }
                }
            }
            self.update(pods);
        }
        while let Ok(change) = changes.try_recv() {
            self.record(change);
        }
        self.write_status().await;
    }

    fn record(&mut self, (index, view): (usize, ContainerView)) {
        if let Some(slot) = self.views.get_mut(index) {
            *slot = view;
        }
    }

    /// Uses the newest object: labels may change while a Pod runs, and conditions keep their transition times.
    fn update(&mut self, pods: &Pods) {
        if let Some(pod) = pods.borrow().as_ref() {
            self.pod = pod.clone();
        }
    }

    async fn refresh(&self, resources: &PodResources, fetcher: &Mutex<Fetcher>) {
        let outcome = match fetcher.lock().await.fetch(&self.cx, &self.pod).await {
            Ok(sources) => write_volumes(
                &self.pod,
                &resources.placement,
                &resources.folder,
                &sources,
                self.cx.users,
            ),
            Err(error) => Err(format!("{error:#}")),
        };
        // The old content stays, as after the deletion of a Secret.
        if let Err(message) = outcome {
            tracing::warn!(pod = self.pod.metadata.name, message, "the volumes were not refreshed");
        }
    }

    async fn write_status(&mut self) {
        let new = status(
            &self.pod,
            &self.views,
            self.placement.as_ref(),
            self.since,
            clock::now(),
        );
        if self.sent.as_ref().is_some_and(|sent| same(sent, &new)) {
            return;
        }
        let patch = json!({"metadata": {"uid": self.pod.metadata.uid}, "status": new});
        let name = self.pod.metadata.name.clone().unwrap_or_default();
        let parameters = PatchParams::default();
        match bounded(self.api().patch_status(&name, &parameters, &Patch::Strategic(patch))).await {
            Ok(_) => self.sent = Some(new),
            Err(error) => tracing::warn!(pod = name, error = format!("{error:#}"), "the status was not written"),
        }
    }

    async fn release(&mut self, resources: PodResources) {
        resources.network.remove().await;
        self.cx.release(resources.address);
        if let Err(error) = std::fs::remove_dir_all(&resources.folder) {
            tracing::warn!(%error, folder = %resources.folder.display(), "a Pod's folder was not removed");
        }
    }

    /// Deletes the object, the last step of a deletion.
    async fn finalize(&self) {
        self.cx.events.forget(&self.pod).await;
        let name = self.pod.metadata.name.clone().unwrap_or_default();
        let uid = self.pod.metadata.uid.clone();
        let parameters = DeleteParams {
            preconditions: Some(Preconditions {
                uid,
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let parameters = parameters.grace_period(0);
        loop {
            match self.api().delete(&name, &parameters).await {
                Ok(_) => return,
                Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => return,
                Err(error) => tracing::warn!(%error, pod = name, "the Pod could not be removed, trying again"),
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    fn api(&self) -> Api<Pod> {
        Api::namespaced(
            self.cx.client.clone(),
            self.pod.metadata.namespace.as_deref().unwrap_or_default(),
        )
    }
}

pub(crate) fn write_volumes(
    pod: &Pod,
    placement: &Placement,
    folder: &Path,
    sources: &Sources,
    users: Users,
) -> Result<(), String> {
    let group = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.security_context.as_ref())
        .and_then(|security| security.fs_group);
    let group = group
        .filter(|_| users == Users::Many)
        .and_then(|group| u32::try_from(group).ok());
    for volume in pod.spec.iter().filter_map(|spec| spec.volumes.as_ref()).flatten() {
        let content = content(pod, volume, placement, sources).map_err(|missing| missing.to_string())?;
        let path = folder.join("volumes").join(&volume.name);
        files::write(&path, &content, group).map_err(|error| format!("writing volume {:?}: {error}", volume.name))?;
    }
    Ok(())
}

/// Waits for the deletion; returns the grace period.
async fn deletion(pods: &mut Pods) -> Duration {
    loop {
        match pods.borrow_and_update().as_ref() {
            None => return Duration::ZERO,
            Some(pod) if pod.metadata.deletion_timestamp.is_some() => {
                let seconds = pod.metadata.deletion_grace_period_seconds.unwrap_or_default();
                return Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
            }
            Some(_) => {}
        }
        if pods.changed().await.is_err() {
            return Duration::ZERO;
        }
    }
}

/// Compares without transition times, which are from an object that may be older than the last write.
fn same(one: &PodStatus, other: &PodStatus) -> bool {
    let timeless = |status: &PodStatus| {
        let mut status = status.clone();
        for condition in status.conditions.iter_mut().flatten() {
            condition.last_transition_time = None;
        }
        status
    };
    timeless(one) == timeless(other)
}
