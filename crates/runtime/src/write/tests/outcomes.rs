use std::error::Error as _;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::ResourceExt as _;
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::ipam::v1alpha1::IPPool;
use metal3_api::meta::{Condition, ConditionStatus, Time};
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::json;

use super::{config_map, created, key, meta, patch, requests, shows, start, with_kinds};
use crate::cache::SharedCache;
use crate::plan::Observed;
use crate::version::ResourceVersion;
use crate::work;
use crate::write::{Mode, NoCache, WriteErrorKind, Written};

#[tokio::test(start_paused = true)]
async fn a_response_is_in_the_cache_before_the_caller_has_it() {
    let (_cluster, writer, cache, made) = created().await;
    assert!(shows(&cache, "a"));
    let change = patch(&json!({"data": {"k": "v"}}));
    let changed = writer.patch(&cache, &key("a"), change).await.unwrap().object().unwrap();
    assert_ne!(changed.resource_version(), made.resource_version());
    let Observed::Present(known) = cache.find(&key("a")) else {
        panic!("the object is not cached")
    };
    assert_eq!(known.resource_version(), changed.resource_version());
    assert_eq!(writer.delete(&cache, &changed).await.unwrap(), Written::Deleted);
    assert!(!shows(&cache, "a"));
}

#[tokio::test(start_paused = true)]
async fn preconditions_make_stale_writes_fail() {
    let (_cluster, writer, cache, old) = created().await;
    let version = ResourceVersion::parse(&old.resource_version().unwrap()).unwrap();
    let change = patch(&json!({"data": {"k": "v"}})).with_precondition(&version);
    assert!(writer.patch(&cache, &key("a"), change.clone()).await.is_ok());
    let error = writer.patch(&cache, &key("a"), change).await.unwrap_err();
    assert_eq!(error.kind, WriteErrorKind::Conflict);
    assert_eq!(error.to_string(), "patch configmaps default/a");
    assert_eq!(
        writer.delete(&cache, &old).await.unwrap_err().kind,
        WriteErrorKind::Conflict
    );
    assert!(shows(&cache, "a"));
}

#[tokio::test(start_paused = true)]
async fn a_delete_keeps_a_newer_object_of_the_name_and_accepts_an_absent_one() {
    let (_cluster, writer) = start(Mode::Perform);
    let (known, unaware) = (SharedCache::<ConfigMap>::default(), SharedCache::<ConfigMap>::default());
    let first = writer.create(&known, &config_map("a")).await.unwrap().object().unwrap();
    assert_eq!(writer.delete(&known, &first).await.unwrap(), Written::Deleted);
    assert_eq!(writer.delete(&unaware, &first).await.unwrap(), Written::Deleted);
    assert!(writer.create(&known, &config_map("a")).await.is_ok());
    let error = writer.delete(&unaware, &first).await.unwrap_err();
    assert_eq!(error.kind, WriteErrorKind::Conflict);
}

#[tokio::test(start_paused = true)]
async fn object_held_by_finalizers_stays_in_the_cache_as_deleting() {
    let (_cluster, writer) = start(Mode::Perform);
    let cache = SharedCache::<ConfigMap>::default();
    let mut held = config_map("a");
    held.metadata.finalizers = Some(vec!["example.com/held".to_owned()]);
    let made = writer.create(&cache, &held).await.unwrap().object().unwrap();
    let going = writer.delete(&cache, &made).await.unwrap().object().unwrap();
    assert!(going.metadata.deletion_timestamp.is_some());
    assert!(matches!(cache.find(&key("a")), Observed::Present(known) if known.metadata.deletion_timestamp.is_some()));
}

#[tokio::test(start_paused = true)]
async fn removing_the_last_finalizer_removes_the_object_from_the_cache() {
    let (_cluster, writer) = start(Mode::Perform);
    let cache = SharedCache::<ConfigMap>::default();
    let mut held = config_map("a");
    held.metadata.finalizers = Some(vec!["example.com/one".to_owned(), "example.com/two".to_owned()]);
    let made = writer.create(&cache, &held).await.unwrap().object().unwrap();
    writer.delete(&cache, &made).await.unwrap();
    let one_less = patch(&json!({"metadata": {"finalizers": ["example.com/two"]}}));
    let held = writer.patch(&cache, &key("a"), one_less).await.unwrap().object();
    assert!(held.is_some() && shows(&cache, "a"));
    let last = patch(&json!({"metadata": {"finalizers": null}}));
    assert_eq!(writer.patch(&cache, &key("a"), last).await.unwrap(), Written::Deleted);
    assert!(!shows(&cache, "a"));
}

#[tokio::test(start_paused = true)]
async fn an_equal_status_costs_no_request() {
    let (cluster, writer) = start(Mode::Perform);
    with_kinds(&cluster);
    let mut pool = IPPool {
        metadata: meta("p"),
        ..IPPool::default()
    };
    pool.spec.name_prefix = "p".to_owned();
    let pool = writer.create(&NoCache, &pool).await.unwrap().object().unwrap();
    let before = requests(&cluster);
    assert_eq!(
        writer.status(&NoCache, &pool, &pool.clone()).await.unwrap(),
        Written::Unchanged
    );
    assert_eq!(requests(&cluster), before);
    let mut after = pool.clone();
    after.status.last_updated = Some(Time::default());
    let written = writer.status(&NoCache, &pool, &after).await.unwrap().object().unwrap();
    assert_eq!(written.status.last_updated, Some(Time::default()));
}

