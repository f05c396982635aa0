//! What a reconcile of a Metal3Cluster observes.

use std::sync::Arc;

use metal3_api::cluster::{Cluster, Machine};
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3Machine};
use metal3_api::meta::Time;
use metal3_capi::{owner, pause};
use metal3_runtime::cache::Key;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::{Fault, Next};

use super::Clusters;
use crate::cluster::zones;
use crate::cluster::{
    ClusterLink, Facts, Results, cluster_link, cluster_name, counts_descendants, is_namesake, is_secondary,
};
use crate::endpoint::render::is_owned_and_live;
use crate::endpoint::rendered::RenderedSecret;
use crate::endpoint::source::{WantedSources, wanted_sources};
use crate::machine::facts::{in_use, recorded};
use crate::machine::resolve::{Resolved, resolve};
use crate::reasons::cluster as reasons;

impl Clusters {
    /// The facts of an object that this manager reconciles, or what they wait for.
    pub(super) async fn observe(&self, key: &Key, object: Arc<Metal3Cluster>) -> Result<Result<Facts, Next>, Fault> {
        let parts = &self.parts;
        let held_claims = self.held_claims(key);
        let cluster = match cluster_name(&object) {
            Some(name) => parts.caches.clusters.find(&key.sibling(name)),
            None => Observed::Absent,
        };
        let known_cluster = cluster.present().map(AsRef::as_ref);
        let descendant = counts_descendants(&object, known_cluster)
            .then(|| self.descendant(key, &object, known_cluster))
            .flatten();
        let wanted = sources_of(&object, known_cluster);
        let Some(mut source_values) = parts.sources.read(key, &wanted) else {
            let message = "waiting for the first list of the source of the endpoint";
            return Ok(Err(Next::waiting(reasons::SOURCE_PENDING, message)));
        };
        let is_held = known_cluster.is_some_and(|cluster| held_claims.keeps_deleted(&object, cluster));
        source_values.pool = match self.claimed(key, &object, &wanted, is_held) {
            Ok(value) => value,
            Err(waiting) => return Ok(Err(waiting)),
        };
        let secret = match self.rendered(key, &object, &wanted).await? {
            Ok(secret) => secret,
            Err(waiting) => return Ok(Err(waiting)),
        };
        let join = self.join(key, &object, cluster.present().map(AsRef::as_ref)).await?;
        Ok(Ok(Facts {
            join,
            namesake: self.namesake(key, &object),
            cluster,
            descendant,
            machines_are_live: false,
            adopts_namesakes: parts.adopts_namesakes,
            wanted,
            source_values,
            held_claims,
            zone_templates: zones::observe(&object, |name| {
                parts.pools.templates.find(&key.sibling(name)).map(|_| ())
            }),
            secret,
            digester: self.rendered.digester.clone(),
            touches_control_planes: parts.touch_writer.is_some(),
            results: Results::default(),
            now: Time::new(parts.clock.now()),
            object,
        }))
    }

    /// The Secret of the rendered endpoint, if one is requested. Each version is read once; the content of a Secret of
    /// another owner is not read.
    async fn rendered(
        &self,
        key: &Key,
        object: &Metal3Cluster,
        wanted: &WantedSources,
    ) -> Result<Result<Option<RenderedSecret>, Next>, Fault> {
        let Some(asked) = &wanted.template else {
            return Ok(Ok(None));
        };
        let name = key.sibling(&asked.secret_name);
        if let Observed::Present(cached) = self.parts.pools.secrets.find(&name) {
            if !is_owned_and_live(object, &cached.metadata) {
                return Ok(Ok(Some(RenderedSecret {
                    metadata: cached.metadata.clone(),
                    content: None,
                })));
            }
            if let Some(known) = self.rendered.known(key, &cached.metadata, &asked.key) {
                return Ok(Ok(Some(known)));
            }
        }
        Ok(match self.parts.secrets.get(&name).await? {
            Observed::Present(secret) => Ok(Some(self.rendered.store(key, &secret, &asked.key))),
            Observed::Absent => Ok(None),
            Observed::Unknown(UnknownReason::Unreadable(why)) => {
                Err(Next::waiting(reasons::UNREADABLE, format!("Secret {name}: {why}")))
            }
            Observed::Unknown(UnknownReason::NotListed | UnknownReason::NotPermitted | UnknownReason::NotRead) => {
                return Err(Fault::bug("a reconcile before the first list of Secrets"));
            }
        })
    }

    /// A Cluster that references another kind by the name of an object, when the object names no Cluster.
    fn namesake(&self, key: &Key, object: &Metal3Cluster) -> Option<Arc<Cluster>> {
        if cluster_link(object) != ClusterLink::None {
            return None;
        }
        self.parts.caches.clusters.read(|cache| {
            let mut of_namespace = cache.objects().filter(|(one, _)| one.namespace == key.namespace);
            let found = of_namespace.find(|(_, cluster)| is_namesake(&key.name, cluster));
            found.map(|(_, cluster)| Arc::clone(cluster))
        })
    }

