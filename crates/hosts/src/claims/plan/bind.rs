//! Binds a host: the claim names it first, in its trace, and then the host names the claim. A process that ends between leaves a claim
//! that names a host which is not bound: it is bound next, if it is still free.

use std::collections::{BTreeMap, BTreeSet};

use metal3_api::meta::Time;
use metal3_api::metal3::names::{
    CLAIM_KEPT_ANNOTATION, CLAIM_TRACE_ANNOTATION, HOST_CLAIM_FINALIZER, NODE_REUSE_LABEL,
};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostClaim};
use metal3_runtime::cache::Key;

use super::super::bond::{Record, Trace, reference};
use super::super::choice::{Chooser, is_candidate, is_in_namespace};
use super::super::facts::{Facts, Read};
use super::report::Report;
use super::{
    Action, BIND, Decision, Step, closed, end, is_namespace_known, opener, recheck, traced, traced_claim, verify,
    without_policy,
};
use crate::names::claim_reason::{NO_HOST, NOT_SYNCED, POLICY_UNKNOWN};

/// How many hosts are tried that the API server refuses: in all, and in one namespace, where its rights or policies are the reason.
const MOST_REFUSED: usize = 10;
const MOST_REFUSED_OF_NAMESPACE: usize = 3;

/// So many hosts of claims that do not exist any more keep a namespace from getting further ones: who removes finalizers of his claims
/// would have any number of hosts, whatever quota of claims he has.
const MOST_ABANDONED: usize = 3;

/// Whether binding a host of this namespace is not tried again in this reconcile, because too much was refused.
fn is_given_up(facts: &Facts, namespace: &str) -> bool {
    let of_namespace = facts.refused.iter().filter(|host| host.namespace == namespace).count();
    facts.refused.len() >= MOST_REFUSED || of_namespace >= MOST_REFUSED_OF_NAMESPACE
}

/// Binds a free host.
pub(super) fn bind(facts: &Facts) -> Decision {
    let wait = |why: &str| Ok(end(Some(Report::unbound(NO_HOST, why))));
    if facts.is_beyond {
        return wait(
            "other claims of this namespace wait for hosts; it is served when fewer than 100 wait before it, in the order of their names",
        );
    }
    if facts.abandoned >= MOST_ABANDONED {
        return wait(
            "hosts of claims of this namespace that do not exist any more are not released, and run what those asked for; it is served when \
             fewer than 3 are left: ask the administrators of the hosts to release them",
        );
    }
    let Some(chooser) = Chooser::new(&facts.claim, &facts.key, facts.now) else {
        return wait(
            "spec.hostSelector cannot be evaluated; correct its keys, operators and values, 100 conditions with 1000 values at most",
        );
    };
    let hosts = facts.hosts.iter().map(|(key, host)| (key, &**host));
    let free = hosts.filter(|(_, host)| is_candidate(host, &facts.key));
    let selected: Vec<_> = free.filter(|(_, host)| chooser.selects(host)).collect();
    let (mut open, mut namespaces) = (Vec::new(), BTreeMap::new());
    for (key, host) in &selected {
        let is_open = match namespaces.get(&key.namespace) {
            Some(is_open) => *is_open,
            None => closed(facts, &key.namespace)?.is_none(),
        };
        namespaces.insert(&key.namespace, is_open);
        if is_open {
            open.push((*key, *host));
        }
    }
    let traced = traced(facts);
    let is_tried = |key: &Key| !facts.refused.contains(key) && !is_given_up(facts, &key.namespace);
    let accepted = || open.iter().copied().filter(|(key, _)| is_tried(key));
    let first = accepted().find(|(key, _)| Some(*key) == traced.as_ref());
    let chosen = first.map(|(key, _)| key).or_else(|| chooser.choose(accepted()));
    let Some(chosen) = chosen else {
        forget(facts)?;
        return Ok(none(facts, !open.is_empty()));
    };
    take(facts, chosen)
}

