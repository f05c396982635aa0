//! What HostDeployPolicies permit. Pure.
//!
//! Without a policy nothing is permitted, and a policy that cannot be read permits nothing: it affects no other one. An
//! expression must match a text as a whole, and its size is limited.
// differs: `claim-policy`. In the Go manager a match may begin and end anywhere, and one bad expression stops every claim.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use metal3_api::metal3::v1alpha1::{BareMetalHost, HostClaimNamespaces, HostDeployPolicy};
use metal3_domain::expression::whole;
use metal3_runtime::cache::{Change, Key, SharedCache};
use parking_lot::Mutex;
use regex::Regex;

/// How many policies of a namespace count, in the order of their names. Who writes policies of one namespace could otherwise have
/// any number of them evaluated for each claim of every namespace.
pub(super) const MOST_POLICIES: usize = 32;

/// Keys of these domains are never copied: they describe how a host is managed, and some contain its whole spec.
const INTERNAL_DOMAINS: [&str; 6] = [
    "metal3.io",
    "kubernetes.io",
    "cluster.x-k8s.io",
    // Of tools that write the whole object into an annotation, as it is or packed.
    "kapp.k14s.io",
    "cattle.io",
    "banzaicloud.com",
];
/// A longer value is never copied: it may be a packed object.
const LONGEST_VALUE: usize = 1024;

/// One version of a policy; its expressions are compiled when they are needed first.
#[derive(Debug, Default)]
pub(super) struct Rules {
    policy: Arc<HostDeployPolicy>,
    name: OnceLock<Option<Regex>>,
    labels: OnceLock<Option<Regex>>,
    annotations: OnceLock<Option<Regex>>,
}

impl Rules {
    pub(super) fn new(policy: Arc<HostDeployPolicy>) -> Self {
        Self {
            policy,
            ..Self::default()
        }
    }

    fn accepted(&self) -> Option<&HostClaimNamespaces> {
        let is_deleted = self.policy.metadata.deletion_timestamp.is_some();
        self.policy.spec.host_claim_namespaces.as_ref().filter(|_| !is_deleted)
    }

    /// Whether it accepts the claims of a namespace. `labels` are those of the namespace; `None`: they are not known.
    pub(super) fn accepts(&self, namespace: &str, labels: Option<&BTreeMap<String, String>>) -> bool {
        self.accepted()
            .is_some_and(|accepted| self.has_name(accepted, namespace) && has_labels(accepted, labels))
    }

    /// Whether it depends on the labels of a namespace.
    pub(super) fn needs_labels(&self) -> bool {
        self.accepted().is_some_and(|accepted| !accepted.has_labels.is_empty())
    }

    /// Whether it names labels or annotations of hosts.
    pub(super) fn copies(&self) -> bool {
        self.policy.spec.metadata_copy.is_some()
    }

    fn has_name(&self, accepted: &HostClaimNamespaces, namespace: &str) -> bool {
        let is_listed = |names: &Vec<String>| names.iter().any(|name| name == namespace);
        let expression = accepted.name_matches.as_deref().filter(|text| !text.is_empty());
        let is_matched = |text: &str| {
            let compiled = self.name.get_or_init(|| whole(text).ok());
            compiled.as_ref().is_some_and(|one| one.is_match(namespace))
        };
        accepted.names.as_ref().is_none_or(is_listed) && expression.is_none_or(is_matched)
    }

    fn names_label(&self, key: &str) -> bool {
        let rules = self.policy.spec.metadata_copy.as_ref();
        let text = rules.and_then(|rules| rules.labels_match.as_deref());
        is_named(&self.labels, text, key)
    }

    fn names_annotation(&self, key: &str) -> bool {
        let rules = self.policy.spec.metadata_copy.as_ref();
        let text = rules.and_then(|rules| rules.annotations_match.as_deref());
        is_named(&self.annotations, text, key)
    }
}

fn is_named(compiled: &OnceLock<Option<Regex>>, text: Option<&str>, key: &str) -> bool {
    let is_match = |text| {
        let compiled = compiled.get_or_init(|| whole(text).ok());
        compiled.as_ref().is_some_and(|one| one.is_match(key))
    };
    text.is_some_and(is_match)
}

