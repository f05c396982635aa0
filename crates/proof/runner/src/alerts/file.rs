//! A file for `promtool test rules`.

use std::path::Path;

use metal3_domain::yaml;
use serde_json::{Value, json};

use super::cases::Case;
use super::scrape::Recording;

/// The test of a case: the scraped series, and the names of all alerts that fire within it.
pub(super) fn text(rules: &Path, case: &Case, recording: &Recording) -> String {
    let (minutes, scrapes) = (
        recording.minutes(),
        u32::try_from(recording.scrapes()).unwrap_or(u32::MAX),
    );
    let interval = format!("{minutes}m");
    let end = format!("{}m", minutes.saturating_mul(scrapes.saturating_sub(1)));
    let series = recording
        .series()
        .map(|(series, values)| json!({ "series": series, "values": notation(values) }));
    let asked = |firing: String, alerts: &[&str]| {
        let sample = |alert: &&str| json!({ "labels": format!("{{alertname=\"{alert}\"}}"), "value": 1 });
        json!({
            "expr": format!("group by (alertname) ({firing})"),
            "eval_time": end,
            "exp_samples": alerts.iter().map(sample).collect::<Vec<Value>>(),
        })
    };
    let firing = "ALERTS{alertstate=\"firing\"}";
    let ever = asked(format!("count_over_time({firing}[{end}])"), case.alerts);
    let last = case.at_the_end.map(|alerts| asked(firing.to_owned(), alerts));
    let questions: Vec<Value> = [ever].into_iter().chain(last).collect();
    let test = json!({
        "name": case.name,
        "interval": interval,
        "input_series": series.collect::<Vec<Value>>(),
        "promql_expr_test": questions,
    });
    let whole = json!({
        "rule_files": [rules.display().to_string()],
        "evaluation_interval": interval,
        "tests": [test],
    });
    format!(
        "# {}. Written by `scenarios alerts`.\n{}",
        case.about,
        yaml::text(&whole)
    )
}

/// Values as promtool writes them: `1+2x3` is 1, 3, 5, 7; `_x3` is three scrapes without a sample.
pub(super) fn notation(values: &[Option<f64>]) -> String {
    let mut parts = Vec::new();
    let mut rest = values;
    while let Some((first, behind)) = rest.split_first() {
        let Some(start) = first else {
            let missing = rest.iter().take_while(|value| value.is_none()).count();
            parts.push(format!("_x{missing}"));
            rest = rest.get(missing..).unwrap_or_default();
            continue;
        };
        let step = behind.first().copied().flatten().map_or(0.0, |second| second - start);
        // Sums of other numbers than whole ones are not exact.
        let step = if start.fract() == 0.0 && step.fract() == 0.0 {
            step
        } else {
            0.0
        };
        let mut expected = *start;
        let more = behind.iter().take_while(|value| {
            expected += step;
            **value == Some(expected)
        });
        let more = more.count();
        let sign = if step < 0.0 { "" } else { "+" };
        parts.push(format!("{start}{sign}{step}x{more}"));
        rest = behind.get(more..).unwrap_or_default();
    }
    parts.join(" ")
}
