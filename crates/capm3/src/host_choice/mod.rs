//! Which host a machine takes, and why it takes none of the others.
//!
//! A host that is the machine's already comes first, whatever its state: that is how a claim is found again after a
//! crash. Then come hosts that are kept for the machine's owner, then free ones; within each, those of the machine's
//! failure domain, if there are any. Among equals a seed decides, which follows from the machine, so that machines that
//! choose at the same time rarely meet, and asking twice gives the same host.
//!
//! What is chosen is not taken yet: that is a write with the host's version as its precondition, and who loses asks
//! again. Hosts that are reached through claims are not chosen here.
//!
//! Invariant: no host is chosen that has a consumer other than the machine's own Cluster, which keeps it, is going away, is paused,
//! marked or reported as faulty, detached, externally provisioned, given an image by hand, or in a state in which it
//! cannot be provisioned.

mod refusal;
mod seed;

use std::collections::BTreeMap;

use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::names::{
    FAILURE_DOMAIN_LABEL, LEGACY_UNHEALTHY_ANNOTATION, NODE_REUSE_LABEL, UNHEALTHY_ANNOTATION,
};
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::kind::Kind;
use metal3_api::meta::ObjectReference;
use metal3_api::metal3::names::DETACHED_ANNOTATION;
use metal3_api::metal3::v1alpha1::{BareMetalHost, OperationalStatus, ProvisioningState};
use metal3_capi::owner::{cluster_of, group_of, label};
use metal3_domain::selector::{Expression, Selector, SelectorError};
use thiserror::Error;

pub use refusal::{Refusal, Refusals};

/// Of hosts without any.
static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();

/// The machine that looks for a host.
#[derive(Debug, Clone)]
pub struct Seeker<'a> {
    machine: &'a Metal3Machine,
    selector: Selector,
    /// What its released hosts are kept for: its control plane or MachineDeployment, if that is known.
    owner: Option<&'a str>,
}

