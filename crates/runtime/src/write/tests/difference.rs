//! Changes of a status.

use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::meta::{Condition, ConditionStatus};
use metal3_sim_cluster::Cluster;
use tokio::time::timeout;

use super::{key, meta, requests, start, with_kinds};
use crate::cache::{Identity, Item, Key, SharedCache};
use crate::clock::TimerClock;
use crate::plan::Observed;
use crate::queue::{Lane, Outcome, Queue};
use crate::write::{Mode, WriteErrorKind, Writer, Written};

type Machines = SharedCache<Metal3Machine>;

fn condition(aspect: &str) -> Condition {
    Condition {
        type_: aspect.to_owned(),
        status: ConditionStatus::True,
        reason: "Done".to_owned(),
        ..Condition::default()
    }
}

fn changed(before: &Metal3Machine, aspect: &str) -> Metal3Machine {
    let mut after = before.clone();
    after.status.conditions = vec![condition(aspect)];
    after
}

/// A cluster with a machine, its writer and its cache.
async fn with_machine() -> (Cluster, Writer<super::Tester>, Machines, Metal3Machine) {
    let (cluster, writer) = start(Mode::Perform);
    with_kinds(&cluster);
    let cache = Machines::default();
    let machine = Metal3Machine {
        metadata: meta("m"),
        ..Metal3Machine::default()
    };
    let machine = writer.create(&cache, &machine).await.unwrap().object().unwrap();
    (cluster, writer, cache, machine)
}

#[tokio::test(start_paused = true)]
async fn a_status_changes_in_one_request_and_an_equal_one_in_none() {
    let (cluster, writer, cache, before) = with_machine().await;
    let asked = requests(&cluster);
    let after = changed(&before, "Ready");
    let written = writer.status(&cache, &before, &after).await.unwrap().object().unwrap();
    assert_eq!(requests(&cluster), asked + 1);
    assert_eq!(written.status.conditions.len(), 1);
    assert!(matches!(cache.find(&key("m")), Observed::Present(shown) if *shown == written));
    let same = writer.status(&cache, &written, &written).await.unwrap();
    assert_eq!((same, requests(&cluster)), (Written::Unchanged, asked + 1));
}

#[tokio::test(start_paused = true)]
async fn concurrent_write_of_another_client_rejects_a_status_with_a_list() {
    let (_cluster, writer, cache, before) = with_machine().await;
    let foreign = changed(&before, "Foreign");
    writer.status(&cache, &before, &foreign).await.unwrap();
    let error = writer
        .status(&cache, &before, &changed(&before, "Ready"))
        .await
        .unwrap_err();
    assert_eq!(error.kind, WriteErrorKind::Conflict);
    let Observed::Present(shown) = cache.find(&key("m")) else {
        panic!("the object is not cached")
    };
    assert_eq!(shown.status.conditions, foreign.status.conditions);
}

#[tokio::test(start_paused = true)]
async fn a_status_that_empties_a_list_needs_its_version_too() {
    let (_cluster, writer, cache, bare) = with_machine().await;
    let before = changed(&bare, "Ready");
    let before = writer.status(&cache, &bare, &before).await.unwrap().object().unwrap();
    let mut foreign = before.clone();
    foreign.status.conditions.push(condition("Foreign"));
    writer.status(&cache, &before, &foreign).await.unwrap();
    let mut after = before.clone();
    after.status.conditions.clear();
    let error = writer.status(&cache, &before, &after).await.unwrap_err();
    assert_eq!(error.kind, WriteErrorKind::Conflict);
}

#[tokio::test(start_paused = true)]
async fn the_source_of_a_status_is_not_enqueued_by_its_watch_event() {
    let (_cluster, writer, cache, before) = with_machine().await;
    let seen = Identity::of(&before).unwrap();
    cache.listed(vec![Item::Object(before.clone())], seen.version).unwrap();
    let queue = Queue::<Key>::new(std::sync::Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH)));
    cache.enqueue_changes(&queue, |change| change.key());
    let pass = queue.take().await.unwrap();
    let for_key = writer.for_key(pass.request_source());
    let after = changed(&before, "Ready");
    let written = for_key.status(&cache, &before, &after).await.unwrap().object().unwrap();
    pass.finish(Outcome::Done);
    let last = Identity::of(&written).unwrap();
    cache.observed(Item::Object(written)).unwrap();
    let nothing = timeout(std::time::Duration::from_secs(1), queue.take()).await;
    assert!(nothing.is_err(), "the key is enqueued");
    assert_eq!(cache.read(|cache| cache.reached().cloned()), Some(last.version));
    queue.add(key("m"), Lane::High);
    assert!(queue.take().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn dry_run_sends_no_status() {
    let (cluster, _, cache, before) = with_machine().await;
    let observer: Writer<super::Tester> = Writer::new(cluster.client("tester"), Mode::ObserveOnly);
    let asked = requests(&cluster);
    let after = changed(&before, "Ready");
    let shown = observer.status(&cache, &before, &after).await.unwrap();
    assert_eq!((shown, requests(&cluster)), (Written::DryRun, asked));
}
