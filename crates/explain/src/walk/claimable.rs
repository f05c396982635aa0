//! The hosts that a Metal3Machine could claim if they were available: one of them is the cause of its wait.
//!
//! The controller of machines chooses the host. Here are those of its rules that neither time nor a repair of a host changes; a
//! host that they refuse is no cause.

use std::collections::BTreeMap;

use metal3_api::cluster::names::{CLUSTER_NAME_LABEL, DEPLOYMENT_NAME_LABEL};
use metal3_api::cluster::{Cluster, Machine};
use metal3_api::infrastructure::names::{
    FAILURE_DOMAIN_LABEL, LEGACY_UNHEALTHY_ANNOTATION, NODE_REUSE_LABEL, UNHEALTHY_ANNOTATION,
};
use metal3_api::infrastructure::v1beta2::{
    DeploymentZone, FailureDomainPolicy, HostSelector, Metal3Cluster, Metal3Machine,
};
use metal3_api::kind::Kind;
use metal3_api::metal3::names::DETACHED_ANNOTATION;
use metal3_api::metal3::v1alpha1::{BareMetalHost, OperationalStatus, ProvisioningState};
use metal3_domain::selector::Selector;

use super::host::is_unavailable;
use super::{End, Next, Walk, is_deleting, owner};
use crate::listed::Listed;
use crate::object::ObjectId;
use crate::order;
use crate::values::name;
use crate::work;

/// The label with the control plane of a machine, which its infrastructure gets too.
const CONTROL_PLANE_NAME_LABEL: &str = "cluster.x-k8s.io/control-plane-name";

