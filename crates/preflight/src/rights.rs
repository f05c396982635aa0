//! Rights that this program needs, and that the account of a Go manager does not have.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::finding::{Decision, Finding};

/// A verb on a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Right {
    /// API group; empty for the core group.
    pub group: String,
    /// With its subresource: `baremetalhosts/status`.
    pub resource: String,
    /// As rules spell it.
    pub verb: String,
    /// The only names that it is needed for; empty for all.
    pub names: Vec<String>,
    /// Whether it is needed in the namespace of the program alone.
    pub is_local: bool,
}

/// What the account of a Go manager has and this program needs.
#[derive(Debug, Clone, Default)]
pub struct Account {
    /// `NAMESPACE/NAME` of its Deployment.
    pub deployment: String,
    /// `NAMESPACE/NAME` of its ServiceAccount.
    pub name: String,
    /// The rules of its roles for all namespaces.
    pub rules: Vec<PolicyRule>,
    /// The rules of its roles for its own namespace.
    pub local_rules: Vec<PolicyRule>,
    /// Why its roles are not known.
    pub not_read: Option<String>,
    /// What this program needs in its place.
    pub needed: Vec<Right>,
}

const CURE: &str = "apply the roles of this release, as its files do; a role that is kept needs these rules too. Where the API server \
    runs OwnerReferencesPermissionEnforcement, an object may be made the owner of another only with the right to delete what is \
    changed, and to update the finalizers of the owner if it blocks its deletion";

/// What each account lacks.
pub(crate) fn findings(accounts: &[Account]) -> Vec<Finding> {
    accounts.iter().filter_map(finding).collect()
}

fn finding(account: &Account) -> Option<Finding> {
    let object = format!("Deployment {}", account.deployment);
    if let Some(why) = &account.not_read {
        let what = format!("has an account, {}, whose roles could not be read: {why}", account.name);
        return Some(Finding::new(Decision::Go, object, what, CURE));
    }
    let mut missing: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for right in account.needed.iter().filter(|right| !account.has(right)) {
        let resource = named(right);
        missing.entry(resource).or_default().insert(&right.verb);
    }
    if missing.is_empty() {
        return None;
    }
    let each = missing.into_iter();
    let each = each.map(|(resource, verbs)| format!("{} {resource}", verbs.into_iter().collect::<Vec<_>>().join("/")));
    let what = format!(
        "has an account, {}, without rights that this program needs: {}",
        account.name,
        each.collect::<Vec<_>>().join(", ")
    );
    Some(Finding::new(Decision::Go, object, what, CURE))
}

/// As kubectl names it: `baremetalhosts.metal3.io/status`.
fn named(right: &Right) -> String {
    match (right.group.as_str(), right.resource.split_once('/')) {
        ("", _) => right.resource.clone(),
        (group, None) => format!("{}.{group}", right.resource),
        (group, Some((resource, subresource))) => format!("{resource}.{group}/{subresource}"),
    }
}

impl Account {
    fn has(&self, right: &Right) -> bool {
        is_given(right, &self.rules) || (right.is_local && is_given(right, &self.local_rules))
    }
}

fn is_given(right: &Right, rules: &[PolicyRule]) -> bool {
    rules.iter().any(|rule| {
        let names = rule.resource_names.as_deref().unwrap_or_default();
        let is_named =
            names.is_empty() || (!right.names.is_empty() && right.names.iter().all(|name| names.contains(name)));
        is_named
            && has(rule.api_groups.as_deref(), &right.group)
            && has(Some(&rule.verbs), &right.verb)
            && has_resource(rule, right)
    })
}

fn has(all: Option<&[String]>, one: &str) -> bool {
    all.unwrap_or_default().iter().any(|given| given == "*" || given == one)
}

fn has_resource(rule: &PolicyRule, right: &Right) -> bool {
    let subresource = right
        .resource
        .split_once('/')
        .map(|(_, subresource)| format!("*/{subresource}"));
    let resources = rule.resources.as_deref();
    has(resources, &right.resource) || subresource.is_some_and(|subresource| has(resources, &subresource))
}
