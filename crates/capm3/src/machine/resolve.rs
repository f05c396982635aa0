//! Finds the Metal3Cluster of a machine.
//!
//! In order: the machine's reference, the one recorded before, the Cluster's infrastructure reference, one that joined
//! the Cluster by name or label, and one with the name of the infrastructure reference. A missing Metal3Cluster is not
//! an error: deletion and pause need none.

use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3Machine};
use metal3_api::kind::Kind;
use metal3_capi::owner;

/// The result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Resolved<'a> {
    /// One matches.
    One(&'a Metal3Cluster),
    /// Two or more match, such as these.
    Ambiguous(&'a str, &'a str),
    /// None matches.
    None,
}

impl<'a> Resolved<'a> {
    /// The match, if it is unique.
    #[must_use]
    pub const fn one(self) -> Option<&'a Metal3Cluster> {
        match self {
            Self::One(found) => Some(found),
            Self::Ambiguous(..) | Self::None => None,
        }
    }
}

/// The Metal3Cluster of a machine, among those of its namespace. `recorded` is the result of an earlier reconcile,
/// valid while the machine has a host.
#[must_use]
pub fn resolve<'a>(
    machine: &Metal3Machine,
    recorded: Option<&str>,
    cluster: &Cluster,
    all: &[&'a Metal3Cluster],
) -> Resolved<'a> {
    let find = |name: &str| {
        all.iter()
            .copied()
            .find(|one| one.metadata.name.as_deref() == Some(name))
    };
    let by_name = |name: &str| find(name).map_or(Resolved::None, Resolved::One);
    if let Some(reference) = &machine.spec.metal3_cluster_ref {
        return by_name(&reference.name);
    }
    if let Some(found) = recorded.and_then(find) {
        return Resolved::One(found);
    }
    if let Some(own) = own_infrastructure(cluster) {
        return by_name(own);
    }
    let infrastructure = cluster.spec.infrastructure_ref.as_ref();
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let mut joined = all.iter().copied().filter(|one| joins(one, name));
    match (joined.next(), joined.next()) {
        (Some(only), None) => Resolved::One(only),
        (Some(first), Some(second)) => {
            let name = |one: &'a Metal3Cluster| one.metadata.name.as_deref().unwrap_or_default();
            Resolved::Ambiguous(name(first), name(second))
        }
        (None, _) => infrastructure.map_or(Resolved::None, |reference| by_name(&reference.name)),
    }
}

/// The name of a machine's Metal3Cluster when an explicit reference determines it.
#[must_use]
pub fn stated<'a>(machine: &'a Metal3Machine, recorded: Option<&'a str>, cluster: &'a Cluster) -> Option<&'a str> {
    let reference = machine.spec.metal3_cluster_ref.as_ref();
    let named = reference.map(|reference| reference.name.as_str());
    named.or(recorded).or_else(|| own_infrastructure(cluster))
}

/// The Metal3Cluster in a Cluster's infrastructure reference.
fn own_infrastructure(cluster: &Cluster) -> Option<&str> {
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
        let found = resolve(&machine(spec.clone()), recorded, &cluster(reference.clone()), all);
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
}
