//! IP address management, wired.

use std::sync::Arc;

use kube::{Client, Resource};
use metal3_api::cluster::names::IPAM_GROUP;
use metal3_api::ipam::names::GROUP;
use metal3_ipam::address::AddressObject;
use metal3_ipam::needs::Ipam;
use metal3_ipam::reconciler::caches::Caches;
use metal3_ipam::reconciler::{Parts, controller};
use metal3_runtime::cache::{Indexes, Key, SharedCache};
use metal3_runtime::events::{EventRecorder, Publisher};
use metal3_runtime::guard;
use metal3_runtime::lease::IPAM_LEASE;
use metal3_runtime::write::Writer;
use metal3_webhooks::related_objects::{Observation, RelatedObjects};
use metal3_webhooks::table::IPAM;

use super::{CORE, EVENTS, Product, Running, Task, WriteAccess, other_namespace};
use crate::drain_events::run_then_drain;
use crate::error::RunError;
use crate::served::Kind;
use crate::session::Session;
use metal3_flags::Owner;

const fn own_kind(plural: &'static str) -> Kind {
    Kind::new(GROUP, "v1alpha1", plural, "ipam-components.yaml")
}

const fn cluster_api(group: &'static str, plural: &'static str) -> Kind {
    Kind::new(group, "v1beta2", plural, CORE)
}

/// IP address management. differs (`ipam-needs-cluster-api`): the Go manager 1.9 runs without the kinds of Cluster API.
pub(super) const PRODUCT: Product = Product {
    owner: Owner::Ipam,
    suite: IPAM,
    kinds: &[
        own_kind("ippools"),
        own_kind("ipclaims"),
        own_kind("ipaddresses"),
        cluster_api(IPAM_GROUP, "ipaddressclaims"),
        cluster_api(IPAM_GROUP, "ipaddresses"),
        cluster_api(metal3_api::cluster::names::GROUP, "clusters"),
    ],
    lease: IPAM_LEASE,
    replaces: &[guard::IPAM, guard::IPAM_OF_CAPM3],
    begin,
};

fn begin(session: &Session, write_access: WriteAccess) -> Result<Running, RunError> {
    let caches = Caches::default();
    let watches = caches.watches(&session.watch_config());
    let seen = Seen {
        caches: caches.clone(),
        only: session.options.namespace.clone(),
    };
    Ok(Running {
        related_objects: Arc::new(seen),
        ..Running::new(watches, controllers(session, caches, write_access.client))
    })
}

fn controllers(session: &Session, caches: Caches, writing: Client) -> Task {
    let (events, inbox) = EventRecorder::bounded(EVENTS);
    let writer: Writer<Ipam> = Writer::new(writing, session.mode());
    let clock = Arc::clone(&session.clock);
    let publisher = Publisher::new(inbox, writer.clone(), Arc::clone(&clock), "ipam-controller");
    let parts = Parts {
        caches,
        clock,
        events,
        metrics: session.metrics.clone(),
        identity: session.pod.identity.clone(),
        watch_filter: session.options.watch_filter.clone(),
        workers: session.options.pools_at_once,
    };
    // Subscribes before any cache is filled.
    let controller = controller(parts, writer);
    Box::new(move |stop| Box::pin(run_then_drain(controller.run(stop), publisher.run())))
}

/// The address objects, for the webhook of pools.
struct Seen {
    caches: Caches,
    /// The watched namespace; `None` for all.
    only: Option<String>,
}

impl RelatedObjects for Seen {
    fn granted(&self, namespace: &str, pool: &str) -> Observation<Vec<String>> {
        if let Some(only) = self.only.as_deref().filter(|only| *only != namespace) {
            return Observation::Unknown(other_namespace(only));
        }
        let metal3 = granted(&self.caches.addresses, namespace, pool, AddressObject::of_metal3);
        let cluster_api = granted(
            &self.caches.cluster_addresses,
            namespace,
            pool,
            AddressObject::of_cluster_api,
        );
        match (metal3, cluster_api) {
            (Some(metal3), Some(cluster_api)) => Observation::Known(metal3.into_iter().chain(cluster_api).collect()),
            (metal3, cluster_api) => Observation::Unknown(not_listed(metal3.is_none(), cluster_api.is_none())),
        }
    }
}

/// Names the kinds of addresses that are not listed yet.
fn not_listed(metal3: bool, cluster_api: bool) -> String {
    let kinds = [(metal3, GROUP), (cluster_api, IPAM_GROUP)];
    let kinds: Vec<String> = kinds
        .iter()
        .filter(|(is_missing, _)| *is_missing)
        .map(|(_, group)| format!("ipaddresses.{group}"))
        .collect();
    format!("{} not listed yet; /readyz says why", kinds.join(" and "))
}

/// The addresses of a pool in one cache; `None` before its first list.
fn granted<K: Resource, I: Indexes<K>>(
    cache: &SharedCache<K, I>,
    namespace: &str,
    pool: &str,
    read: fn(&K) -> Option<(String, AddressObject)>,
) -> Option<Vec<String>> {
    let wanted = |(key, object): (&Key, &Arc<K>)| {
        // Without converting the addresses of others.
        let (of, held) = (key.namespace == namespace).then(|| read(object))??;
        Some(held.address?.to_string()).filter(|_| of == pool)
    };
    cache.read(|cache| cache.synced().then(|| cache.objects().filter_map(wanted).collect()))
}

#[cfg(test)]
mod tests {
    use metal3_runtime::version::ResourceVersion;

    use super::*;

    #[test]
    fn what_a_process_of_one_namespace_does_not_watch_is_unknown_and_not_absent() {
        let seen = |only: Option<&str>| {
            let caches = Caches::default();
            for listed in [ResourceVersion::parse("1")].into_iter().flatten() {
                assert!(caches.addresses.listed(Vec::new(), listed.clone()).is_ok());
                assert!(caches.cluster_addresses.listed(Vec::new(), listed).is_ok());
            }
            let only = only.map(str::to_owned);
            Seen { caches, only }.granted("there", "rack")
        };
        assert_eq!(seen(None), Observation::Known(Vec::new()));
        assert_eq!(seen(Some("there")), Observation::Known(Vec::new()));
        let Observation::Unknown(why) = seen(Some("here")) else {
            unreachable!("not listed yet");
        };
        assert!(why.contains("here") && why.contains("--namespace"), "{why}");
    }

    #[test]
    fn kinds_that_are_not_listed_are_named() {
        let caches = Caches::default();
        let seen = Seen {
            caches: caches.clone(),
            only: None,
        };
        let both = "ipaddresses.ipam.metal3.io and ipaddresses.ipam.cluster.x-k8s.io not listed yet; /readyz says why";
        assert_eq!(seen.granted("here", "rack"), Observation::Unknown(both.to_owned()));
        let listed = ResourceVersion::parse("1").unwrap();
        caches.addresses.listed(Vec::new(), listed).unwrap();
        let one = "ipaddresses.ipam.cluster.x-k8s.io not listed yet; /readyz says why";
        assert_eq!(seen.granted("here", "rack"), Observation::Unknown(one.to_owned()));
    }
}
