//! Starts the controllers of all products on the simulators, without sockets.

use std::convert::Infallible;
use std::sync::Arc;

use kube::client::Body;
use kube::config::Kubeconfig;
use metal3_capi::workload::join::{JoinChecks, Joins};
use metal3_capi::workload::{ConnectFn, Remote, Repairs};
use metal3_capm3::capacity::reconciler as capacity;
use metal3_capm3::cluster::reconciler as clusters;
use metal3_capm3::cluster::sources::WatchedSources;
use metal3_capm3::controller::caches;
use metal3_capm3::data::reconciler as data;
use metal3_capm3::machine::reconciler as machines;
use metal3_capm3::needs::{Machines, Remediations};
use metal3_domain::clock::Clock;
use metal3_hosts::reconciler::DeprovisionBudget;
use metal3_hosts::settings::{FEED_RECHECK, Settings};
use metal3_runtime::access::Role;
use metal3_runtime::cache::SharedCache;
use metal3_runtime::events::{EventRecorder, Publisher};
use metal3_runtime::metrics::Metrics;
use metal3_runtime::object_reader::ObjectReader;
use metal3_runtime::watch::{WatchConfig, WatchSet};
use metal3_runtime::work::Controller;
use metal3_runtime::write::{Mode, Writer};
use metal3_sim_capi::workload::{WorkloadClusters, WorkloadServers as _};
use metal3_sim_cluster::Cluster;
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Capacity of the event queue.
const EVENTS: usize = 1000;
/// Parallel reconciles per controller.
const WORKERS: usize = 8;
/// Hosts that may load the provisioning network at once.
const SLOTS: usize = 20;

/// Clients and clock of the products.
pub(super) struct Products {
    pub(super) cluster: Cluster,
    pub(super) ironic: metal3_ironic::Client,
    pub(super) workloads: WorkloadClusters,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) deprovision_budget: DeprovisionBudget,
    /// Whether workload clusters are looked at before machines join them.
    pub(super) looks_before_joins: bool,
    /// The metrics of the running products.
    pub(super) metrics: Arc<Mutex<Metrics>>,
    /// How many times faster than real ones the machines are.
    pub(super) speed: u32,
}

impl Products {
    /// Starts all of them, with new metrics as in a new process. Dropping the set kills them.
    pub(super) fn start(&self) -> JoinSet<()> {
        let metrics = Metrics::new();
        metrics.program("sandbox", "ipam,capm3,hosts", Arc::clone(&self.clock));
        self.metrics.lock().clone_from(&metrics);
        let mut tasks = Tasks {
            running: JoinSet::new(),
            metrics,
        };
        self.addresses(&mut tasks);
        self.hosts(&mut tasks);
        self.machines(&mut tasks);
        tasks.running
    }

    fn addresses(&self, tasks: &mut Tasks) {
        use metal3_ipam::reconciler::{Parts, caches::Caches, controller};
        let (client, caches, stop) = (self.cluster.client("ipam"), Caches::default(), CancellationToken::new());
        let (events, inbox) = EventRecorder::bounded(EVENTS);
        let writer = Writer::new(client.clone(), Mode::Perform);
        let publisher = Publisher::new(inbox, writer.clone(), Arc::clone(&self.clock), "ipam-controller");
        let parts = Parts {
            caches: caches.clone(),
            clock: Arc::clone(&self.clock),
            events,
            metrics: tasks.metrics.clone(),
            identity: "sandbox".to_owned(),
            watch_filter: None,
            workers: WORKERS,
        };
        let controller = controller(parts, writer);
        let watches = caches.watches(&WatchConfig::everywhere(&client, &self.clock, &stop));
        spawn(tasks, watches, async move {
            futures::join!(controller.run(stop), publisher.run());
        });
    }

