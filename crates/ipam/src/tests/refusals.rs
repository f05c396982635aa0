//! What the controller says on an API server of mistakes that webhooks let through or never saw: a condition with its
//! reason and what to do, on the object that the user has to change.

use metal3_api::cluster::IPAddressClaim;
use metal3_api::ipam::v1alpha1::{IPClaim, IPPool};
use metal3_api::meta::{Condition, ConditionStatus};
use serde_json::{Value, json};

use super::lab::Lab;
use super::world::POOL;
use crate::claim::ClaimKind::{ClusterApi, Metal3};
use crate::names::{condition, reason};

fn range(start: &str, end: &str) -> Value {
    json!({ "namePrefix": "p", "pools": [{ "start": start, "end": end }] })
}

/// `Ready` as it stands: false, with a reason, and words that hold the cure.
#[track_caller]
fn assert_unready(conditions: &[Condition], reason: &str, cure: &str) {
    let ready = conditions.iter().find(|c| c.type_ == condition::READY).unwrap();
    assert_eq!((ready.status, ready.reason.as_str()), (ConditionStatus::False, reason));
    assert!(ready.message.contains(cure), "{}", ready.message);
}

async fn pool(lab: &Lab) -> IPPool {
    lab.api::<IPPool>().get(POOL).await.unwrap()
}

async fn own(lab: &Lab, name: &str) -> IPClaim {
    lab.api::<IPClaim>().get(name).await.unwrap()
}

