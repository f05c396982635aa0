//! All controllers of this room as one program without flags, lease or server: for who compares, counts or tries them.
//! What a cluster runs is wired in the manager.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use metal3_capi::workload::Workloads;
use metal3_domain::clock::Clock;
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::object_reader::ObjectReader;
use metal3_runtime::watch::WatchConfig;
use metal3_runtime::write::{Mode, Writer};
use tokio_util::sync::CancellationToken;

use super::caches::Caches;
use super::sources::Watched;
use super::{clusters, data, machines};
use crate::data::claims::Naming;
use crate::machine::facts::Settings;

/// One of the things that have to run. It ends when it is dropped.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What such a program is made of.
pub struct Alone {
    /// The way to the API server.
    pub client: kube::Client,
    /// The time for what is written.
    pub clock: Arc<dyn Clock>,
    /// The way into workload clusters.
    pub workloads: Arc<dyn Workloads>,
    /// Whether the controllers of data take part.
    pub with_data: bool,
    /// Whether control planes that sleep are woken.
    pub nudges: bool,
    /// Where passes are counted.
    pub metrics: Metrics,
    /// How many keys of each controller may be worked on at once.
    pub workers: usize,
}

impl fmt::Debug for Alone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alone")
            .field("with_data", &self.with_data)
            .finish_non_exhaustive()
    }
}

impl Alone {
    /// The watches and controllers. Nobody hears their events.
    #[must_use]
    pub fn tasks(self) -> Vec<Task> {
        let (caches, stop) = (Caches::default(), CancellationToken::new());
        let (events, _) = EventRecorder::bounded(1);
        let lookout = WatchConfig::everywhere(&self.client, &self.clock, &stop);
        let mut tasks = caches.watches(&lookout).into_tasks();
        let own = data::caches::Caches::of(&caches);
        tasks.extend(own.own_watches(&lookout).into_tasks());
        let of_clusters = self.of_clusters(&caches, &own, &events, &stop);
        if self.with_data {
            let (templates, objects) = data::controllers(
                data::Parts {
                    caches: own,
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
        tasks.extend(of_clusters);
        tasks
    }

    fn of_clusters(
        &self,
        caches: &Caches,
        pools: &data::caches::Caches,
        events: &EventRecorder,
        stop: &CancellationToken,
    ) -> [Task; 3] {
        let metrics = &self.metrics;
        let sources = Arc::new(Watched::new(self.client.clone(), None, Arc::clone(&self.clock)));
        let nudges = self.nudges.then(|| Writer::new(self.client.clone(), Mode::Perform));
        let writer = Writer::new(self.client.clone(), Mode::Perform);
        let clusters = clusters::controller(
            clusters::Parts {
                caches: caches.clone(),
                sources: Arc::<Watched>::clone(&sources),
                pools: pools.clone(),
                secrets: ObjectReader::new(self.client.clone(), &pools.secrets),
                clock: Arc::clone(&self.clock),
                events: events.clone(),
                metrics: metrics.clone(),
                watch_filter: None,
                adopts_namesakes: false,
                nudges,
                workers: self.workers,
            },
            writer.clone(),
        );
        let machines = machines::controller(
            machines::Parts {
                caches: caches.clone(),
                workloads: Arc::clone(&self.workloads),
                clock: Arc::clone(&self.clock),
                events: events.clone(),
                metrics: metrics.clone(),
                settings: Settings::default(),
                watch_filter: None,
                workers: self.workers,
            },
            writer,
        );
        let (first, second, third) = (stop.clone(), stop.clone(), stop.clone());
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
        ]
    }
}
