//! The controller of Metal3MachineTemplates: reports what their hosts have.

use std::collections::BTreeMap;
use std::sync::Arc;

use metal3_api::infrastructure::Metal3MachineTemplateStatus;
use metal3_api::infrastructure::v1beta2::Metal3MachineTemplate;
use metal3_api::kind::Kind as _;
use metal3_capi::pause;
use metal3_domain::clock::Clock;
use metal3_runtime::cache::{Cache, Key, SharedIndexes};
use metal3_runtime::metrics::Metrics;
use metal3_runtime::plan::Observed;
use metal3_runtime::queue::{Queue, Waker};
use metal3_runtime::work::{Controller, DEBOUNCE, Fault, Next, Reconciler, StatusDebounce};
use metal3_runtime::write::{Mode, WriteErrorKind, Writer};
use parking_lot::Mutex;

use super::gauge::AvailableHosts;
use super::index::{DeploymentIndexes, NodeGroup};
use super::report::{Claimant, NearHosts, Report, Serving, new_machine};
use super::serving::NearClusters;
use super::unserved_status::UnservedStatus;
use super::watches::{self, Work};
use crate::cluster::reconciler::is_served;
use crate::controller::caches::Caches;
use crate::data::reason::unreadable;
use crate::needs::Machines as Role;

/// Dependencies of the controller.
pub struct Parts {
    /// The caches.
    pub caches: Caches,
    /// Clock of the queue.
    pub clock: Arc<dyn Clock>,
    /// Receives metrics.
    pub metrics: Metrics,
    /// The required value of the watch-filter label, if any.
    pub watch_filter: Option<String>,
    /// Number of workers.
    pub workers: usize,
}

/// Reconciles one template at a time.
pub struct Templates {
    caches: Caches,
    deployments: SharedIndexes<DeploymentIndexes>,
    watch_filter: Option<String>,
    available: AvailableHosts,
    /// Collects changes of the hosts of a namespace.
    hosts: StatusDebounce<String>,
    waker: Waker<Work>,
    unserved: UnservedStatus,
    /// The status that a dry run has logged.
    logged: Mutex<BTreeMap<Key, Metal3MachineTemplateStatus>>,
}

/// The controller. The caller starts the watches of the caches.
pub fn controller(parts: Parts, writer: Writer<Role>) -> Controller<Templates> {
    let (caches, queue) = (parts.caches, Queue::new(Arc::clone(&parts.clock)));
    let templates = Templates {
        caches: caches.clone(),
        deployments: caches.deployments.indexes(),
        watch_filter: parts.watch_filter,
        available: AvailableHosts::new(&parts.metrics),
        hosts: StatusDebounce::new(Arc::clone(&parts.clock)),
        waker: queue.waker(),
        unserved: UnservedStatus::new(parts.clock),
        logged: Mutex::default(),
    };
    let [of_host, of_cluster, of_metal3_cluster] = std::array::from_fn(|_| caches.deployments.indexes());
    Controller::with_queue("metal3machinetemplate", queue, writer, templates)
        .watches(&caches.machine_templates, watches::of_template)
        .watches(&caches.deployments, watches::of_deployment)
        .watches(&caches.hosts, move |change| watches::of_host(&of_host, change))
        .watches(&caches.clusters, move |change| watches::of_cluster(&of_cluster, change))
        .watches(&caches.metal3_clusters, move |change| {
            watches::of_metal3_cluster(&of_metal3_cluster, change)
        })
        .workers(parts.workers)
        .metrics(&parts.metrics)
}

impl Reconciler for Templates {
    type Key = Work;
    type Role = Role;

    async fn reconcile(&self, work: &Work, writer: &Writer<Role>) -> Result<Next, Fault> {
        match work {
            Work::Hosts(namespace) => Ok(self.hosts_changed(namespace)),
            Work::Template(key) => self.report(key, writer).await,
        }
    }
}

impl Templates {
    fn hosts_changed(&self, namespace: &String) -> Next {
        if let Some(left) = self.hosts.remaining(namespace, DEBOUNCE) {
            return Next::RequeueAfter(left);
        }
        self.hosts.clear(namespace);
        for template in self.deployments.read(|indexes| indexes.in_namespace(namespace)) {
            self.waker.enqueue(Work::Template(template));
        }
        Next::Done
    }