async fn theirs(lab: &Lab, name: &str) -> IPAddressClaim {
    lab.api::<IPAddressClaim>().get(name).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_range_that_ends_before_it_begins_is_told_on_the_pool_and_cured_by_an_edit() {
    let lab = Lab::new(1).await;
    let _replica = lab.replica("one");
    lab.pool(range("10.0.0.9", "10.0.0.2")).await;
    lab.claim(Metal3, "a").await;
    lab.claim(ClusterApi, "b").await;
    lab.rest().await;
    let cure = "give one a start and an end, or a subnet";
    assert_unready(
        &pool(&lab).await.status.conditions,
        reason::NO_USABLE_RANGE.as_str(),
        cure,
    );
    let exhausted = reason::POOL_EXHAUSTED.as_str();
    assert_unready(&own(&lab, "a").await.status.conditions, exhausted, "Exhausted IP Pools");
    assert_unready(
        &theirs(&lab, "b").await.status.conditions,
        exhausted,
        "Exhausted IP Pools",
    );
    lab.edit_pool(json!({ "spec": range("10.0.0.2", "10.0.0.9") })).await;
    lab.rest().await;
    let granted = |address: &str| Some(address.to_owned());
    assert_eq!(
        lab.grants().await,
        [
            ("IPClaim a".into(), granted("10.0.0.2")),
            ("IPAddressClaim b".into(), granted("10.0.0.3"))
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_full_pool_says_what_to_do_and_its_waiting_claim_is_served_once_that_is_done() {
    let lab = Lab::new(1).await;
    let _replica = lab.replica("one");
    lab.pool(range("10.0.0.1", "10.0.0.1")).await;
    lab.claim(Metal3, "a").await;
    lab.rest().await;
    lab.claim(ClusterApi, "b").await;
    lab.rest().await;
    let exhausted = reason::POOL_EXHAUSTED.as_str();
    assert_unready(
        &theirs(&lab, "b").await.status.conditions,
        exhausted,
        "Exhausted IP Pools",
    );
    let told = |pool: IPPool| {
        let mut conditions = pool.status.conditions.into_iter();
        let told = conditions.find(|c| c.type_ == condition::EXHAUSTED).unwrap();
        (told.status, told.reason, told.message)
    };
    let (status, reason, message) = told(pool(&lab).await);
    assert_eq!(
        (status, reason.as_str()),
        (ConditionStatus::True, reason::NO_FREE_ADDRESS.as_str())
    );
    assert!(
        message.contains("add a range to spec.pools, or delete claims"),
        "{message}"
    );
    lab.edit_pool(json!({ "spec": range("10.0.0.1", "10.0.0.3") })).await;
    lab.rest().await;
    assert_eq!(lab.grants().await.len(), 2);
    assert!(lab.grants().await.iter().all(|(_, address)| address.is_some()));
    assert_eq!(told(pool(&lab).await).0, ConditionStatus::False);
}

#[tokio::test(start_paused = true)]
async fn a_reference_to_a_foreign_kind_is_told_if_the_group_is_ours_and_left_alone_if_not() {
    let lab = Lab::new(1).await;
    let _replica = lab.replica("one");
    lab.pool(range("10.0.0.1", "10.0.0.9")).await;
    let claims = [
        (
            "misspelt",
            json!({ "name": POOL, "kind": "IPPol", "apiGroup": "ipam.metal3.io" }),
        ),
        (
            "foreign",
            json!({ "name": POOL, "kind": "InClusterIPPool", "apiGroup": "ipam.cluster.x-k8s.io" }),
        ),
    ];
    for (name, pool) in claims {
        let claim = json!({ "metadata": { "name": name }, "spec": { "poolRef": pool } });
        lab.make::<IPAddressClaim>(claim).await;
    }
    lab.rest().await;
    let cure = "make a claim that names one";
    let misspelt = theirs(&lab, "misspelt").await;
    assert_unready(&misspelt.status.conditions, reason::POOL_KIND_UNKNOWN.as_str(), cure);
    let foreign = theirs(&lab, "foreign").await;
    assert_eq!(foreign.status.conditions, []);
    assert_eq!(foreign.metadata.finalizers, None);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_does_not_exist_is_told_and_the_claim_is_served_once_it_does() {
    let lab = Lab::new(1).await;
    let _replica = lab.replica("one");
    lab.claim(Metal3, "early").await;
    lab.rest().await;
    let not_found = reason::POOL_NOT_FOUND.as_str();
    assert_unready(&own(&lab, "early").await.status.conditions, not_found, POOL);
    lab.pool(range("10.0.0.1", "10.0.0.9")).await;
    lab.rest().await;
    assert_eq!(lab.grants().await, [("IPClaim early".into(), Some("10.0.0.1".into()))]);
}

/// Two pools of one prefix whose ranges overlap: an address object has one name, so one of them comes too late.
#[tokio::test(start_paused = true)]
async fn an_address_that_another_pool_has_granted_is_told_with_that_pools_name() {
    let lab = Lab::new(1).await;
    let _replica = lab.replica("one");
    let other = json!({ "metadata": { "name": "other" }, "spec": range("10.0.0.1", "10.0.0.1") });
    lab.make::<IPPool>(other).await;
    let first = json!({ "metadata": { "name": "first" }, "spec": { "pool": { "name": "other" } } });
    lab.make::<IPClaim>(first).await;
    lab.rest().await;
    lab.pool(range("10.0.0.1", "10.0.0.1")).await;
    lab.claim(Metal3, "second").await;
    lab.rest().await;
    let second = own(&lab, "second").await;
    let said = "pool other has an address object named p-10-0-0-1";
    assert_unready(&second.status.conditions, reason::NAME_COLLISION.as_str(), said);
    assert!(second.status.error_message.unwrap().contains(said));
    let overlapping = pool(&lab).await.status.conditions;
    let overlapping = overlapping.iter().find(|c| c.type_ == condition::OVERLAPPING).unwrap();
    assert_eq!(overlapping.status, ConditionStatus::True);
    assert!(
        overlapping.message.contains("keep them apart"),
        "{}",
        overlapping.message
    );
    // The other pool lets go of it, and this one has it.
    lab.delete(Metal3, "first").await;
    lab.rest().await;
    assert_eq!(lab.grants().await, [("IPClaim second".into(), Some("10.0.0.1".into()))]);
}
