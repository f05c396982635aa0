//! Both halves of an object changed in one pass.

use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::meta::{Condition, ConditionStatus};
use tokio::time::timeout;

use super::{key, meta, requests, start, with_kinds};
use crate::clock::TimerClock;
use crate::hub::{Found, Identity, Item, Key, SharedHub};
use crate::patch::{born_with, has_finalizer};
use crate::queue::{Lane, Outcome, Queue};
use crate::version::ResourceVersion;
use crate::write::{Mode, Trouble, Writer, Written};

const OURS: &str = "example.com/ours";

type Machines = SharedHub<Metal3Machine>;

fn condition(aspect: &str) -> Condition {
    Condition {
        type_: aspect.to_owned(),
        status: ConditionStatus::True,
        reason: "Done".to_owned(),
        ..Condition::default()
    }
}

async fn machine(writer: &Writer<super::Tester>, hub: &Machines) -> Metal3Machine {
    let machine = Metal3Machine {
        metadata: meta("m"),
        ..Metal3Machine::default()
    };
    writer.create(hub, &machine).await.unwrap().object().unwrap()
}

fn changed(before: &Metal3Machine) -> Metal3Machine {
    let mut after = born_with(before.clone(), OURS);
    after.status.conditions = vec![condition("Ready")];
    after
}

#[tokio::test(start_paused = true)]
async fn an_object_and_its_status_change_in_two_requests_and_do_not_conflict_with_themselves() {
    let (cluster, writer) = start(Mode::Perform);
    with_kinds(&cluster);
    let hub = Machines::default();
    let before = machine(&writer, &hub).await;
    let asked = requests(&cluster);
    let after = changed(&before);
    let written = writer.change(&hub, &before, &after).await.unwrap().object().unwrap();
    assert_eq!(requests(&cluster), asked + 2);
    assert!(has_finalizer(&written, OURS));
    assert_eq!(written.status.conditions.len(), 1);
    assert!(matches!(hub.find(&key("m")), Found::Live(shown) if *shown == written));
    let same = writer.change(&hub, &written, &written).await.unwrap();
    assert_eq!((same, requests(&cluster)), (Written::Unchanged, asked + 2));
}

#[tokio::test(start_paused = true)]
async fn what_somebody_else_wrote_meanwhile_stops_both_halves() {
    let (cluster, writer) = start(Mode::Perform);
    with_kinds(&cluster);
    let hub = Machines::default();
    let before = machine(&writer, &hub).await;
    let mut theirs = before.clone();
    theirs.status.conditions = vec![condition("Theirs")];
    writer.status(&hub, &before, &theirs).await.unwrap();
    // The finalizer alone would not collide with a condition; the conditions that go with it would.
    let error = writer.change(&hub, &before, &changed(&before)).await.unwrap_err();
    assert_eq!(error.trouble, Trouble::Conflict);
    let Found::Live(shown) = hub.find(&key("m")) else {
        panic!("it is gone")
    };
    assert_eq!(shown.status.conditions, theirs.status.conditions);
    assert!(!has_finalizer(&*shown, OURS));
}

#[tokio::test(start_paused = true)]
async fn a_status_that_empties_a_list_needs_its_version_too() {
    let (cluster, writer) = start(Mode::Perform);
    with_kinds(&cluster);
    let hub = Machines::default();
    let bare = machine(&writer, &hub).await;
    let mut before = bare.clone();
    before.status.conditions = vec![condition("Ready")];
    let before = writer.status(&hub, &bare, &before).await.unwrap().object().unwrap();
    let mut theirs = before.clone();
    theirs.status.conditions.push(condition("Theirs"));
    writer.status(&hub, &before, &theirs).await.unwrap();
    let mut after = before.clone();
    after.status.conditions.clear();
    let error = writer.status(&hub, &before, &after).await.unwrap_err();
    assert_eq!(error.trouble, Trouble::Conflict);
}

#[tokio::test(start_paused = true)]
async fn the_author_of_both_halves_is_not_woken_by_their_echoes() {
    let (cluster, writer) = start(Mode::Perform);
    with_kinds(&cluster);
    let hub = Machines::default();
    let before = machine(&writer, &hub).await;
    let seen = Identity::of(&before).unwrap();
    hub.listed(vec![Item::Object(before.clone())], seen.version).unwrap();
    let queue = Queue::<Key>::new(std::sync::Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH)));
    hub.feed(&queue, |change| change.key());
    let pass = queue.take().await.unwrap();
    let signed = writer.signed(pass.author());
    let main = {
        let after = changed(&before);
        signed.change(&hub, &before, &after).await.unwrap().object().unwrap()
    };
    pass.finish(Outcome::Settled);
    let last = Identity::of(&main).unwrap();
    let mut first = before.clone();
    // The version between the two, as the watch brings it.
    let between = last.version.as_str().parse::<u64>().unwrap() - 1;
    first.metadata.resource_version = Some(between.to_string());
    hub.observed(Item::Object(first)).unwrap();
    hub.observed(Item::Object(main)).unwrap();
    let nothing = timeout(std::time::Duration::from_secs(1), queue.take()).await;
    assert!(nothing.is_err(), "{nothing:?}");
    assert_eq!(
        hub.read(|hub| hub.reached().cloned()),
        ResourceVersion::parse(last.version.as_str()).ok()
    );
    queue.add(key("m"), Lane::High);
    assert!(queue.take().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn who_only_observes_shows_both_halves_and_sends_neither() {
    let (cluster, writer) = start(Mode::Perform);
    with_kinds(&cluster);
    let hub = Machines::default();
    let before = machine(&writer, &hub).await;
    let looking: Writer<super::Tester> = Writer::new(cluster.client("tester"), Mode::ObserveOnly);
    let asked = requests(&cluster);
    let shown = looking.change(&hub, &before, &changed(&before)).await.unwrap();
    assert_eq!((shown, requests(&cluster)), (Written::Shown, asked));
}
