mod applied;
mod difference;
mod labels;
mod observed;
mod outcomes;
mod parts;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube_core::ObjectMeta;
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::ipam::v1alpha1::IPPool;
use metal3_sim_cluster::{Cluster, Options};
use serde_json::{Value, json};

use super::{Mode, Writer};
use crate::cache::{Key, SharedCache};
use crate::patch::{Changes, MergePatch};
use crate::plan::Observed;

crate::role! {
    struct Tester {
        ConfigMap: Get, List, Create, Patch, Delete;
        Secret: Create, Patch;
        Namespace: Patch;
        IPPool: Create, PatchStatus;
        Metal3Machine: Create, Patch, PatchStatus;
    }
}

fn start(mode: Mode) -> (Cluster, Writer<Tester>) {
    let cluster = Cluster::start(&Options::seeded(1));
    let writer = Writer::new(cluster.client("tester"), mode);
    (cluster, writer)
}

/// The same with the config map `a` and its cache.
async fn created() -> (Cluster, Writer<Tester>, SharedCache<ConfigMap>, ConfigMap) {
    let (cluster, writer) = start(Mode::Perform);
    let cache = SharedCache::default();
    let made = writer.create(&cache, &config_map("a")).await.unwrap().object().unwrap();
    (cluster, writer, cache, made)
}

/// Installs the kinds with a status.
fn with_kinds(cluster: &Cluster) {
    let mut definitions = metal3_api::catalog::definitions();
    definitions.retain(|definition| ["IPPool", "Metal3Machine"].contains(&definition.kind));
    cluster.install(&definitions).unwrap();
}

fn key(name: &str) -> Key {
    Key {
        namespace: "default".to_owned(),
        name: name.to_owned(),
    }
}

fn meta(name: &str) -> ObjectMeta {
    ObjectMeta {
        namespace: Some("default".to_owned()),
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}

fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: meta(name),
        ..ConfigMap::default()
    }
}

fn patch(document: &Value) -> MergePatch {
    Changes::between(&json!({}), document).main.unwrap()
}

/// Number of writes of the tester that reached the server.
fn requests(cluster: &Cluster) -> u64 {
    cluster.audit().counts().map(|(_, count)| count).sum()
}

fn shows(cache: &SharedCache<ConfigMap>, name: &str) -> bool {
    matches!(cache.find(&key(name)), Observed::Present(_))
}
