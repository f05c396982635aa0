//! Watches the Pods of this Node and runs a worker for each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::context::Context;
use crate::pod::worker;

type Uid = String;

/// The workers by Pod UID: a Pod that is created again under its name is another one.
#[derive(Default)]
struct Workers {
    senders: BTreeMap<Uid, watch::Sender<Option<Arc<Pod>>>>,
    tasks: JoinSet<Uid>,
    /// Pods of the current initial list: workers of other Pods are stopped after it.
    listed: BTreeSet<Uid>,
}

/// Runs until the process ends.
pub(crate) async fn run(cx: Arc<Context>) {
    let pods: Api<Pod> = Api::all(cx.client.clone());
    let own = watcher::Config::default().fields(&format!("spec.nodeName={}", cx.node_name));
    let mut events = watcher(pods, own).default_backoff().boxed();
    let mut workers = Workers::default();
    loop {
        tokio::select! {
            event = events.try_next() => match event {
                Ok(Some(event)) => workers.take(&cx, event),
                Ok(None) => return,
                Err(error) => tracing::warn!(%error, "the watch of Pods failed and is restarted"),
            },
            Some(ended) = workers.tasks.join_next() => match ended {
                Ok(uid) => drop(workers.senders.remove(&uid)),
                Err(error) => tracing::error!(%error, "a Pod's task failed"),
            },
        }
    }
}

impl Workers {
    fn take(&mut self, cx: &Arc<Context>, event: Event<Pod>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(pod) => {
                self.listed.extend(pod.metadata.uid.clone());
                self.apply(cx, pod);
            }
            Event::InitDone => {
                for (_, sender) in self.senders.iter().filter(|(uid, _)| !self.listed.contains(*uid)) {
                    sender.send_replace(None);
                }
            }
            Event::Apply(pod) => self.apply(cx, pod),
            Event::Delete(pod) => {
                if let Some(sender) = pod.metadata.uid.as_ref().and_then(|uid| self.senders.get(uid)) {
                    sender.send_replace(None);
                }
            }
        }
    }

    fn apply(&mut self, cx: &Arc<Context>, pod: Pod) {
        let Some(uid) = pod.metadata.uid.clone() else { return };
        let pod = Some(Arc::new(pod));
        if let Some(sender) = self.senders.get(&uid) {
            sender.send_replace(pod);
            return;
        }
        let (sender, receiver) = watch::channel(pod);
        self.senders.insert(uid.clone(), sender);
        let cx = cx.clone();
        self.tasks.spawn(async move {
            worker::run(cx, receiver).await;
            uid
        });
    }
}