fn has_labels(accepted: &HostClaimNamespaces, labels: Option<&BTreeMap<String, String>>) -> bool {
    accepted.has_labels.iter().all(|wanted| {
        let found = labels.and_then(|labels| labels.get(&wanted.name));
        let value = wanted.value.as_deref().filter(|value| !value.is_empty());
        found.is_some_and(|found| value.is_none_or(|value| value == found))
    })
}

/// The policies with their expressions, each compiled once for a version. It follows from the cache of policies.
#[derive(Clone, Default)]
pub(super) struct PolicyBook(Arc<Mutex<BTreeMap<Key, Arc<Rules>>>>);

impl PolicyBook {
    /// Follows this cache. Call it before the cache is filled.
    pub(super) fn following(policies: &SharedCache<HostDeployPolicy>) -> Self {
        let book = Self::default();
        let follower = book.clone();
        policies.subscribe(move |change: &Change<'_, HostDeployPolicy>| {
            if let Some(key) = change.key() {
                follower.0.lock().remove(&key);
            }
        });
        book
    }

    /// The rules of a policy in this version.
    pub(super) fn rules(&self, key: &Key, policy: &Arc<HostDeployPolicy>) -> Arc<Rules> {
        let mut all = self.0.lock();
        let known = all
            .get(key)
            .filter(|known| known.policy.metadata.resource_version == policy.metadata.resource_version);
        if let Some(known) = known.filter(|known| known.policy.metadata.uid == policy.metadata.uid) {
            return Arc::clone(known);
        }
        let rules = Arc::new(Rules::new(Arc::clone(policy)));
        all.insert(key.clone(), Arc::clone(&rules));
        rules
    }
}

/// Labels and annotations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Metadata {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
}

/// What the HardwareData of a host gets: what these policies name, and nothing else.
pub(super) fn copied<'a>(host: &BareMetalHost, policies: impl Iterator<Item = &'a Rules>) -> Metadata {
    let policies: Vec<&Rules> = policies.filter(|policy| policy.copies()).collect();
    let labels = |key: &str| policies.iter().any(|policy| policy.names_label(key));
    let annotations = |key: &str| policies.iter().any(|policy| policy.names_annotation(key));
    let secrets = secrets(host);
    Metadata {
        labels: selected(host.metadata.labels.as_ref(), &secrets, labels),
        annotations: selected(host.metadata.annotations.as_ref(), &secrets, annotations),
    }
}

/// What tenants never get: how the BMC is reached, its login, and the boot card.
fn secrets(host: &BareMetalHost) -> Vec<String> {
    let bmc = host.spec.bmc.as_ref();
    let address = bmc.map(|bmc| bmc.address.clone());
    let parsed = host.bmc_address().ok().flatten();
    let of_bmc = [
        parsed.map(|parsed| parsed.host().to_owned()),
        bmc.map(|bmc| bmc.credentials_name.clone()),
    ];
    let all = of_bmc.into_iter().chain([address, host.spec.boot_mac_address.clone()]);
    all.flatten().filter(|text| !text.is_empty()).collect()
}

fn selected(
    found: Option<&BTreeMap<String, String>>,
    secrets: &[String],
    is_named: impl Fn(&str) -> bool,
) -> BTreeMap<String, String> {
    let is_open = |value: &str| value.len() <= LONGEST_VALUE && !secrets.iter().any(|secret| has_word(value, secret));
    let members = found.into_iter().flatten();
    let members = members.filter(|(key, value)| !is_internal(key) && is_open(value) && is_named(key));
    members.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Whether the value contains the text, and not as a part of a longer word: the name of a login may be a part of anything.
fn has_word(value: &str, text: &str) -> bool {
    let is_end =
        |letter: Option<char>| letter.is_none_or(|letter| !letter.is_ascii_alphanumeric() && !".-".contains(letter));
    value.match_indices(text).any(|(at, found)| {
        let (before, after) = (value.get(..at), value.get(at + found.len()..));
        is_end(before.and_then(|rest| rest.chars().next_back())) && is_end(after.and_then(|rest| rest.chars().next()))
    })
}

fn is_internal(key: &str) -> bool {
    let domain = key.split_once('/').map_or(key, |(domain, _)| domain);
    INTERNAL_DOMAINS
        .iter()
        .any(|internal| domain == *internal || domain.strip_suffix(internal).is_some_and(|rest| rest.ends_with('.')))
}
