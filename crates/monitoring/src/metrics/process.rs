//! Metrics of every process: controllers, queues, caches, requests, leases, servers, memory.

use super::Origin::{GoManagers, Own};
use super::Type::{Counter, Gauge, Histogram, Info};
use super::{Metric, Origin, Row, Type, metric};

const fn row(kind: Type, origin: Origin, row: Row) -> Metric {
    metric(kind, "all", origin, row)
}

pub(super) const METRICS: &[Metric] = &[
    row(
        Counter,
        GoManagers,
        (
            "certwatcher_read_certificate",
            "",
            "times the certificate was read from its files",
        ),
    ),
    row(
        Counter,
        GoManagers,
        (
            "certwatcher_read_certificate_errors",
            "",
            "times that failed; the pair before stays in use",
        ),
    ),
    row(
        Gauge,
        GoManagers,
        (
            "controller_runtime_active_workers",
            "controller",
            "reconciles that run now",
        ),
    ),
    row(
        Gauge,
        GoManagers,
        (
            "controller_runtime_max_concurrent_reconciles",
            "controller",
            "reconciles that may run at once",
        ),
    ),
    row(
        Counter,
        GoManagers,
        (
            "controller_runtime_reconcile",
            "controller,result",
            "reconciles; `result` is `success`, `error`, `requeue` or `requeue_after`",
        ),
    ),
    row(
        Counter,
        GoManagers,
        (
            "controller_runtime_reconcile_errors",
            "controller",
            "reconciles that failed",
        ),
    ),
    row(
        Counter,
        GoManagers,
        (
            "controller_runtime_reconcile_panics",
            "controller",
            "reconciles that panicked: a defect of the program",
        ),
    ),
    row(
        Histogram,
        GoManagers,
        (
            "controller_runtime_reconcile_time_seconds",
            "controller",
            "duration of reconciles",
        ),
    ),
    row(
        Counter,
        GoManagers,
        (
            "controller_runtime_terminal_reconcile_errors",
            "controller",
            "reconciles that failed until the object changes",
        ),
    ),
    row(
        Histogram,
        GoManagers,
        (
            "controller_runtime_webhook_latency_seconds",
            "webhook",
            "duration of webhook requests",
        ),
    ),
    row(
        Counter,
        GoManagers,
        (
            "controller_runtime_webhook_panics",
            "",
            "webhook requests that panicked: a defect of the program",
        ),
    ),
    row(
        Counter,
        GoManagers,
        (
            "controller_runtime_webhook_requests",
            "code,webhook",
            "webhook requests by status code",
        ),
    ),
    row(
        Gauge,
        GoManagers,
        (
            "controller_runtime_webhook_requests_in_flight",
            "webhook",
            "webhook requests that run now",
        ),
    ),
    row(
        Gauge,
        GoManagers,
        (
            "leader_election_master_status",
            "name",
            "1 while this process holds the lease, else 0",
        ),
    ),
    row(
        Counter,
        GoManagers,
        (
            "leader_election_slowpath",
            "name",
            "renewals of a held lease that did not succeed at once",
        ),
    ),
    row(
        Info,
        Own,
        (
            "metal3_build",
            "controllers,version",
            "version and controllers of the process",
        ),
    ),
    row(
        Gauge,
        Own,
        (
            "metal3_cache_age_seconds",
            "kind",
            "time since the watch of a cache received anything; the server sends something every 75 seconds, and a kind that may not be listed is asked each minute",
        ),
    ),
    row(
        Gauge,
        Own,
        (
            "metal3_certificate_days_left",
            "",
            "days until the certificate of webhooks and metrics expires; absent when its end cannot be read",
        ),
    ),
    row(
        Counter,
        Own,
        (
            "metal3_controller_faults",
            "category,controller",
            "reconciles that failed, by the category of the error",
        ),
    ),
    row(
        Gauge,
        Own,
        (
            "metal3_controller_waiting_keys",
            "controller,reason",
            "objects that wait for another actor, by the reason of their condition: hosts are those of the controller `baremetalhost`, machines those of `metal3machine`",
        ),
    ),
    row(
        Counter,
        Own,
        (
            "metal3_watch_failures",
            "kind",
            "failed attempts to list or watch a kind",
        ),
    ),
    row(
        Gauge,
        Own,
        (
            "metal3_workqueue_failing_keys",
            "controller,name",
            "objects with a failure and no success since",
        ),
    ),
    row(
        Gauge,
        Own,
        (
            "metal3_workqueue_held_keys",
            "controller,name",
            "objects that are held until a write is in the cache",
        ),
    ),
    row(
        Gauge,
        Own,
        (
            "metal3_workqueue_oldest_ready_seconds",
            "controller,name",
            "how long the oldest ready object has waited for a worker",
        ),
    ),
    row(Counter, GoManagers, ("process_cpu_seconds", "", "processor time")),
    row(
        Gauge,
        GoManagers,
        ("process_max_fds", "", "files that may be open at once"),
    ),
    row(Gauge, GoManagers, ("process_open_fds", "", "files that are open")),
    row(
        Gauge,
        GoManagers,
        ("process_resident_memory_bytes", "", "memory in use"),
    ),
    row(
        Gauge,
        GoManagers,
        ("process_start_time_seconds", "", "start of the process, since 1970"),
    ),
    row(
        Gauge,
        GoManagers,
        ("process_virtual_memory_bytes", "", "address space in use"),
    ),
    row(
        Counter,
        GoManagers,
        (
            "rest_client_requests",
            "code,host,method",
            "requests to API servers; `host` is `workload-clusters` for all of those",
        ),
    ),
    row(
        Counter,
        GoManagers,
        ("workqueue_adds", "controller,name", "objects that were enqueued"),
    ),
    row(
        Gauge,
        GoManagers,
        (
            "workqueue_depth",
            "controller,name,priority",
            "objects that are ready for a worker",
        ),
    ),
    row(
        Gauge,
        GoManagers,
        (
            "workqueue_longest_running_processor_seconds",
            "controller,name",
            "how long the longest running reconcile has taken so far",
        ),
    ),
    row(
        Histogram,
        GoManagers,
        (
            "workqueue_queue_duration_seconds",
            "controller,name",
            "how long an object was ready before a worker took it",
        ),
    ),
    row(
        Counter,
        GoManagers,
        (
            "workqueue_retries",
            "controller,name",
            "objects that were retried after a failure",
        ),
    ),
    row(
        Gauge,
        GoManagers,
        (
            "workqueue_unfinished_work_seconds",
            "controller,name",
            "time spent so far in running reconciles",
        ),
    ),
    row(
        Histogram,
        GoManagers,
        (
            "workqueue_work_duration_seconds",
            "controller,name",
            "how long a worker took for an object",
        ),
    ),
];
