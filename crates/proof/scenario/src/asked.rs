//! What the products asked for while scripts ran: of the API server and of Ironic, by script and product.
//!
//! Two worlds are compared by it. What goes on whatever happens is left out, and so are lists: a start has them, and what
//! follows is told by watches.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result};

/// What goes on whatever happens.
const STEADY: [&str; 4] = ["leases", "events", "tokenreviews", "subjectaccessreviews"];

/// How often something was asked, by script and what: `01-scale: machines patch secrets`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked(BTreeMap<String, u64>);

/// What was not asked as often in one world as in the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unequal {
    /// Script and what.
    pub what: String,
    /// How often here.
    pub here: u64,
    /// How often there.
    pub there: u64,
}

impl Asked {
    /// Counts requests of a product to the API server.
    pub fn of_server(&mut self, script: &str, product: &str, (verb, resource): (&str, &str), number: u64) {
        let is_steady = matches!(verb, "watch" | "list" | "other") || STEADY.contains(&resource);
        if !is_steady {
            self.count(format!("{script}: {product} {verb} {resource}"), number);
        }
    }

    /// Counts requests to Ironic; names in the path do not matter. The change feed is left out.
    pub fn of_ironic(&mut self, script: &str, method: &str, path: &str, number: u64) {
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

    /// Takes in what was asked in another run.
    pub fn merge(&mut self, other: Self) {
        for (what, number) in other.0 {
            self.count(what, number);
        }
    }

    /// Whether nothing was asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many different things were asked here or there, in the scripts that both ran.
    #[must_use]
    pub fn known(&self, there: &Self) -> usize {
        self.both(there).count()
    }

    /// What was not asked equally often, in the scripts that both ran.
    #[must_use]
    pub fn unequal(&self, there: &Self) -> Vec<Unequal> {
        let all = self.both(there).map(|what| Unequal {
            here: self.0.get(what).copied().unwrap_or_default(),
            there: there.0.get(what).copied().unwrap_or_default(),
            what: what.to_owned(),
        });
        all.filter(|one| one.here != one.there).collect()
    }

    fn both<'a>(&'a self, there: &'a Self) -> impl Iterator<Item = &'a str> {
        let script = |what: &str| what.split_once(": ").map(|(script, _)| script.to_owned());
        let scripts = |asked: &Self| asked.0.keys().filter_map(|what| script(what)).collect::<Vec<_>>();
        let (ours, theirs) = (scripts(self), scripts(there));
        let is_both =
            move |what: &&String| script(what).is_some_and(|script| ours.contains(&script) && theirs.contains(&script));
        let only_there = there.0.keys().filter(|what| !self.0.contains_key(*what));
        self.0.keys().chain(only_there).filter(is_both).map(String::as_str)
    }

    /// Reads what was written of another run, a line for each.
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

/// A line for each, `script: what number`, sorted.
impl fmt::Display for Asked {
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
    fn what_goes_on_whatever_happens_and_names_do_not_count() {
        let mut asked = Asked::default();
        for (verb, resource) in [
            ("patch", "secrets"),
            ("watch", "secrets"),
            ("list", "secrets"),
            ("update", "leases"),
        ] {
            asked.of_server("a", "machines", (verb, resource), 2);
        }
        asked.of_ironic("a", "GET", "nodes", 9);
        asked.of_ironic("a", "GET", "/v1/nodes/host-1", 1);
        asked.of_ironic("a", "GET", "nodes/{node}", 1);
        asked.of_ironic("a", "PUT", "/v1/nodes/_/states/power", 1);
        let all = "a: ironic GET nodes/_ 2\na: ironic PUT nodes/_/states/power 1\na: machines patch secrets 2\n";
        assert_eq!(asked.to_string(), all);
        assert_eq!(Asked::read(all).unwrap(), asked);
        assert!(Asked::read("a: x y").is_err() && Asked::read("x 1").is_err());
    }

    #[test]
    fn scripts_that_both_ran_are_compared_line_by_line() {
        let (one, other) = ("a: x 1\na: y 2\nb: x 1\n", "a: x 1\na: z 3\nc: x 1\n");
        let (one, other) = (Asked::read(one).unwrap(), Asked::read(other).unwrap());
        let unequal = |what: &str, here, there| Unequal {
            what: what.to_owned(),
            here,
            there,
        };
        assert_eq!(one.unequal(&other), [unequal("a: y", 2, 0), unequal("a: z", 0, 3)]);
        assert_eq!(one.known(&other), 3);
    }
}
