//! What permits a write for a claim: a HostDeployPolicy, and live views of all that depends on it.

use metal3_runtime::cache::Key;
use metal3_runtime::plan::Observed;
use metal3_runtime::reason::Reason;

use super::super::facts::{Facts, Read};
use super::super::policy::Rules;
use super::{Decision, Step, later};
use crate::names::claim_reason::{POLICY_MISSING, POLICY_UNKNOWN};

/// The policy that permits the claim a host of this namespace: one that was read in this reconcile, if there is one.
pub(super) fn opener<'a>(facts: &'a Facts, namespace: &str) -> Option<&'a Key> {
    let keys = accepting(facts, namespace).map(|(key, _)| key);
    keys.max_by_key(|key| facts.fresh.policies.contains(*key))
}

/// The policies that accept the claim for hosts of this namespace.
pub(super) fn accepting<'a>(facts: &'a Facts, namespace: &str) -> impl Iterator<Item = (&'a Key, &'a Rules)> {
    let labels = facts.namespace.present();
    let claim = &facts.key.namespace;
    let first = Key::first_in(namespace);
    let of_namespace = facts.policies.range(first..).map(|(key, one)| (key, &**one));
    let of_namespace = of_namespace.take_while(move |(key, _)| key.namespace.as_str() == namespace);
    of_namespace.filter(move |(_, one)| one.accepts(claim, labels))
}

/// Why no policy permits the claim a host of this namespace; `None`: one does. Labels of the namespace of the claim that are not
/// known are read first.
pub(super) fn closed(facts: &Facts, namespace: &str) -> Decision<Option<(Reason, &'static str)>> {
    if opener(facts, namespace).is_some() {
        return Ok(None);
    }
    let mut policies = facts.policies.iter().filter(|(key, _)| key.namespace == namespace);
    if !is_namespace_known(facts) && !facts.fresh.namespace && policies.any(|(_, one)| one.needs_labels()) {
        return Err(Step::Read(Read::Namespace));
    }
    Ok(Some(match facts.knows_policies {
        true => (
            POLICY_MISSING,
            "no HostDeployPolicy permits this namespace to use the host any more",
        ),
        false => (
            POLICY_UNKNOWN,
            "the HostDeployPolicies cannot be read, so that it is not known whether one permits this namespace to use the host",
        ),
    }))
}

/// Whether a policy asks for labels of the namespace whose changes no watch shows.
pub(super) fn needs_unwatched_labels(facts: &Facts) -> bool {
    !facts.watches_namespaces && facts.policies.values().any(|policy| policy.needs_labels())
}

/// Requires live views of all that permits a write to this host.
pub(super) fn verify(facts: &Facts, host: &Key) -> Decision<()> {
    let fresh = &facts.fresh;
    if !fresh.claim {
        return Err(Step::Read(Read::Claim));
    }
    if !fresh.namespace {
        return Err(Step::Read(Read::Namespace));
    }
    let Some(policy) = opener(facts, &host.namespace) else {
        return Err(later());
    };
    if !fresh.policies.contains(policy) {
        return Err(Step::Read(Read::Policy(policy.clone())));
    }
    if !fresh.hosts.contains(host) {
        return Err(Step::Read(Read::Host(host.clone())));
    }
    Ok(())
}

/// Whether what is known of the namespace of the claim suffices to say that no policy permits it.
pub(super) fn is_namespace_known(facts: &Facts) -> bool {
    !matches!(facts.namespace, Observed::Unknown(_))
}
