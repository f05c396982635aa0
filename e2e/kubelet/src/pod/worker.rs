//! A Pod's worker: makes the Pod's network and volumes, runs its containers, tells the API server, and clears up.
//!
//! Invariant: when it ends, nothing of the Pod is left on the machine but its logs, and the Pod is gone from the API.

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

use super::container::Life;
use super::fetch::{Fetcher, bounded};
use crate::clock;
use crate::context::Context;
use crate::events::Weight;
use crate::machine::files;
use crate::machine::network::Network;
use crate::plan::fields::Place;
use crate::plan::refusal::refusals;
use crate::plan::sources::Sources;
use crate::plan::status::{View, status};
use crate::plan::user::Users;
use crate::plan::volume::content;

/// The newest view of the Pod; none when the API server has it no more.
pub(crate) type Pods = watch::Receiver<Option<Arc<Pod>>>;

const TRY_AGAIN: Duration = Duration::from_secs(2);

/// What a Pod got of the machine.
struct Ground {
    network: Network,
    address: Ipv4Addr,
    place: Place,
    folder: PathBuf,
}

struct Worker {
    cx: Arc<Context>,
    pod: Arc<Pod>,
    views: Vec<View>,
    place: Option<Place>,
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
        .map(|_| View::waiting("ContainerCreating", ""))
        .collect();
    let mut worker = Worker {
        cx,
        pod,
        views,
        place: None,
        since: clock::now(),
        sent: None,
    };
    let reasons = refusals(&worker.pod, worker.cx.users);
    if !reasons.is_empty() {
        worker.refuse(&reasons.join("; ")).await;
        deletion(&mut pods).await;
        return worker.forget().await;
    }
    let Some(ground) = worker.ground(&mut pods).await else {
        return worker.forget().await;
    };
    worker.place = Some(ground.place.clone());
    worker.accompany(&spec, &ground, &mut pods).await;
    worker.leave(ground).await;
    // A Pod that ran to its end stays visible until somebody deletes it.
    deletion(&mut pods).await;
    worker.forget().await;
}

impl Worker {
    async fn refuse(&mut self, message: &str) {
        for view in &mut self.views {
            *view = View::waiting("Refused", message);
        }
        self.cx
            .event(&self.pod, Weight::Warning, "Refused", message.to_owned())
            .await;
        self.tell().await;
    }

    /// Network and folders; none when the Pod is deleted before they are there.
    async fn ground(&mut self, pods: &mut Pods) -> Option<Ground> {
        loop {
            let reason = match self.make_ground().await {
                Ok(ground) => return Some(ground),
                Err(error) => format!("{error:#}"),
            };
            for view in &mut self.views {
                *view = View::waiting("ContainerCreating", &reason);
            }
            self.cx
                .event(&self.pod, Weight::Warning, "FailedCreatePodSandBox", reason)
                .await;
            self.tell().await;
            if tokio::time::timeout(TRY_AGAIN, deletion(pods)).await.is_ok() {
                return None;
            }
        }
    }

    async fn make_ground(&self) -> anyhow::Result<Ground> {
        let cx = &self.cx;
        let address = cx
            .take_address()
            .ok_or_else(|| anyhow::anyhow!("no free address for the Pod"))?;
        let spec_name = self.pod.spec.as_ref().and_then(|spec| spec.hostname.as_deref());
        let name = spec_name.or(self.pod.metadata.name.as_deref()).unwrap_or("pod");
        match Network::make(&cx.bridge, &cx.node_address, address, name).await {
            Ok(network) => {
                let place = Place {
                    node_name: cx.node_name.clone(),
                    node_address: cx.node_address.clone(),
                    pod_address: address.to_string(),
                };
                let folder = cx.state.join(self.pod.metadata.uid.as_deref().unwrap_or("none"));
                Ok(Ground {
                    network,
                    address,
                    place,
                    folder,
                })
            }
            Err(error) => {
                cx.give_back(address);
                Err(error)
            }
        }
    }

