//! Chooses a host for a machine.
//!
//! A host whose consumer is the machine comes first, whatever its state: so a claim is found again after a crash. Then
//! come hosts kept for the machine's owner, then free ones; within each, those of the machine's failure domain. Among
//! equals a seed derived from the machine decides, so that machines that choose at the same time rarely collide, and a
//! repeated choice gives the same host.
//!
//! The choice is not a claim: that is a write with the host's version as its precondition, and after a conflict the
//! machine chooses again. HostClaims are not supported here.
//!
//! Invariant: no host is chosen that has a consumer other than the machine's own Cluster (which holds it for node
//! reuse), is in deletion, paused, marked or reported as faulty, detached, externally provisioned, has an image of its
//! own, or is in a state in which it cannot be provisioned.

mod order;
mod refusal;
mod seed;
mod sites;
mod zones;

use std::collections::BTreeMap;

use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::names::{LEGACY_UNHEALTHY_ANNOTATION, NODE_REUSE_LABEL, UNHEALTHY_ANNOTATION};
use metal3_api::infrastructure::v1beta2::{FailureDomainPolicy, Metal3Cluster, Metal3Machine};
use metal3_api::kind::Kind;
use metal3_api::meta::ObjectReference;
use metal3_api::metal3::names::DETACHED_ANNOTATION;
use metal3_api::metal3::v1alpha1::{BareMetalHost, OperationalStatus, ProvisioningState};
use metal3_capi::owner::{cluster_of, group_of, label};
use metal3_domain::selector::{Selector, SelectorError};
use sites::Site;
use thiserror::Error;

pub use order::{Candidate, Order};
pub use refusal::{Refusal, Refusals};
pub use zones::Zones;

/// For hosts without labels.
static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();

/// The machine to choose for.
#[derive(Debug, Clone)]
pub struct HostChooser<'a> {
    machine: &'a Metal3Machine,
    selector: Selector,
    /// The owner that its released hosts are kept for: its control plane or MachineDeployment, if known.
    owner: Option<&'a str>,
    /// Whether another Cluster of the namespace has an owner of the same name.
    has_namesake: bool,
    /// Whether hosts outside of the machine's failure domain are refused.
    is_domain_required: bool,
    /// The machine's Metal3Cluster.
    site: Site<'a>,
    /// The others of its Cluster.
    other_sites: Vec<Site<'a>>,
}