impl Walk<'_> {
    /// No host can be claimed: one that the machine may have, with an error or on its way, is the cause. A host with other labels
    /// does not help, so the message of the machine is the end.
    pub(super) fn unavailable_host(&mut self, machine: &Metal3Machine) -> Result<Next, End> {
        let selector = machine.spec.host_selector.as_ref().map(HostSelector::labels);
        let Ok(selector) = selector.transpose() else {
            return Ok(None);
        };
        let Place { domain, site, others } = self.place(machine)?;
        let wanted = Wanted {
            selector,
            domain,
            gives_data: machine.spec.takes_zone_data() && site.zones.iter().any(|zone| zone.data_template.is_some()),
            site,
            others,
        };
        let hosts = self.list::<BareMetalHost>(None)?;
        if let Some(kept) = kept_for(machine, &wanted, &hosts) {
            return Ok(Some(ObjectId::of::<BareMetalHost>(&kept)));
        }
        let unavailable = self.snapshot.memo(String::new(), || Unavailable::of(&hosts));
        // Machines of one template have the same selector, and few domains.
        let of = wanted.domain.as_ref();
        let domain = of.map(|domain| (&domain.name, &domain.selector, domain.is_required));
        let site = (&wanted.site.name, wanted.gives_data);
        let question = serde_json::to_string(&(&machine.spec.host_selector, domain, site)).unwrap_or_default();
        let first = self
            .snapshot
            .memo(question, || FirstUnavailable(unavailable.first(&wanted)));
        hosts.sought(first.0.as_ref().map(|host| ObjectId::of::<BareMetalHost>(host)))
    }

    /// Where the hosts of a machine may be: in the failure domain that its Machine states, with the policy of its Metal3Cluster,
    /// and not in one of another Metal3Cluster of the Cluster.
    fn place(&mut self, machine: &Metal3Machine) -> Result<Place, End> {
        let owner = owner::<Machine>(&machine.metadata).map(ToOwned::to_owned);
        let owner: Option<Machine> = owner.map_or(Ok(None), |of| self.find(&of))?;
        let Some(owner) = owner.map(|owner| owner.spec) else {
            return Ok(Place::default());
        };
        let name = owner.failure_domain.unwrap_or_default();
        let Some(found) = self.metal3_cluster_of(machine, &owner.cluster_name, &name)? else {
            let domain = (!name.is_empty()).then_some(Domain {
                name,
                selector: None,
                is_required: false,
            });
            return Ok(Place {
                domain,
                ..Place::default()
            });
        };
        let all = self.list::<Metal3Cluster>(None)?;
        let is_other =
            |one: &&Metal3Cluster| one.metadata.name != found.metadata.name && is_of(one, &owner.cluster_name);
        let others = all.iter().filter(is_other).map(|one| Site::of(one.clone())).collect();
        let is_required = found.spec.failure_domain_policy == Some(FailureDomainPolicy::Required);
        let site = Site::of(found);
        let zone = site.zones.iter().find(|zone| zone.name == name);
        let selector = zone.and_then(selector_of).cloned();
        let domain = (!name.is_empty()).then_some(Domain {
            name,
            selector,
            is_required,
        });
        Ok(Place { domain, site, others })
    }

    /// The Metal3Cluster that the machine names, that is the infrastructure of its Cluster, or that joined the Cluster: the one of
    /// several with the failure domain.
    fn metal3_cluster_of(
        &mut self,
        machine: &Metal3Machine,
        cluster: &str,
        domain: &str,
    ) -> Result<Option<Metal3Cluster>, End> {
        if let Some(reference) = &machine.spec.metal3_cluster_ref {
            return self.find(&reference.name);
        }
        let owner: Option<Cluster> = self.find(cluster)?;
        let infrastructure = owner.and_then(|owner| owner.spec.infrastructure_ref);
        let named = infrastructure.as_ref().map(|one| one.name.clone());
        let id = infrastructure.map(|one| ObjectId::foreign(&one.api_group, &one.kind, &one.name));
        if id.is_some_and(|id| id.is::<Metal3Cluster>()) {
            return named.map_or(Ok(None), |name| self.find(&name));
        }
        let all = self.list::<Metal3Cluster>(None)?;
        let joined = self.snapshot.memo(cluster.to_owned(), || Joined::of(&all, cluster));
        match joined.0.as_slice() {
            [] => named.map_or(Ok(None), |name| self.find(&name)),
            [one] => self.find(one),
            all => {
                let mut having = Vec::new();
                for name in all {
                    having.extend(
                        self.find::<Metal3Cluster>(name)?
                            .filter(|one| one.spec.has_domain(domain)),
                    );
                }
                // The controller takes none of two.
                Ok(having.pop().filter(|_| having.is_empty()))
            }
        }
    }
}

/// Where the hosts of a machine may be.
#[derive(Default)]
struct Place {
    domain: Option<Domain>,
    site: Site,
    others: Vec<Site>,
}

/// What a Metal3Cluster says about its hosts.
#[derive(Default)]
struct Site {
    name: String,
    zones: Vec<DeploymentZone>,
    domains: Vec<String>,
}

/// What a machine requires of a host.
struct Wanted {
    selector: Option<Selector>,
    domain: Option<Domain>,
    /// The Metal3Cluster of the machine.
    site: Site,
    /// Whether its zones give the machine its data: no other host has a network for it.
    gives_data: bool,
    /// The others of the Cluster, whose hosts the machine does not get.
    others: Vec<Site>,
}

struct Domain {
    name: String,
    /// The hosts that its deployment zone has. Absent: those with its name in their label.
    selector: Option<HostSelector>,
    /// Whether the Metal3Cluster refuses hosts of other domains.
    is_required: bool,
}

impl Wanted {
    fn is_met_by(&self, labels: &BTreeMap<String, String>) -> bool {
        let is_selected = self.selector.as_ref().is_none_or(|selector| selector.matches(labels));
        let is_placed = self.is_near(labels) || self.domain.as_ref().is_none_or(|domain| !domain.is_required);
        let is_elsewhere = !self.site.has(labels) && self.others.iter().any(|other| other.has(labels));
        is_selected && is_placed && !is_elsewhere && !self.lacks_template(labels)
    }

