//! Random histories on the simulated API server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::json;

use super::fixture::{Fixture, OWNER};
use super::record::{Record, Totals};
use crate::claim::ClaimKind::{ClusterApi, Metal3};

#[tokio::test(start_paused = true)]
async fn controller_allocates_refuses_and_releases_on_an_api_server() {
    let fixture = Fixture::new(1).await;
    let _replica = fixture.replica("one");
    fixture
        .pool(json!({ "namePrefix": "p", "pools": [{ "start": "10.0.0.1", "end": "10.0.0.2" }] }))
        .await;
    for (kind, name) in [(Metal3, "a"), (ClusterApi, "a"), (Metal3, "b")] {
        fixture.claim(kind, name).await;
        fixture.wait_until_idle().await;
    }
    let granted = |address: &str| Some(address.to_owned());
    assert_eq!(
        fixture.allocations().await,
        [
            ("IPClaim a".into(), granted("10.0.0.1")),
            ("IPClaim b".into(), None),
            ("IPAddressClaim a".into(), granted("10.0.0.2"))
        ]
    );
    fixture.delete(Metal3, "a").await;
    fixture.wait_until_idle().await;
    assert_eq!(
        fixture.allocations().await,
        [
            ("IPClaim b".into(), granted("10.0.0.1")),
            ("IPAddressClaim a".into(), granted("10.0.0.2"))
        ]
    );
    let before = fixture.writes();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(fixture.writes(), before, "an idle hour costs no write");
}

/// A seeded generator.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

/// Random actions of users, crashes, the garbage collector and the network on one to three replicas without a leader.
async fn history(seed: u64) -> Totals {
    let mut random = Random(seed);
    let fixture = Fixture::new(seed).await;
    let record = Record::start(&fixture);
    let mut pool = json!({ "namePrefix": "p", "pools": [{ "start": "10.0.0.1", "end": "10.0.0.3" }] });
    if seed.is_multiple_of(2) {
        pool["clusterName"] = json!(OWNER);
    }
    fixture.make_owner().await;
    fixture.pool(pool.clone()).await;
    let mut replicas: Vec<_> = (0..=random.below(3))
        .map(|number| fixture.replica(&format!("r{number}")))
        .collect();
    fixture.cluster.inject(faults(seed));
    let mut totals = Totals::default();
    for step in 0..16 {
        let kind = [Metal3, ClusterApi][random.below(2)];
        let name = ["a", "b", "c"][random.below(3)];
        match random.below(32) {
            0..9 => fixture.claim(kind, name).await,
            9..16 => fixture.delete(kind, name).await,
            16..18 => {
                let end = format!("10.0.0.{}", 2 + random.below(3));
                fixture
                    .edit_pool(json!({ "spec": { "pools": [{ "start": "10.0.0.1", "end": end }] } }))
                    .await;
            }
            18..20 => {
                let unlucky = random.below(replicas.len());
                replicas.swap_remove(unlucky).kill();
                replicas.push(fixture.replica(&format!("s{step}")));
            }
            20 => fixture.delete_pool().await,
            21 => delete_everything(&fixture).await,
            // Pools are deleted with their Cluster, unless it is created again in time.
            22..24 => fixture.delete_owner().await,
            24 => fixture.make_owner().await,
            25..27 => fixture.pause_owner(random.below(2) == 0).await,
            // Every cache has observed the claim that names it by then.
            27..30 => {
                tokio::time::sleep(Duration::from_secs(4)).await;
                fixture.lose(kind, &format!("p-10-0-0-{}", 1 + random.below(3))).await;
            }
            // No effect while a pool of that name exists.
            _ => fixture.pool(pool.clone()).await,
        }
        totals.collected += collected(&fixture);
        tokio::time::sleep(Duration::from_millis(u64::try_from(random.below(4000)).unwrap())).await;
    }
    fixture.cluster.inject(Plan::none());
    fixture.make_owner().await;
    fixture.pause_owner(false).await;
    fixture.wait_until_idle().await;
    totals.collected += collected(&fixture);
    fixture.wait_until_idle().await;
    record.check(seed, &fixture).await + totals
}

async fn delete_everything(fixture: &Fixture) {
    fixture.delete_pool().await;
    for kind in [Metal3, ClusterApi] {
        for name in ["a", "b", "c"] {
            fixture.delete(kind, name).await;
        }
    }
}

/// Runs the garbage collector.
fn collected(fixture: &Fixture) -> u64 {
    u64::try_from(fixture.cluster.collect_garbage()).unwrap()
}

/// Requests that are answered late, twice, or never.
fn faults(seed: u64) -> Plan {
    let mut faults = Plan::seeded(seed);
    for verb in ["create", "patch", "delete"] {
        for fault in [Fault::ReplyLost, Fault::Conflict, Fault::Delay(Duration::from_secs(3))] {
            faults = faults.with(Rule::random(60, fault).verb(verb));
        }
    }
    faults
}

/// Default number of histories, without `IPAM_SEEDS`. `make test-long` has 2,000.
const SEEDS: u64 = 200;

#[expect(
    clippy::disallowed_methods,
    reason = "the number of histories comes from outside and determines them"
)]
fn seeds() -> u64 {
    let value = std::env::var("IPAM_SEEDS").ok();
    value.map_or(SEEDS, |value| value.parse().expect("IPAM_SEEDS is a number"))
}

/// Runs one seed after the other until none is left.
fn histories(next: &AtomicU64, seeds: u64) -> Totals {
    let mut totals = Totals::default();
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= seeds {
            return totals;
        }
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().start_paused(true).build().unwrap();
        totals = totals + runtime.block_on(history(seed));
    }
}

#[test]
fn no_random_history_allocates_one_address_twice() {
    let (seeds, next) = (seeds(), AtomicU64::new(0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let totals = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(|| histories(&next, seeds))).collect();
        let ended = running.into_iter().map(|thread| thread.join().unwrap());
        ended.fold(Totals::default(), |sum, totals| sum + totals)
    });
    println!("{seeds} histories: {totals:?}");
    // The test is meaningless if too little happens.
    assert!(
        totals.allocations > seeds && totals.deleted_pools * 10 > seeds,
        "{totals:?}"
    );
    assert!(totals.collected * 10 > seeds, "{totals:?}");
}