    /// Runs the containers until all of them have ended, by themselves or because the Pod is deleted.
    async fn accompany(&mut self, spec: &PodSpec, ground: &Ground, pods: &mut Pods) {
        let (stop, stopped) = watch::channel(None);
        let (views, mut changes) = mpsc::unbounded_channel();
        let fetcher = Arc::new(Mutex::new(Fetcher::default()));
        let mut lives = JoinSet::new();
        for (index, container) in spec.containers.iter().enumerate() {
            let life = Life {
                cx: self.cx.clone(),
                pod: self.pod.clone(),
                spec: spec.clone(),
                container: container.clone(),
                index,
                place: ground.place.clone(),
                holder: ground.network.holder_process,
                folder: ground.folder.clone(),
                fetcher: fetcher.clone(),
                views: views.clone(),
                stop: stopped.clone(),
            };
            lives.spawn(life.run());
        }
        let mut refresh = tokio::time::interval_at(clock::instant() + self.cx.limits.refresh, self.cx.limits.refresh);
        self.tell().await;
        while !lives.is_empty() {
            tokio::select! {
                Some(change) = changes.recv() => {
                    self.note(change);
                    while let Ok(change) = changes.try_recv() {
                        self.note(change);
                    }
                    self.tell().await;
                }
                grace = deletion(pods), if stop.borrow().is_none() => {
                    self.adopt(pods);
                    let note = "Stopping all containers of the Pod".to_owned();
                    self.cx.event(&self.pod, Weight::Normal, "Killing", note).await;
                    stop.send_replace(Some(grace));
                }
                _ = refresh.tick() => self.refresh(ground, &fetcher).await,
                Some(ended) = lives.join_next() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "a container's task failed");
                    }
                }
            }
            self.adopt(pods);
        }
        while let Ok(change) = changes.try_recv() {
            self.note(change);
        }
        self.tell().await;
    }

    fn note(&mut self, (index, view): (usize, View)) {
        if let Some(slot) = self.views.get_mut(index) {
            *slot = view;
        }
    }

    /// Takes over the newest object: labels may change while a Pod runs, and conditions keep their times.
    fn adopt(&mut self, pods: &Pods) {
        if let Some(pod) = pods.borrow().as_ref() {
            self.pod = pod.clone();
        }
    }

    async fn refresh(&self, ground: &Ground, fetcher: &Mutex<Fetcher>) {
        let outcome = match fetcher.lock().await.fetch(&self.cx, &self.pod).await {
            Ok(sources) => write_volumes(&self.pod, &ground.place, &ground.folder, &sources, self.cx.users),
            Err(error) => Err(format!("{error:#}")),
        };
        // The old content stays: a Secret that is deleted under a running Pod does not take its files away.
        if let Err(message) = outcome {
            tracing::warn!(pod = self.pod.metadata.name, message, "the volumes were not refreshed");
        }
    }

    /// Writes the status if it is another one than the last.
    async fn tell(&mut self) {
        let new = status(&self.pod, &self.views, self.place.as_ref(), self.since, clock::now());
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

    /// Gives back all that the Pod had of the machine.
    async fn leave(&mut self, ground: Ground) {
        ground.network.remove().await;
        self.cx.give_back(ground.address);
        if let Err(error) = std::fs::remove_dir_all(&ground.folder) {
            tracing::warn!(%error, folder = %ground.folder.display(), "a Pod's folder was not removed");
        }
    }

    /// The last step of a deletion: the object goes once nothing of it runs.
    async fn forget(&self) {
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
            tokio::time::sleep(TRY_AGAIN).await;
        }
    }

    fn api(&self) -> Api<Pod> {
        Api::namespaced(
            self.cx.client.clone(),
            self.pod.metadata.namespace.as_deref().unwrap_or_default(),
        )
    }
}

/// Fills the folders of all volumes.
pub(crate) fn write_volumes(
    pod: &Pod,
    place: &Place,
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
        let content = content(pod, volume, place, sources).map_err(|missing| missing.to_string())?;
        let path = folder.join("volumes").join(&volume.name);
        files::write(&path, &content, group).map_err(|error| format!("writing volume {:?}: {error}", volume.name))?;
    }
    Ok(())
}

/// Waits until the Pod is to go, and answers how much time its containers have.
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

/// Equal but for the times of conditions, which `status` takes from an object that may lag behind our last write.
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