    /// Whether the host is in no zone that gives the machine its data.
    fn lacks_template(&self, labels: &BTreeMap<String, String>) -> bool {
        let (gives, zones) = (|zone: &DeploymentZone| zone.data_template.is_some(), &self.site.zones);
        let own = self.domain.as_ref();
        let own = own.and_then(|domain| zones.iter().find(|zone| zone.name == domain.name));
        let mut all = own.into_iter().chain(zones);
        let lacks = match all.find(|zone| has(&zone.name, selector_of(zone), labels)) {
            Some(zone) => !gives(zone) && own.is_some_and(gives),
            None => true,
        };
        self.gives_data && lacks
    }

    /// Whether a host is in the failure domain of the machine.
    fn is_near(&self, labels: &BTreeMap<String, String>) -> bool {
        let domain = self.domain.as_ref();
        domain.is_some_and(|domain| has(&domain.name, domain.selector.as_ref(), labels))
    }
}

impl Site {
    fn of(cluster: Metal3Cluster) -> Self {
        Self {
            name: cluster.metadata.name.unwrap_or_default(),
            zones: cluster.spec.deployment_zones,
            domains: cluster.spec.failure_domains.into_iter().map(|one| one.name).collect(),
        }
    }

    /// Whether a host with these labels is in one of its zones, or of the failure domains that it reports.
    fn has(&self, labels: &BTreeMap<String, String>) -> bool {
        let zone = |name: &String| self.zones.iter().find(|zone| zone.name == *name);
        let reported = self.domains.iter().map(|name| (name, zone(name).and_then(selector_of)));
        let mut all = self
            .zones
            .iter()
            .map(|zone| (&zone.name, selector_of(zone)))
            .chain(reported);
        all.any(|(name, selector)| has(name, selector, labels))
    }
}

/// Whether a Metal3Cluster is of a Cluster: by its owner, or because it joins it.
fn is_of(one: &Metal3Cluster, cluster: &str) -> bool {
    match owner::<Cluster>(&one.metadata) {
        Some(owner) => owner == cluster,
        None => joins(one, cluster),
    }
}

fn joins(one: &Metal3Cluster, cluster: &str) -> bool {
    let stated = one.spec.cluster_name.as_deref().filter(|name| !name.is_empty());
    let labels = one.metadata.labels.as_ref();
    stated.or_else(|| Some(labels?.get(CLUSTER_NAME_LABEL)?.as_str())) == Some(cluster)
}

/// Whether a host with these labels is in a failure domain, whose zone may have a selector.
fn has(name: &String, selector: Option<&HostSelector>, labels: &BTreeMap<String, String>) -> bool {
    match selector {
        Some(selector) => selector.labels().is_ok_and(|selector| selector.matches(labels)),
        None => labels.get(FAILURE_DOMAIN_LABEL) == Some(name),
    }
}

fn selector_of(zone: &DeploymentZone) -> Option<&HostSelector> {
    zone.host_selector.as_ref().filter(|selector| selector.selects())
}

/// The host that was kept for the control plane or the MachineDeployment of a machine and is not available yet: no other is taken
/// while one becomes available without help.
fn kept_for(machine: &Metal3Machine, wanted: &Wanted, hosts: &Listed<BareMetalHost>) -> Option<String> {
    let labels = machine.metadata.labels.as_ref()?;
    let of = |label: &str, prefix: &str| labels.get(label).map(|name| format!("{prefix}{name}"));
    let set = of(CONTROL_PLANE_NAME_LABEL, "cp-").or_else(|| of(DEPLOYMENT_NAME_LABEL, "md-"))?;
    let cluster = labels.get(CLUSTER_NAME_LABEL);
    let is_kept = |host: &&BareMetalHost| {
        let labels = host.metadata.labels.as_ref();
        let is_of_cluster = |labels: &BTreeMap<String, String>| {
            let stated = labels.get(CLUSTER_NAME_LABEL);
            stated.is_none_or(|_| stated == cluster)
        };
        labels.is_some_and(|all| all.get(NODE_REUSE_LABEL) == Some(&set) && is_of_cluster(all) && wanted.is_met_by(all))
            && host.spec.consumer_ref.as_ref().is_none_or(|consumer| {
                consumer.kind.as_deref() == Some(Cluster::KIND) && consumer.name.as_ref() == cluster
            })
            && !is_excluded(host)
            && is_unavailable(host)
    };
    let needs_help = |host: &&BareMetalHost| host.status.error_type.is_some() || host.is_paused();
    let first = hosts.iter().filter(is_kept).min_by_key(needs_help);
    first.map(|host| name(&host.metadata).to_owned())
}

