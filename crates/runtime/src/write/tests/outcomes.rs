use std::error::Error as _;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::ResourceExt as _;
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::ipam::v1alpha1::IPPool;
use metal3_api::meta::{Condition, ConditionStatus, Time};
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::json;

use super::{config_map, key, meta, patch, requests, shows, start, with_kinds};
use crate::hub::{Found, SharedHub};
use crate::version::ResourceVersion;
use crate::work;
use crate::write::{Mode, Nowhere, Trouble, Written};

#[tokio::test(start_paused = true)]
async fn an_answer_is_in_the_hub_before_the_caller_has_it() {
    let (_cluster, writer) = start(Mode::Perform);
    let hub = SharedHub::<ConfigMap>::default();
    let made = writer.create(&hub, &config_map("a")).await.unwrap().object().unwrap();
    assert!(shows(&hub, "a"));
    let change = patch(&json!({"data": {"k": "v"}}));
    let changed = writer.patch(&hub, &key("a"), change).await.unwrap().object().unwrap();
    assert_ne!(changed.resource_version(), made.resource_version());
    let Found::Live(known) = hub.find(&key("a")) else {
        panic!("the hub lost it")
    };
    assert_eq!(known.resource_version(), changed.resource_version());
    assert_eq!(writer.delete(&hub, &changed).await.unwrap(), Written::Gone);
    assert!(!shows(&hub, "a"));
}

#[tokio::test(start_paused = true)]
async fn preconditions_make_stale_writes_fail() {
    let (_cluster, writer) = start(Mode::Perform);
    let hub = SharedHub::<ConfigMap>::default();
    let old = writer.create(&hub, &config_map("a")).await.unwrap().object().unwrap();
    let version = ResourceVersion::parse(&old.resource_version().unwrap()).unwrap();
    let change = patch(&json!({"data": {"k": "v"}})).only_at(&version);
    assert!(writer.patch(&hub, &key("a"), change.clone()).await.is_ok());
    let error = writer.patch(&hub, &key("a"), change).await.unwrap_err();
    assert_eq!(error.trouble, Trouble::Conflict);
    assert_eq!(error.to_string(), "patch configmaps default/a");
    assert_eq!(writer.delete(&hub, &old).await.unwrap_err().trouble, Trouble::Conflict);
    assert!(shows(&hub, "a"));
}

#[tokio::test(start_paused = true)]
async fn a_delete_spares_what_took_the_name_and_accepts_what_is_gone() {
    let (_cluster, writer) = start(Mode::Perform);
    let (known, unaware) = (SharedHub::<ConfigMap>::default(), SharedHub::<ConfigMap>::default());
    let first = writer.create(&known, &config_map("a")).await.unwrap().object().unwrap();
    assert_eq!(writer.delete(&known, &first).await.unwrap(), Written::Gone);
    assert_eq!(writer.delete(&unaware, &first).await.unwrap(), Written::Gone);
    assert!(writer.create(&known, &config_map("a")).await.is_ok());
    let error = writer.delete(&unaware, &first).await.unwrap_err();
    assert_eq!(error.trouble, Trouble::Conflict);
}

#[tokio::test(start_paused = true)]
async fn what_finalizers_hold_stays_in_the_hub_as_going() {
    let (_cluster, writer) = start(Mode::Perform);
    let hub = SharedHub::<ConfigMap>::default();
    let mut held = config_map("a");
    held.metadata.finalizers = Some(vec!["example.com/held".to_owned()]);
    let made = writer.create(&hub, &held).await.unwrap().object().unwrap();
    let going = writer.delete(&hub, &made).await.unwrap().object().unwrap();
    assert!(going.metadata.deletion_timestamp.is_some());
    assert!(matches!(hub.find(&key("a")), Found::Live(known) if known.metadata.deletion_timestamp.is_some()));
}

