//! All controllers of this crate as one program without flags, lease or server, for tests, comparisons and counts. The
//! manager wires the product.

use std::pin::Pin;
use std::sync::Arc;

use metal3_capi::workload::Workloads;
use metal3_capi::workload::join::JoinChecks;
use metal3_domain::clock::Clock;
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::object_reader::ObjectReader;
use metal3_runtime::watch::WatchConfig;
use metal3_runtime::write::{Mode, Writer};
use tokio_util::sync::CancellationToken;

use super::caches::Caches;
use crate::capacity::reconciler as capacity;
use crate::cluster;
use crate::cluster::sources::WatchedSources;
use crate::data::claims::Naming;
use crate::data::reconciler as data;
use crate::machine::facts::Settings;
use crate::machine::reconciler as machines;

/// A future to spawn. Dropping it stops it.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Configuration of the program.
pub struct Standalone {
    /// Client of the API server.
    pub client: kube::Client,
    /// Clock for timestamps in written objects.
    pub clock: Arc<dyn Clock>,
    /// Access to workload clusters.
    pub workloads: Arc<dyn Workloads>,
    /// Whether to run the controllers of data.
    pub with_data: bool,
    /// Whether to trigger reconciles of idle control planes.
    pub touches_control_planes: bool,
    /// Looks at workload clusters before machines join them, if enabled.
    pub join_checks: Option<Arc<dyn JoinChecks>>,
    /// Receives the metrics of the controllers.
    pub metrics: Metrics,
    /// Workers per controller.
    pub workers: usize,
}

impl Standalone {
    /// The watches and controllers. Their events are dropped.
    #[must_use]
    pub fn tasks(self) -> Vec<Task> {
        let (caches, stop) = (Caches::default(), CancellationToken::new());
        let (events, _) = EventRecorder::bounded(1);
        let config = WatchConfig::everywhere(&self.client, &self.clock, &stop);
        let mut tasks = caches.watches(&config).into_tasks();
        let data_caches = data::caches::Caches::of(&caches);
        tasks.extend(data_caches.own_watches(&config).into_tasks());
        let cluster_tasks = self.cluster_tasks(&caches, &data_caches, &events, &stop);
        if self.with_data {
            let (templates, objects) = data::controllers(
                data::Parts {
                    caches: data_caches,
                    clock: Arc::clone(&self.clock),
                    events: events.clone(),
                    metrics: self.metrics.clone(),
                    naming: Naming::Data,
                    watch_filter: None,
                    template_workers: self.workers,
                    data_workers: self.workers,
                },
                &Writer::new(self.client.clone(), Mode::Perform),
            );
            let stopped = stop.clone();
            tasks.push(Box::pin(async move {
                templates.run(stopped).await;
            }));
            let stopped = stop.clone();
            tasks.push(Box::pin(async move {
                objects.run(stopped).await;
            }));
        }
        tasks.extend(cluster_tasks);
        tasks
    }

    fn capacity(&self, caches: &Caches) -> capacity::Parts {
        capacity::Parts {
            caches: caches.clone(),
            clock: Arc::clone(&self.clock),
            metrics: self.metrics.clone(),
            watch_filter: None,
            workers: self.workers,
        }
    }

    fn cluster_tasks(
        &self,
        caches: &Caches,
        pools: &data::caches::Caches,
        events: &EventRecorder,
        stop: &CancellationToken,
    ) -> [Task; 4] {
        let metrics = &self.metrics;
        let sources = Arc::new(WatchedSources::new(self.client.clone(), None, Arc::clone(&self.clock)));
        let touches = self.touches_control_planes;
        let touch_writer = touches.then(|| Writer::new(self.client.clone(), Mode::Perform));
        let writer = Writer::new(self.client.clone(), Mode::Perform);
        let clusters = cluster::reconciler::controller(
            cluster::reconciler::Parts {
                caches: caches.clone(),
                sources: Arc::<WatchedSources>::clone(&sources),
                pools: pools.clone(),
                secrets: ObjectReader::new(self.client.clone(), &pools.secrets),
                clock: Arc::clone(&self.clock),
                events: events.clone(),
                metrics: metrics.clone(),
                watch_filter: None,
                adopts_namesakes: false,
                touch_writer,
                join_checks: self.join_checks.clone(),
                workers: self.workers,
            },
            writer.clone(),
        );
        let machines = machines::controller(
            machines::Parts {
                caches: caches.clone(),
                data_templates: pools.templates.clone(),
                workloads: Arc::clone(&self.workloads),
                clock: Arc::clone(&self.clock),
                events: events.clone(),
                metrics: metrics.clone(),
                settings: Settings::default(),
                watch_filter: None,
                workers: self.workers,
            },
            writer.clone(),
        );
        let templates = capacity::controller(self.capacity(caches), writer);
        let [first, second, third, fourth] = std::array::from_fn(|_| stop.clone());
        [
            Box::pin(async move {
                clusters.run(first).await;
            }),
            Box::pin(async move {
                machines.run(second).await;
            }),
            Box::pin(async move {
                sources.run(third).await;
            }),
            Box::pin(async move {
                templates.run(fourth).await;
            }),
        ]
    }
}
