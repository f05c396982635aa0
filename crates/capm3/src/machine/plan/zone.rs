//! What the deployment zones of its Metal3Cluster mean for a machine: the hosts of its failure domain, and the data
//! template of the zone of its host.

use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::v1beta2::{
    DeploymentZone, FailureDomainPolicy, LocalName, Metal3Cluster, Metal3ObjectRef,
};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::plan::{Observed, UnknownReason};

use super::{Decision, Planner, Prerequisites};
use crate::cluster::zones;
use crate::cluster::{cluster_name, is_primary};
use crate::host_choice::Zones;
use crate::machine::action::Reads;
use crate::machine::facts;
use crate::machine::resolve::{Resolved, others, own_infrastructure, resolve};

impl<'a> Planner<'a> {
    /// The Metal3Cluster of the machine.
    pub(super) fn resolved(&self, cluster: &Cluster) -> Resolved<'a> {
        let all: Vec<&Metal3Cluster> = self.facts.metal3_clusters.iter().map(AsRef::as_ref).collect();
        resolve(self.before, self.recorded(), self.domain(), cluster, &all)
    }

    /// The other Metal3Clusters of the Cluster.
    pub(super) fn other_sites(&self, prerequisites: Prerequisites<'a>) -> impl Iterator<Item = &'a Metal3Cluster> {
        let cluster = self.facts.cluster.as_deref().into_present().into_iter();
        let all = self.facts.metal3_clusters.iter().map(AsRef::as_ref);
        cluster.flat_map(move |cluster| others(prerequisites.metal3_cluster, cluster, all.clone()))
    }

    /// Waits while a Metal3Cluster cannot be read: it may be another site of the Cluster, whose hosts must not be taken.
    pub(super) fn wait_for_unreadable_site(&self) -> Option<Decision> {
        let unreadable = self.facts.unreadable_cluster.as_ref()?;
        Some(self.unreadable(&format!(
            "Metal3Cluster {unreadable} cannot be read, and its hosts are not known; correct it"
        )))
    }

    /// The Metal3Cluster, if neither a reference nor the Cluster decides that it is the machine's, but a failure domain or an
    /// earlier result. It is recorded with the host: zones change, and a move drops the status.
    pub(super) fn site_by_domain(&self, prerequisites: Prerequisites<'a>) -> Option<LocalName> {
        let cluster = self.facts.cluster.as_deref().into_present()?;
        let all: Vec<&Metal3Cluster> = self.facts.metal3_clusters.iter().map(AsRef::as_ref).collect();
        let without_domain = resolve(self.before, None, None, cluster, &all);
        let name = prerequisites.metal3_cluster.metadata.name.clone()?;
        matches!(without_domain, Resolved::Ambiguous(..)).then_some(LocalName { name })
    }

    /// Why there is no Metal3Cluster: the name that is wrong, and its field.
    pub(super) fn without_metal3_cluster(&self, cluster: &Cluster) -> String {
        let own = self.cluster_name();
        match (&self.before.spec.metal3_cluster_ref, &cluster.spec.infrastructure_ref) {
            (Some(named), _) => format!(
                "spec.metal3ClusterRef.name: there is no Metal3Cluster {}; create it, or correct the name here and in the template",
                named.name
            ),
            (None, Some(one)) if own_infrastructure(cluster).is_some() => {
                format!(
                    "there is no Metal3Cluster {}, which Cluster {own} names; create it",
                    one.name
                )
            }
            (None, _) => format!("no Metal3Cluster belongs to Cluster {own}; set spec.clusterName of one to it"),
        }
    }

    /// Why the machine cannot use the Metal3Cluster that is meant: field and remedy.
    pub(super) fn not_of_cluster(&self, found: &Metal3Cluster, cluster: &Cluster) -> String {
        let (name, own) = (found.metadata.name.as_deref().unwrap_or_default(), self.cluster_name());
        let whose = match cluster_name(found) {
            Some(other) => format!("Cluster {other}"),
            None => "no Cluster".to_owned(),
        };
        let differ = format!("Metal3Cluster {name} belongs to {whose}, and the machine to Cluster {own}");
        if self.before.spec.metal3_cluster_ref.is_some() {
            format!(
                "spec.metal3ClusterRef.name: {differ}; name a Metal3Cluster of Cluster {own}, or set spec.clusterName of {name} \
                 if no other Cluster uses it"
            )
        } else if is_primary(found, cluster) {
            format!("spec.infrastructureRef of the Cluster: {differ}; give each Cluster a Metal3Cluster of its own")
        } else {
            format!("status.metal3Cluster: {differ}; correct the owner of {name}, or delete the Machine")
        }
    }

    pub(super) fn recorded(&self) -> Option<&'a str> {
        // The claim may have been the last write before a crash.
        let has_claimed = self.facts.hosts.claimed().next().is_some();
        let claimed = self.before.status.metal3_cluster.as_deref().filter(|_| has_claimed);
        facts::recorded(self.before).or(claimed)
    }

    /// The failure domain that the Machine states.
    pub(super) fn domain(&self) -> Option<&'a str> {
        let domain = self.facts.owner.present()?.spec.failure_domain.as_deref();
        domain.filter(|domain| !domain.is_empty())
    }

    /// The zones of the machine's Metal3Cluster.
    pub(super) fn zones(&self) -> Zones<'a> {
        let found = self.metal3_cluster();
        found.map(Zones::of).unwrap_or_default()
    }

    fn metal3_cluster(&self) -> Option<&'a Metal3Cluster> {
        let cluster = self.facts.cluster.as_deref().into_present()?;
        self.resolved(cluster).one()
    }

    // differs (`deployment-zones`): the Go manager knows no zones.
    /// The data template that a machine without one gets from the zone of its host, until it is provisioned.
    pub(super) fn zone_template(&self, host: &BareMetalHost) -> Option<Metal3ObjectRef> {
        let is_open = self.before.spec.takes_zone_data() && !facts::is_provisioned(host);
        let zone = self.zones().of_host(host, self.domain()).filter(|_| is_open)?;
        zone.data_template.clone()
    }

    /// Why a host that is not provisioned has no data for the machine, which takes them from the zone of its host. Zones can
    /// change after it was claimed.
    pub(super) fn lack_of_data(&self, host: &BareMetalHost) -> Option<String> {
        let lacks = self.before.spec.takes_zone_data()
            && !facts::is_provisioned(host)
            && self.zones().lacks_template(host, self.domain());
        let name = host.metadata.name.as_deref().unwrap_or_default();
        lacks.then(|| {
            format!(
                "BareMetalHost {name} is in no deployment zone with a data template, and the machine names none: correct its \
                 labels or the zones, or set spec.dataTemplate"
            )
        })
    }

    /// Why a host that is not provisioned is not written: it left the required failure domain after it was claimed.
    pub(super) fn left_domain(&self, host: &BareMetalHost) -> Option<String> {
        let is_open = self.requires_domain(self.metal3_cluster()?) && !facts::is_provisioned(host);
        let domain = self
            .domain()
            .filter(|domain| is_open && !self.zones().has(domain, host))?;
        let name = host.metadata.name.as_deref().unwrap_or_default();
        Some(format!(
            "BareMetalHost {name} is not in failure domain {domain} any more, which is required: correct its labels or the \
             zone, or delete the Machine"
        ))
    }

    fn requires_domain(&self, found: &Metal3Cluster) -> bool {
        found.spec.failure_domain_policy == Some(FailureDomainPolicy::Required)
    }

    /// Whether the machine may get a host of the zone: with a required failure domain that is one alone.
    fn can_reach(&self, found: &Metal3Cluster, zone: &str) -> bool {
        self.domain()
            .is_none_or(|domain| domain == zone || !self.requires_domain(found))
    }

    /// Whether a host would be written without data because the Metal3Cluster has no zones. Its copy may be outdated.
    pub(super) fn unconfirmed_zones(&self, host: &BareMetalHost) -> Option<Reads> {
        let is_open = self.before.spec.takes_zone_data() && !facts::is_provisioned(host);
        if !is_open || self.facts.metal3_clusters_are_live {
            return None;
        }
        let name = self.metal3_cluster()?.metadata.name.clone()?;
        Some(Reads::Metal3Cluster(name))
    }

    /// Why a machine that takes its data from a zone waits before it claims a host: the claim fixes the name of the template.
    pub(super) fn missing_zone_template(&self) -> Option<String> {
        let found = self.metal3_cluster().filter(|_| self.before.spec.takes_zone_data())?;
        let state = |template: &str| {
            let known = self.facts.zone_templates.get(template).cloned();
            known.unwrap_or(Observed::Unknown(UnknownReason::NotRead))
        };
        // Not its condition: that may be of an older generation, and a paused object has none.
        let mut templates = zones::observe(found, state);
        templates.retain(|one| self.can_reach(found, &one.zone));
        let condition = zones::condition(&templates)?;
        let (.., message) = condition.not_true()?;
        let name = found.metadata.name.as_deref().unwrap_or_default();
        Some(format!("Metal3Cluster {name}: {message}"))
    }

    /// Why the failure domain of the machine has no hosts: the field and the remedy.
    pub(super) fn zone_selector_error(&self) -> Option<String> {
        let (zones, domain) = (self.zones(), self.domain()?);
        let error = zones.unreadable(domain)?;
        Some(format!("{}.hostSelector: {error}; correct it", self.zone_path(domain)))
    }

    /// Why the data template of a zone cannot be used by a machine without one.
    pub(super) fn zone_template_error(&self) -> Option<String> {
        if !self.before.spec.takes_zone_data() {
            return None;
        }
        let problem = |zone: &DeploymentZone| {
            let template = zone.data_template.as_ref()?;
            let path = format!("{}.dataTemplate", self.zone_path(&zone.name));
            let namespace = template.namespace.as_deref().filter(|found| !found.is_empty());
            if template.name.as_deref().is_none_or(str::is_empty) {
                Some(format!("{path}.name: it is missing; name the template"))
            } else if namespace.is_some_and(|found| found != self.namespace()) {
                let own = self.namespace();
                Some(format!("{path}.namespace: it must be {own} or empty; leave it out"))
            } else {
                None
            }
        };
        let found = self.metal3_cluster()?;
        let zones = self.zones();
        let mut reached = zones.with_template().filter(|zone| self.can_reach(found, &zone.name));
        reached.find_map(problem)
    }

    fn zone_path(&self, zone: &str) -> String {
        let cluster = self.metal3_cluster().and_then(|found| found.metadata.name.as_deref());
        let cluster = cluster.unwrap_or_default();
        format!("Metal3Cluster {cluster}: spec.deploymentZones[{zone}]")
    }
}