    fn hosts(&self, tasks: &mut Tasks) {
        use metal3_hosts::reconciler::{Parts, caches::Caches, controller};
        let (client, caches, stop) = (
            self.cluster.client("hosts"),
            Caches::default(),
            CancellationToken::new(),
        );
        let (events, inbox) = EventRecorder::bounded(EVENTS);
        let writer = Writer::new(client.clone(), Mode::Perform);
        let publisher = Publisher::new(
            inbox,
            writer.clone(),
            Arc::clone(&self.clock),
            "metal3-baremetal-controller",
        );
        let parts = Parts {
            client: client.clone(),
            caches: caches.clone(),
            ironics: self.ironic.clone().into(),
            permit: Arc::new(|| Ok(())),
            clock: Arc::clone(&self.clock),
            events,
            metrics: tasks.metrics.clone(),
            settings: self.host_settings(),
            deprovision_budget: self.deprovision_budget,
            slots: SLOTS,
            workers: WORKERS,
        };
        let controller = controller(parts, writer);
        let watches = caches.watches(&WatchConfig::everywhere(&client, &self.clock, &stop));
        spawn(tasks, watches, async move {
            futures::join!(controller.run(stop), publisher.run());
        });
    }

    fn host_settings(&self) -> Settings {
        Settings {
            feed_recheck: FEED_RECHECK.checked_div(self.speed).unwrap_or(FEED_RECHECK),
            ..Settings::default()
        }
    }

    fn machines(&self, tasks: &mut Tasks) {
        let (client, stop) = (self.cluster.client("capm3"), CancellationToken::new());
        let (caches, watch_config) = (
            caches::Caches::default(),
            WatchConfig::everywhere(&client, &self.clock, &stop),
        );
        let of_data = data::caches::Caches::of(&caches);
        let (events, inbox) = EventRecorder::bounded(EVENTS);
        let writer: Writer<Machines> = Writer::new(client.clone(), Mode::Perform);
        let data_writer: Writer<metal3_capm3::needs::Data> = Writer::new(client.clone(), Mode::Perform);
        let publisher = Publisher::new(inbox, data_writer.clone(), Arc::clone(&self.clock), "capm3-controller");
        self.data(tasks, of_data.clone(), &events, &data_writer, &stop);
        let workloads = Arc::new(Remote::new(
            writer.clone(),
            open(&self.workloads),
            Arc::clone(&self.clock),
        ));
        self.remediations(tasks, &caches, (&workloads, &events), &stop);
        let sources = Arc::new(WatchedSources::new(client.clone(), None, Arc::clone(&self.clock)));
        let secrets = ObjectReader::new(client.clone(), &of_data.secrets);
        let of_clusters = clusters::controller(
            clusters::Parts {
                caches: caches.clone(),
                sources: Arc::<WatchedSources>::clone(&sources),
                pools: of_data.clone(),
                secrets,
                clock: Arc::clone(&self.clock),
                events: events.clone(),
                metrics: tasks.metrics.clone(),
                watch_filter: None,
                adopts_namesakes: false,
                touch_writer: None,
                join_checks: self.join_checks(&workloads),
                workers: WORKERS,
            },
            writer.clone(),
        );
        let of_machines = machines::controller(
            machines::Parts {
                caches: caches.clone(),
                data_templates: of_data.templates.clone(),
                workloads: Arc::<Remote<Machines>>::clone(&workloads),
                clock: Arc::clone(&self.clock),
                events,
                metrics: tasks.metrics.clone(),
                settings: metal3_capm3::machine::facts::Settings::default(),
                watch_filter: None,
                workers: WORKERS,
            },
            writer.clone(),
        );
        let of_templates = self.templates(tasks, &caches, writer);
        let watches = caches.watches(&watch_config).chain(of_data.own_watches(&watch_config));
        spawn(tasks, watches, async move {
            let work = futures::future::join3(
                of_machines.run(stop.clone()),
                of_clusters.run(stop.clone()),
                of_templates.run(stop.clone()),
            );
            futures::join!(work, workloads.run(stop.clone()), sources.run(stop), publisher.run());
        });
    }

    fn join_checks(&self, workloads: &Arc<Remote<Machines>>) -> Option<Arc<dyn JoinChecks>> {
        let checks = || -> Arc<dyn JoinChecks> { Arc::new(Joins::new(Arc::clone(workloads))) };
        self.looks_before_joins.then(checks)
    }

    fn templates(
        &self,
        tasks: &Tasks,
        caches: &caches::Caches,
        writer: Writer<Machines>,
    ) -> Controller<capacity::Templates> {
        let parts = capacity::Parts {
            caches: caches.clone(),
            clock: Arc::clone(&self.clock),
            metrics: tasks.metrics.clone(),
            watch_filter: None,
            workers: WORKERS,
        };
        capacity::controller(parts, writer)
    }

