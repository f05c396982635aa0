//! Changes of an object and of its status in one reconcile.

use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::meta::{Condition, ConditionStatus};
use tokio::time::timeout;

use super::{key, meta, requests, start, with_kinds};
use crate::cache::{Identity, Item, Key, SharedCache};
use crate::clock::TimerClock;
use crate::patch::{has_finalizer, with_finalizer};
use crate::plan::Observed;
use crate::queue::{Lane, Outcome, Queue};
use crate::version::ResourceVersion;
use crate::write::{Mode, WriteErrorKind, Writer, Written};

const FINALIZER: &str = "example.com/own";

type Machines = SharedCache<Metal3Machine>;

fn condition(aspect: &str) -> Condition {
    Condition {
        type_: aspect.to_owned(),
        status: ConditionStatus::True,
        reason: "Done".to_owned(),
        ..Condition::default()
    }
}

async fn machine(writer: &Writer<super::Tester>, cache: &Machines) -> Metal3Machine {
    let machine = Metal3Machine {
        metadata: meta("m"),
        ..Metal3Machine::default()
    };
    writer.create(cache, &machine).await.unwrap().object().unwrap()
}

fn changed(before: &Metal3Machine) -> Metal3Machine {
    let mut after = with_finalizer(before.clone(), FINALIZER);
    after.status.conditions = vec![condition("Ready")];
    after
}

#[tokio::test(start_paused = true)]
async fn an_object_and_its_status_change_in_two_requests_and_do_not_conflict_with_themselves() {
    let (cluster, writer) = start(Mode::Perform);
    with_kinds(&cluster);
    let cache = Machines::default();
    let before = machine(&writer, &cache).await;
    let asked = requests(&cluster);
    let after = changed(&before);
    let written = writer.change(&cache, &before, &after).await.unwrap().object().unwrap();
    assert_eq!(requests(&cluster), asked + 2);
    assert!(has_finalizer(&written, FINALIZER));
    assert_eq!(written.status.conditions.len(), 1);
    assert!(matches!(cache.find(&key("m")), Observed::Present(shown) if *shown == written));
    let same = writer.change(&cache, &written, &written).await.unwrap();
    assert_eq!((same, requests(&cluster)), (Written::Unchanged, asked + 2));
}

#[tokio::test(start_paused = true)]
async fn concurrent_write_of_another_client_rejects_both_halves() {
    let (cluster, writer) = start(Mode::Perform);
    with_kinds(&cluster);
    let cache = Machines::default();
    let before = machine(&writer, &cache).await;
    let mut foreign = before.clone();
    foreign.status.conditions = vec![condition("Foreign")];
    writer.status(&cache, &before, &foreign).await.unwrap();
    // The finalizer alone does not conflict with the foreign condition; the conditions do.
    let error = writer.change(&cache, &before, &changed(&before)).await.unwrap_err();
    assert_eq!(error.kind, WriteErrorKind::Conflict);
    let Observed::Present(shown) = cache.find(&key("m")) else {
        panic!("the object is not cached")
    };
    assert_eq!(shown.status.conditions, foreign.status.conditions);
    assert!(!has_finalizer(&*shown, FINALIZER));
}

#[tokio::test(start_paused = true)]
async fn a_status_that_empties_a_list_needs_its_version_too() {
    let (cluster, writer) = start(Mode::Perform);
    with_kinds(&cluster);
    let cache = Machines::default();
    let bare = machine(&writer, &cache).await;
    let mut before = bare.clone();
    before.status.conditions = vec![condition("Ready")];
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
async fn the_source_of_both_halves_is_not_enqueued_by_their_watch_events() {
    let (cluster, writer) = start(Mode::Perform);
    with_kinds(&cluster);
    let cache = Machines::default();
    let before = machine(&writer, &cache).await;
    let seen = Identity::of(&before).unwrap();
    cache.listed(vec![Item::Object(before.clone())], seen.version).unwrap();
    let queue = Queue::<Key>::new(std::sync::Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH)));
    cache.enqueue_changes(&queue, |change| change.key());
    let pass = queue.take().await.unwrap();
    let for_key = writer.for_key(pass.request_source());
    let main = {
        let after = changed(&before);
        for_key.change(&cache, &before, &after).await.unwrap().object().unwrap()
    };
    pass.finish(Outcome::Done);
    let last = Identity::of(&main).unwrap();
    let mut first = before.clone();
    // The watch reports the version between the two writes.
    let between = last.version.as_str().parse::<u64>().unwrap() - 1;
    first.metadata.resource_version = Some(between.to_string());
    cache.observed(Item::Object(first)).unwrap();
    cache.observed(Item::Object(main)).unwrap();
    let nothing = timeout(std::time::Duration::from_secs(1), queue.take()).await;
    assert!(nothing.is_err(), "{nothing:?}");
    assert_eq!(
        cache.read(|cache| cache.reached().cloned()),
        ResourceVersion::parse(last.version.as_str()).ok()
    );
    queue.add(key("m"), Lane::High);
    assert!(queue.take().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn dry_run_logs_both_halves_and_sends_neither() {
    let (cluster, writer) = start(Mode::Perform);
    with_kinds(&cluster);
    let cache = Machines::default();
    let before = machine(&writer, &cache).await;
    let observer: Writer<super::Tester> = Writer::new(cluster.client("tester"), Mode::ObserveOnly);
    let asked = requests(&cluster);
    let shown = observer.change(&cache, &before, &changed(&before)).await.unwrap();
    assert_eq!((shown, requests(&cluster)), (Written::DryRun, asked));
}
