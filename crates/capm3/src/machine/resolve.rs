//! Finds the Metal3Cluster of a machine.
//!
//! In order: the machine's reference, the one recorded before, the Cluster's infrastructure reference, one that joined
//! the Cluster by name or label, and one with the name of the infrastructure reference. Of several that joined it is the
//! one that has the failure domain of the Machine. A missing Metal3Cluster is not an error: deletion and pause need none.
//!
//! A Metal3Cluster of another Cluster is never the result: its deletion would not wait for the machine.

use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3Machine};
use metal3_api::kind::Kind;
use metal3_capi::owner;

use crate::cluster::{ClusterLink, cluster_link};

/// The result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Resolved<'a> {
    /// One matches.
    One(&'a Metal3Cluster),
    /// Two or more match, such as these, and none or more than one of them has the machine's failure domain.
    Ambiguous(&'a str, &'a str),
    /// This one is meant, which does not belong to the machine's Cluster.
    NotOfCluster(&'a Metal3Cluster),
    /// None matches.
    None,
}

impl<'a> Resolved<'a> {
    /// The match, if it is unique.
    #[must_use]
    pub const fn one(self) -> Option<&'a Metal3Cluster> {
        match self {
            Self::One(found) => Some(found),
            Self::Ambiguous(..) | Self::NotOfCluster(_) | Self::None => None,
        }
    }

    /// The only Metal3Cluster that can be meant, whether or not the machine may use it.
    #[must_use]
    pub fn name(self) -> Option<&'a str> {
        match self {
            Self::One(found) | Self::NotOfCluster(found) => found.metadata.name.as_deref(),
            Self::Ambiguous(..) | Self::None => None,
        }
    }
}

/// The Metal3Cluster of a machine, among those of its namespace. `recorded` is the result of an earlier reconcile,
/// valid while the machine has a host; `domain` is the failure domain that its Machine states.
#[must_use]
pub fn resolve<'a>(
    machine: &Metal3Machine,
    recorded: Option<&str>,
    domain: Option<&str>,
    cluster: &Cluster,
    all: &[&'a Metal3Cluster],
) -> Resolved<'a> {
    let find = |name: &str| {
        all.iter()
            .copied()
            .find(|one| one.metadata.name.as_deref() == Some(name))
    };
    let checked = |found: &'a Metal3Cluster| {
        if is_of(found, cluster) {
            Resolved::One(found)
        } else {
            Resolved::NotOfCluster(found)
        }
    };
    let by_name = |name: &str| find(name).map_or(Resolved::None, checked);
    if let Some(reference) = &machine.spec.metal3_cluster_ref {
        return by_name(&reference.name);
    }
    if let Some(found) = recorded.and_then(find) {
        // One that left the Cluster serves its machines until another Cluster has it.
        let names_none = cluster_link(found) == ClusterLink::None;
        return if names_none {
            Resolved::One(found)
        } else {
            checked(found)
        };
    }
    if let Some(own) = own_infrastructure(cluster) {
        return by_name(own);
    }
    let infrastructure = cluster.spec.infrastructure_ref.as_ref();
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    match with_domain(all.iter().copied().filter(|one| joins(one, name)).collect(), domain).as_slice() {
        [only] => Resolved::One(only),
        [first, second, ..] => {
            let name = |one: &'a Metal3Cluster| one.metadata.name.as_deref().unwrap_or_default();
            Resolved::Ambiguous(name(first), name(second))
        }
        [] => {
            let namesake = infrastructure.and_then(|reference| find(&reference.name));
            let usable = namesake.filter(|one| is_of(one, cluster));
            usable.map_or(Resolved::None, Resolved::One)
        }
    }
}

/// The other Metal3Clusters of a Cluster.
pub fn others<'a>(
    own: &Metal3Cluster,
    cluster: &Cluster,
    all: impl IntoIterator<Item = &'a Metal3Cluster>,
) -> impl Iterator<Item = &'a Metal3Cluster> {
    let is_other = |one: &&Metal3Cluster| one.metadata.name != own.metadata.name && is_of(one, cluster);
    all.into_iter().filter(is_other)
}

/// Those of several that have the failure domain; all, if none has it.
fn with_domain<'a>(joined: Vec<&'a Metal3Cluster>, domain: Option<&str>) -> Vec<&'a Metal3Cluster> {
    let Some(domain) = domain.filter(|_| joined.len() > 1) else {
        return joined;
    };
    let having = joined.iter().copied().filter(|one| one.spec.has_domain(domain));
    let having: Vec<_> = having.collect();
    if having.is_empty() { joined } else { having }
}

