use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;

use parking_lot::Mutex;

use super::{Tester, config_map, key, meta, patch, requests, start};
use crate::cache::{Key, SharedCache};
use crate::logs::tests::LogBuffer;
use crate::write::{DryRunObserver, Effect, Mode, NoCache, Work, WriteMode, Writer, Written};

/// What an observer is given, one line each.
#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl DryRunObserver for Lines {
    fn write(&self, effect: &Effect) {
        self.0.lock().push(format!("{effect} {}", effect.body));
    }

    fn order(&self, kind: &str, object: &Key, verb: &'static str, interrupts: bool) {
        self.0.lock().push(format!("{verb} for {kind} {object}, {interrupts}"));
    }

    fn works(&self, work: Work, began: bool) {
        self.0.lock().push(format!("{work:?} {began}"));
    }

    fn reconciled(&self, controller: &'static str, key: &str, failure: Option<String>) {
        self.0.lock().push(format!("{controller} {key} {failure:?}"));
    }
}

/// The log of this thread from now on, as JSON.
fn recorded() -> (LogBuffer, tracing::subscriber::DefaultGuard) {
    let log = LogBuffer::default();
    let writer = log.clone();
    let lines = tracing_subscriber::fmt().json().with_writer(move || writer.clone());
    (log, tracing::subscriber::set_default(lines.finish()))
}

#[tokio::test(start_paused = true)]
async fn dry_run_logs_each_effect_once_and_performs_none() {
    let (log, _guard) = recorded();
    let (cluster, writer) = start(Mode::ObserveOnly);
    let cache = SharedCache::<ConfigMap>::default();
    let mut going = config_map("b");
    going.metadata.uid = Some("u".to_owned());
    going.metadata.resource_version = Some("7".to_owned());

    assert_eq!(writer.create(&cache, &config_map("a")).await.unwrap(), Written::DryRun);
    let change = patch(&json!({"data": {"k": "v"}}));
    assert_eq!(
        writer.patch::<ConfigMap>(&cache, &key("b"), change).await.unwrap(),
        Written::DryRun
    );
    assert_eq!(writer.delete(&cache, &going).await.unwrap(), Written::DryRun);

    assert_eq!(requests(&cluster), 0);
    let text = log.text();
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shown: Vec<String> = lines
        .iter()
        .map(|line| {
            let field = |name: &str| line["fields"][name].as_str().unwrap().to_owned();
            format!(
                "{} {} {} {}",
                field("role"),
                field("verb"),
                field("name"),
                field("body")
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            r#"Tester create a {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}}"#,
            r#"Tester patch b {"data":{"k":"v"}}"#,
            r#"Tester delete b {"preconditions":{"resourceVersion":"7","uid":"u"}}"#,
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn values_of_secrets_reach_no_log_in_a_dry_run() {
    let (log, _guard) = recorded();
    let (_cluster, writer) = start(Mode::ObserveOnly);
    let secret = Secret {
        metadata: meta("s"),
        data: Some([("password".to_owned(), ByteString(b"hunter2".to_vec()))].into()),
        string_data: Some([("user".to_owned(), "hunter2".to_owned())].into()),
        ..Secret::default()
    };
    assert_eq!(writer.create(&NoCache, &secret).await.unwrap(), Written::DryRun);
    let change = patch(&json!({"stringData": {"user": "hunter2"}}));
    assert_eq!(
        writer.patch::<Secret>(&NoCache, &key("s"), change).await.unwrap(),
        Written::DryRun
    );
    let text = log.text();
    // `aHVudGVyMg==` is the same value in base64.
    assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMg"), "{text}");
    assert_eq!(text.matches("password").count(), 1, "{text}");
}

#[tokio::test(start_paused = true)]
async fn observer_of_a_dry_run_is_given_each_effect_without_the_values_of_secrets() {
    let (cluster, sender) = start(Mode::Perform);
    let lines = Arc::new(Lines::default());
    let writer: Writer<Tester> = Writer::new(sender.client, WriteMode::observed_by(Arc::<Lines>::clone(&lines)));
    let change = patch(&json!({"stringData": {"user": "hunter2"}}));
    let written = writer.patch::<Secret>(&NoCache, &key("s"), change).await.unwrap();
    writer.leave_out_order::<ConfigMap>(&key("a"), "power off", true);
    writer.report_reconcile("maps", &key("a"), Some("no answer".to_owned()));
    assert_eq!((written, requests(&cluster)), (Written::DryRun, 0));
    let expected = [
        r#"patch secrets default/s {"stringData":{"user":"***"}}"#,
        "power off for ConfigMap default/a, true",
        r#"maps default/a Some("no answer")"#,
    ];
    assert_eq!(*lines.0.lock(), expected);
}

#[tokio::test(start_paused = true)]
async fn observed_dry_run_goes_on_as_if_patches_of_cached_objects_had_been_done() {
    let (cluster, sender) = start(Mode::Perform);
    let cache = SharedCache::<ConfigMap>::default();
    let created = sender.create(&cache, &config_map("a")).await.unwrap().object().unwrap();
    let sent = requests(&cluster);
    let observer = WriteMode::observed_by(Arc::new(Lines::default()));
    let writer: Writer<Tester> = Writer::new(sender.client.clone(), observer);
    let change = |value: &str| patch(&json!({"data": {"k": value}}));
    let value = |object: &ConfigMap| object.data.as_ref().and_then(|data| data.get("k").cloned());
    let version = |object: &ConfigMap| {
        object
            .metadata
            .resource_version
            .as_deref()
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };

    let patched = writer.patch::<ConfigMap>(&cache, &key("a"), change("v")).await.unwrap();
    let patched = patched.object().unwrap();
    assert_eq!(
        (value(&patched).as_deref(), version(&patched)),
        (Some("v"), version(&created) + 1)
    );
    let cached = cache.find(&key("a")).into_present().unwrap();
    assert_eq!(value(&cached).as_deref(), Some("v"));
    // The server has the old one.
    let read = writer.read::<ConfigMap>(&cache, &key("a")).await.unwrap().unwrap();
    assert_eq!(value(&read).as_deref(), Some("v"));
    assert_eq!(requests(&cluster), sent + 1, "the read");

    let unknown = writer.patch::<ConfigMap>(&cache, &key("b"), change("v")).await.unwrap();
    assert_eq!(unknown, Written::DryRun);
    assert_eq!(writer.create(&cache, &config_map("c")).await.unwrap(), Written::DryRun);
    let plain: Writer<Tester> = Writer::new(sender.client, Mode::ObserveOnly);
    let plain = plain.patch::<ConfigMap>(&cache, &key("a"), change("w")).await.unwrap();
    assert_eq!(plain, Written::DryRun);
}