    /// A machine that belongs to the object. An unreadable machine counts.
    pub(super) fn descendant(&self, key: &Key, object: &Metal3Cluster, cluster: Option<&Cluster>) -> Option<String> {
        let clusters: Vec<Arc<Metal3Cluster>> = self.parts.caches.metal3_clusters.read(|cache| {
            let all = cache.objects().filter(|(one, _)| one.namespace == key.namespace);
            all.map(|(_, one)| Arc::clone(one)).collect()
        });
        let all: Vec<&Metal3Cluster> = clusters.iter().map(AsRef::as_ref).collect();
        let machines = &self.parts.caches.machines;
        // Only a machine without a host resolves by it, and records it with its host.
        let domain = |machine: &Metal3Machine| {
            let owner = owner::first::<Machine>(&machine.metadata)?;
            machines
                .find(&key.sibling(&owner.name))
                .present()?
                .spec
                .failure_domain
                .clone()
        };
        let is_descendant =
            |machine: &Metal3Machine| belongs(machine, domain(machine).as_deref(), object, cluster, &all);
        // The Machines are in another cache, which must not be read within this one.
        let (machines, unreadable) = self.parts.caches.metal3_machines.read(|cache| {
            let machines: Vec<Arc<Metal3Machine>> = cache.in_namespace(&key.namespace).map(Arc::clone).collect();
            let unreadable = cache.unreadable().find(|one| one.namespace == key.namespace);
            (machines, unreadable.map(|one| one.name.clone()))
        });
        let found = machines.iter().find(|machine| is_descendant(machine));
        found.and_then(|machine| machine.metadata.name.clone()).or(unreadable)
    }
}

// differs (`cluster-descendants`): the Go manager counts every Machine of the Cluster.
/// Whether a machine belongs to a Metal3Cluster. Without the Cluster, the Metal3Cluster in the machine's status
/// decides, and else any machine of the same Cluster counts.
fn belongs(
    machine: &Metal3Machine,
    domain: Option<&str>,
    object: &Metal3Cluster,
    cluster: Option<&Cluster>,
    all: &[&Metal3Cluster],
) -> bool {
    let name = object.metadata.name.as_deref();
    let of_cluster = owner::cluster_of(&machine.metadata);
    if of_cluster.is_none() || of_cluster != cluster_name(object) {
        return false;
    }
    let used = in_use(machine);
    if used.is_some() && used == name {
        return true;
    }
    let recorded = recorded(machine);
    match cluster {
        Some(cluster) => match resolve(machine, recorded, domain, cluster, all) {
            Resolved::One(found) => found.metadata.name.as_deref() == name,
            Resolved::Ambiguous(..) | Resolved::NotOfCluster(_) | Resolved::None => false,
        },
        None => recorded.is_none_or(|recorded| Some(recorded) == name),
    }
}

/// The sources to read. A deleted or paused object needs none.
fn sources_of(object: &Metal3Cluster, cluster: Option<&Cluster>) -> WantedSources {
    let needs_sources = object.metadata.deletion_timestamp.is_none() && !pause::is_reconcile_skipped(&object.metadata);
    match cluster.filter(|_| needs_sources) {
        Some(cluster) => wanted_sources(object, cluster, is_secondary(object, cluster)),
        None => WantedSources::default(),
    }
}

#[cfg(test)]
mod tests {
    use metal3_api::infrastructure::names::CHOSEN_HOST_ANNOTATION;
    use serde_json::{Value, from_value, json};

    use super::*;

    #[test]
    fn metal3_cluster_of_a_choice_waits_for_the_machine() {
        let machine = |annotations: Value| -> Metal3Machine {
            let labels = json!({ "cluster.x-k8s.io/cluster-name": "edge" });
            let document = json!({ "metadata": { "name": "m0", "labels": labels, "annotations": annotations }, "spec": {},
                "status": { "metal3Cluster": "south" } });
            from_value(document).unwrap()
        };
        let site = |name: &str| -> Metal3Cluster {
            let document = json!({ "metadata": { "name": name },
                "spec": { "clusterName": "edge", "failureDomains": [{ "name": name }] } });
            from_value(document).unwrap()
        };
        let [north, south] = [site("north"), site("south")];
        let reference = json!({ "infrastructureRef": { "kind": "ByoCluster", "name": "byo" } });
        let cluster: Cluster = from_value(json!({ "metadata": { "name": "edge" }, "spec": reference })).unwrap();
        // Its failure domain became one of the north after it chose a host of the south.
        let chosen = machine(json!({ CHOSEN_HOST_ANNOTATION: "h0" }));
        let free = machine(json!({}));
        for (machine, object, expected) in [(&chosen, &south, true), (&free, &south, false), (&free, &north, true)] {
            let found = belongs(machine, Some("north"), object, Some(&cluster), &[&north, &south]);
            assert_eq!(found, expected, "{:?} {:?}", machine.metadata, object.metadata.name);
        }
    }
}
