//! What HostDeployPolicies permit. Pure.
//!
//! Without a policy nothing is permitted, and a policy that cannot be read permits nothing: it affects no other one. An
//! expression must match a text as a whole, and its size is limited.
// differs: `claim-policy`. In the Go manager a match may begin and end anywhere, and one bad expression stops every claim.

use std::collections::{BTreeMap, BTreeSet};

use metal3_api::metal3::v1alpha1::{BareMetalHost, HostClaimNamespaces, HostDeployPolicy};
use regex::{Regex, RegexBuilder};

/// The longest expression that is read.
const LONGEST: usize = 512;
/// The most memory of a compiled expression, in bytes. A few nested repetitions would take gigabytes.
const MOST_MEMORY: usize = 1 << 20;
/// Keys of these domains are never copied: they describe how a host is managed, and some contain its whole spec.
const INTERNAL_DOMAINS: [&str; 3] = ["metal3.io", "kubernetes.io", "cluster.x-k8s.io"];

/// Compiles an expression that matches a text as a whole; `None` if it cannot be used.
fn whole(expression: &str) -> Option<Regex> {
    let compile = |text: &str| {
        let mut builder = RegexBuilder::new(text);
        builder.size_limit(MOST_MEMORY).dfa_size_limit(MOST_MEMORY).build().ok()
    };
    if expression.len() > LONGEST {
        return None;
    }
    // Alone first: `a)|(b` would end the group that anchors it.
    compile(expression)?;
    compile(&format!(r"\A(?:{expression})\z"))
}

/// Whether a policy accepts the claims of a namespace. `labels` are those of the namespace; `None`: they are not known.
pub(super) fn accepts(policy: &HostDeployPolicy, namespace: &str, labels: Option<&BTreeMap<String, String>>) -> bool {
    let is_deleted = policy.metadata.deletion_timestamp.is_some();
    let Some(accepted) = policy.spec.host_claim_namespaces.as_ref().filter(|_| !is_deleted) else {
        return false;
    };
    has_name(accepted, namespace) && has_labels(accepted, labels)
}

fn has_name(accepted: &HostClaimNamespaces, namespace: &str) -> bool {
    let is_listed = |names: &Vec<String>| names.iter().any(|name| name == namespace);
    let expression = accepted.name_matches.as_deref().filter(|text| !text.is_empty());
    let is_matched = |text: &str| whole(text).is_some_and(|expression| expression.is_match(namespace));
    accepted.names.as_ref().is_none_or(is_listed) && expression.is_none_or(is_matched)
}

fn has_labels(accepted: &HostClaimNamespaces, labels: Option<&BTreeMap<String, String>>) -> bool {
    accepted.has_labels.iter().all(|wanted| {
        let found = labels.and_then(|labels| labels.get(&wanted.name));
        let value = wanted.value.as_deref().filter(|value| !value.is_empty());
        found.is_some_and(|found| value.is_none_or(|value| value == found))
    })
}

/// Labels and annotations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Metadata {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
}

/// What the HardwareData of a host gets: what these policies name, and nothing else.
pub(super) fn copied<'a>(host: &BareMetalHost, policies: impl Iterator<Item = &'a HostDeployPolicy>) -> Metadata {
    let (mut labels, mut annotations) = (BTreeSet::new(), BTreeSet::new());
    for rules in policies.filter_map(|policy| policy.spec.metadata_copy.as_ref()) {
        labels.extend(rules.labels_match.clone());
        annotations.extend(rules.annotations_match.clone());
    }
    Metadata {
        labels: selected(host.metadata.labels.as_ref(), &labels),
        annotations: selected(host.metadata.annotations.as_ref(), &annotations),
    }
}

fn selected(found: Option<&BTreeMap<String, String>>, expressions: &BTreeSet<String>) -> BTreeMap<String, String> {
    let expressions: Vec<Regex> = expressions.iter().filter_map(|text| whole(text)).collect();
    let is_named = |key: &str| !is_internal(key) && expressions.iter().any(|one| one.is_match(key));
    let members = found.into_iter().flatten().filter(|(key, _)| is_named(key));
    members.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn is_internal(key: &str) -> bool {
    let domain = key.split_once('/').map_or(key, |(domain, _)| domain);
    INTERNAL_DOMAINS
        .iter()
        .any(|internal| domain == *internal || domain.strip_suffix(internal).is_some_and(|rest| rest.ends_with('.')))
}
