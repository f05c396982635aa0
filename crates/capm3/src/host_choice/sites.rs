//! The Metal3Clusters of one Cluster, each with hosts of its own.

use metal3_api::infrastructure::v1beta2::Metal3Cluster;
use metal3_api::metal3::v1alpha1::BareMetalHost;

use super::Zones;

/// Which hosts a Metal3Cluster has: those in its zones, and in the failure domains that it reports.
#[derive(Debug, Clone, Default)]
pub(super) struct Site<'a> {
    pub(super) name: &'a str,
    pub(super) zones: Zones<'a>,
    domains: Vec<&'a str>,
}

impl<'a> Site<'a> {
    pub(super) fn of(cluster: &'a Metal3Cluster) -> Self {
        let domains = cluster.spec.failure_domains.iter();
        Self {
            name: cluster.metadata.name.as_deref().unwrap_or_default(),
            zones: Zones::of(cluster),
            domains: domains.map(|domain| domain.name.as_str()).collect(),
        }
    }

    pub(super) fn has(&self, host: &BareMetalHost) -> bool {
        self.zones.of_host(host, None).is_some() || self.domains.iter().any(|domain| self.zones.has(domain, host))
    }
}
