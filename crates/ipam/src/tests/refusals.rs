//! Invalid input that webhooks admit or never receive: the controller reports a condition with reason and remedy on the
//! object that the user has to change.

use metal3_api::cluster::IPAddressClaim;
use metal3_api::ipam::v1alpha1::{IPClaim, IPPool};
use metal3_api::meta::{Condition, ConditionStatus};
use serde_json::{Value, json};

use super::api_server::POOL;
use super::fixture::Fixture;
use crate::claim::ClaimKind::{ClusterApi, Metal3};
use crate::names::{condition, reason};

fn range(start: &str, end: &str) -> Value {
    json!({ "namePrefix": "p", "pools": [{ "start": start, "end": end }] })
}

/// Asserts that `Ready` is false, with this reason, and that the message contains the remedy.
#[track_caller]
fn assert_unready(conditions: &[Condition], reason: &str, remedy: &str) {
    let ready = conditions.iter().find(|c| c.type_ == condition::READY).unwrap();
    assert_eq!((ready.status, ready.reason.as_str()), (ConditionStatus::False, reason));
    assert!(ready.message.contains(remedy), "{}", ready.message);
}

async fn pool(fixture: &Fixture) -> IPPool {
    fixture.api::<IPPool>().get(POOL).await.unwrap()
}

async fn own(fixture: &Fixture, name: &str) -> IPClaim {
    fixture.api::<IPClaim>().get(name).await.unwrap()
}

