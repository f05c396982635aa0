//! Random histories on the simulated API server.

use std::time::Duration;

use metal3_faults::{Fault, Plan, Rule};
use serde_json::json;

use super::lab::Lab;
use super::record::Record;
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

/// What a user, an unlucky operator and the network do to one to three replicas without a leader.
async fn history(seed: u64) -> (usize, usize) {
    let mut dice = Dice(seed);
    let lab = Lab::new(seed).await;
    let record = Record::start(&lab);
    let mut faults = Plan::seeded(seed);
    for verb in ["create", "patch", "delete"] {
        for fault in [Fault::ReplyLost, Fault::Conflict, Fault::Delay(Duration::from_secs(3))] {
            faults = faults.with(Rule::random(60, fault).verb(verb));
        }
    }
    lab.pool(json!({ "namePrefix": "p", "pools": [{ "start": "10.0.0.1", "end": "10.0.0.3" }] }))
        .await;
    let mut replicas: Vec<_> = (0..=dice.below(3))
        .map(|number| lab.replica(&format!("r{number}")))
        .collect();
    lab.cluster.suffer(faults);
    for step in 0..14 {
        let kind = [Metal3, ClusterApi][dice.below(2)];
        let name = ["a", "b", "c"][dice.below(3)];
        match dice.below(10) {
            0..5 => lab.claim(kind, name).await,
            5..8 => lab.delete(kind, name).await,
            8 => {
                let end = format!("10.0.0.{}", 2 + dice.below(3));
                lab.edit_pool(json!({ "spec": { "pools": [{ "start": "10.0.0.1", "end": end }] } }))
                    .await;
            }
            _ => {
                let unlucky = dice.below(replicas.len());
                replicas.swap_remove(unlucky).kill();
                replicas.push(lab.replica(&format!("s{step}")));
            }
        }
        tokio::time::sleep(Duration::from_millis(u64::try_from(dice.below(4000)).unwrap())).await;
    }
    lab.cluster.suffer(Plan::none());
    lab.rest().await;
    record.check(seed, &lab).await
}

#[tokio::test(start_paused = true)]
async fn no_random_history_grants_one_address_twice() {
    const SEEDS: u64 = 60;
    let (mut writes, mut grants) = (0, 0);
    for seed in 0..SEEDS {
        let (of_writes, of_grants) = history(seed).await;
        writes += of_writes;
        grants += of_grants;
    }
    println!("{SEEDS} histories, {writes} versions checked, {grants} grants");
    assert!(
        grants > 100,
        "the histories grant too little to show anything: {grants}"
    );
}
