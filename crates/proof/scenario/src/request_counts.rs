//! Requests of the products during scenarios, to the API server and to Ironic, by scenario and product.
//!
//! The simulators and the real services are compared by it. Constant background requests are left out, and so are
//! lists: they occur at a start, and watches report the rest.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result};

/// Resources of constant background requests.
const STEADY: [&str; 4] = ["leases", "events", "tokenreviews", "subjectaccessreviews"];

/// Counts by scenario and request: `01-scale: machines patch secrets`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestCounts(BTreeMap<String, u64>);

/// A count that differs between the two environments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountDifference {
    /// Scenario and request.
    pub what: String,
    /// Count in this run.
    pub here: u64,
    /// Count in the other run.
    pub there: u64,
}

impl RequestCounts {
    /// Counts requests of a product to the API server.
    pub fn count_api_request(&mut self, script: &str, product: &str, (verb, resource): (&str, &str), number: u64) {
        let is_steady = matches!(verb, "watch" | "list" | "other") || STEADY.contains(&resource);
        if !is_steady {
            self.count(format!("{script}: {product} {verb} {resource}"), number);
        }
    }

    /// Counts requests to Ironic; node names in the path are replaced. The change feed is left out.
    pub fn count_ironic_request(&mut self, script: &str, method: &str, path: &str, number: u64) {
        let path = path.trim_start_matches('/').trim_start_matches("v1/");
        let mut parts: Vec<&str> = path.split('/').collect();
        if let Some(name) = parts.get_mut(1) {
            *name = "_";
        }
        if (method, parts.as_slice()) != ("GET", &["nodes"]) {
            self.count(format!("{script}: ironic {method} {}", parts.join("/")), number);
        }
    }

    fn count(&mut self, what: String, number: u64) {
        let count = self.0.entry(what).or_default();
        *count = count.saturating_add(number);
    }

    /// Adds the counts of another run.
    pub fn merge(&mut self, other: Self) {
        for (what, number) in other.0 {
            self.count(what, number);
        }
    }

    /// Whether no request was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of distinct requests, in the scenarios that both runs have.
    #[must_use]
    pub fn known(&self, there: &Self) -> usize {
        self.both(there).count()
    }

    /// Counts that differ, in the scenarios that both runs have.
    #[must_use]
    pub fn difference(&self, there: &Self) -> Vec<CountDifference> {
        let all = self.both(there).map(|what| CountDifference {
            here: self.0.get(what).copied().unwrap_or_default(),
            there: there.0.get(what).copied().unwrap_or_default(),
            what: what.to_owned(),
        });
        all.filter(|one| one.here != one.there).collect()
    }

    fn both<'a>(&'a self, there: &'a Self) -> impl Iterator<Item = &'a str> {
        let script = |what: &str| what.split_once(": ").map(|(script, _)| script.to_owned());
        let scripts = |counts: &Self| counts.0.keys().filter_map(|what| script(what)).collect::<Vec<_>>();
        let (here_scripts, there_scripts) = (scripts(self), scripts(there));
        let is_both = move |what: &&String| {
            script(what).is_some_and(|script| here_scripts.contains(&script) && there_scripts.contains(&script))
        };
        let only_there = there.0.keys().filter(|what| !self.0.contains_key(*what));
        self.0.keys().chain(only_there).filter(is_both).map(String::as_str)
    }

    /// Parses a written report, a line for each count.
    ///
    /// # Errors
    /// The line that has no number.
    pub fn read(text: &str) -> Result<Self> {
        let mut read = Self::default();
        for line in text.lines() {
            let parts = line.rsplit_once(' ').filter(|(what, _)| what.contains(": "));
            let number = parts.and_then(|(what, number)| Some((what, number.parse().ok()?)));
            let (what, number) = number.with_context(|| format!("{line:?}: write script: what number"))?;
            read.count(what.to_owned(), number);
        }
        Ok(read)
    }
}

/// A line for each count, `scenario: request number`, sorted.
impl fmt::Display for RequestCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|(what, number)| writeln!(f, "{what} {number}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn background_requests_and_node_names_are_left_out() {
        let mut counts = RequestCounts::default();
        for (verb, resource) in [
            ("patch", "secrets"),
            ("watch", "secrets"),
            ("list", "secrets"),
            ("update", "leases"),
        ] {
            counts.count_api_request("a", "machines", (verb, resource), 2);
        }
        counts.count_ironic_request("a", "GET", "nodes", 9);
        counts.count_ironic_request("a", "GET", "/v1/nodes/host-1", 1);
        counts.count_ironic_request("a", "GET", "nodes/{node}", 1);
        counts.count_ironic_request("a", "PUT", "/v1/nodes/_/states/power", 1);
        let all = "a: ironic GET nodes/_ 2\na: ironic PUT nodes/_/states/power 1\na: machines patch secrets 2\n";
        assert_eq!(counts.to_string(), all);
        assert_eq!(RequestCounts::read(all).unwrap(), counts);
        assert!(RequestCounts::read("a: x y").is_err() && RequestCounts::read("x 1").is_err());
    }

    #[test]
    fn only_scenarios_of_both_runs_are_compared() {
        let (one, other) = ("a: x 1\na: y 2\nb: x 1\n", "a: x 1\na: z 3\nc: x 1\n");
        let (one, other) = (RequestCounts::read(one).unwrap(), RequestCounts::read(other).unwrap());
        let difference = |what: &str, here, there| CountDifference {
            what: what.to_owned(),
            here,
            there,
        };
        assert_eq!(
            one.difference(&other),
            [difference("a: y", 2, 0), difference("a: z", 0, 3)]
        );
        assert_eq!(one.known(&other), 3);
    }
}
