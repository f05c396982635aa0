//! The order of choice, for `capm3 select`.

use std::cmp::Reverse;

use metal3_api::infrastructure::names::NODE_REUSE_LABEL;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::owner::label;

use super::{HostChooser, Refusals};

/// The hosts in the order in which a machine would claim them.
#[derive(Debug, Clone, PartialEq)]
pub struct Order<'a> {
    /// The host whose consumer is the machine. Then nothing is chosen.
    pub own: Option<&'a BareMetalHost>,
    /// The hosts that can be claimed, the first choice first.
    pub candidates: Vec<Candidate<'a>>,
    /// The others.
    pub refusals: Refusals<'a>,
}

/// A host that can be claimed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate<'a> {
    /// The host.
    pub host: &'a BareMetalHost,
    /// Whether it is kept for the machine's owner.
    pub is_reused: bool,
    /// Whether it is in the machine's failure domain; false when the machine has none.
    pub is_in_domain: bool,
}

impl HostChooser<'_> {
    /// The order of choice among all hosts of the namespace.
    #[must_use]
    pub fn order<'h>(&self, hosts: impl IntoIterator<Item = &'h BareMetalHost>) -> Order<'h> {
        let (own, mut candidates, refusals) = match self.sort(hosts) {
            Ok((candidates, refusals)) => (None, candidates, refusals),
            Err(own) => (Some(own), Vec::new(), Refusals::default()),
        };
        candidates.sort_by_key(|host| Reverse(self.weight(host)));
        let candidate = |host| Candidate {
            host,
            is_reused: label(&host.metadata, NODE_REUSE_LABEL).is_some(),
            is_in_domain: self.is_in_domain(host),
        };
        Order {
            own,
            candidates: candidates.into_iter().map(candidate).collect(),
            refusals,
        }
    }
}
