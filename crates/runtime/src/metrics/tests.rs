use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use metal3_domain::clock::ManualClock;

use super::*;
use crate::cache::Key;

mod states;

/// Name on the wire, type, labels. The dashboards and alerts of the Go managers query these.
const TABLE: [(&str, &str, &str); 50] = [
    ("certwatcher_read_certificate_errors_total", "counter", ""),
    ("certwatcher_read_certificate_total", "counter", ""),
    ("controller_runtime_active_workers", "gauge", "controller"),
    ("controller_runtime_max_concurrent_reconciles", "gauge", "controller"),
    ("controller_runtime_reconcile_errors_total", "counter", "controller"),
    ("controller_runtime_reconcile_panics_total", "counter", "controller"),
    ("controller_runtime_reconcile_time_seconds", "histogram", "controller"),
    ("controller_runtime_reconcile_total", "counter", "controller,result"),
    (
        "controller_runtime_terminal_reconcile_errors_total",
        "counter",
        "controller",
    ),
    ("controller_runtime_webhook_latency_seconds", "histogram", "webhook"),
    ("controller_runtime_webhook_panics_total", "counter", ""),
    ("controller_runtime_webhook_requests_in_flight", "gauge", "webhook"),
    ("controller_runtime_webhook_requests_total", "counter", "code,webhook"),
    ("metal3_build_info", "info", "controllers,version"),
    ("metal3_cache_age_seconds", "gauge", "kind"),
    ("metal3_certificate_days_left", "gauge", ""),
    ("metal3_host_state_age_seconds", "histogram", "state"),
    ("metal3_host_state_objective_seconds", "gauge", "state"),
    ("metal3_host_state_oldest_seconds", "gauge", "state"),
    ("metal3_hosts", "gauge", "state"),
    ("metal3_hosts_above_objective", "gauge", "state"),
    ("metal3_machine_state_age_seconds", "histogram", "state"),
    ("metal3_machine_state_objective_seconds", "gauge", "state"),
    ("metal3_machine_state_oldest_seconds", "gauge", "state"),
    ("metal3_machines", "gauge", "state"),
    ("metal3_machines_above_objective", "gauge", "state"),
    ("metal3_watch_failures_total", "counter", "kind"),
    ("metal3_workqueue_oldest_ready_seconds", "gauge", "controller,name"),
    ("leader_election_master_status", "gauge", "name"),
    ("leader_election_slowpath_total", "counter", "name"),
    ("metal3_controller_faults_total", "counter", "category,controller"),
    ("metal3_controller_waiting_keys", "gauge", "controller,reason"),
    ("metal3_delayed__provisioning_total", "counter", ""),
    ("metal3_workqueue_failing_keys", "gauge", "controller,name"),
    ("metal3_workqueue_held_keys", "gauge", "controller,name"),
    ("process_cpu_seconds_total", "counter", ""),
    ("process_max_fds", "gauge", ""),
    ("process_open_fds", "gauge", ""),
    ("process_resident_memory_bytes", "gauge", ""),
    ("process_start_time_seconds", "gauge", ""),
    ("process_virtual_memory_bytes", "gauge", ""),
    ("rest_client_requests_total", "counter", "code,host,method"),
    ("workqueue_adds_total", "counter", "controller,name"),
    ("workqueue_depth", "gauge", "controller,name,priority"),
    (
        "workqueue_longest_running_processor_seconds",
        "gauge",
        "controller,name",
    ),
    ("workqueue_queue_duration_seconds", "histogram", "controller,name"),
    ("workqueue_retries_total", "counter", "controller,name"),
    ("workqueue_unfinished_work_seconds", "gauge", "controller,name"),
    ("workqueue_work_duration_seconds", "histogram", "controller,name"),
    ("z", "gauge", ""),
];

