//! Reads live what a plan asks for.

use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3Machine};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::workload::is_busy;
use metal3_runtime::cache::Key;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::{Category, Fault};
use metal3_runtime::write::Writer;

use super::{Machines, is_same_version};
use crate::machine::action::Reads;
use crate::machine::facts::Facts;
use crate::needs::Machines as Role;

impl Machines {
    /// Reads the machine. False if the rest of the facts belongs to another version of it.
    pub(super) async fn confirm(&self, key: &Key, facts: &mut Facts, writer: &Writer<Role>) -> Result<bool, Fault> {
        // The hosts must be those observed before the live read, so that it confirms them.
        let live = writer.read::<Metal3Machine>(&self.caches.metal3_machines, key).await?;
        match (&facts.machine, live) {
            (_, None) => facts.machine = None,
            (Some(old), Some(now)) if is_same_version(old, &now) => {}
            _ => return Ok(false),
        }
        facts.confirmed = true;
        Ok(true)
    }

    /// The facts after a live read, which is in the cache, unless the cache has a newer version.
    pub(super) async fn observe_again(
        &self,
        key: &Key,
        before: Facts,
        reads: &Reads,
        writer: &Writer<Role>,
    ) -> Result<Facts, Fault> {
        let caches = &self.caches;
        let mut is_live = (before.hosts.named_is_live, before.metal3_clusters_are_live);
        if let Reads::Host(name) = reads {
            writer.read::<BareMetalHost>(&caches.hosts, &key.sibling(name)).await?;
            is_live.0 = true;
        }
        if let Reads::Metal3Cluster(name) = reads {
            let cluster = key.sibling(name);
            let found = writer.read::<Metal3Cluster>(&caches.metal3_clusters, &cluster).await?;
            if found.is_none() {
                let why = "it is gone, and the watch has not shown it yet".to_owned();
                return Err(Fault::transient(
                    format!("read Metal3Cluster {name}"),
                    Category::NOT_FOUND,
                    why,
                ));
            }
            is_live.1 = true;
        }
        let mut facts = self.observe(key, before.machine);
        (facts.hosts.named_is_live, facts.metal3_clusters_are_live) = is_live;
        Ok(facts)
    }

    /// Reads the labels of a Node. A failure is returned, and part of the facts.
    pub(super) async fn read_labels(&self, key: &Key, facts: &mut Facts, node: &str) -> Option<Fault> {
        let fault = match self.workloads.read_labels(&facts.cluster_key, node, key).await {
            Ok(node) => {
                facts.labels.live = Observed::from(node);
                return None;
            }
            Err(fault) => fault,
        };
        facts.labels.live = Observed::Unknown(UnknownReason::Unreadable(fault.report()));
        facts.labels.is_busy = is_busy(&fault);
        // Then the plan waits.
        Some(fault).filter(|_| !facts.labels.is_busy)
    }
}