async fn cluster_api(fixture: &Fixture, name: &str) -> IPAddressClaim {
    fixture.api::<IPAddressClaim>().get(name).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn inverted_range_is_reported_on_the_pool_and_resolved_by_an_edit() {
    let fixture = Fixture::new(1).await;
    let _replica = fixture.replica("one");
    fixture.pool(range("10.0.0.9", "10.0.0.2")).await;
    fixture.claim(Metal3, "a").await;
    fixture.claim(ClusterApi, "b").await;
    fixture.wait_until_idle().await;
    let remedy = "give one a start and an end, or a subnet";
    assert_unready(
        &pool(&fixture).await.status.conditions,
        reason::NO_USABLE_RANGE.as_str(),
        remedy,
    );
    let exhausted = reason::POOL_EXHAUSTED.as_str();
    assert_unready(
        &own(&fixture, "a").await.status.conditions,
        exhausted,
        "Exhausted IP Pools",
    );
    assert_unready(
        &cluster_api(&fixture, "b").await.status.conditions,
        exhausted,
        "Exhausted IP Pools",
    );
    fixture
        .edit_pool(json!({ "spec": range("10.0.0.2", "10.0.0.9") }))
        .await;
    fixture.wait_until_idle().await;
    let granted = |address: &str| Some(address.to_owned());
    assert_eq!(
        fixture.allocations().await,
        [
            ("IPClaim a".into(), granted("10.0.0.2")),
            ("IPAddressClaim b".into(), granted("10.0.0.3"))
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn full_pool_reports_the_remedy_and_serves_its_waiting_claim_after_it() {
    let fixture = Fixture::new(1).await;
    let _replica = fixture.replica("one");
    fixture.pool(range("10.0.0.1", "10.0.0.1")).await;
    fixture.claim(Metal3, "a").await;
    fixture.wait_until_idle().await;
    fixture.claim(ClusterApi, "b").await;
    fixture.wait_until_idle().await;
    let exhausted = reason::POOL_EXHAUSTED.as_str();
    assert_unready(
        &cluster_api(&fixture, "b").await.status.conditions,
        exhausted,
        "Exhausted IP Pools",
    );
    let exhausted_condition = |pool: IPPool| {
        let mut conditions = pool.status.conditions.into_iter();
        let exhausted_condition = conditions.find(|c| c.type_ == condition::EXHAUSTED).unwrap();
        (
            exhausted_condition.status,
            exhausted_condition.reason,
            exhausted_condition.message,
        )
    };
    let (status, reason, message) = exhausted_condition(pool(&fixture).await);
    assert_eq!(
        (status, reason.as_str()),
        (ConditionStatus::True, reason::NO_FREE_ADDRESS.as_str())
    );
    assert!(
        message.contains("add a range to spec.pools, or delete claims"),
        "{message}"
    );
    fixture
        .edit_pool(json!({ "spec": range("10.0.0.1", "10.0.0.3") }))
        .await;
    fixture.wait_until_idle().await;
    assert_eq!(fixture.allocations().await.len(), 2);
    assert!(fixture.allocations().await.iter().all(|(_, address)| address.is_some()));
    assert_eq!(exhausted_condition(pool(&fixture).await).0, ConditionStatus::False);
}

#[tokio::test(start_paused = true)]
async fn reference_to_an_unknown_kind_is_reported_for_this_group_and_ignored_for_others() {
    let fixture = Fixture::new(1).await;
    let _replica = fixture.replica("one");
    fixture.pool(range("10.0.0.1", "10.0.0.9")).await;
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
        fixture.make::<IPAddressClaim>(claim).await;
    }
    fixture.wait_until_idle().await;
    let remedy = "make a claim that names one";
    let misspelt = cluster_api(&fixture, "misspelt").await;
    assert_unready(&misspelt.status.conditions, reason::POOL_KIND_UNKNOWN.as_str(), remedy);
    let foreign = cluster_api(&fixture, "foreign").await;
    assert_eq!(foreign.status.conditions, []);
    assert_eq!(foreign.metadata.finalizers, None);
}

#[tokio::test(start_paused = true)]
async fn missing_pool_is_reported_and_the_claim_is_served_once_it_exists() {
    let fixture = Fixture::new(1).await;
    let _replica = fixture.replica("one");
    fixture.claim(Metal3, "early").await;
    fixture.wait_until_idle().await;
    let not_found = reason::POOL_NOT_FOUND.as_str();
    assert_unready(&own(&fixture, "early").await.status.conditions, not_found, POOL);
    fixture.pool(range("10.0.0.1", "10.0.0.9")).await;
    fixture.wait_until_idle().await;
    assert_eq!(
        fixture.allocations().await,
        [("IPClaim early".into(), Some("10.0.0.1".into()))]
    );
}

/// Two pools of one prefix whose ranges overlap: an address object has one name, so the second pool is refused.
#[tokio::test(start_paused = true)]
async fn address_that_another_pool_allocated_is_reported_with_the_name_of_that_pool() {
    let fixture = Fixture::new(1).await;
    let _replica = fixture.replica("one");
    let other = json!({ "metadata": { "name": "other" }, "spec": range("10.0.0.1", "10.0.0.1") });
    fixture.make::<IPPool>(other).await;
    let first = json!({ "metadata": { "name": "first" }, "spec": { "pool": { "name": "other" } } });
    fixture.make::<IPClaim>(first).await;
    fixture.wait_until_idle().await;
    fixture.pool(range("10.0.0.1", "10.0.0.1")).await;
    fixture.claim(Metal3, "second").await;
    fixture.wait_until_idle().await;
    let second = own(&fixture, "second").await;
    let message = "pool other has an address object named p-10-0-0-1";
    assert_unready(&second.status.conditions, reason::NAME_COLLISION.as_str(), message);
    assert!(second.status.error_message.unwrap().contains(message));
    let overlapping = pool(&fixture).await.status.conditions;
    let overlapping = overlapping.iter().find(|c| c.type_ == condition::OVERLAPPING).unwrap();
    assert_eq!(overlapping.status, ConditionStatus::True);
    assert!(
        overlapping.message.contains("keep them apart"),
        "{}",
        overlapping.message
    );
    // The other pool releases the address, and this one allocates it.
    fixture.delete(Metal3, "first").await;
    fixture.wait_until_idle().await;
    assert_eq!(
        fixture.allocations().await,
        [("IPClaim second".into(), Some("10.0.0.1".into()))]
    );
}