#[tokio::test(start_paused = true)]
async fn a_status_that_replaces_a_list_needs_the_version_it_was_read_at() {
    let (cluster, writer) = start(Mode::Perform);
    with_kinds(&cluster);
    let machine = Metal3Machine {
        metadata: meta("m"),
        ..Metal3Machine::default()
    };
    let old = writer.create(&NoCache, &machine).await.unwrap().object().unwrap();
    let touched = patch(&json!({"metadata": {"labels": {"touched": "yes"}}}));
    assert!(
        writer
            .patch::<Metal3Machine>(&NoCache, &key("m"), touched)
            .await
            .is_ok()
    );
    let mut plain = old.clone();
    plain.status.last_updated = Some(Time::default());
    assert!(writer.status(&NoCache, &old, &plain).await.is_ok(), "nothing to undo");
    let mut after = old.clone();
    after.status.conditions.push(Condition {
        type_: "Ready".to_owned(),
        status: ConditionStatus::True,
        reason: "Ready".to_owned(),
        ..Condition::default()
    });
    let error = writer.status(&NoCache, &old, &after).await.unwrap_err();
    assert_eq!(error.kind, WriteErrorKind::Conflict);
}

#[tokio::test(start_paused = true)]
async fn rejected_writes_are_distinguished_from_unknown_outcomes() {
    let refused = |code, retry_after| Fault::Refused { code, retry_after };
    let seven = Some(Duration::from_secs(7));
    let table = [
        (Fault::Conflict, WriteErrorKind::Conflict, false),
        (refused(429, Some(7)), WriteErrorKind::Throttled { after: seven }, false),
        (refused(503, None), WriteErrorKind::OutcomeUnknown, false),
        (refused(500, None), WriteErrorKind::OutcomeUnknown, false),
        (Fault::ReplyLost, WriteErrorKind::OutcomeUnknown, true),
    ];
    for (fault, kind, happened) in table {
        let (cluster, writer) = start(Mode::Perform);
        let cache = SharedCache::<ConfigMap>::default();
        cluster.inject(Plan::none().with(Rule::at(1, fault).verb("create")));
        let error = writer.create(&cache, &config_map("a")).await.unwrap_err();
        assert_eq!(error.kind, kind, "{fault:?}");
        assert!(error.source().is_some(), "{fault:?}");
        assert!(!shows(&cache, "a"), "{fault:?}");
        // The second attempt finds the object of the first by its name.
        let second = writer.create(&cache, &config_map("a")).await;
        assert_eq!(
            second.err().map(|error| error.kind),
            happened.then_some(WriteErrorKind::AlreadyExists),
            "{fault:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_create_without_a_name_is_not_sent() {
    let (cluster, writer) = start(Mode::Perform);
    let mut unnamed = config_map("");
    unnamed.metadata.generate_name = Some("a-".to_owned());
    let error = writer.create(&NoCache, &unnamed).await.unwrap_err();
    assert_eq!((error.kind, requests(&cluster)), (WriteErrorKind::Malformed, 0));
}

#[tokio::test(start_paused = true)]
async fn write_error_becomes_a_fault_that_is_retried_after_the_delay_of_the_server() {
    let (cluster, writer) = start(Mode::Perform);
    let fault = Fault::Refused {
        code: 429,
        retry_after: Some(7),
    };
    cluster.inject(Plan::none().with(Rule::at(1, fault)));
    let error = writer.create(&NoCache, &config_map("a")).await.unwrap_err();
    let fault = work::Fault::from(error);
    assert_eq!(fault.category(), "throttled");
    assert_eq!(
        fault.outcome(),
        crate::queue::Outcome::Throttled(Duration::from_secs(7))
    );
    assert!(
        fault.report().starts_with("create configmaps default/a: "),
        "{}",
        fault.report()
    );
}

#[tokio::test(start_paused = true)]
async fn a_live_read_tells_absent_from_unknown() {
    let (cluster, writer) = start(Mode::Perform);
    let cache = SharedCache::<ConfigMap>::default();
    assert!(writer.read(&cache, &key("a")).await.unwrap().is_none());
    assert!(writer.create(&NoCache, &config_map("a")).await.is_ok());
    cluster.inject(Plan::none().with(Rule::at(1, Fault::ReplyLost)));
    let fault = writer.read(&cache, &key("a")).await.unwrap_err();
    assert_eq!(
        (fault.category(), fault.to_string()),
        ("unreachable", "get configmaps default/a".to_owned())
    );
    assert!(!shows(&cache, "a"));
    assert!(writer.read(&cache, &key("a")).await.unwrap().is_some());
    assert!(shows(&cache, "a"));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_may_be_gone_is_looked_for_without_a_refused_request() {
    let (cluster, writer) = start(Mode::Perform);
    let cache = SharedCache::<ConfigMap>::default();
    assert!(writer.create(&NoCache, &config_map("b")).await.is_ok());
    assert!(writer.find(&cache, &key("a")).await.unwrap().is_none());
    assert!(writer.create(&NoCache, &config_map("a")).await.is_ok());
    cluster.inject(Plan::none().with(Rule::at(1, Fault::ReplyLost)));
    let fault = writer.find(&cache, &key("a")).await.unwrap_err();
    assert_eq!(
        (fault.category(), fault.to_string()),
        ("unreachable", "read configmaps default/a".to_owned())
    );
    assert!(!shows(&cache, "a"));
    let found = writer.find(&cache, &key("a")).await.unwrap();
    assert_eq!(found.and_then(|found| found.metadata.name).as_deref(), Some("a"));
    assert!(shows(&cache, "a"));
}
