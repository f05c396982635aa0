//! `clusterctl move` of a cluster to another API server and away from this one: paused, copied object by object with
//! new UIDs and without status, then deleted here with all annotations replaced by the one that marks the move.
//!
//! No fault may cause a host to lose its machine or image, an address or index to be released or assigned twice, or a
//! Secret to be rendered again.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube_core::Resource;
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3Data, Metal3DataClaim, Metal3Machine};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::clock::Clock;
use metal3_harness::{Instance, State, TestEnv};
use metal3_runtime::clock::TimerClock;
use metal3_runtime::metrics::Metrics;
use metal3_sim_cluster::{Cluster, Options};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::clusterctl::{Place, Saved, copy, delete_moved, restore_status, save};
use super::faults::{ScenarioStep as _, of_hosts, of_machines};
use super::program::{self, start};
use super::steps::{CLUSTER, Step, kinds};
use crate::data::reconciler::tests::invariants;
use crate::data::reconciler::tests::lab::{CLUSTER_API, HOSTS, INFRASTRUCTURE, IPAM, User, address_management};
use crate::tests::sweep_sampled;

/// The sample for scenarios with all controllers and IPAM.
const LONG_SAMPLE: usize = 37;
const CORE: &str = "/api/v1/namespaces/default";
const BLOCK: &str = "clusterctl.cluster.x-k8s.io/block-move";

/// The moved kinds, owners first.
const MOVED: [Place; 12] = [
    (CLUSTER_API, "clusters"),
    (HOSTS, "baremetalhosts"),
    (IPAM, "ippools"),
    (INFRASTRUCTURE, "metal3datatemplates"),
    (INFRASTRUCTURE, "metal3clusters"),
    (CLUSTER_API, "machines"),
    (INFRASTRUCTURE, "metal3machines"),
    (INFRASTRUCTURE, "metal3dataclaims"),
    (INFRASTRUCTURE, "metal3datas"),
    (IPAM, "ipclaims"),
    (IPAM, "ipaddresses"),
    (CORE, "secrets"),
];

/// Whose pool the addresses come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pool {
    /// It names the Cluster, and is paused with it.
    OfCluster,
    /// It names no Cluster, and allocates during the move.
    Shared,
}

/// Creates one provisioned machine with an address.
async fn provision(user: &kube::Client, stage: usize, pool: Pool) {
    match stage {
        0 => {
            for step in [Step::Cluster, Step::Template, Step::Host("h0"), Step::Machine("m0")] {
                step.take(user).await;
            }
            if pool == Pool::OfCluster {
                let of_cluster = json!({ "spec": { "clusterName": CLUSTER } });
                User(user.clone()).change(IPAM, "ippools/pool", of_cluster).await;
            }
        }
        1 => Step::State("h0", "provisioned").take(user).await,
        _ => Step::Pause(true).take(user).await,
    }
}

/// The objects of such a cluster, paused and ready to move.
async fn paused_cluster(pool: Pool) -> Vec<Saved> {
    let cluster = Cluster::start(&Options::seeded(1));
    cluster.install(&kinds()).unwrap();
    let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
    let _program = start(&cluster.client("capm3"), &clock, true, &Metrics::new());
    let _addresses = address_management(&cluster.client("addresses"), &clock);
    let user = cluster.client("user");
    for stage in 0..3 {
        provision(&user, stage, pool).await;
        tokio::time::sleep(Duration::from_mins(10)).await;
    }
    let saved = save(&User(user), &MOVED).await;
    let blocks = |(_, _, object): &&Saved| !object["metadata"]["annotations"][BLOCK].is_null();
    assert_eq!(saved.iter().filter(blocks).count(), 0, "the move may begin");
    saved
}

/// Cluster API and the host controllers restore the lost status after the pause.
async fn resume(user: &kube::Client) {
    let lab = User(user.clone());
    let done = json!({ "status": { "initialization": { "infrastructureProvisioned": true } } });
    lab.change(CLUSTER_API, &format!("clusters/{CLUSTER}/status"), done)
        .await;
    Step::Pause(false).take(user).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    restore_status(&lab).await;
}

/// Names of all objects, and whether each is in deletion.
fn object_names(state: &State) -> BTreeMap<String, bool> {
    let mut found = BTreeMap::new();
    note::<Metal3DataClaim>(state, &mut found);
    note::<Metal3Data>(state, &mut found);
    note::<IPClaim>(state, &mut found);
    note::<IPAddress>(state, &mut found);
    note::<Secret>(state, &mut found);
    found
}

fn note<K: Resource<DynamicType = ()> + DeserializeOwned>(state: &State, found: &mut BTreeMap<String, bool>) {
    for object in state.of::<K>() {
        let meta = object.meta();
        let name = format!("{} {}", K::kind(&()), meta.name.as_deref().unwrap_or_default());
        found.insert(name, meta.deletion_timestamp.is_some());
    }
}

/// Hosts that are deprovisioned or lose their machine.
fn released_hosts(state: &State) -> Vec<String> {
    let lost =
        |host: &BareMetalHost| host.spec.image.is_none() || host.spec.consumer_ref.is_none() || !host.spec.online;
    let hosts = state.of::<BareMetalHost>().into_iter().filter(lost);
    hosts
        .map(|host| format!("{} was given up", host.metadata.name.unwrap_or_default()))
        .collect()
}

