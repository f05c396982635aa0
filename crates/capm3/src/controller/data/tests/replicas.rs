//! Several replicas and no leader: what they write, and what they leave.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use metal3_domain::clock::Clock;
use metal3_runtime::clock::TimerClock;
use metal3_sim_cluster::{Cluster, Options};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::kinds::kinds;
use super::lab::{
    CLUSTER_API, CLUSTER_IPAM, INFRASTRUCTURE, IPAM, User, address, address_management, both_pools, without_pools,
};
use super::start;

/// A server with one template, and replicas that run on it.
struct Lab {
    cluster: Cluster,
    user: User,
    _tasks: Vec<JoinSet<()>>,
}

impl Lab {
    async fn with(replicas: usize, template: Value) -> Self {
        let cluster = Cluster::start(&Options::seeded(1));
        cluster.install(&kinds()).unwrap();
        let user = User(cluster.client("user"));
        user.cluster().await;
        user.pool(4).await;
        user.template(template).await;
        let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
        let mut tasks: Vec<_> = (0..replicas).map(|_| start(&cluster.client("data"), &clock)).collect();
        tasks.push(address_management(&cluster.client("addresses"), &clock));
        let (mut collector, collected) = (JoinSet::new(), cluster.clone());
        collector.spawn(async move { collected.run_collector().await });
        tasks.push(collector);
        Self {
            cluster,
            user,
            _tasks: tasks,
        }
    }

    /// The text of a Secret.
    async fn told(&self, secret: &str, key: &str) -> String {
        let secrets: Api<Secret> = Api::default_namespaced(self.user.0.clone());
        let data = secrets.get(secret).await.unwrap().data.unwrap();
        String::from_utf8(data[key].0.clone()).unwrap()
    }

    /// How many claims on pools there are, and how many of them are going.
    async fn claims(&self) -> (usize, usize) {
        let mut claims = self.user.list(IPAM, "ipclaims").await;
        claims.extend(self.user.list(CLUSTER_IPAM, "ipaddressclaims").await);
        let going = claims
            .iter()
            .filter(|claim| !claim["metadata"]["deletionTimestamp"].is_null());
        (claims.len(), going.count())
    }

    async fn count(&self, plural: &str) -> usize {
        self.user.list(INFRASTRUCTURE, plural).await.len()
    }

    fn writes(&self) -> u64 {
        let audit = self.cluster.audit();
        let ours = audit
            .counts()
            .filter(|((user, verb, _), _)| user == "data" && ["create", "patch", "delete"].contains(verb));
        ours.map(|(_, number)| number).sum()
    }

    /// Lets the replicas work until nothing was written for a while.
    async fn rest(&self) {
        let mut before = None;
        for _ in 0..200 {
            tokio::time::sleep(Duration::from_secs(30)).await;
            let writes = Some(self.writes());
            if writes == before {
                return;
            }
            before = writes;
        }
        panic!("never at rest: {:?}", self.cluster.audit());
    }
}

#[tokio::test(start_paused = true)]
async fn three_replicas_without_leader_give_each_claim_one_number_and_rest() {
    const MACHINES: usize = 12;
    let lab = Lab::with(3, without_pools()).await;
    for number in 0..MACHINES {
        lab.user.machine(&format!("w-{number}")).await;
    }
    lab.rest().await;
    let data = lab.user.list(INFRASTRUCTURE, "metal3datas").await;
    let numbers: BTreeSet<u64> = data
        .iter()
        .map(|data| data["spec"]["index"].as_u64().unwrap())
        .collect();
    let claims: BTreeSet<&str> = data
        .iter()
        .map(|data| data["spec"]["claim"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        (data.len(), numbers.len(), claims.len()),
        (MACHINES, MACHINES, MACHINES)
    );
    assert!(data.iter().all(|data| data["status"]["ready"] == true), "{data:#?}");
    lab.cluster.reset_audit();
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(lab.writes(), 0, "an idle hour costs no write");
}

#[tokio::test(start_paused = true)]
async fn a_machine_without_pools_costs_eight_writes_whatever_the_number_of_machines() {
    let lab = Lab::with(1, without_pools()).await;
    for number in 0..4 {
        lab.user.machine(&format!("w-{number}")).await;
        lab.rest().await;
        if number > 0 {
            // Claim guarded and answered, data made, marked and said to be ready, two Secrets, the template's numbers.
            assert_eq!(lab.writes(), 8, "{:?}", lab.cluster.audit());
        }
        lab.cluster.reset_audit();
    }
}

#[tokio::test(start_paused = true)]
async fn addresses_of_both_contracts_reach_the_machine_and_stay_until_its_claim_is_gone() {
    for replicas in [1, 3] {
        let lab = Lab::with(replicas, both_pools()).await;
        lab.user.machine("w-0").await;
        lab.rest().await;
        assert_eq!(lab.claims().await, (2, 0), "one on each pool");
        lab.user.provide().await;
        lab.rest().await;
        let meta_data = lab.told("w-0-metadata", "metaData").await;
        assert!(meta_data.contains(&format!("ip: {}", address(0))), "{meta_data}");
        let network_data = lab.told("w-0-networkdata", "networkData").await;
        assert!(network_data.contains("192.0.2.0"), "{network_data}");

        lab.user.give_back("w-0").await;
        lab.rest().await;
        assert_eq!(
            (lab.claims().await, lab.count("metal3datas").await),
            ((2, 0), 1),
            "the host may run yet"
        );
        lab.user.let_go("w-0").await;
        lab.rest().await;
        assert_eq!((lab.claims().await, lab.count("metal3datas").await), ((0, 0), 0));

        lab.user.machine("w-1").await;
        lab.rest().await;
        let data = lab.user.get(INFRASTRUCTURE, "metal3datas/tpl-0").await;
        assert_eq!(data["spec"]["claim"]["name"], "w-1", "the lowest number is free again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_template_stays_for_its_machines_and_nothing_happens_in_a_paused_cluster() {
    let lab = Lab::with(1, without_pools()).await;
    lab.user.machine("w-0").await;
    lab.rest().await;
    lab.user
        .change(CLUSTER_API, "clusters/alpha", json!({ "spec": { "paused": true } }))
        .await;
    lab.rest().await;
    let before = lab.writes();
    lab.user.machine("w-1").await;
    lab.user.give_back("w-0").await;
    lab.rest().await;
    assert_eq!(lab.writes(), before);

    lab.user.delete(INFRASTRUCTURE, "metal3datatemplates/tpl").await;
    lab.user
        .change(CLUSTER_API, "clusters/alpha", json!({ "spec": { "paused": false } }))
        .await;
    lab.rest().await;
    assert_eq!(
        (lab.count("metal3datas").await, lab.count("metal3datatemplates").await),
        (2, 1)
    );
    lab.user.let_go("w-0").await;
    lab.user.give_back("w-1").await;
    lab.rest().await;
    lab.user.let_go("w-1").await;
    lab.rest().await;
    assert_eq!(
        (lab.count("metal3datas").await, lab.count("metal3datatemplates").await),
        (0, 0)
    );
}
