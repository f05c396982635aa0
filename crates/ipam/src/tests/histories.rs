//! Random histories on the simulated API server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::json;

use super::lab::{Lab, OWNER};
use super::record::{Met, Record};
use crate::claim::ClaimKind::{ClusterApi, Metal3};

#[tokio::test(start_paused = true)]
async fn controller_grants_refuses_and_releases_on_an_api_server() {
    let lab = Lab::new(1).await;
    let _replica = lab.replica("one");
    lab.pool(json!({ "namePrefix": "p", "pools": [{ "start": "10.0.0.1", "end": "10.0.0.2" }] }))
        .await;
    for (kind, name) in [(Metal3, "a"), (ClusterApi, "a"), (Metal3, "b")] {
        lab.claim(kind, name).await;
        lab.rest().await;
    }
    let granted = |address: &str| Some(address.to_owned());
    assert_eq!(
        lab.grants().await,
        [
            ("IPClaim a".into(), granted("10.0.0.1")),
            ("IPClaim b".into(), None),
            ("IPAddressClaim a".into(), granted("10.0.0.2"))
        ]
    );
    lab.delete(Metal3, "a").await;
    lab.rest().await;
    assert_eq!(
        lab.grants().await,
        [
            ("IPClaim b".into(), granted("10.0.0.1")),
            ("IPAddressClaim a".into(), granted("10.0.0.2"))
        ]
    );
    let before = lab.writes();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(lab.writes(), before, "an idle hour costs no write");
}

/// Draws from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

/// What a user, an unlucky operator, the garbage collector and the network do to one to three replicas without a
/// leader.
async fn history(seed: u64) -> Met {
    let mut dice = Dice(seed);
    let lab = Lab::new(seed).await;
    let record = Record::start(&lab);
    let mut pool = json!({ "namePrefix": "p", "pools": [{ "start": "10.0.0.1", "end": "10.0.0.3" }] });
    if seed.is_multiple_of(2) {
        pool["clusterName"] = json!(OWNER);
    }
    lab.make_owner().await;
    lab.pool(pool.clone()).await;
    let mut replicas: Vec<_> = (0..=dice.below(3))
        .map(|number| lab.replica(&format!("r{number}")))
        .collect();
    lab.cluster.inject(faults(seed));
    let mut met = Met::default();
    for step in 0..16 {
        let kind = [Metal3, ClusterApi][dice.below(2)];
        let name = ["a", "b", "c"][dice.below(3)];
        match dice.below(27) {
            0..9 => lab.claim(kind, name).await,
            9..16 => lab.delete(kind, name).await,
            16..18 => {
                let end = format!("10.0.0.{}", 2 + dice.below(3));
                lab.edit_pool(json!({ "spec": { "pools": [{ "start": "10.0.0.1", "end": end }] } }))
                    .await;
            }
            18..20 => {
                let unlucky = dice.below(replicas.len());
                replicas.swap_remove(unlucky).kill();
                replicas.push(lab.replica(&format!("s{step}")));
            }
            20 => lab.delete_pool().await,
            21 => fold(&lab).await,
            // The pools of a Cluster go with it, unless another of that name is there in time.
            22..24 => lab.delete_owner().await,
            24 => lab.make_owner().await,
            // Nothing happens while there is one of that name.
            _ => lab.pool(pool.clone()).await,
        }
        met.collected += collected(&lab);
        tokio::time::sleep(Duration::from_millis(u64::try_from(dice.below(4000)).unwrap())).await;
    }
    lab.cluster.inject(Plan::none());
    lab.make_owner().await;
    lab.rest().await;
    met.collected += collected(&lab);
    lab.rest().await;
    record.check(seed, &lab).await + met
}

/// All of it is to go.
async fn fold(lab: &Lab) {
    lab.delete_pool().await;
    for kind in [Metal3, ClusterApi] {
        for name in ["a", "b", "c"] {
            lab.delete(kind, name).await;
        }
    }
}

/// What the garbage collector of a real cluster does without being asked.
fn collected(lab: &Lab) -> u64 {
    u64::try_from(lab.cluster.collect_garbage()).unwrap()
}

/// Requests that are answered too late, twice, or never.
fn faults(seed: u64) -> Plan {
    let mut faults = Plan::seeded(seed);
    for verb in ["create", "patch", "delete"] {
        for fault in [Fault::ReplyLost, Fault::Conflict, Fault::Delay(Duration::from_secs(3))] {
            faults = faults.with(Rule::random(60, fault).verb(verb));
        }
    }
    faults
}

/// Histories that run if `IPAM_SEEDS` says nothing else.
const SEEDS: u64 = 2_000;

#[expect(
    clippy::disallowed_methods,
    reason = "how many histories run is said from outside; which ones follows from the number alone"
)]
fn seeds() -> u64 {
    let said = std::env::var("IPAM_SEEDS").ok();
    said.map_or(SEEDS, |said| said.parse().expect("IPAM_SEEDS is a number"))
}

/// Takes one seed after the other until there is none.
fn histories(next: &AtomicU64, seeds: u64) -> Met {
    let mut met = Met::default();
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= seeds {
            return met;
        }
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().start_paused(true).build().unwrap();
        met = met + runtime.block_on(history(seed));
    }
}

#[test]
fn no_random_history_grants_one_address_twice() {
    let (seeds, next) = (seeds(), AtomicU64::new(0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let met = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(|| histories(&next, seeds))).collect();
        let ended = running.into_iter().map(|thread| thread.join().unwrap());
        ended.fold(Met::default(), |sum, met| sum + met)
    });
    println!("{seeds} histories: {met:?}");
    // They show nothing if too little happens in them.
    assert!(met.grants > seeds && met.pools_gone * 10 > seeds, "{met:?}");
    assert!(met.collected * 10 > seeds, "{met:?}");
}