/// One side of a move.
enum Side {
    /// The target, with the objects to copy and the names of those that count.
    Arriving { saved: Vec<Saved>, names: BTreeSet<String> },
    /// The source.
    Leaving(Pool),
}

impl TestEnv for Side {
    fn name(&self) -> &'static str {
        match self {
            Self::Arriving { .. } => "a cluster arrives by a move",
            Self::Leaving(_) => "a cluster leaves by a move",
        }
    }

    fn install(&self, cluster: &Cluster) {
        cluster.install(&kinds()).unwrap();
    }

    fn stages(&self) -> usize {
        match self {
            Self::Arriving { .. } => 3,
            Self::Leaving(_) => 4,
        }
    }

    async fn stage(&self, stage: usize, user: kube::Client) {
        match (self, stage) {
            // The program runs from the first object on.
            (Self::Arriving { .. }, 0) => {}
            (Self::Arriving { saved, .. }, 1) => copy(&User(user), saved, &mut BTreeMap::new()).await,
            (Self::Arriving { .. }, _) => resume(&user).await,
            (Self::Leaving(_), 3) => delete_moved(&User(user), &MOVED).await,
            (Self::Leaving(pool), _) => provision(&user, stage, *pool).await,
        }
    }

    fn background(&self, cluster: &Cluster, clock: &Arc<dyn Clock>) -> JoinSet<()> {
        address_management(&cluster.client("addresses"), clock)
    }

    fn run(&self, instance: Instance) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        program::run(instance, true)
    }

    fn kinds(&self) -> Vec<String> {
        let mut kinds = vec![
            State::path::<BareMetalHost>(),
            State::path::<Metal3Machine>(),
            State::path::<Metal3Cluster>(),
        ];
        kinds.extend(invariants::paths());
        kinds
    }

    fn violations(&self, state: &State) -> Vec<String> {
        let Self::Arriving { names, .. } = self else {
            // A provisioned machine stays so while it exists.
            let is_provisioned = |machine: &Metal3Machine| machine.spec.provider_id.is_some();
            return if state.of::<Metal3Machine>().iter().any(is_provisioned) {
                released_hosts(state)
            } else {
                of_hosts(state)
            };
        };
        let mut wrong = of_hosts(state);
        wrong.extend(released_hosts(state));
        // The claim's status is lost in the move, and restored before the data are used.
        let of_data = invariants::violations(state).into_iter();
        wrong.extend(of_data.filter(|wrong| !wrong.ends_with("does not name it")));
        for (name, is_deleting) in object_names(state) {
            if is_deleting || !names.contains(&name) {
                wrong.push(format!("{name} is new or in deletion: {is_deleting}"));
            }
        }
        wrong
    }

    fn unfinished(&self, state: &State) -> Vec<String> {
        let (found, here) = (Step::end(state), object_names(state).into_keys());
        let Self::Arriving { names, .. } = self else {
            return here.chain(found).collect();
        };
        let mut missing = of_machines(state);
        let here: BTreeSet<String> = here.collect();
        let wanted = [
            "h0 runs for m0",
            "m0 metal3://default/h0/m0",
            "claim m0",
            "cluster edge",
        ];
        if found != wanted {
            missing.push(format!("ends with {found:?}"));
        }
        if here != *names {
            missing.push(format!("ends with {here:?}"));
        }
        missing
    }
}

/// Runs the sweep, and asserts that the program deletes nothing.
async fn assert_nothing_deleted(side: Side) {
    let report = sweep_sampled(side, LONG_SAMPLE).await;
    assert!(
        report.effects.iter().all(|effect| !effect.starts_with("DELETE")),
        "{:#?}",
        report.effects
    );
}

/// Moves a cluster with a pool to another server under every fault.
async fn assert_arrives_whole(pool: Pool) {
    let saved = paused_cluster(pool).await;
    let kind = |object: &Value| object["kind"].as_str().unwrap().to_owned();
    let counted = ["Metal3DataClaim", "Metal3Data", "IPClaim", "IPAddress", "Secret"];
    let names = saved
        .iter()
        .filter(|(_, _, object)| counted.contains(&kind(object).as_str()));
    let names =
        names.map(|(_, _, object)| format!("{} {}", kind(object), object["metadata"]["name"].as_str().unwrap()));
    let names: BTreeSet<String> = names.collect();
    assert_eq!(names.len(), 7, "{names:?}");
    assert_nothing_deleted(Side::Arriving { saved, names }).await;
}

#[tokio::test(start_paused = true)]
async fn moved_cluster_keeps_its_hosts_and_data_under_every_fault() {
    assert_arrives_whole(Pool::OfCluster).await;
}

#[tokio::test(start_paused = true)]
async fn moved_cluster_keeps_its_addresses_of_a_shared_pool_under_every_fault() {
    assert_arrives_whole(Pool::Shared).await;
}

#[tokio::test(start_paused = true)]
async fn cluster_moved_away_is_deleted_without_effects_under_every_fault() {
    assert_nothing_deleted(Side::Leaving(Pool::OfCluster)).await;
}

#[tokio::test(start_paused = true)]
async fn cluster_moved_away_from_a_shared_pool_is_deleted_without_effects_under_every_fault() {
    assert_nothing_deleted(Side::Leaving(Pool::Shared)).await;
}