/// Takes the trace off a claim that gets no host, and the finalizer with it: it lost the race for that host, and would be taken for one that
/// had it when it is moved or restored while it waits. Whatever became of that host: a tenant writes any name, and the difference would
/// tell him of hosts. A process that was overtaken may still bind it: then its record says whose it is.
fn forget(facts: &Facts) -> Decision<()> {
    let Some(traced) = traced(facts) else { return Ok(()) };
    // One that cannot be read may be bound; one that was refused is tried again.
    if facts.hidden.contains(&traced) || facts.refused.contains(&traced) {
        return Ok(());
    }
    if !facts.fresh.claim {
        return Err(Step::Read(Read::Claim));
    }
    let mut changed = HostClaim::clone(&facts.claim);
    if let Some(annotations) = &mut changed.metadata.annotations {
        annotations.remove(CLAIM_TRACE_ANNOTATION);
    }
    let finalizers = changed.metadata.finalizers.get_or_insert_default();
    finalizers.retain(|name| name != HOST_CLAIM_FINALIZER);
    Err(Step::Do(Action::Claim(Box::new(changed))))
}

/// Why there is no host.
fn none(facts: &Facts, is_refused: bool) -> Step {
    if is_refused {
        let why = "the API server refuses to bind the hosts that are free; it is tried again, and the administrators of the hosts can say \
                   why it refuses";
        return recheck(Report::unbound(NOT_SYNCED, why), NOT_SYNCED, why);
    }
    if !facts.knows_policies {
        let why = "the HostDeployPolicies cannot be read, so that it is not known which hosts this namespace may use; ask the administrators \
                   of the hosts";
        return recheck(Report::unbound(POLICY_UNKNOWN, why), POLICY_UNKNOWN, why);
    }
    // Of those that are free only: whether a host of a name exists is no knowledge of a tenant.
    let free = facts.hosts.iter().filter(|(_, host)| is_candidate(host, &facts.key));
    let namespaces: BTreeSet<_> = free.map(|(key, _)| &key.namespace).collect();
    let why = match namespaces
        .into_iter()
        .any(|namespace| opener(facts, namespace).is_some())
    {
        true => "no host that is free has what the claim asks for; it is bound when there is one",
        false if is_namespace_known(facts) => {
            "no host is free that a HostDeployPolicy permits this namespace to use; ask the administrators of the hosts"
        }
        false => {
            "no host is free that a HostDeployPolicy permits this namespace to use, as far as is known without its labels, which this \
             program may not read; ask the administrators of the hosts"
        }
    };
    without_policy(facts, Report::unbound(NO_HOST, why), NO_HOST, why)
}

/// Binds a host that the claim names and that names the claim, without a record of this program. `None`: it is in use.
pub(super) fn adopt(facts: &Facts, key: &Key, host: &BareMetalHost) -> Option<Decision> {
    let is_accepted = is_candidate(host, &facts.key) && is_in_namespace(&facts.claim, host);
    is_accepted.then(|| match closed(facts, &key.namespace)? {
        None if facts.refused.contains(key) => Ok(none(facts, true)),
        None => take(facts, key),
        Some((reason, why)) => Ok(without_policy(
            facts,
            Report::unbound(reason, why).keeping(&facts.claim),
            reason,
            why,
        )),
    })
}

/// The trace first, then consumer and record in one patch, which fails if the host changed.
fn take(facts: &Facts, key: &Key) -> Decision {
    verify(facts, key)?;
    let Some(host) = facts.hosts.get(key) else {
        return Err(Step::Read(Read::Host(key.clone())));
    };
    let trace = match Trace::of(&facts.claim, &facts.key) {
        Some(trace) if trace.host().as_ref() == Some(key) && super::has_own_finalizer(&facts.claim) => trace,
        _ => {
            let trace = Trace::new(&facts.claim, &facts.key, (key, host));
            return Ok(traced_claim(facts, Some(&trace)));
        }
    };
    let mut taken = BareMetalHost::clone(host);
    taken.spec.consumer_ref = Some(reference(&facts.key));
    let annotations = taken.metadata.annotations.as_mut();
    let was_kept = annotations.is_some_and(|annotations| annotations.remove(CLAIM_KEPT_ANNOTATION).is_some());
    if let Some(labels) = taken.metadata.labels.as_mut().filter(|_| was_kept) {
        labels.remove(NODE_REUSE_LABEL);
    }
    let record = Record::new(&facts.claim, &trace, host, Time::new(facts.now));
    record.write(&mut taken);
    Ok(Step::Do(Action::Host(Box::new(taken), BIND)))
}