/// Whether a machine in deletion leaves the host, which others get as soon as it is clean.
fn is_released(host: &BareMetalHost) -> bool {
    host.status.provisioning.state == ProvisioningState::Deprovisioning && host.status.error_type.is_none()
}

/// Whether no machine gets the host until a user changes what they stated of it.
fn is_excluded(host: &BareMetalHost) -> bool {
    let annotations = host.metadata.annotations.as_ref();
    let has = |name: &str| annotations.is_some_and(|all| all.contains_key(name));
    is_deleting(&host.metadata)
        || has(UNHEALTHY_ANNOTATION)
        || has(LEGACY_UNHEALTHY_ANNOTATION)
        || has(DETACHED_ANNOTATION)
        || host.status.operational_status == OperationalStatus::Detached
        || host.spec.externally_provisioned == Some(true)
}

/// The names of the Metal3Clusters that joined a Cluster with other infrastructure, by name or label.
struct Joined(Vec<String>);

impl Joined {
    fn of(all: &Listed<Metal3Cluster>, cluster: &str) -> Self {
        Self(
            all.iter()
                .filter(|one| joins(one, cluster))
                .map(|one| name(&one.metadata).to_owned())
                .collect(),
        )
    }
}

/// The first of the hosts that a machine could have.
struct FirstUnavailable(Option<String>);

/// The names and labels of the hosts that no machine can have now and that are without consumer, or leave one: those with an error
/// first.
struct Unavailable(Vec<(String, BTreeMap<String, String>)>);

impl Unavailable {
    fn of(hosts: &Listed<BareMetalHost>) -> Self {
        let is_kept = |host: &BareMetalHost| {
            let labels = host.metadata.labels.as_ref();
            labels.is_some_and(|all| all.contains_key(NODE_REUSE_LABEL))
        };
        let is_free = |host: &&BareMetalHost| {
            // With an image and without consumer a user deploys it.
            let is_deployed = host.spec.image.is_some() || host.spec.custom_deploy.is_some();
            let is_left = match &host.spec.consumer_ref {
                None => !is_deployed,
                Some(consumer) => is_released(host) && consumer.kind.as_deref() == Some(Metal3Machine::KIND),
            };
            is_left && !is_excluded(host) && !is_kept(host) && is_unavailable(host)
        };
        let mut free: Vec<&BareMetalHost> = hosts.iter().filter(is_free).collect();
        let place = |host: &BareMetalHost| (host.status.error_type.is_none(), name(&host.metadata).to_owned());
        order::sort_by(&mut free, |a, b| place(a).cmp(&place(b)));
        let labels = |host: &BareMetalHost| host.metadata.labels.clone().unwrap_or_default();
        let free = free
            .into_iter()
            .map(|host| (name(&host.metadata).to_owned(), labels(host)));
        Self(free.collect())
    }

    /// The first one that a machine could have, in its failure domain if there is one.
    fn first(&self, wanted: &Wanted) -> Option<String> {
        let mut other = None;
        for (host, labels) in &self.0 {
            work::visit();
            if !wanted.is_met_by(labels) {
                continue;
            }
            if wanted.domain.is_none() || wanted.is_near(labels) {
                return Some(host.clone());
            }
            other = other.or(Some(host));
        }
        other.cloned()
    }
}