/// Whether a Metal3Cluster that cannot be read may be the one of the machine: no explicit reference determined the result.
#[must_use]
pub fn may_be_unreadable(
    resolved: Resolved<'_>,
    machine: &Metal3Machine,
    recorded: Option<&str>,
    cluster: &Cluster,
) -> bool {
    resolved.name().is_none() || resolved.name() != stated(machine, recorded, cluster)
}

/// The name of a machine's Metal3Cluster when an explicit reference determines it.
fn stated<'a>(machine: &'a Metal3Machine, recorded: Option<&'a str>, cluster: &'a Cluster) -> Option<&'a str> {
    let reference = machine.spec.metal3_cluster_ref.as_ref();
    let named = reference.map(|reference| reference.name.as_str());
    named.or(recorded).or_else(|| own_infrastructure(cluster))
}

/// The Metal3Cluster in a Cluster's infrastructure reference.
pub(crate) fn own_infrastructure(cluster: &Cluster) -> Option<&str> {
    let reference = cluster.spec.infrastructure_ref.as_ref()?;
    let is_metal3_cluster = reference.kind == Metal3Cluster::KIND && reference.api_group == Metal3Cluster::GROUP;
    is_metal3_cluster.then_some(&reference.name)
}

/// Whether a Metal3Cluster joined a Cluster with other infrastructure.
#[must_use]
pub fn joins(one: &Metal3Cluster, cluster: &str) -> bool {
    let stated = one.spec.cluster_name.as_deref().filter(|name| !name.is_empty());
    !cluster.is_empty() && stated.or_else(|| owner::cluster_of(&one.metadata)) == Some(cluster)
}