/// Metrics with one sample of each series.
fn exercised() -> Metrics {
    let metrics = Metrics::new();
    let controller = metrics.controller("metal3machine", 10);
    controller
        .begin(Duration::from_millis(3))
        .end(ReconcileResult::Done, Duration::from_secs(1));
    let active = controller.begin(Duration::from_millis(3));
    active.failed("conflict");
    controller.waits(None, Some(crate::reason::Reason::new("WaitingForPool")));
    for name in ["metal3machine", "ippool"] {
        metrics.queue(name, || QueueStats {
            high: 2,
            low: 3,
            adds: 9,
            retries: 4,
            ..QueueStats::default()
        });
    }
    metrics
        .requests()
        .answered(http::StatusCode::OK, "GET", "10.0.0.1:6443");
    metrics.lease("controller-leader-election-capm3").leading(true);
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(chrono::DateTime::UNIX_EPOCH));
    let [hosts, _] = Subject::ALL.map(|subject| metrics.states(subject, Arc::clone(&clock)));
    hosts.set(key("h"), "registering", None);
    metrics.watch("BareMetalHost", WatchFigures::default);
    metrics.program("v1", "hosts", clock);
    metrics
        .servers()
        .certificates()
        .expires(Some(chrono::DateTime::UNIX_EPOCH));
    metrics.servers().begin("/convert").end(200, Duration::from_millis(1));
    let delayed = prometheus_client::metrics::counter::Counter::<u64>::default();
    metrics.register("metal3_delayed__provisioning", "Provisionings put off", delayed);
    metrics.register(
        "z",
        "The last one",
        prometheus_client::metrics::gauge::Gauge::<i64>::default(),
    );
    metrics
}

fn key(name: &str) -> Key {
    Key {
        namespace: "metal".to_owned(),
        name: name.to_owned(),
    }
}

/// A sample line, split into name, ordered labels and value.
fn sample(line: &str) -> (&str, Vec<&str>, &str) {
    let (series, value) = line.rsplit_once(' ').unwrap();
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let labels = labels.strip_suffix('}').unwrap();
    let names = labels.split(',').filter_map(|label| Some(label.split_once('=')?.0));
    (name, names.collect(), value)
}

fn value(text: &str, series: &str) -> Option<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.rsplit_once(' '))
        .find(|(found, _)| *found == series)
        .map(|(_, value)| value.to_owned())
}

#[test]
fn names_types_and_labels_are_those_of_the_table() {
    let text = exercised().render();
    let types: BTreeMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .collect();
    let mut seen = BTreeSet::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, mut labels, _) = sample(line);
        let stem = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|suffix| name.strip_suffix(suffix))
            .filter(|stem| types.get(stem) == Some(&"histogram"));
        let of_counter = || {
            name.strip_suffix("_total")
                .or(name.strip_suffix("_info"))
                .unwrap_or(name)
        };
        let family = stem.unwrap_or_else(of_counter);
        labels.retain(|label| *label != "le");
        labels.sort_unstable();
        seen.insert((
            stem.unwrap_or(name).to_owned(),
            types[family].to_owned(),
            labels.join(","),
        ));
    }
    let table = TABLE.map(|(name, kind, labels)| (name.to_owned(), kind.to_owned(), labels.to_owned()));
    assert_eq!(seen, BTreeSet::from(table));
}

#[test]
fn the_text_is_openmetrics_that_describes_nothing_twice() {
    let text = exercised().render();
    assert!(text.ends_with("# EOF\n"));
    let described: Vec<_> = text.lines().filter(|line| line.starts_with("# TYPE ")).collect();
    let unique: BTreeSet<_> = described.iter().collect();
    assert_eq!(described.len(), unique.len());
    assert!(!text.contains("_total_total"));
}

#[test]
fn a_controller_shows_zeros_before_its_first_reconcile() {
    let metrics = Metrics::new();
    let _controller = metrics.controller("ippool", 5);
    let text = metrics.render();
    for result in ["error", "requeue", "requeue_after", "success"] {
        let series = format!("controller_runtime_reconcile_total{{controller=\"ippool\",result=\"{result}\"}}");
        assert_eq!(value(&text, &series).as_deref(), Some("0"), "{result}");
    }
    let limit = value(
        &text,
        "controller_runtime_max_concurrent_reconciles{controller=\"ippool\"}",
    );
    assert_eq!(limit.as_deref(), Some("5"));
}

#[test]
fn each_result_is_counted_as_in_controller_runtime() {
    // Result; then label, errors, terminal errors, panics.
    let rows = [
        (ReconcileResult::Done, "success", "0", "0", "0"),
        (ReconcileResult::RequeueAfter, "requeue_after", "0", "0", "0"),
        (ReconcileResult::Failed, "error", "1", "0", "0"),
        (ReconcileResult::Terminal, "error", "1", "1", "0"),
        (ReconcileResult::Panicked, "error", "1", "0", "1"),
    ];
    for (result, label, errors, terminal, panics) in rows {
        let metrics = Metrics::new();
        let controller = metrics.controller("c", 1);
        controller.begin(Duration::ZERO).end(result, Duration::from_millis(7));
        let text = metrics.render();
        let of = |name: &str| value(&text, &format!("controller_runtime_{name}_total{{controller=\"c\"}}")).unwrap();
        let passes = format!("controller_runtime_reconcile_total{{controller=\"c\",result=\"{label}\"}}");
        assert_eq!(value(&text, &passes).unwrap(), "1", "{result:?}");
        assert_eq!(of("reconcile_errors"), errors, "{result:?}");
        assert_eq!(of("terminal_reconcile_errors"), terminal, "{result:?}");
        assert_eq!(of("reconcile_panics"), panics, "{result:?}");
    }
}

