//! The controller of Metal3MachineTemplates: reports what their hosts have.

use std::collections::BTreeMap;
use std::sync::Arc;

use metal3_api::cluster::{Cluster, MachineDeployment};
use metal3_api::infrastructure::v1beta2::Metal3MachineTemplate;
use metal3_api::kind::Kind as _;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::{owner, pause};
use metal3_domain::clock::Clock;
use metal3_domain::selector::Selector;
use metal3_runtime::cache::{Change, Key, SharedIndexes};
use metal3_runtime::metrics::Metrics;
use metal3_runtime::plan::Observed;
use metal3_runtime::work::{Controller, Fault, Next, Reconciler};
use metal3_runtime::write::Writer;

use super::figures::{is_counted, status_of};
use super::gauge::{AvailableHosts, available};
use super::index::{DeploymentIndexes, autoscaled_template};
use crate::cluster::reconciler::is_served;
use crate::controller::caches::{Caches, old_and_new};
use crate::data::reason::unreadable;
use crate::machine::watches::claim_relevant_fields;
use crate::needs::Machines as Role;
use crate::reasons::template as reasons;

/// For hosts without labels.
static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();

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
    watch_filter: Option<String>,
    available: AvailableHosts,
}

/// The controller. The caller starts the watches of the caches.
pub fn controller(parts: Parts, writer: Writer<Role>) -> Controller<Templates> {
    let caches = parts.caches;
    let templates = Templates {
        caches: caches.clone(),
        watch_filter: parts.watch_filter,
        available: AvailableHosts::new(&parts.metrics),
    };
    let [of_host, of_cluster] = std::array::from_fn(|_| caches.deployments.indexes());
    Controller::new("metal3machinetemplate", parts.clock, writer, templates)
        .watches(&caches.machine_templates, |change| change.key())
        .watches(&caches.deployments, templates_of_deployment)
        .watches(&caches.hosts, move |change| templates_of_host(&of_host, change))
        .watches(&caches.clusters, move |change| {
            templates_of_cluster(&of_cluster, change)
        })
        .workers(parts.workers)
        .metrics(&parts.metrics)
}

fn templates_of_deployment(change: &Change<'_, MachineDeployment>) -> Vec<Key> {
    if change.is_same(|old, new| autoscaled_template(old) == autoscaled_template(new)) {
        return Vec::new();
    }
    old_and_new(change, autoscaled_template)
}

fn templates_of_host(deployments: &SharedIndexes<DeploymentIndexes>, change: &Change<'_, BareMetalHost>) -> Vec<Key> {
    let hardware = |host: &BareMetalHost| {
        let hints = (host.spec.root_device_hints.clone(), host.spec.raid.is_some());
        (hints, host.status.hardware.clone())
    };
    let is_same = |old: &BareMetalHost, new: &BareMetalHost| {
        claim_relevant_fields(old) == claim_relevant_fields(new) && hardware(old) == hardware(new)
    };
    templates_near(deployments, change.key().filter(|_| !change.is_same(is_same)))
}

/// A pause ends without a change of the template.
fn templates_of_cluster(deployments: &SharedIndexes<DeploymentIndexes>, change: &Change<'_, Cluster>) -> Vec<Key> {
    let is_paused = |cluster: &Cluster| pause::is_cluster_paused(Some(cluster));
    templates_near(
        deployments,
        change
            .key()
            .filter(|_| !change.is_same(|old, new| is_paused(old) == is_paused(new))),
    )
}

fn templates_near(deployments: &SharedIndexes<DeploymentIndexes>, changed: Option<Key>) -> Vec<Key> {
    let near = |changed: Key| deployments.read(|indexes| indexes.in_namespace(&changed.namespace));
    changed.map(near).unwrap_or_default()
}

impl Reconciler for Templates {
    type Key = Key;
    type Role = Role;

    async fn reconcile(&self, key: &Key, writer: &Writer<Role>) -> Result<Next, Fault> {
        let template = match self.caches.machine_templates.find(key) {
            Observed::Present(template) => template,
            Observed::Absent => {
                self.available.remove(key);
                return Ok(Next::Done);
            }
            Observed::Unknown(why) => return Ok(unreadable(Metal3MachineTemplate::KIND, key, &why)),
        };
        if !self.is_reported(key, &template) {
            self.available.remove(key);
            return Ok(Next::Done);
        }
        let selector = match &template.spec.template.spec.host_selector {
            None => Selector::default(),
            Some(selector) => match selector.labels() {
                Ok(selector) => selector,
                Err(error) => {
                    let message = format!(
                        "{} {key}: spec.template.spec.hostSelector: {error}",
                        Metal3MachineTemplate::KIND
                    );
                    return Ok(Next::waiting(reasons::INVALID_SELECTOR, message));
                }
            },
        };
        let mut after = (*template).clone();
        let free;
        (after.status, free) = self.caches.hosts.read(|cache| {
            let near = cache.objects().filter(|(host, _)| host.namespace == key.namespace);
            let hosts: Vec<&BareMetalHost> = near.map(|(_, host)| &**host).collect();
            let selected = hosts.iter().copied().filter(|host| is_selected(&selector, host));
            (status_of(selected), available(&template, hosts.iter().copied()))
        });
        self.available.set(key, free);
        writer
            .status(&self.caches.machine_templates, &*template, &after)
            .await?;
        Ok(Next::Done)
    }
}

impl Templates {
    /// Whether the status of the template has a reader, and may be written.
    fn is_reported(&self, key: &Key, template: &Metal3MachineTemplate) -> bool {
        let meta = &template.metadata;
        let is_used = self.caches.deployments.indexes().read(|indexes| indexes.uses(key));
        let is_idle = meta.deletion_timestamp.is_some() || pause::is_reconcile_skipped(meta);
        is_used && !is_idle && is_served(meta, self.watch_filter.as_deref()) && !self.is_cluster_paused(key, template)
    }

    /// Whether its Cluster is paused or cannot be read. `clusterctl move` pauses the Cluster.
    fn is_cluster_paused(&self, key: &Key, template: &Metal3MachineTemplate) -> bool {
        let Some(name) = owner::cluster_of(&template.metadata) else {
            return false;
        };
        match self.caches.clusters.find(&key.sibling(name)) {
            Observed::Present(cluster) => pause::is_cluster_paused(Some(&cluster)),
            Observed::Absent => false,
            Observed::Unknown(_) => true,
        }
    }
}

fn is_selected(selector: &Selector, host: &BareMetalHost) -> bool {
    let labels = host.metadata.labels.as_ref().unwrap_or(&NO_LABELS);
    is_counted(host) && selector.mismatch(labels).is_none()
}
