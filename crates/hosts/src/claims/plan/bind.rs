//! Binds a host.

use metal3_api::meta::Time;
use metal3_api::metal3::names::NODE_REUSE_LABEL;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::cache::Key;

use super::super::bond::{Record, reference};
use super::super::choice::{Chooser, is_candidate};
use super::super::facts::Facts;
use super::report::Report;
use super::{Action, Decision, Step, end, is_namespace_known, opener, verify};
use crate::names::claim_reason::NO_HOST;

/// Binds a free host.
pub(super) fn bind(facts: &Facts) -> Decision {
    let wait = |why: &str| Ok(end(Some(Report::unbound(NO_HOST, why))));
    let Some(chooser) = Chooser::new(&facts.claim, &facts.key) else {
        return wait(
            "spec.hostSelector cannot be evaluated; correct its keys, operators and values, 100 conditions at most",
        );
    };
    let is_open = |key: &Key| opener(facts, &key.namespace).is_some();
    let hosts = facts.hosts.iter().map(|(key, host)| (key, &**host));
    let Some(chosen) = chooser.choose(hosts.filter(|(key, _)| is_open(key))) else {
        let mut namespaces = facts.policies.keys().map(|key| &key.namespace);
        return wait(match namespaces.any(|namespace| opener(facts, namespace).is_some()) {
            true => "no host that is free has what the claim asks for; it is bound when there is one",
            false if is_namespace_known(facts) => {
                "no HostDeployPolicy permits this namespace to use hosts; ask the administrators of the hosts"
            }
            false => {
                "no HostDeployPolicy permits this namespace to use hosts, as far as is known without its labels, which this program \
                 may not read; ask the administrators of the hosts"
            }
        });
    };
    verify(facts, chosen)?;
    let Some(host) = facts.hosts.get(chosen) else {
        return Err(super::later());
    };
    Ok(take(facts, host))
}

/// Binds a host that names the claim, and has no record of this program. `None`: it is in use.
pub(super) fn adopt(facts: &Facts, key: &Key, host: &BareMetalHost) -> Option<Decision> {
    is_candidate(host, &facts.key).then(|| verify(facts, key).map(|()| take(facts, host)))
}

/// The consumer and the record in one patch, which fails if the host changed.
fn take(facts: &Facts, host: &BareMetalHost) -> Step {
    let mut taken = host.clone();
    taken.spec.consumer_ref = Some(reference(&facts.key));
    if let Some(labels) = &mut taken.metadata.labels {
        labels.remove(NODE_REUSE_LABEL);
    }
    Record::new(&facts.key, host, Time::new(facts.now)).write(&mut taken);
    Step::Do(Action::Host(Box::new(taken), "bind the host"))
}