    async fn report(&self, key: &Key, writer: &Writer<Role>) -> Result<Next, Fault> {
        let template = match self.caches.machine_templates.find(key) {
            Observed::Present(template) => template,
            Observed::Absent => return Ok(self.end_report(key)),
            Observed::Unknown(why) => {
                self.end_report(key);
                return Ok(unreadable(Metal3MachineTemplate::KIND, key, &why));
            }
        };
        if !self.caches.deployments.read(Cache::is_permitted) {
            return Ok(self.end_report(key));
        }
        let groups = self.deployments.read(|indexes| indexes.groups(key));
        if !self.is_reported(key, &template, &groups) {
            return Ok(self.end_report(key));
        }
        let claimants: Vec<Claimant> = groups
            .into_iter()
            .map(|group| self.claimant(key, &template, group))
            .collect();
        let report = Report::of(key, &template, &claimants, &self.near(&key.namespace));
        self.available.set(key, report.available);
        let refused = match report.status {
            Some(status) => self.write(key, &template, status, writer).await?,
            None => None,
        };
        Ok(refused.unwrap_or(report.next))
    }

    fn end_report(&self, key: &Key) -> Next {
        self.available.remove(key);
        self.logged.lock().remove(key);
        Next::Done
    }

    /// Whether the status of the template has a reader, and may be written.
    fn is_reported(&self, key: &Key, template: &Metal3MachineTemplate, groups: &[NodeGroup]) -> bool {
        let meta = &template.metadata;
        let is_idle = meta.deletion_timestamp.is_some() || pause::is_reconcile_skipped(meta);
        let are_active = || groups.iter().all(|group| self.is_cluster_active(key, group));
        !groups.is_empty() && !is_idle && is_served(meta, self.watch_filter.as_deref()) && are_active()
    }

    /// Whether the Cluster of a node group is known not to be paused. `clusterctl move` pauses the Cluster, and creates it first,
    /// but its watch may be behind that of MachineDeployments.
    fn is_cluster_active(&self, key: &Key, group: &NodeGroup) -> bool {
        match self.caches.clusters.find(&key.sibling(&group.cluster)) {
            Observed::Present(cluster) => !pause::is_cluster_paused(Some(&cluster)),
            Observed::Absent | Observed::Unknown(_) => false,
        }
    }

    fn claimant(&self, key: &Key, template: &Metal3MachineTemplate, group: NodeGroup) -> Claimant {
        let machine = new_machine(key, template, &group);
        let near = self.caches.metal3_clusters.read(|cache| NearClusters {
            all: cache.in_namespace(&key.namespace).map(Arc::clone).collect(),
            unreadable: cache.unreadable().find(|one| one.namespace == key.namespace).cloned(),
        });
        let metal3_cluster = match self.caches.clusters.find(&key.sibling(&group.cluster)) {
            Observed::Present(cluster) => near.serving(&machine, &group, &cluster),
            Observed::Absent | Observed::Unknown(_) => Serving::Unknown("their Cluster is not known".to_owned()),
        };
        Claimant { group, metal3_cluster }
    }

    /// Only references are copied while the watch of hosts waits.
    fn near(&self, namespace: &str) -> NearHosts {
        self.caches.hosts.read(|cache| NearHosts {
            hosts: cache.in_namespace(namespace).map(Arc::clone).collect(),
            unreadable: cache.unreadable().find(|host| host.namespace == namespace).cloned(),
        })
    }

    /// Writes the status if it differs. Returns the wait if the server does not serve it.
    async fn write(
        &self,
        key: &Key,
        template: &Metal3MachineTemplate,
        status: Metal3MachineTemplateStatus,
        writer: &Writer<Role>,
    ) -> Result<Option<Next>, Fault> {
        if template.status == status || (writer.mode() == Mode::ObserveOnly && self.is_logged(key, &status)) {
            return Ok(None);
        }
        if let Some(wait) = self.unserved.wait(key) {
            return Ok(Some(wait));
        }
        let mut after = template.clone();
        after.status = status;
        let cache = &self.caches.machine_templates;
        match writer.status(cache, template, &after).await {
            Ok(_) => Ok(None),
            Err(error) if error.kind == WriteErrorKind::NotFound => {
                // Of the template, or of its status?
                let exists = writer.read(cache, key).await?.is_some();
                Ok(exists.then(|| self.unserved.begin(key)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a dry run has logged this status already: it never becomes that of the template.
    fn is_logged(&self, key: &Key, status: &Metal3MachineTemplateStatus) -> bool {
        self.logged.lock().insert(key.clone(), status.clone()).as_ref() == Some(status)
    }
}
