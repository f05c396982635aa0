//! The deployment zones of a Metal3Cluster: which hosts each failure domain has, and the data template of their machines.
//!
//! A zone with a selector has the hosts that match it; one without has those with its name in the label of failure
//! domains. The network of a rack follows the host: a machine gets the data template of the zone of its host.

use metal3_api::infrastructure::names::FAILURE_DOMAIN_LABEL;
use metal3_api::infrastructure::v1beta2::{DeploymentZone, HostSelector, Metal3Cluster};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::owner::label;
use metal3_domain::selector::{Selector, SelectorError};

use super::NO_LABELS;

/// The zones of a Metal3Cluster.
#[derive(Debug, Clone, Default)]
pub struct Zones<'a>(Vec<Zone<'a>>);

#[derive(Debug, Clone)]
struct Zone<'a> {
    of: &'a DeploymentZone,
    /// `None` when the label decides.
    selector: Option<Result<Selector, SelectorError>>,
}

impl<'a> Zones<'a> {
    /// The zones of the Metal3Cluster.
    #[must_use]
    pub fn of(cluster: &'a Metal3Cluster) -> Self {
        let zone = |of: &'a DeploymentZone| Zone {
            of,
            selector: selector(of).map(HostSelector::labels),
        };
        Self(cluster.spec.deployment_zones.iter().map(zone).collect())
    }

    /// The zone of a failure domain.
    #[must_use]
    pub fn named(&self, domain: &str) -> Option<&'a DeploymentZone> {
        self.find(domain).map(|zone| zone.of)
    }

    /// Why the selector of a failure domain cannot be read. It matches no host.
    #[must_use]
    pub fn unreadable(&self, domain: &str) -> Option<&SelectorError> {
        self.find(domain)?.selector.as_ref()?.as_ref().err()
    }

    /// Whether a host is in a failure domain.
    // differs (`failure-domain-no-label`): a value that is not a label value matches no host and is not an error.
    #[must_use]
    pub fn has(&self, domain: &str, host: &BareMetalHost) -> bool {
        match self.find(domain) {
            Some(zone) => zone.has(host),
            None => label(&host.metadata, FAILURE_DOMAIN_LABEL) == Some(domain),
        }
    }

    /// The zone of a host: the preferred one if it has the host, or else the first that does.
    #[must_use]
    pub fn of_host(&self, host: &BareMetalHost, preferred: Option<&str>) -> Option<&'a DeploymentZone> {
        let first = preferred.and_then(|domain| self.find(domain)).into_iter();
        let found = first.chain(&self.0).find(|zone| zone.has(host));
        found.map(|zone| zone.of)
    }

    /// Whether the host is in no zone from which a machine without data gets them, while there are such zones: its network
    /// would be unknown. A zone without a template, in which the machine is to be, says that it needs none.
    #[must_use]
    pub fn lacks_template(&self, host: &BareMetalHost, domain: Option<&str>) -> bool {
        let gives = |zone: &DeploymentZone| zone.data_template.is_some();
        match self.of_host(host, domain) {
            Some(zone) if gives(zone) => false,
            Some(_) => domain.and_then(|domain| self.named(domain)).is_some_and(gives),
            None => self.with_template().next().is_some(),
        }
    }

    /// The zones with a data template.
    pub fn with_template(&self) -> impl Iterator<Item = &'a DeploymentZone> {
        self.0
            .iter()
            .map(|zone| zone.of)
            .filter(|zone| zone.data_template.is_some())
    }

    fn find(&self, domain: &str) -> Option<&Zone<'a>> {
        self.0.iter().find(|zone| zone.of.name == domain)
    }
}

/// The selector of a zone. One without conditions would make a zone of all hosts.
pub(super) fn selector(zone: &DeploymentZone) -> Option<&HostSelector> {
    zone.host_selector.as_ref().filter(|selector| selector.selects())
}

impl Zone<'_> {
    fn has(&self, host: &BareMetalHost) -> bool {
        match &self.selector {
            Some(Ok(selector)) => {
                let labels = host.metadata.labels.as_ref().unwrap_or(&NO_LABELS);
                selector.mismatch(labels).is_none()
            }
            Some(Err(_)) => false,
            None => label(&host.metadata, FAILURE_DOMAIN_LABEL) == Some(&self.of.name),
        }
    }
}