    fn remediations(
        &self,
        tasks: &mut Tasks,
        caches: &caches::Caches,
        (workloads, events): (&Arc<Remote<Machines>>, &EventRecorder),
        stop: &CancellationToken,
    ) {
        use metal3_capm3::remediation::reconciler::{Parts, controller, own_watches};
        let (client, remediations) = (self.cluster.client("capm3"), SharedCache::default());
        let writer: Writer<Remediations> = Writer::new(client.clone(), Mode::Perform);
        let parts = Parts {
            remediations: remediations.clone(),
            caches: caches.clone(),
            workloads: Arc::new(Repairs::new(Arc::clone(workloads))),
            clock: Arc::clone(&self.clock),
            events: events.clone(),
            metrics: tasks.metrics.clone(),
            watch_filter: None,
            workers: WORKERS,
        };
        let controller = controller(parts, writer);
        let watches = own_watches(&remediations, &WatchConfig::everywhere(&client, &self.clock, stop));
        let stop = stop.clone();
        spawn(tasks, watches, async move {
            controller.run(stop).await;
        });
    }

    fn data(
        &self,
        tasks: &mut Tasks,
        caches: data::caches::Caches,
        events: &EventRecorder,
        writer: &Writer<metal3_capm3::needs::Data>,
        stop: &CancellationToken,
    ) {
        let parts = data::Parts {
            caches,
            clock: Arc::clone(&self.clock),
            events: events.clone(),
            metrics: tasks.metrics.clone(),
            naming: metal3_capm3::data::claims::Naming::Data,
            watch_filter: None,
            template_workers: WORKERS,
            data_workers: WORKERS,
        };
        let (templates, objects) = data::controllers(parts, writer);
        let stop = stop.clone();
        tasks.running.spawn(async move {
            futures::join!(templates.run(stop.clone()), objects.run(stop));
        });
    }
}

/// The tasks of one start of the products, and their metrics.
struct Tasks {
    running: JoinSet<()>,
    metrics: Metrics,
}

/// Starts the watches and the work of a product.
fn spawn<R: Role>(tasks: &mut Tasks, watches: WatchSet<R>, work: impl Future<Output = ()> + Send + 'static) {
    for health in watches.health() {
        health.report(&tasks.metrics);
    }
    for task in watches.into_tasks() {
        tasks.running.spawn(task);
    }
    tasks.running.spawn(work);
}

/// Connects to workload clusters by the endpoint in their kubeconfig.
fn open(workloads: &WorkloadClusters) -> ConnectFn {
    let workloads = workloads.clone();
    Box::new(move |config: Kubeconfig| {
        let workloads = workloads.clone();
        Box::pin(async move {
            let users = config.auth_infos.iter().filter_map(|user| user.auth_info.as_ref());
            let has_credentials = users.clone().any(|user| user.token.is_some());
            let server = config.clusters.into_iter().find_map(|cluster| cluster.cluster?.server);
            let server = server.ok_or("the kubeconfig names no server")?;
            let endpoint = server.strip_prefix("https://").unwrap_or(&server);
            let mut changes = workloads.changes();
            loop {
                if let Some(cluster) = workloads.at(endpoint) {
                    return Ok(match has_credentials {
                        true => cluster.client("capm3"),
                        false => without_credentials(&cluster).await,
                    });
                }
                // The cluster exists once its first machine is up: waiting for that replaces retries.
                changes.changed().await;
            }
        })
    })
}

/// A client without credentials. The simulated API server has no authorization: this asks for the binding that permits such a
/// client to read what it needs to join, and refuses everything without it.
async fn without_credentials(cluster: &Cluster) -> kube::Client {
    const BINDING: &str =
        "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-public/rolebindings/kubeadm:bootstrap-signer-clusterinfo";
    if let Ok(request) = http::Request::get(BINDING).body(Vec::new()) {
        let client = cluster.client("anonymous");
        if client.request::<serde_json::Value>(request).await.is_ok() {
            return client;
        }
    }
    let refused = tower::service_fn(|_: http::Request<Body>| async {
        let status = json!({ "kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403 });
        let mut response = http::Response::new(Body::from(status.to_string().into_bytes()));
        *response.status_mut() = http::StatusCode::FORBIDDEN;
        Ok::<_, Infallible>(response)
    });
    kube::Client::new(refused, "default")
}