/// The machine's selector is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("spec.hostSelector: {0}")]
pub struct UnreadableSelector(#[from] pub SelectorError);

/// The result.
#[derive(Debug, Clone, PartialEq)]
pub enum Choice<'a> {
    /// The machine is already the consumer of this host.
    Own(&'a BareMetalHost),
    /// This host can be claimed.
    Take {
        /// The host.
        host: &'a BareMetalHost,
        /// Whether it is kept for the machine's owner.
        is_reused: bool,
        /// Whether it is in the machine's failure domain; false when the machine has none.
        is_in_domain: bool,
    },
    /// No host can be claimed.
    None(Refusals<'a>),
}

impl<'a> HostChooser<'a> {
    /// Parses the machine's selector.
    ///
    /// # Errors
    /// When it is invalid.
    pub fn try_new(machine: &'a Metal3Machine, owner: Option<&'a str>) -> Result<Self, UnreadableSelector> {
        let selector = match &machine.spec.host_selector {
            None => Selector::default(),
            Some(selector) => selector.labels()?,
        };
        Ok(Self {
            machine,
            selector,
            owner,
            has_namesake: false,
            is_domain_required: false,
            site: Site::default(),
            other_sites: Vec::new(),
        })
    }

    /// With whether another Cluster of the namespace has an owner of the same name. A host that is kept for that name and
    /// names no Cluster is then not chosen.
    #[must_use]
    pub fn with_namesake(self, has_namesake: bool) -> Self {
        Self { has_namesake, ..self }
    }

    /// With the machine's Metal3Cluster, and the others of its Cluster, whose hosts are not chosen.
    #[must_use]
    pub fn with_sites(self, own: &'a Metal3Cluster, others: impl IntoIterator<Item = &'a Metal3Cluster>) -> Self {
        Self {
            is_domain_required: own.spec.failure_domain_policy == Some(FailureDomainPolicy::Required),
            site: Site::of(own),
            other_sites: others.into_iter().map(Site::of).collect(),
            ..self
        }
    }

    /// The host to claim, among all of the namespace in any order.
    #[must_use]
    pub fn choose<'h>(&self, hosts: impl IntoIterator<Item = &'h BareMetalHost>) -> Choice<'h> {
        let (candidates, refusals) = match self.sort(hosts) {
            Ok(sorted) => sorted,
            Err(own) => return Choice::Own(own),
        };
        let first = candidates.into_iter().max_by_key(|host| self.weight(host));
        first.map_or(Choice::None(refusals), |host| Choice::Take {
            host,
            is_reused: label(&host.metadata, NODE_REUSE_LABEL).is_some(),
            is_in_domain: self.is_in_domain(host),
        })
    }

    /// The candidates, and why the others are none; or the host that has the machine as its consumer.
    fn sort<'h>(
        &self,
        hosts: impl IntoIterator<Item = &'h BareMetalHost>,
    ) -> Result<(Vec<&'h BareMetalHost>, Refusals<'h>), &'h BareMetalHost> {
        let (mut kept, mut free, mut refusals) = (Vec::new(), Vec::new(), Refusals::default());
        for host in hosts {
            let consumer = host.spec.consumer_ref.as_ref();
            if consumer.is_some_and(|consumer| self.is_consumer(consumer)) {
                return Err(host);
            }
            match self.refusal(host) {
                Some(refusal) => refusals.add(host, refusal),
                None if label(&host.metadata, NODE_REUSE_LABEL).is_some() => kept.push(host),
                None => free.push(host),
            }
        }
        // A machine waits for a host kept for it that is not ready yet, or that may be kept for it.
        // differs (`host-kept-choice`): in the Go manager the first that is not ready hides those that are.
        if kept.is_empty() && !refusals.any(Refusal::is_awaited) {
            return Ok((free, refusals));
        }
        free.into_iter().for_each(|host| refusals.add(host, Refusal::OtherKept));
        Ok((kept, refusals))
    }

    /// Whether a machine that does not exist yet could claim the host, alone or after others of its owner.
    #[must_use]
    pub fn could_claim(&self, host: &BareMetalHost) -> bool {
        let labels = host.metadata.labels.as_ref().unwrap_or(&NO_LABELS);
        // First, because most hosts of a large fleet fail it, and a refusal has a text.
        self.selector.mismatch(labels).is_none() && self.refusal(host).is_none()
    }

    /// The greatest is chosen.
    fn weight<'h>(&self, host: &'h BareMetalHost) -> (bool, u64, Option<&'h str>) {
        let seed = seed::of(&self.machine.metadata);
        (
            self.is_in_domain(host),
            seed::weight(seed, &host.metadata),
            host.metadata.name.as_deref(),
        )
    }

    /// Whether the host is in the machine's failure domain, if it has one.
    fn is_in_domain(&self, host: &BareMetalHost) -> bool {
        self.domain().is_some_and(|domain| self.site.zones.has(domain, host))
    }

    /// Why a host is not used for where it is.
    pub(crate) fn misplaced(&self, host: &BareMetalHost) -> Option<Refusal> {
        let domain = self.domain();
        if let Some(domain) = domain.filter(|_| self.is_domain_required && !self.is_in_domain(host)) {
            return Some(Refusal::NotInDomain {
                domain: domain.to_owned(),
                by_selector: self.site.zones.named(domain).and_then(zones::selector).is_some(),
            });
        }
        let mut others = self.other_sites.iter().filter(|other| other.has(host));
        if let Some(other) = others.next().filter(|_| !self.site.has(host)) {
            return Some(Refusal::OfAnotherSite {
                site: other.name.to_owned(),
            });
        }
        let lacks_template = self.machine.spec.takes_zone_data() && self.site.zones.lacks_template(host, domain);
        lacks_template.then_some(Refusal::WithoutTemplate)
    }

    fn domain(&self) -> Option<&str> {
        let domain = self.machine.spec.failure_domain.as_deref();
        domain.filter(|domain| !domain.is_empty())
    }

    fn is_consumer(&self, consumer: &ObjectReference) -> bool {
        is_of::<Metal3Machine>(consumer)
            && consumer.name == self.machine.metadata.name
            && consumer.namespace == self.machine.metadata.namespace
    }

    /// Why a host cannot be claimed: the first reason that applies, permanent reasons first.
    fn refusal(&self, host: &BareMetalHost) -> Option<Refusal> {
        let annotations = host.metadata.annotations.as_ref();
        let has = |name: &str| annotations.is_some_and(|annotations| annotations.contains_key(name));
        let kept_for = label(&host.metadata, NODE_REUSE_LABEL);
        let labels = host.metadata.labels.as_ref().unwrap_or(&NO_LABELS);
        if let Some(requirement) = self.selector.mismatch(labels) {
            return Some(Refusal::NotSelected {
                why: requirement.mismatch().to_string(),
            });
        }
        if let Some(refusal) = self.misplaced(host) {
            return Some(refusal);
        }
        if let Some(owner) = kept_for.filter(|owner| Some(*owner) != self.owner) {
            return Some(Refusal::KeptForAnother {
                owner: owner.to_owned(),
            });
        }
        let consumer = host.spec.consumer_ref.as_ref();
        if let Some(other) = kept_for.and(self.other_cluster(host)).filter(|_| consumer.is_none()) {
            return Some(Refusal::KeptForAnother {
                owner: format!("Cluster {other}"),
            });
        }
        if let Some(refusal) = consumer.and_then(|consumer| self.refusal_by_consumer(consumer, kept_for.is_some())) {
            return Some(refusal);
        }
        if host.metadata.deletion_timestamp.is_some() {
            Some(Refusal::Deleting)
        } else if host.is_paused() {
            Some(Refusal::Paused)
        } else if has(UNHEALTHY_ANNOTATION) || has(LEGACY_UNHEALTHY_ANNOTATION) {
            Some(Refusal::Unhealthy)
        } else if has(DETACHED_ANNOTATION) || host.status.operational_status == OperationalStatus::Detached {
            // differs (`host-detached-or-faulty`): the Go manager claims such a host and then waits for it.
            Some(Refusal::Detached)
        } else if !host.status.error_message.is_empty() || host.status.operational_status == OperationalStatus::Error {
            Some(Refusal::Faulty)
        } else if host.spec.externally_provisioned == Some(true) {
            // differs (`host-externally-provisioned`): the Go manager uses the state, which may be outdated.
            Some(Refusal::ExternallyProvisioned)
        } else {
            let names_no_cluster = consumer.is_none() && cluster_of(&host.metadata).is_none();
            let is_of_one_of_two = self.has_namesake && names_no_cluster && kept_for.is_some();
            match self.refusal_by_use(host, kept_for.is_some()) {
                // differs (`host-kept-choice`): the Go manager gives it to either.
                None | Some(Refusal::KeptNotReady { .. }) if is_of_one_of_two => Some(Refusal::KeptForOneOfTwo),
                refusal => refusal,
            }
        }
    }

    /// A Cluster is the consumer only of hosts kept for its machines.
    fn refusal_by_consumer(&self, consumer: &ObjectReference, is_kept: bool) -> Option<Refusal> {
        if !is_kept || !is_of::<Cluster>(consumer) {
            return Some(Refusal::of_consumer(consumer));
        }
        // differs (`host-kept-choice`): owners of the same name may belong to two Clusters; the Go manager does not
        // compare them.
        (!self.is_own_cluster(consumer)).then(|| Refusal::kept_by_cluster(consumer))
    }

    /// The Cluster that a host's label names, if it is not the machine's.
    fn other_cluster<'h>(&self, host: &'h BareMetalHost) -> Option<&'h str> {
        cluster_of(&host.metadata).filter(|cluster| Some(*cluster) != cluster_of(&self.machine.metadata))
    }

    /// A machine without cluster label belongs to no Cluster.
    fn is_own_cluster(&self, consumer: &ObjectReference) -> bool {
        let cluster = cluster_of(&self.machine.metadata);
        cluster.is_some()
            && consumer.name.as_deref() == cluster
            && consumer.namespace == self.machine.metadata.namespace
    }

    fn refusal_by_use(&self, host: &BareMetalHost, is_kept: bool) -> Option<Refusal> {
        let state = &host.status.provisioning.state;
        let is_ready = matches!(state, ProvisioningState::Ready | ProvisioningState::Available);
        let state = || state.to_string();
        match (is_ready, is_kept) {
            (false, true) => Some(Refusal::KeptNotReady { state: state() }),
            (false, false) => Some(Refusal::NotReady { state: state() }),
            // differs (`host-with-image`): the Go manager claims such a host and keeps its image.
            (true, _) if host.spec.image.is_some() || host.spec.custom_deploy.is_some() => Some(Refusal::HasImage),
            (true, _) => None,
        }
    }
}

/// Whether a reference is to a kind, in any version.
pub(crate) fn is_of<K: Kind>(reference: &ObjectReference) -> bool {
    let version = reference.api_version.as_deref().unwrap_or_default();
    reference.kind.as_deref() == Some(K::KIND) && group_of(version) == K::GROUP
}

#[cfg(test)]
mod tests;