/// Whether a Metal3Cluster may serve the machines of a Cluster. One that names no Cluster may when the Cluster names it.
fn is_of(one: &Metal3Cluster, cluster: &Cluster) -> bool {
    let (own, cluster_name) = (one.metadata.name.as_deref(), cluster.metadata.name.as_deref());
    if let Some(owner) = owner::first::<Cluster>(&one.metadata) {
        return cluster_name == Some(&owner.name);
    }
    let infrastructure = cluster.spec.infrastructure_ref.as_ref();
    let has_its_name = || infrastructure.is_some_and(|reference| own == Some(&reference.name));
    let names_none = || cluster_link(one) == ClusterLink::None;
    own_infrastructure(cluster) == own || joins(one, cluster_name.unwrap_or_default()) || names_none() && has_its_name()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn metal3_cluster(name: &str, spec: Value) -> Metal3Cluster {
        serde_json::from_value(json!({ "metadata": { "name": name, "namespace": "metal" }, "spec": spec })).unwrap()
    }

    fn cluster(reference: Value) -> Cluster {
        serde_json::from_value(json!({ "metadata": { "name": "mixed" }, "spec": { "infrastructureRef": reference } }))
            .unwrap()
    }

    fn machine(spec: Value) -> Metal3Machine {
        serde_json::from_value(json!({ "metadata": { "name": "m", "namespace": "metal" }, "spec": spec })).unwrap()
    }

    /// Asserts what a machine resolves to.
    fn check(spec: Value, reference: &Value, recorded: Option<&str>, all: &[&Metal3Cluster], expected: Resolved<'_>) {
        let found = resolve(&machine(spec.clone()), recorded, None, &cluster(reference.clone()), all);
        assert_eq!(found, expected, "{spec} {reference} {recorded:?}");
    }

    #[test]
    fn machine_resolves_by_reference_then_cluster_then_membership_then_name() {
        let own = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Cluster", "name": "mixed" });
        let foreign = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "ByoCluster", "name": "mixed" });
        let joining = |name| metal3_cluster(name, json!({ "clusterName": "mixed" }));
        let (namesake, site_a, site_b) = (metal3_cluster("mixed", json!({})), joining("site-a"), joining("site-b"));
        let (both, three) = ([&namesake, &site_a], [&namesake, &site_a, &site_b]);
        let named = || json!({ "metal3ClusterRef": { "name": "site-b" } });
        let plain = || json!({});
        check(named(), &foreign, None, &three, Resolved::One(&site_b));
        check(named(), &own, None, &both, Resolved::None);
        check(plain(), &own, None, &three, Resolved::One(&namesake));
        check(plain(), &own, None, &[], Resolved::None);
        check(plain(), &foreign, None, &both, Resolved::One(&site_a));
        check(plain(), &foreign, None, &three, Resolved::Ambiguous("site-a", "site-b"));
        check(plain(), &foreign, Some("site-b"), &three, Resolved::One(&site_b));
        check(plain(), &foreign, None, &[&namesake], Resolved::One(&namesake));
        check(plain(), &Value::Null, None, &[&namesake], Resolved::None);
    }

    /// A failure domain is a zone, or one that the Metal3Cluster reports.
    #[test]
    fn failure_domain_decides_between_metal3_clusters_that_joined() {
        let foreign = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "ByoCluster", "name": "mixed" });
        let site = |name: &str, zones: Value, domains: Value| {
            let spec = json!({ "clusterName": "mixed", "deploymentZones": zones, "failureDomains": domains });
            metal3_cluster(name, spec)
        };
        let named = |name: &str| json!([{ "name": name }]);
        let north = site("north", named("n"), json!([]));
        let south = site("south", named("s"), named("edge"));
        let east = site("east", named("e"), named("edge"));
        let all = [&north, &south, &east];
        let named = json!({ "metal3ClusterRef": { "name": "south" } });
        for (spec, recorded, domain, all, expected) in [
            (json!({}), None, Some("n"), &all[..], Resolved::One(&north)),
            (json!({}), None, Some("s"), &all, Resolved::One(&south)),
            (json!({}), None, Some("edge"), &all[..2], Resolved::One(&south)),
            (
                json!({}),
                None,
                Some("edge"),
                &all,
                Resolved::Ambiguous("south", "east"),
            ),
            (
                json!({}),
                None,
                Some("none"),
                &all,
                Resolved::Ambiguous("north", "south"),
            ),
            (json!({}), None, Some("none"), &all[..1], Resolved::One(&north)),
            (json!({}), None, None, &all, Resolved::Ambiguous("north", "south")),
            (named, None, Some("n"), &all, Resolved::One(&south)),
            (json!({}), Some("east"), Some("n"), &all, Resolved::One(&east)),
        ] {
            let found = resolve(&machine(spec.clone()), recorded, domain, &cluster(foreign.clone()), all);
            assert_eq!(found, expected, "{spec} {recorded:?} {domain:?} {}", all.len());
        }
    }

    #[test]
    fn metal3_cluster_of_another_cluster_is_never_the_result() {
        let own = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Cluster", "name": "mixed" });
        let foreign = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "ByoCluster", "name": "byo" });
        let owned = |name: &str, cluster: &str| {
            let owner =
                json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": cluster, "uid": "u" });
            let mut one = metal3_cluster(name, json!({}));
            one.metadata.owner_references = Some(vec![serde_json::from_value(owner).unwrap()]);
            one
        };
        let other = |name| metal3_cluster(name, json!({ "clusterName": "another" }));
        let named = |name: &str| json!({ "metal3ClusterRef": { "name": name } });
        for reference in [&own, &foreign] {
            for stranger in [other("x"), owned("x", "another"), metal3_cluster("x", json!({}))] {
                check(
                    named("x"),
                    reference,
                    None,
                    &[&stranger],
                    Resolved::NotOfCluster(&stranger),
                );
                check(
                    named("x"),
                    reference,
                    Some("x"),
                    &[&stranger],
                    Resolved::NotOfCluster(&stranger),
                );
            }
            let known = owned("x", "mixed");
            check(named("x"), reference, None, &[&known], Resolved::One(&known));
        }
        let primary = metal3_cluster("mixed", json!({}));
        check(named("mixed"), &own, None, &[&primary], Resolved::One(&primary));
        check(json!({}), &own, None, &[&primary], Resolved::One(&primary));
        let (lost, known) = (owned("mixed", "another"), owned("mixed", "mixed"));
        check(json!({}), &own, None, &[&lost], Resolved::NotOfCluster(&lost));
        check(json!({}), &own, Some("mixed"), &[&lost], Resolved::NotOfCluster(&lost));
        check(json!({}), &own, None, &[&known], Resolved::One(&known));
        for stranger in [other("x"), owned("x", "another")] {
            let refused = Resolved::NotOfCluster(&stranger);
            check(json!({}), &foreign, Some("x"), &[&stranger], refused);
        }
        let (left, own_one) = (metal3_cluster("x", json!({})), owned("x", "mixed"));
        check(json!({}), &foreign, Some("x"), &[&left], Resolved::One(&left));
        check(json!({}), &foreign, Some("x"), &[&own_one], Resolved::One(&own_one));
        let (namesake, taken) = (metal3_cluster("byo", json!({})), other("byo"));
        check(named("byo"), &foreign, None, &[&namesake], Resolved::One(&namesake));
        check(json!({}), &foreign, None, &[&taken], Resolved::None);
    }
}
