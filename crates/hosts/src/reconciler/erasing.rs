//! Whether Ironic erases a machine for the present state of its host, or did, as far as this process knows.

use std::collections::BTreeMap;

use metal3_api::metal3::v1alpha1::ProvisioningState as State;
use metal3_domain::clock::Monotonic;
use metal3_ironic::model::state::ProvisionState as S;
use metal3_runtime::cache::Key;
use metal3_runtime::plan::{Observed, UnknownReason};
use parking_lot::Mutex;

use super::index::HostIndex;
use super::observations::Observations;
use crate::facts::{FoundNode, NodeFreshness};

/// The hosts for which Ironic erases, or did, and when they entered the state for which it does.
#[derive(Debug, Default)]
pub(super) struct Erasing(Mutex<BTreeMap<Key, Option<Monotonic>>>);

impl Erasing {
    /// Ironic accepted a request that erases, or it may have.
    pub(super) fn begin(&self, host: &Key, index: &HostIndex) {
        self.0.lock().insert(host.clone(), index.entered(host));
    }

    /// Whether Ironic erases for the state that the host is in, or did. Unknown if another process may have requested it.
    pub(super) fn of(&self, host: &Key, index: &HostIndex) -> Observed<()> {
        if self.0.lock().get(host) == Some(&index.entered(host)) {
            Observed::Present(())
        } else if index.began_elsewhere(host) {
            Observed::Unknown(UnknownReason::NotRead)
        } else {
            Observed::Absent
        }
    }

    /// Whether Ironic erases for the host, or did, with what the node shows: the request may be of another process.
    pub(super) fn observe(&self, host: &Key, index: &HostIndex, observed: &Observations) -> Observed<()> {
        let is_removed = observed.host.status.provisioning.state == State::Deprovisioning;
        if is_removed && shows_removal(&observed.node) {
            self.begin(host, index);
        }
        self.of(host, index)
    }

    pub(super) fn remove(&self, host: &Key) {
        self.0.lock().remove(host);
    }
}

/// Whether the node of a host in `deprovisioning`, observed since the host entered that state, was torn down.
pub(crate) fn shows_removal(node: &Observed<FoundNode>) -> bool {
    let Observed::Present(FoundNode::Own(node, freshness)) = node else {
        return false;
    };
    let is_removed = matches!(
        node.provision_state,
        S::Deleting | S::Error | S::Cleaning | S::CleanWait | S::CleanFailed | S::Available
    );
    *freshness >= NodeFreshness::InState && is_removed
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::tests::fixture::node;

    fn found(state: &str, freshness: NodeFreshness) -> Observed<FoundNode> {
        let node = serde_json::from_value(node(state)).unwrap();
        Observed::Present(FoundNode::Own(Arc::new(node), freshness))
    }

    #[test]
    fn only_an_observation_of_the_present_state_shows_a_removal() {
        for (state, shows) in [
            ("cleaning", true),
            ("clean failed", true),
            ("error", true),
            ("active", false),
            ("manageable", false),
        ] {
            assert_eq!(shows_removal(&found(state, NodeFreshness::InState)), shows, "{state}");
            assert!(!shows_removal(&found(state, NodeFreshness::Current)), "{state}");
        }
        assert!(!shows_removal(&Observed::Absent));
    }

    #[test]
    fn request_counts_for_the_state_of_the_host_in_which_it_was_sent() {
        let (erasing, index) = (Erasing::default(), HostIndex::default());
        let host = Key {
            namespace: "metal".to_owned(),
            name: "h".to_owned(),
        };
        assert_eq!(erasing.of(&host, &index), Observed::Absent);
        erasing.begin(&host, &index);
        assert_eq!(erasing.of(&host, &index), Observed::Present(()));
        index.enter(&host, Monotonic::default());
        assert_eq!(erasing.of(&host, &index), Observed::Absent);
    }
}
