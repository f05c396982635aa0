//! The page `docs/runbooks/alerts.md`.

use super::{ALERTS, Alert};

const NOTE: &str =
    "<!-- Written by `cargo run -p xtask -- codegen` from crates/monitoring/src/alerts. Do not edit. -->";

/// A section for each alert, under the anchor that its rule links to.
#[must_use]
pub fn page() -> String {
    let sections: Vec<String> = ALERTS.iter().map(section).collect();
    format!(
        "# Runbook: alerts\n\n{NOTE}\n\n[All runbooks](README.md). The rules are in `manifests/monitoring`; \
         [metrics](../metrics.md) has the metrics.\n\n{}",
        sections.join("\n")
    )
}

fn section(alert: &Alert) -> String {
    let links: Vec<String> = alert
        .see
        .iter()
        .map(|place| format!("[{}]({place})", place.replace(".md#", ": ")))
        .collect();
    let see = match links.is_empty() {
        true => String::new(),
        false => format!("- See: {}\n", links.join(", ")),
    };
    format!(
        "## {}\n\n{}\n\n```promql\n{}\n```\n\n- Severity: {}, after {} minutes\n- What to do: {}\n{see}",
        alert.name,
        alert.meaning,
        alert.query,
        alert.severity.name(),
        alert.minutes,
        alert.cure
    )
}
