//! Several replicas without leader election: their writes and the final state.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use metal3_domain::clock::Clock;
use metal3_runtime::clock::TimerClock;
use metal3_sim_cluster::{Cluster, Options};
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::lab::{
    CLUSTER_API, CLUSTER_IPAM, INFRASTRUCTURE, IPAM, User, address, address_management, both_pools, kinds, one_pool,
    without_pools,
};
use super::start;

/// A server with one template, and replicas.
struct Setup {
    cluster: Cluster,
    user: User,
    clock: Arc<dyn Clock>,
    /// Those of the replicas first.
    tasks: Vec<JoinSet<()>>,
}

impl Setup {
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
            clock,
            tasks,
        }
    }

    /// The text of a Secret.
    async fn secret_text(&self, secret: &str, key: &str) -> String {
        let secrets: Api<Secret> = Api::default_namespaced(self.user.0.clone());
        let data = secrets.get(secret).await.unwrap().data.unwrap();
        String::from_utf8(data[key].0.clone()).unwrap()
    }

    /// The number of claims on pools, and of those in deletion.
    async fn claims(&self) -> (usize, usize) {
        let mut claims = self.user.list(IPAM, "ipclaims").await;
        claims.extend(self.user.list(CLUSTER_IPAM, "ipaddressclaims").await);
        let deleting = claims
            .iter()
            .filter(|claim| !claim["metadata"]["deletionTimestamp"].is_null());
        (claims.len(), deleting.count())
    }

    /// The number of Metal3Data, and of templates.
    async fn left(&self) -> (usize, usize) {
        let data = self.user.list(INFRASTRUCTURE, "metal3datas").await;
        let templates = self.user.list(INFRASTRUCTURE, "metal3datatemplates").await;
        (data.len(), templates.len())
    }

    fn writes(&self) -> u64 {
        let audit = self.cluster.audit();
        let writes = audit
            .counts()
            .filter(|((user, verb, _), _)| user == "data" && ["create", "patch", "delete"].contains(verb));
        writes.map(|(_, number)| number).sum()
    }

    /// Waits until no writes occur for a while.
    async fn until_idle(&self) {
        let mut before = None;
        for _ in 0..200 {
            tokio::time::sleep(Duration::from_secs(30)).await;
            let writes = Some(self.writes());
            if writes == before {
                return;
            }
            before = writes;
        }
        panic!("the writes never end: {:?}", self.cluster.audit());
    }
}

/// Without the list of claims nothing says which of them a Metal3Data has, and without it nothing releases them.
#[tokio::test(start_paused = true)]
async fn data_whose_claims_may_not_be_listed_are_kept_until_they_may() {
    let mut run = Setup::with(1, one_pool()).await;
    run.user.machine("m0").await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!((run.claims().await, run.left().await.0), ((1, 0), 1));
    drop(run.tasks.remove(0));
    let refused = ["list", "watch"].map(|verb| Rule::random(1000, Fault::refused(403)).verb(verb).resource("ipclaims"));
    run.cluster
        .inject_for(&["data"], refused.into_iter().fold(Plan::seeded(1), Plan::with));
    run.tasks.insert(0, start(&run.cluster.client("data"), &run.clock));
    run.user.give_back("m0").await;
    sleep(Duration::from_secs(1)).await;
    run.user.let_go("m0").await;
    sleep(Duration::from_mins(10)).await;
    assert_eq!((run.claims().await.0, run.left().await.0), (1, 1));
    run.cluster.inject(Plan::none());
    sleep(Duration::from_mins(5)).await;
    assert_eq!((run.claims().await.0, run.left().await.0), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn three_replicas_without_leader_assign_each_claim_one_index_and_become_idle() {
    const MACHINES: usize = 12;
    let setup = Setup::with(3, without_pools()).await;
    for number in 0..MACHINES {
        setup.user.machine(&format!("w-{number}")).await;
    }
    setup.until_idle().await;
    let data = setup.user.list(INFRASTRUCTURE, "metal3datas").await;
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
    setup.cluster.reset_audit();
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(setup.writes(), 0, "an idle hour costs no write");
}

#[tokio::test(start_paused = true)]
async fn machine_without_pools_costs_eight_writes_at_any_scale() {
    let setup = Setup::with(1, without_pools()).await;
    for number in 0..4 {
        setup.user.machine(&format!("w-{number}")).await;
        setup.until_idle().await;
        if number > 0 {
            // Claim: finalizer and status. Metal3Data: created, finalizer, ready. Two Secrets. The template's status.
            assert_eq!(setup.writes(), 8, "{:?}", setup.cluster.audit());
        }
        setup.cluster.reset_audit();
    }
}

#[tokio::test(start_paused = true)]
async fn addresses_of_both_contracts_reach_the_machine_and_stay_until_its_claim_is_deleted() {
    for replicas in [1, 3] {
        let setup = Setup::with(replicas, both_pools()).await;
        setup.user.machine("w-0").await;
        setup.until_idle().await;
        assert_eq!(setup.claims().await, (2, 0), "one on each pool");
        setup.user.provide().await;
        setup.until_idle().await;
        let meta_data = setup.secret_text("w-0-metadata", "metaData").await;
        assert!(meta_data.contains(&format!("ip: {}", address(0))), "{meta_data}");
        let network_data = setup.secret_text("w-0-networkdata", "networkData").await;
        assert!(network_data.contains("192.0.2.0"), "{network_data}");

        setup.user.give_back("w-0").await;
        setup.until_idle().await;
        let left = (setup.claims().await, setup.left().await);
        assert_eq!(left, ((2, 0), (1, 1)), "the host may still run");
        setup.user.let_go("w-0").await;
        setup.until_idle().await;
        assert_eq!((setup.claims().await, setup.left().await), ((0, 0), (0, 1)));

        setup.user.machine("w-1").await;
        setup.until_idle().await;
        let data = setup.user.get(INFRASTRUCTURE, "metal3datas/tpl-0").await;
        assert_eq!(data["spec"]["claim"]["name"], "w-1", "the lowest number is free again");
    }
}

#[tokio::test(start_paused = true)]
async fn template_stays_for_its_machines_and_a_paused_cluster_has_no_writes() {
    let setup = Setup::with(1, without_pools()).await;
    setup.user.machine("w-0").await;
    setup.until_idle().await;
    setup
        .user
        .change(CLUSTER_API, "clusters/alpha", json!({ "spec": { "paused": true } }))
        .await;
    setup.until_idle().await;
    let before = setup.writes();
    setup.user.machine("w-1").await;
    setup.user.give_back("w-0").await;
    setup.until_idle().await;
    assert_eq!(setup.writes(), before);

    setup.user.delete(INFRASTRUCTURE, "metal3datatemplates/tpl").await;
    setup
        .user
        .change(CLUSTER_API, "clusters/alpha", json!({ "spec": { "paused": false } }))
        .await;
    setup.until_idle().await;
    assert_eq!(setup.left().await, (2, 1));
    setup.user.let_go("w-0").await;
    setup.user.give_back("w-1").await;
    setup.until_idle().await;
    setup.user.let_go("w-1").await;
    setup.until_idle().await;
    assert_eq!(setup.left().await, (0, 0));
}
