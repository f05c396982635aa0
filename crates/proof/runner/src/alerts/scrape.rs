//! The text of a scrape, and what was scraped over time.

use std::collections::{BTreeMap, BTreeSet};

use metal3_monitoring::metrics::Metric;

/// Name and type of each metric.
pub(super) fn types(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
}

/// The samples: series and value.
fn samples(text: &str) -> impl Iterator<Item = (&str, f64)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        Some((series, value.parse().ok()?))
    })
}

fn name(series: &str) -> &str {
    series.split('{').next().unwrap_or(series)
}

/// The names of the labels of a metric. A value with a quote in it does not occur: no label has text of a user.
pub(super) fn labels(text: &str, metric: &str) -> BTreeSet<String> {
    let of_metric = samples(text).filter(|(series, _)| name(series) == metric);
    let labels = of_metric.filter_map(|(series, _)| series.split_once('{'));
    // Outside of quotes: `a=`, `,b=`, `}`.
    let labels = labels.flat_map(|(_, labels)| labels.split('"').step_by(2).collect::<Vec<_>>());
    let names = labels.filter_map(|part| part.trim_start_matches(',').strip_suffix('='));
    names.map(str::to_owned).collect()
}

/// Whether the metric has a sample.
pub(super) fn has_series(text: &str, metric: &Metric) -> bool {
    samples(text).any(|(series, _)| metric.names().any(|known| known == name(series)))
}

/// The values of series over time, at equal distances.
#[derive(Debug, Default)]
pub(super) struct Recording {
    minutes: u32,
    scrapes: usize,
    series: BTreeMap<String, Vec<Option<f64>>>,
    /// The greatest value of every series.
    longest: BTreeMap<String, f64>,
}

impl Recording {
    /// Without scrapes, which will be that many minutes apart.
    pub(super) fn every(minutes: u32) -> Self {
        Self {
            minutes,
            ..Self::default()
        }
    }

    /// Adds a scrape, of these metrics only. An empty text is a scrape that failed.
    pub(super) fn add(&mut self, text: &str, wanted: &BTreeSet<String>) {
        for (series, value) in samples(text) {
            self.see(series, value);
            if !wanted.contains(name(series)) {
                continue;
            }
            let values = self.series.entry(series.to_owned()).or_default();
            values.resize(self.scrapes, None);
            values.push(Some(value));
        }
        self.scrapes = self.scrapes.saturating_add(1);
        for values in self.series.values_mut() {
            values.resize(self.scrapes, None);
        }
    }

    /// Looks at the values between two scrapes, for [`Self::longest`].
    pub(super) fn look(&mut self, text: &str) {
        for (series, value) in samples(text) {
            self.see(series, value);
        }
    }

    fn see(&mut self, series: &str, value: f64) {
        match self.longest.get_mut(series) {
            Some(longest) => *longest = longest.max(value),
            None => drop(self.longest.insert(series.to_owned(), value)),
        }
    }

    pub(super) const fn minutes(&self) -> u32 {
        self.minutes
    }

    pub(super) const fn scrapes(&self) -> usize {
        self.scrapes
    }

    /// The series with their values.
    pub(super) fn series(&self) -> impl Iterator<Item = (&str, &[Option<f64>])> {
        self.series
            .iter()
            .map(|(series, values)| (series.as_str(), values.as_slice()))
    }

    /// Whether a scrape had a sample of the metric.
    #[cfg(test)]
    pub(super) fn has(&self, metric: &Metric) -> bool {
        let names: BTreeSet<String> = metric.names().collect();
        self.longest.keys().any(|series| names.contains(name(series)))
    }

    /// The greatest value of a series.
    pub(super) fn longest(&self, series: &str) -> f64 {
        self.longest.get(series).copied().unwrap_or_default()
    }
}
