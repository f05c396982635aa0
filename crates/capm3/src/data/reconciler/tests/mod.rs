//! The controllers of data on a simulated API server, with the real IPAM controllers.

mod faults;
pub(crate) mod invariants;
pub(crate) mod lab;
mod replicas;

use std::sync::Arc;

use metal3_domain::clock::Clock;
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::watch::WatchConfig;
use metal3_runtime::write::{Mode, Writer};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::caches::Caches;
use super::{Parts, controllers};
use crate::data::claims::Naming;

/// Starts both controllers with their watches. Dropping the set stops them.
fn start(client: &kube::Client, clock: &Arc<dyn Clock>) -> JoinSet<()> {
    let (caches, stop) = (Caches::default(), CancellationToken::new());
    let (events, _) = EventRecorder::bounded(16);
    let parts = Parts {
        caches: caches.clone(),
        clock: Arc::clone(clock),
        events,
        metrics: Metrics::new(),
        naming: Naming::Data,
        watch_filter: None,
        template_workers: 2,
        data_workers: 2,
    };
    let (templates, objects) = controllers(parts, &Writer::new(client.clone(), Mode::Perform));
    let watches = caches.watches(&WatchConfig::everywhere(client, clock, &stop));
    let mut tasks: JoinSet<()> = watches.into_tasks().into_iter().collect();
    let stopped = stop.clone();
    tasks.spawn(async move {
        templates.run(stopped).await;
    });
    tasks.spawn(async move {
        objects.run(stop).await;
    });
    tasks
}
