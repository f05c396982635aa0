use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use k8s_openapi::api::core::v1::{ConfigMap, Event as ApiEvent};
use kube::Api;
use kube::api::ListParams;
use kube_core::ObjectMeta;
use metal3_sim_cluster::{Cluster, Options};
use metal3_sim_faults::{Fault, Plan, Rule};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{EventRecorder, EventStats, Importance, Publisher};
use crate::clock::TimerClock;
use crate::reason::Reason;
use crate::write::{Mode, Writer};

crate::role! {
    struct Tester {
        ApiEvent: Create, Patch;
    }
}

const LOST: Reason = Reason::new("PoolExhausted");
const FOUND: Reason = Reason::new("AddressGranted");

fn pool(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            namespace: Some("default".to_owned()),
            name: Some(name.to_owned()),
            uid: Some(format!("u-{name}")),
            resource_version: Some("7".to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

struct Fixture {
    cluster: Cluster,
    recorder: EventRecorder,
    running: JoinSet<()>,
}

impl Fixture {
    fn start() -> Self {
        let cluster = Cluster::start(&Options::seeded(1));
        let (recorder, queue) = EventRecorder::bounded(100);
        let writer = Writer::<Tester>::new(cluster.client("tester"), Mode::Perform);
        let clock = Arc::new(TimerClock::start(DateTime::UNIX_EPOCH));
        let mut running = JoinSet::new();
        running.spawn(Publisher::new(queue, writer, clock, "capm3").run());
        Self {
            cluster,
            recorder,
            running,
        }
    }

    fn warn(&self, name: &str, note: &str) {
        self.recorder.record(&pool(name), Importance::Warning, LOST, note);
    }

    async fn exists(&self) -> Vec<ApiEvent> {
        let api: Api<ApiEvent> = Api::namespaced(self.cluster.client("reader"), "default");
        api.list(&ListParams::default()).await.unwrap().items
    }

    fn requests(&self) -> (u64, u64) {
        let audit = self.cluster.audit();
        let of = |verb| audit.of("tester", verb, "events");
        (of("create"), of("patch"))
    }
}

async fn seconds(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn an_event_has_the_fields_of_the_go_managers_events() {
    let fixture = Fixture::start();
    fixture.warn("p", "every address of the pool is granted; add a range");
    seconds(1).await;
    let [event] = fixture.exists().await.try_into().unwrap();
    let about = event.involved_object;
    assert_eq!(
        (about.kind.as_deref(), about.name.as_deref(), about.uid.as_deref()),
        (Some("ConfigMap"), Some("p"), Some("u-p"))
    );
    assert_eq!(
        (event.type_.as_deref(), event.reason.as_deref()),
        (Some("Warning"), Some("PoolExhausted"))
    );
    assert_eq!(event.source.unwrap().component.as_deref(), Some("capm3"));
    assert_eq!((event.count, event.first_timestamp), (Some(1), event.last_timestamp));
    assert!(event.metadata.name.unwrap().starts_with("p."));
}

#[tokio::test(start_paused = true)]
async fn equal_events_are_one_series_written_once_a_minute() {
    let fixture = Fixture::start();
    for _ in 0..50 {
        fixture.warn("p", "full");
    }
    seconds(1).await;
    assert_eq!(fixture.requests(), (1, 0), "a burst is one write");
    for _ in 0..118 {
        fixture.warn("p", "full");
        seconds(1).await;
    }
    seconds(120).await;
    assert_eq!(fixture.requests(), (1, 2), "two more minutes are two more writes");
    let [event] = fixture.exists().await.try_into().unwrap();
    assert_eq!(event.count, Some(168), "no event is lost");
    assert!(event.last_timestamp > event.first_timestamp);
}

#[tokio::test(start_paused = true)]
async fn changing_messages_do_not_cost_a_write_each_time() {
    let fixture = Fixture::start();
    for number in 0..300 {
        fixture.warn("p", &format!("attempt {number} failed"));
        seconds(1).await;
    }
    fixture.warn("q", "another object");
    seconds(1).await;
    let (created, patched) = fixture.requests();
    assert_eq!(created, 12, "ten notes, the rest of them, and the other object");
    assert!(patched <= 5, "{patched}");
    let said = fixture.exists().await;
    let combined = said
        .iter()
        .find(|event| event.message.as_deref().unwrap_or_default().starts_with("more of this"));
    assert!(combined.unwrap().count.unwrap() >= 240);
}

#[tokio::test(start_paused = true)]
async fn object_importance_reason_and_note_each_make_a_series() {
    let fixture = Fixture::start();
    fixture.warn("p", "full");
    fixture.warn("q", "full");
    fixture.warn("p", "fuller");
    fixture.recorder.record(&pool("p"), Importance::Normal, LOST, "full");
    fixture.recorder.record(&pool("p"), Importance::Warning, FOUND, "full");
    seconds(1).await;
    assert_eq!(fixture.exists().await.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_series_starts_again_after_a_long_silence() {
    let fixture = Fixture::start();
    fixture.warn("p", "full");
    seconds(3600).await;
    fixture.warn("q", "full");
    seconds(1).await;
    fixture.warn("p", "full");
    seconds(1).await;
    assert_eq!(fixture.requests(), (3, 0));
    assert_eq!(fixture.exists().await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn recording_never_waits_and_dropped_events_are_counted() {
    let (recorder, mut queue) = EventRecorder::bounded(3);
    for number in 0..10 {
        recorder.record(&pool("p"), Importance::Normal, FOUND, number.to_string());
    }
    let notes: Vec<String> = queue.take().into_iter().map(|event| event.note).collect();
    assert_eq!(notes, ["0", "1", "2"]);
    assert_eq!(recorder.stats().dropped, 7);
    assert!(queue.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_hung_or_failing_server_costs_events_and_nothing_else() {
    let fixture = Fixture::start();
    let faults = Plan::none()
        .with(Rule::at(1, Fault::refused(500)))
        .with(Rule::at(2, Fault::Delay(Duration::from_secs(1000))));
    fixture.cluster.inject(faults);
    fixture.warn("p", "first");
    fixture.warn("p", "second");
    seconds(1).await;
    for number in 0..200 {
        fixture.warn(&format!("p{number}"), "full");
    }
    assert_eq!(
        fixture.recorder.stats(),
        EventStats {
            dropped: 100,
            failed: 1,
            written: 2
        }
    );
    seconds(2000).await;
    assert_eq!(fixture.exists().await.len(), 101);
}

#[tokio::test(start_paused = true)]
async fn a_series_continues_whether_its_first_write_or_only_the_response_was_lost() {
    let refused = Fault::refused(500);
    for fault in [Fault::ReplyLost, refused] {
        let fixture = Fixture::start();
        fixture.cluster.inject(Plan::none().with(Rule::at(1, fault)));
        fixture.warn("p", "full");
        seconds(1).await;
        fixture.warn("p", "full");
        seconds(120).await;
        let [event] = fixture.exists().await.try_into().unwrap();
        assert_eq!(event.count, Some(2), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_publisher_ends_with_the_last_recorder_and_writes_the_recorded_events() {
    let Fixture {
        cluster,
        recorder,
        mut running,
    } = Fixture::start();
    recorder.record(&pool("p"), Importance::Normal, FOUND, "10.0.0.1");
    drop(recorder);
    running.join_next().await.unwrap().unwrap();
    assert_eq!(cluster.audit().of("tester", "create", "events"), 1);
}

#[tokio::test(start_paused = true)]
async fn long_notes_are_cut_at_a_character() {
    let fixture = Fixture::start();
    fixture.warn("p", &"é".repeat(600));
    seconds(1).await;
    let [event] = fixture.exists().await.try_into().unwrap();
    let message = event.message.unwrap();
    assert!(message.len() <= 1024 && message.ends_with("é..."), "{message}");
}
