//! IPPool: valid ranges, and grants that stay inside them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use metal3_domain::ip::{EntryError, parse_address};

use super::ranges::{Ranges, read};
use super::{check_address, check_addresses};
use crate::ipam::v1alpha1::{AllocationStrategy, IPPool, PoolRange};
use crate::rules::{AdmissionRules, FieldPath, Findings, On, Rule, WriteRequest};

impl AdmissionRules for IPPool {
    const RULES: &'static [Rule<Self>] = &[
        Rule::new(
            "range-means-something",
            "Each entry of `spec.pools` has a start, an end or a subnet that can be read, and its end is \
                not before its start.",
            On::Spec(|pool, findings| each_changed_range(pool, findings, range_means_something)),
        ),
        Rule::<Self>::on_spec(
            "range-of-one-family",
            "The addresses of one entry are all IPv4 or all IPv6. Stored entries are not checked again.",
            |pool, findings| each_changed_range(pool, findings, range_is_of_one_family),
        )
        .differing("pool-mixed-families"),
        Rule::on_spec(
            "random-range-is-bounded",
            "With the strategy `random` an entry that has a start has an end or a subnet too.",
            random_ranges_are_bounded,
        )
        .differing("pool-random-size"),
        Rule::new(
            "gateway-is-an-address",
            "The gateway of the pool and of each entry is an address.",
            On::Spec(gateways_are_addresses),
        ),
        Rule::new(
            "name-servers-are-addresses",
            "The name servers of the pool and of each entry are addresses.",
            On::Spec(name_servers_are_addresses),
        ),
        Rule::new(
            "pre-allocation-is-an-address",
            "Each pre-allocation is an address.",
            On::Spec(pre_allocations_are_addresses),
        ),
        Rule::new(
            "pre-allocation-in-range",
            "Each pre-allocation lies inside an entry of the pool.",
            On::Spec(pre_allocations_are_in_range),
        ),
        Rule::new(
            "pre-allocation-unique",
            "Pre-allocated addresses are unique, however they are written.",
            On::Spec(pre_allocations_are_unique),
        ),
        Rule::on_spec(
            "pre-allocation-is-granted",
            "A warning is returned for a valid pre-allocation that is never granted: at the end of an \
                entry without start, or the network address of a subnet.",
            pre_allocations_are_granted,
        )
        .differing("pool-ungrantable-warning"),
        Rule::on_spec(
            "gateway-not-granted",
            "A warning is returned when the gateway lies inside a range and may be granted to a claim.",
            gateways_are_not_granted,
        )
        .differing("pool-gateway-warning"),
        Rule::on_update(
            "name-prefix-kept",
            "`spec.namePrefix` cannot be changed.",
            name_prefix_is_kept,
        ),
        Rule::on_update(
            "strategy-kept",
            "`spec.allocationStrategy` cannot be changed; absent means `sequential`.",
            strategy_is_kept,
        ),
        Rule::on_update(
            "grant-in-range",
            "Each address granted still lies inside an entry of the pool.",
            grants_are_in_range,
        ),
    ];
}

/// Checks each new or changed entry.
fn each_changed_range(
    pool: &WriteRequest<'_, IPPool>,
    findings: &mut Findings,
    check: fn(&PoolRange, &FieldPath, &mut Findings),
) {
    let old: BTreeSet<&PoolRange> = pool.old.iter().flat_map(|old| &old.spec.pools).collect();
    for (position, range) in pool.new.spec.pools.iter().enumerate() {
        if !old.contains(range) {
            check(range, &FieldPath::new("spec.pools").index(position), findings);
        }
    }
}

fn range_means_something(range: &PoolRange, path: &FieldPath, findings: &mut Findings) {
    let error = match read(range) {
        Ok(entry) => entry.range().err().filter(|error| *error != EntryError::MixedFamilies),
        Err(error) => Some(error),
    };
    match error {
        None => {}
        Some(EntryError::Reversed(_)) => {
            let text = |member: &Option<_>| member.as_ref().map(ToString::to_string).unwrap_or_default();
            let problem = format!("end IP {} is before start IP {}", text(&range.end), text(&range.start));
            findings.invalid(path.clone(), range, problem, "exchange start and end");
        }
        Some(error) => {
            let path = error.field().map_or_else(|| path.clone(), |member| path.child(member));
            findings.invalid(
                path,
                range,
                error.to_string(),
                "give a start, an end or a subnet that can be read",
            );
        }
    }
}

fn range_is_of_one_family(range: &PoolRange, path: &FieldPath, findings: &mut Findings) {
    if read(range).is_ok_and(|entry| entry.range() == Err(EntryError::MixedFamilies)) {
        findings.invalid(
            path.clone(),
            range,
            "mixes IPv4 and IPv6",
            "write one entry for each family",
        );
    }
}

fn random_ranges_are_bounded(pool: &WriteRequest<'_, IPPool>, findings: &mut Findings) {
    if pool.new.spec.allocation_strategy != Some(AllocationStrategy::Random) {
        return;
    }
    for (position, range) in pool.new.spec.pools.iter().enumerate() {
        if range.start.is_some() && range.end.is_none() && range.subnet.is_none() {
            findings.invalid(
                FieldPath::new("spec.pools").index(position),
                range,
                "cannot be used with allocationStrategy \"random\": the range has no end",
                "give an end or a subnet",
            );
        }
    }
}

