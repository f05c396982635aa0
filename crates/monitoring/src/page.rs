//! The page `docs/metrics.md`.

use metal3_domain::objectives::{Objectives, Subject};

use crate::alerts::ALERTS;
use crate::dashboards::DASHBOARDS;
use crate::metrics::{Metric, Origin, all};

/// `docs/metrics.md`.
#[must_use]
pub fn page() -> String {
    format!(
        "# Metrics, alerts and dashboards\n\nWritten by `cargo run -p xtask -- codegen` from the tables in `crates/monitoring`. \
         Do not edit.\n\n\
         The metrics are served at `/metrics` of `--diagnostics-address`, in the format OpenMetrics. *Since* is the product that \
         introduced the name: a metric of the Go managers has their name, type and labels, so that existing dashboards and alerts \
         keep working; the others begin with this program. Labels are bounded: they name states, reasons, kinds and controllers of the \
         program. Objects are named where the Go managers do so, and pools.\n\n\
         Every replica watches, so that standbys report the same states as the leader: queries take `max`, not `sum`. What a scrape \
         reads is in memory; it sends no request.\n\n\
         Numbers of alerts and dashboards are those of one installation: where one Prometheus scrapes several, `max` shows the largest \
         number, not the sum. `Metal3NoLeader` and `Metal3ControllersAbsent` distinguish namespaces.\n\n\
         Prometheus must keep the labels of the program (`honor_labels: true`, as the ServiceMonitor of the chart has it): its label \
         `namespace` is that of a pool or host, not that of the Pod.\n\n\
         ## Metrics\n\n| Metric | Type | Labels | Controllers | Since | What |\n| --- | --- | --- | --- | --- | --- |\n{}\n{}\n{}\n{}",
        all().iter().map(row).collect::<String>(),
        objectives(),
        alerts(),
        dashboards()
    )
}

fn row(metric: &Metric) -> String {
    let suffix = match metric.kind.suffixes() {
        [suffix] => suffix,
        _ => "",
    };
    let labels: Vec<String> = metric
        .labels
        .split(',')
        .filter(|label| !label.is_empty())
        .map(|label| format!("`{label}`"))
        .collect();
    let since = match metric.origin {
        Origin::GoManagers => "Go managers",
        Origin::Own => "this program",
    };
    format!(
        "| `{}{suffix}` | {} | {} | {} | {since} | {} |\n",
        metric.name,
        metric.kind.name(),
        labels.join(", "),
        metric.product,
        metric.meaning
    )
}

fn objectives() -> String {
    let defaults = Objectives::default();
    let of = |subject: Subject| {
        let states = subject.states().iter().map(|(state, _)| *state);
        let defaults = &defaults;
        states.map(move |state| {
            let objective = defaults.of(subject, state);
            let objective = objective.map_or("none".to_owned(), |objective| {
                format!("{} m", objective.as_secs().div_euclid(60))
            });
            format!("| {} | {state} | {objective} |\n", subject.name())
        })
    };
    format!(
        "## States and objectives\n\nThe objective of a state is how long an object stays in it at most while all is well; \
         `--state-objectives` replaces it. A default is at least three times the longest stay in the simulated world without faults, whose hardware \
         boots in 40 seconds (`make alerts-check` measures and compares), and leaves ten minutes for each boot of real \
         hardware. Ironic gives up an operation after half an hour without news.\n\n\
         | Of | State | Objective |\n| --- | --- | --- |\n{}",
        Subject::ALL.into_iter().flat_map(of).collect::<String>()
    )
}

fn alerts() -> String {
    let rows = ALERTS.iter().map(|alert| {
        format!(
            "| [`{}`]({}) | {} | {} m | {} |\n",
            alert.name,
            alert.runbook(),
            alert.severity.name(),
            alert.minutes,
            alert.meaning
        )
    });
    format!(
        "## Alerts\n\n`manifests/monitoring/rules.yaml` is for Prometheus, `manifests/monitoring/prometheusrule.yaml` for its \
         operator; the chart has it as `prometheusRule.enabled`. `make alerts-check` raises each alert that a fault of the simulated \
         world can raise, and none in a world without faults.\n\n\
         | Alert | Severity | After | What |\n| --- | --- | --- | --- |\n{}",
        rows.collect::<String>()
    )
}

fn dashboards() -> String {
    let rows = DASHBOARDS
        .iter()
        .map(|dashboard| format!("| `{}` | {} |\n", dashboard.file, dashboard.about));
    format!(
        "## Dashboards\n\nFor Grafana, in `manifests/dashboards`; the chart has them as `dashboards.enabled`: ConfigMaps with the label \
         `grafana_dashboard`.\n\n| File | What |\n| --- | --- |\n{}",
        rows.collect::<String>()
    )
}