#[tokio::test(start_paused = true)]
async fn the_last_finalizer_takes_what_is_going_out_of_the_hub() {
    let (_cluster, writer) = start(Mode::Perform);
    let hub = SharedHub::<ConfigMap>::default();
    let mut held = config_map("a");
    held.metadata.finalizers = Some(vec!["example.com/one".to_owned(), "example.com/two".to_owned()]);
    let made = writer.create(&hub, &held).await.unwrap().object().unwrap();
    writer.delete(&hub, &made).await.unwrap();
    let one_less = patch(&json!({"metadata": {"finalizers": ["example.com/two"]}}));
    let held = writer.patch(&hub, &key("a"), one_less).await.unwrap().object();
    assert!(held.is_some() && shows(&hub, "a"));
    let last = patch(&json!({"metadata": {"finalizers": null}}));
    assert_eq!(writer.patch(&hub, &key("a"), last).await.unwrap(), Written::Gone);
    assert!(!shows(&hub, "a"));
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
    let pool = writer.create(&Nowhere, &pool).await.unwrap().object().unwrap();
    let before = requests(&cluster);
    assert_eq!(
        writer.status(&Nowhere, &pool, &pool.clone()).await.unwrap(),
        Written::Unchanged
    );
    assert_eq!(requests(&cluster), before);
    let mut after = pool.clone();
    after.status.last_updated = Some(Time::default());
    let written = writer.status(&Nowhere, &pool, &after).await.unwrap().object().unwrap();
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
    let old = writer.create(&Nowhere, &machine).await.unwrap().object().unwrap();
    let touched = patch(&json!({"metadata": {"labels": {"touched": "yes"}}}));
    assert!(
        writer
            .patch::<Metal3Machine>(&Nowhere, &key("m"), touched)
            .await
            .is_ok()
    );
    let mut plain = old.clone();
    plain.status.last_updated = Some(Time::default());
    assert!(writer.status(&Nowhere, &old, &plain).await.is_ok(), "nothing to undo");
    let mut after = old.clone();
    after.status.conditions.push(Condition {
        type_: "Ready".to_owned(),
        status: ConditionStatus::True,
        reason: "Ready".to_owned(),
        ..Condition::default()
    });
    let error = writer.status(&Nowhere, &old, &after).await.unwrap_err();
    assert_eq!(error.trouble, Trouble::Conflict);
}

#[tokio::test(start_paused = true)]
async fn refusals_are_told_from_what_nobody_knows() {
    let refused = |code, retry_after| Fault::Refused { code, retry_after };
    let seven = Some(Duration::from_secs(7));
    let table = [
        (Fault::Conflict, Trouble::Conflict, false),
        (refused(429, Some(7)), Trouble::Throttled { after: seven }, false),
        (refused(503, None), Trouble::OutcomeUnknown, false),
        (refused(500, None), Trouble::OutcomeUnknown, false),
        (Fault::ReplyLost, Trouble::OutcomeUnknown, true),
    ];
    for (fault, trouble, happened) in table {
        let (cluster, writer) = start(Mode::Perform);
        let hub = SharedHub::<ConfigMap>::default();
        cluster.suffer(Plan::none().with(Rule::at(1, fault).verb("create")));
        let error = writer.create(&hub, &config_map("a")).await.unwrap_err();
        assert_eq!(error.trouble, trouble, "{fault:?}");
        assert!(error.source().is_some(), "{fault:?}");
        assert!(!shows(&hub, "a"), "{fault:?}");
        // The second attempt finds the first by its name, and nothing is there twice.
        let second = writer.create(&hub, &config_map("a")).await;
        assert_eq!(
            second.err().map(|error| error.trouble),
            happened.then_some(Trouble::AlreadyExists),
            "{fault:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_create_without_a_name_never_leaves() {
    let (cluster, writer) = start(Mode::Perform);
    let mut nameless = config_map("");
    nameless.metadata.generate_name = Some("a-".to_owned());
    let error = writer.create(&Nowhere, &nameless).await.unwrap_err();
    assert_eq!((error.trouble, requests(&cluster)), (Trouble::Malformed, 0));
}

#[tokio::test(start_paused = true)]
async fn trouble_becomes_a_fault_that_is_tried_again_and_obeys_the_server() {
    let (cluster, writer) = start(Mode::Perform);
    let fault = Fault::Refused {
        code: 429,
        retry_after: Some(7),
    };
    cluster.suffer(Plan::none().with(Rule::at(1, fault)));
    let error = writer.create(&Nowhere, &config_map("a")).await.unwrap_err();
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
async fn a_live_read_tells_nothing_there_from_nobody_knows() {
    let (cluster, writer) = start(Mode::Perform);
    let hub = SharedHub::<ConfigMap>::default();
    assert!(writer.read(&hub, &key("a")).await.unwrap().is_none());
    assert!(writer.create(&Nowhere, &config_map("a")).await.is_ok());
    cluster.suffer(Plan::none().with(Rule::at(1, Fault::ReplyLost)));
    let fault = writer.read(&hub, &key("a")).await.unwrap_err();
    assert_eq!(
        (fault.category(), fault.to_string()),
        ("unreachable", "get configmaps default/a".to_owned())
    );
    assert!(!shows(&hub, "a"));
    assert!(writer.read(&hub, &key("a")).await.unwrap().is_some());
    assert!(shows(&hub, "a"));
}