/// The gateways of the pool and of each entry, with their paths.
fn gateways(pool: &IPPool) -> impl Iterator<Item = (FieldPath, &str)> {
    let own = pool
        .spec
        .gateway
        .as_ref()
        .map(|text| (FieldPath::new("spec.gateway"), text.as_str()));
    let ranges = pool.spec.pools.iter().enumerate().filter_map(|(position, range)| {
        let path = FieldPath::new("spec.pools").index(position).child("gateway");
        range.gateway.as_ref().map(|text| (path, text.as_str()))
    });
    own.into_iter().chain(ranges)
}

fn gateways_are_addresses(pool: &WriteRequest<'_, IPPool>, findings: &mut Findings) {
    for (path, text) in gateways(pool.new) {
        check_address(path, text, findings);
    }
}

fn name_servers_are_addresses(pool: &WriteRequest<'_, IPPool>, findings: &mut Findings) {
    check_addresses(&FieldPath::new("spec.dnsServers"), &pool.new.spec.dns_servers, findings);
    for (position, range) in pool.new.spec.pools.iter().enumerate() {
        let path = FieldPath::new("spec.pools").index(position).child("dnsServers");
        check_addresses(&path, &range.dns_servers, findings);
    }
}

fn pre_allocation_path(claim: &str) -> FieldPath {
    FieldPath::new("spec.preAllocations").key(claim)
}

fn pre_allocations_are_addresses(pool: &WriteRequest<'_, IPPool>, findings: &mut Findings) {
    for (claim, text) in &pool.new.spec.pre_allocations {
        check_address(pre_allocation_path(claim), text.as_str(), findings);
    }
}

/// Pre-allocations that are addresses, by the name of the claim.
fn pre_allocations(pool: &IPPool) -> impl Iterator<Item = (&str, IpAddr)> {
    pool.spec
        .pre_allocations
        .iter()
        .filter_map(|(claim, text)| Some((claim.as_str(), parse_address(text.as_str()).ok()?)))
}

fn pre_allocations_are_in_range(pool: &WriteRequest<'_, IPPool>, findings: &mut Findings) {
    let ranges = Ranges::of(&pool.new.spec);
    for (claim, address) in pre_allocations(pool.new) {
        if !ranges.admits(address) {
            let problem = format!("is out of bounds of the pools given (claim {claim})");
            findings.invalid("spec.preAllocations", address, problem, "add a range that holds it");
        }
    }
}

fn pre_allocations_are_unique(pool: &WriteRequest<'_, IPPool>, findings: &mut Findings) {
    let mut holders: BTreeMap<IpAddr, &str> = BTreeMap::new();
    for (claim, address) in pre_allocations(pool.new) {
        if let Some(holder) = holders.insert(address, claim) {
            let problem = format!("is pre-allocated to {holder} too");
            findings.invalid(
                pre_allocation_path(claim),
                address,
                problem,
                "give each claim another address",
            );
        }
    }
}

fn pre_allocations_are_granted(pool: &WriteRequest<'_, IPPool>, findings: &mut Findings) {
    let ranges = Ranges::of(&pool.new.spec);
    for (claim, address) in pre_allocations(pool.new) {
        if ranges.admits(address) && !ranges.grants(address) {
            findings.warn(
                pre_allocation_path(claim),
                format!("spec.preAllocations.{claim}: no range of the pool grants {address}"),
                "set the start of the range that should hold it",
            );
        }
    }
}

fn gateways_are_not_granted(pool: &WriteRequest<'_, IPPool>, findings: &mut Findings) {
    let ranges = Ranges::of(&pool.new.spec);
    for (path, text) in gateways(pool.new) {
        if parse_address(text).is_ok_and(|address| ranges.grants(address)) {
            let problem = format!("{path}: the gateway {text} lies inside a range and may be granted to a claim");
            findings.warn(path, problem, "start the range after it, or pre-allocate it");
        }
    }
}

fn name_prefix_is_kept(old: &IPPool, new: &IPPool, findings: &mut Findings) {
    if old.spec.name_prefix != new.spec.name_prefix {
        findings.invalid(
            "spec.namePrefix",
            &new.spec.name_prefix,
            "cannot be modified",
            "create another pool",
        );
    }
}

fn strategy_is_kept(old: &IPPool, new: &IPPool, findings: &mut Findings) {
    let strategy = |pool: &IPPool| pool.spec.allocation_strategy.unwrap_or_default();
    if strategy(old) != strategy(new) {
        let found = new.spec.allocation_strategy;
        findings.invalid(
            "spec.allocationStrategy",
            found,
            "cannot be modified after creation",
            "create another pool",
        );
    }
}

impl IPPool {
    /// The given addresses that are in no entry of the pool. Invalid addresses are skipped.
    #[must_use]
    pub fn out_of_range<'a>(&self, granted: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let ranges = Ranges::of(&self.spec);
        let outside = |text: &&str| parse_address(text).is_ok_and(|address| !ranges.admits(address));
        granted.into_iter().filter(outside).map(str::to_owned).collect()
    }
}

fn grants_are_in_range(old: &IPPool, new: &IPPool, findings: &mut Findings) {
    if old.spec.pools == new.spec.pools {
        return;
    }
    let ranges = Ranges::of(&new.spec);
    for (claim, text) in &old.status.indexes {
        let lost = parse_address(text.as_str()).is_ok_and(|address| !ranges.admits(address));
        if lost {
            let problem = format!("is in use but out of bounds of the pools given (claim {claim})");
            findings.invalid(
                "spec.pools",
                text,
                problem,
                "keep a range that holds it, or release the claim first",
            );
        }
    }
}