#[test]
fn a_worker_is_active_until_its_reconcile_ends_or_is_dropped() {
    let metrics = Metrics::new();
    let controller = metrics.controller("c", 2);
    let active = || value(&metrics.render(), "controller_runtime_active_workers{controller=\"c\"}").unwrap();
    let first = controller.begin(Duration::ZERO);
    let second = controller.begin(Duration::ZERO);
    assert_eq!(active(), "2");
    first.end(ReconcileResult::Done, Duration::ZERO);
    assert_eq!(active(), "1");
    drop(second);
    assert_eq!(active(), "0");
    let passes = value(
        &metrics.render(),
        "controller_runtime_reconcile_time_seconds_count{controller=\"c\"}",
    );
    assert_eq!(passes.as_deref(), Some("1"), "a dropped reconcile has no result");
}

#[test]
fn queues_are_read_at_each_scrape_and_lanes_are_priorities() {
    let text = exercised().render();
    let of = |name: &str| value(&text, name).unwrap();
    for queue in ["metal3machine", "ippool"] {
        let labels = format!("name=\"{queue}\",controller=\"{queue}\"");
        assert_eq!(of(&format!("workqueue_depth{{{labels},priority=\"0\"}}")), "2");
        assert_eq!(of(&format!("workqueue_depth{{{labels},priority=\"-100\"}}")), "3");
        assert_eq!(of(&format!("workqueue_adds_total{{{labels}}}")), "9");
        assert_eq!(of(&format!("workqueue_retries_total{{{labels}}}")), "4");
    }
}

#[test]
fn requests_with_and_without_a_response_are_counted_separately() {
    let metrics = Metrics::new();
    metrics.requests().answered(http::StatusCode::CONFLICT, "PATCH", "h");
    metrics.requests().unanswered("GET", "h");
    let text = metrics.render();
    for (code, method) in [("409", "PATCH"), ("<error>", "GET")] {
        let series = format!("rest_client_requests_total{{code=\"{code}\",method=\"{method}\",host=\"h\"}}");
        assert_eq!(value(&text, &series).as_deref(), Some("1"));
    }
}

#[test]
fn the_process_metrics_are_plausible() {
    let text = Metrics::new().render();
    let of = |name: &str| value(&text, name).unwrap().parse::<f64>().unwrap();
    assert!(of("process_resident_memory_bytes") > 100_000.0);
    assert!(of("process_resident_memory_bytes") < of("process_virtual_memory_bytes"));
    assert!(of("process_open_fds") >= 3.0);
    // 2020 or later, so the sum of boot time and ticks has the right unit.
    assert!(of("process_start_time_seconds") > 1_577_836_800.0);
}

#[test]
fn watches_of_one_kind_are_one_series() {
    let metrics = Metrics::new();
    for (kind, seconds, failures) in [("BareMetalHost", 3, 1), ("BareMetalHost", 7, 2), ("Machine", 1, 0)] {
        metrics.watch(kind, move || WatchFigures {
            silent: Duration::from_secs(seconds),
            failures,
        });
    }
    let text = metrics.render();
    let of = |name: &str, kind: &str| value(&text, &format!("{name}{{kind=\"{kind}\"}}"));
    assert_eq!(of("metal3_cache_age_seconds", "BareMetalHost").as_deref(), Some("7.0"));
    assert_eq!(of("metal3_watch_failures_total", "BareMetalHost").as_deref(), Some("3"));
    assert_eq!(of("metal3_cache_age_seconds", "Machine").as_deref(), Some("1.0"));
}

#[test]
fn certificate_shows_its_days_and_nothing_when_its_end_is_not_known() {
    let (metrics, clock) = (Metrics::new(), Arc::new(ManualClock::at(chrono::DateTime::UNIX_EPOCH)));
    metrics.program("v1", "hosts", clock);
    let days = || value(&metrics.render(), "metal3_certificate_days_left");
    assert_eq!(days(), None);
    for (seconds, expected) in [(86_400 * 3, "3.0"), (-43_200, "-0.5")] {
        let until = chrono::DateTime::from_timestamp(seconds, 0);
        metrics.servers().certificates().expires(until);
        assert_eq!(days().as_deref(), Some(expected));
    }
    metrics.servers().certificates().expires(None);
    assert_eq!(days(), None);
}
