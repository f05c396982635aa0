//! Which host is that of a claim. Pure.

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::cache::Key;

use super::super::bond::{self, Bond, Record, Trace, named};
use super::super::facts::Facts;

/// The host that the trace of the claim names.
pub(super) fn traced(facts: &Facts) -> Option<Key> {
    Trace::of(&facts.claim, &facts.key)?.host()
}

/// The hosts that the claim names: trace and status.
pub(super) fn own_hosts(facts: &Facts) -> Vec<Key> {
    let traced = traced(facts);
    let named = named(&facts.claim).filter(|named| Some(named) != traced.as_ref());
    traced.into_iter().chain(named).collect()
}

/// A host of the claim, as its consumer says, and what binds it.
pub(super) type Bound<'a> = (&'a Key, &'a BareMetalHost, Bond);

/// The host of the claim, of those that name it: the one that its status names, if its record has the UID of the claim; else the one that
/// its trace names with the record of the bond; else, while the status names none, the only one whose record has the UID, which a process
/// bound that ended before the status named it, while the trace was lost; else one that trace or status names. A host that only names
/// the claim is none, whatever else its record says: anyone who writes hosts writes both.
pub(super) fn bound(facts: &Facts) -> Option<Bound<'_>> {
    let of = |key: &Key| {
        let (key, host) = facts.hosts.get_key_value(key)?;
        let is_consumer = bond::consumer(host).as_ref() == Some(&facts.key);
        is_consumer.then(|| (key, &**host, bond::bond(&facts.claim, &facts.key, (key, host))))
    };
    let is_recorded = |bound: &Bound<'_>| bond::is_recorded_for(bound.1, &facts.claim, &facts.key);
    let confirmed = named(&facts.claim).and_then(|key| of(&key)).filter(is_recorded);
    let traced = traced(facts).and_then(|key| of(&key));
    let mut recorded = unnamed(facts);
    let only = recorded.next().filter(|_| recorded.next().is_none());
    confirmed
        .or_else(|| traced.filter(|bound| bound.2.is_of_this_program()))
        .or_else(|| only.and_then(|(key, _)| of(key)))
        .or_else(|| own_hosts(facts).iter().find_map(of))
}

/// The hosts that name the claim, with a record of this object, while its status names none: one that runs something of the claim was
/// named before.
pub(super) fn unnamed(facts: &Facts) -> impl Iterator<Item = (&Key, &BareMetalHost)> {
    let is_named = named(&facts.claim).is_some();
    let hosts = facts.hosts.iter().map(|(key, host)| (key, &**host));
    hosts.filter(move |(_, host)| !is_named && bond::is_recorded_for(host, &facts.claim, &facts.key))
}

/// Hosts whose record names the claim, and whose bond it is not: another object of its name left them, or a user wrote the record. Their
/// administrators have to know, because nothing releases them.
pub(in super::super) fn strays(facts: &Facts) -> Vec<(&Key, &BareMetalHost)> {
    let own = own_hosts(facts);
    let hosts = facts.hosts.iter().map(|(key, host)| (key, &**host));
    let names = |host: &BareMetalHost| {
        let record = Record::of(host).filter(|record| record.claim == facts.key.to_string());
        record.is_some() && bond::consumer(host).as_ref() == Some(&facts.key)
    };
    let bound = bound(facts).map(|bound| bound.0);
    hosts
        .filter(|(key, host)| !own.contains(key) && Some(*key) != bound && names(host))
        .collect()
}
