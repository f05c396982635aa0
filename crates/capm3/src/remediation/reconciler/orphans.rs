//! Ends requests to keep a host off whose remediation does not exist.
//!
//! A UID is never used again, so a remediation that a live list lacks does not appear later. The host is patched at the
//! version that was observed before the list.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::core::params::ListParams;
use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::v1beta2::{Metal3Machine, Metal3Remediation};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::{owner, pause};
use metal3_runtime::cache::Key;
use metal3_runtime::work::{Category, Fault, Next};
use metal3_runtime::write::{Mode, Writer};

use super::Remediations;
use super::act::audit;
use crate::cluster::reconciler::is_served;
use crate::machine::facts::is_machine;
use crate::needs::Remediations as Role;
use crate::remediation::action::HostChange;
use crate::remediation::orphans::{is_orphaned, removal};
use crate::remediation::related::Object;

/// Remediations in one page of a list.
const PAGE: u32 = 100;

impl Remediations {
    /// No remediation has this key. The hosts of its namespace are compared with those that exist.
    pub(super) async fn without_remediation(&self, key: &Key, writer: &Writer<Role>) -> Result<Next, Fault> {
        self.forget(key);
        let hosts = self.orphaned(key);
        if hosts.is_empty() {
            return Ok(Next::Done);
        }
        let existing = existing(key, writer).await?;
        let mut objects = BTreeSet::new();
        for host in hosts.iter().filter(|host| is_orphaned(host, &existing)) {
            if self.may_power_on(key, host, writer, &mut objects).await? {
                let name = Key::of(&**host);
                if let Some(patch) = removal(host, &existing) {
                    writer.patch::<BareMetalHost>(&self.caches.hosts, &name, patch).await?;
                    if writer.mode() == Mode::Perform {
                        audit(key, &name, HostChange::Orphan);
                    }
                }
            }
        }
        Ok(Next::Done)
    }

    /// The hosts of the namespace that are kept off for a remediation that is not cached.
    fn orphaned(&self, key: &Key) -> Vec<Arc<BareMetalHost>> {
        let cached: BTreeSet<String> = self.remediations.read(|cache| {
            let uids = cache.objects().filter_map(|(_, one)| one.metadata.uid.clone());
            uids.collect()
        });
        self.caches.hosts.read(|cache| {
            let near = cache.objects().filter(|(host, _)| host.namespace == key.namespace);
            let orphaned = near.filter(|(_, host)| is_orphaned(host, &cached));
            orphaned.map(|(_, host)| Arc::clone(host)).collect()
        })
    }

    /// Whether neither the host nor its machine or Cluster is paused, and the machine matches the watch filter.
    async fn may_power_on(
        &self,
        key: &Key,
        host: &BareMetalHost,
        writer: &Writer<Role>,
        objects: &mut BTreeSet<Object>,
    ) -> Result<bool, Fault> {
        if host.is_paused() || pause::is_reconcile_skipped(&host.metadata) {
            return Ok(false);
        }
        let consumer = host.spec.consumer_ref.as_ref();
        let own = |name: &&str| consumer.is_some_and(|consumer| is_machine(consumer, &key.namespace, name));
        let Some(name) = consumer.and_then(|one| one.name.as_deref()).filter(own) else {
            return Ok(true);
        };
        let name = key.sibling(name);
        // Before the read: the end of a pause enqueues the key, also while the answer is on its way.
        objects.insert(Object::Metal3Machine(name.clone()));
        self.related.set(key, objects.clone());
        let machine = writer
            .read::<Metal3Machine>(&self.caches.metal3_machines, &name)
            .await?;
        let Some(machine) = machine else { return Ok(true) };
        if pause::is_reconcile_skipped(&machine.metadata) || !is_served(&machine.metadata, self.watch_filter.as_deref())
        {
            return Ok(false);
        }
        let Some(cluster) = owner::cluster_of(&machine.metadata) else {
            return Ok(true);
        };
        let name = key.sibling(cluster);
        objects.insert(Object::Cluster(name.clone()));
        self.related.set(key, objects.clone());
        let cluster = writer.find::<Cluster>(&self.caches.clusters, &name).await?;
        Ok(!pause::is_cluster_paused(cluster.as_ref()))
    }
}

/// The UIDs of the remediations of the namespace, from the API server.
async fn existing(key: &Key, writer: &Writer<Role>) -> Result<BTreeSet<String>, Fault> {
    let (mut uids, mut params) = (BTreeSet::new(), ListParams::default().limit(PAGE));
    loop {
        let page = writer.page::<Metal3Remediation>(Some(&key.namespace), &params).await?;
        for item in &page.items {
            let identity = item.identity();
            let identity = identity.map_err(|error| {
                let op = "list Metal3Remediations".to_owned();
                Fault::transient(op, Category::UNREADABLE, error.to_string())
            })?;
            uids.insert(identity.uid);
        }
        match page.rest {
            Some(rest) => params = params.continue_token(&rest),
            None => return Ok(uids),
        }
    }
}
