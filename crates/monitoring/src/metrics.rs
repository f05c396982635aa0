//! The table of metrics.

mod hosts;
mod process;
mod states;

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Only grows; `_total` is appended to its name.
    Counter,
    /// A value.
    Gauge,
    /// `_bucket`, `_sum` and `_count` are appended to its name.
    Histogram,
    /// Facts as labels; `_info` is appended to its name, and the value is 1.
    Info,
}

impl Type {
    /// As Prometheus names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }

    /// What is appended to the name in queries.
    #[must_use]
    pub const fn suffixes(self) -> &'static [&'static str] {
        match self {
            Self::Counter => &["_total"],
            Self::Gauge => &[""],
            Self::Histogram => &["_bucket", "_sum", "_count"],
            Self::Info => &["_info"],
        }
    }
}

/// Where a metric comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A Go manager has it under this name: dashboards and alerts for it keep working.
    GoManagers,
    /// Of this program alone.
    Own,
}

/// A metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// The name, without what its type appends.
    pub name: &'static str,
    /// The type.
    pub kind: Type,
    /// The labels, separated by commas, in alphabetical order.
    pub labels: &'static str,
    /// `all`, or the value of `--controllers` that has it.
    pub product: &'static str,
    /// Where it comes from.
    pub origin: Origin,
    /// What it means.
    pub meaning: &'static str,
}

impl Metric {
    /// The names under which queries find it.
    pub fn names(&self) -> impl Iterator<Item = String> + use<> {
        let name = self.name;
        self.kind.suffixes().iter().map(move |suffix| format!("{name}{suffix}"))
    }
}

/// All metrics, by name.
#[must_use]
pub fn all() -> Vec<Metric> {
    let mut all = [process::METRICS, hosts::METRICS, states::METRICS].concat();
    all.sort_by_key(|metric| metric.name);
    all
}

/// The metric under a name as in a query.
#[must_use]
pub fn find(name: &str) -> Option<Metric> {
    all()
        .into_iter()
        .find(|metric| metric.names().any(|known| known == name))
}

/// Rows of one type and origin: name, labels, meaning.
type Row = (&'static str, &'static str, &'static str);

const fn metric(kind: Type, product: &'static str, origin: Origin, (name, labels, meaning): Row) -> Metric {
    Metric {
        name,
        kind,
        labels,
        product,
        origin,
        meaning,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_has_one_row_and_a_meaning() {
        let all = all();
        for pair in all.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} and {}", pair[0].name, pair[1].name);
        }
        for metric in all {
            assert!(metric.meaning.len() > 10, "{}", metric.name);
            assert!(!metric.name.ends_with("_total"), "{}", metric.name);
            assert_eq!(find(&metric.names().next().unwrap()), Some(metric));
        }
    }
}