/// The machine's selector cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("spec.hostSelector: {0}")]
pub struct UnreadableSelector(#[from] pub SelectorError);

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Choice<'a> {
    /// The machine has this host already.
    Own(&'a BareMetalHost),
    /// This one is to be taken.
    Take {
        /// The host.
        host: &'a BareMetalHost,
        /// Whether it was kept for the machine's owner.
        is_kept: bool,
        /// Whether it is in the failure domain the machine asks for; false where it asks for none.
        is_in_domain: bool,
    },
    /// None can be taken now.
    None(Refusals<'a>),
}

impl<'a> Seeker<'a> {
    /// A machine that looks for a host.
    ///
    /// # Errors
    /// When its selector cannot be read.
    pub fn try_new(machine: &'a Metal3Machine, owner: Option<&'a str>) -> Result<Self, UnreadableSelector> {
        let selector = match &machine.spec.host_selector {
            None => Selector::default(),
            Some(selector) => {
                let expressions = selector.match_expressions.iter().map(|requirement| Expression {
                    key: &requirement.key,
                    operator: &requirement.operator,
                    values: &requirement.values,
                });
                Selector::parse(&selector.match_labels, expressions)?
            }
        };
        Ok(Self {
            machine,
            selector,
            owner,
        })
    }

    /// The host to take among all of the namespace, in whatever order they come.
    #[must_use]
    pub fn choose(&self, hosts: impl IntoIterator<Item = &'a BareMetalHost>) -> Choice<'a> {
        let (mut kept, mut free, mut refusals) = (Vec::new(), Vec::new(), Refusals::default());
        for host in hosts {
            if host
                .spec
                .consumer_ref
                .as_ref()
                .is_some_and(|consumer| self.is_me(consumer))
            {
                return Choice::Own(host);
            }
            match self.refusal(host) {
                Some(refusal) => refusals.add(host, refusal),
                None if label(&host.metadata, NODE_REUSE_LABEL).is_some() => kept.push(host),
                None => free.push(host),
            }
        }
        // A machine waits for a host that is kept for it and not ready yet, instead of taking another.
        // differs (`host-kept-choice`): for the Go manager the first that is not ready hides those that are.
        let candidates = if kept.is_empty() && !refusals.any(|refusal| matches!(refusal, Refusal::KeptNotReady { .. }))
        {
            free
        } else {
            free.into_iter()
                .for_each(|host| refusals.add(host, Refusal::OtherIsKept));
            kept
        };
        self.pick(&candidates)
            .map_or(Choice::None(refusals), |(host, is_in_domain)| Choice::Take {
                host,
                is_kept: label(&host.metadata, NODE_REUSE_LABEL).is_some(),
                is_in_domain,
            })
    }

    /// One of the candidates, and whether it is in the machine's failure domain.
    fn pick(&self, candidates: &[&'a BareMetalHost]) -> Option<(&'a BareMetalHost, bool)> {
        let domain = self
            .machine
            .spec
            .failure_domain
            .as_deref()
            .filter(|domain| !domain.is_empty());
        // differs (`failure-domain-no-label`): text that no label can have is preferred in vain, and no error.
        let is_in_domain =
            |host: &BareMetalHost| domain.is_some() && label(&host.metadata, FAILURE_DOMAIN_LABEL) == domain;
        let seed = seed::of(&self.machine.metadata);
        let weight = |host: &'a BareMetalHost| {
            (
                is_in_domain(host),
                seed::weight(seed, &host.metadata),
                host.metadata.name.as_deref(),
            )
        };
        let host = candidates.iter().copied().max_by_key(|host| weight(host))?;
        Some((host, is_in_domain(host)))
    }

    fn is_me(&self, consumer: &ObjectReference) -> bool {
        is_of::<Metal3Machine>(consumer)
            && consumer.name == self.machine.metadata.name
            && consumer.namespace == self.machine.metadata.namespace
    }

    /// Why a host is not to be taken. The first reason that applies counts, the lasting ones before those that pass.
    fn refusal(&self, host: &BareMetalHost) -> Option<Refusal> {
        let annotations = host.metadata.annotations.as_ref();
        let has = |name: &str| annotations.is_some_and(|annotations| annotations.contains_key(name));
        let kept_for = label(&host.metadata, NODE_REUSE_LABEL);
        if !self
            .selector
            .matches(host.metadata.labels.as_ref().unwrap_or(&NO_LABELS))
        {
            return Some(Refusal::NotSelected);
        }
        if let Some(owner) = kept_for.filter(|owner| Some(*owner) != self.owner) {
            return Some(Refusal::KeptForAnother {
                owner: owner.to_owned(),
            });
        }
        let consumer = host.spec.consumer_ref.as_ref();
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
            // differs (`host-detached-or-faulty`): the Go manager takes such a host and then waits for it.
            Some(Refusal::Detached)
        } else if !host.status.error_message.is_empty() || host.status.operational_status == OperationalStatus::Error {
            Some(Refusal::Faulty)
        } else if host.spec.externally_provisioned == Some(true) {
            // differs (`host-externally-provisioned`): the Go manager goes by the state, which may lag behind.
            Some(Refusal::ExternallyProvisioned)
        } else {
            self.refusal_by_use(host, kept_for.is_some())
        }
    }

    /// A Cluster is the consumer of the hosts that are kept for its machines, and of no others.
    fn refusal_by_consumer(&self, consumer: &ObjectReference, is_kept: bool) -> Option<Refusal> {
        if !is_kept || !is_of::<Cluster>(consumer) {
            return Some(Refusal::of_consumer(consumer));
        }
        // differs (`host-kept-choice`): owners of one name may be those of two Clusters; the Go manager does not look.
        (!self.is_my_cluster(consumer)).then(|| Refusal::kept_by_cluster(consumer))
    }

    /// A machine without the label of a Cluster is in none.
    fn is_my_cluster(&self, consumer: &ObjectReference) -> bool {
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
            // differs (`host-with-image`): the Go manager takes such a host and lets it keep the image.
            (true, _) if host.spec.image.is_some() || host.spec.custom_deploy.is_some() => Some(Refusal::HasImage),
            (true, _) => None,
        }
    }
}

/// Whether a reference is to a kind, in whatever version.
fn is_of<K: Kind>(reference: &ObjectReference) -> bool {
    let version = reference.api_version.as_deref().unwrap_or_default();
    reference.kind.as_deref() == Some(K::KIND) && group_of(version) == K::GROUP
}

#[cfg(test)]
mod tests;
