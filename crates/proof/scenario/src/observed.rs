//! What objects said of themselves in a run: phases, and conditions with their reasons, by kind. Not how often or when:
//! two worlds take different times and have the same words for what happens, or a difference that is worth a line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::wish::text;

/// Where objects say what they are at.
const PHASES: [&str; 2] = ["/status/phase", "/status/provisioning/state"];

/// What was said, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed(BTreeMap<String, BTreeSet<String>>);

impl Observed {
    /// Takes in what an object says.
    pub fn note(&mut self, object: &Value) {
        let phases = PHASES
            .iter()
            .map(|at| text(object, at))
            .filter(|phase| !phase.is_empty());
        let mut said: Vec<String> = phases.map(|phase| format!("phase {phase}")).collect();
        let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
        for condition in conditions.into_iter().flatten() {
            let [aspect, status, reason] = ["/type", "/status", "/reason"].map(|at| text(condition, at));
            said.push(format!("{aspect} {status} {reason}"));
        }
        if !said.is_empty() {
            self.0.entry(text(object, "/kind").to_owned()).or_default().extend(said);
        }
    }

    /// Reads what was written of another run, a line for each.
    ///
    /// # Errors
    /// The line that names no kind.
    pub fn read(text: &str) -> Result<Self> {
        let mut read = Self::default();
        for line in text.lines() {
            let (kind, what) = line
                .split_once(": ")
                .with_context(|| format!("{line:?}: write Kind: what"))?;
            read.0.entry(kind.to_owned()).or_default().insert(what.to_owned());
        }
        Ok(read)
    }

    /// What was said here and not there, a line for each.
    #[must_use]
    pub fn beyond(&self, there: &Self) -> Vec<String> {
        let mut only = Vec::new();
        for (kind, said) in &self.0 {
            let known = there.0.get(kind);
            let new = said
                .iter()
                .filter(|one| !known.is_some_and(|known| known.contains(*one)));
            only.extend(new.map(|one| format!("{kind}: {one}")));
        }
        only
    }

    /// Takes in all that another run saw.
    pub fn merge(&mut self, other: Self) {
        for (kind, said) in other.0 {
            self.0.entry(kind).or_default().extend(said);
        }
    }
}

/// A line for each, `Kind: what`, sorted.
impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, said) in &self.0 {
            for one in said {
                writeln!(f, "{kind}: {one}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn phases_and_conditions_are_noted_once_by_kind() {
        let machine = |phase: &str| {
            json!({ "kind": "Machine", "status": { "phase": phase,
                "conditions": [{ "type": "Ready", "status": "False", "reason": "NotReady" }] } })
        };
        let mut observed = Observed::default();
        observed.note(&machine("Pending"));
        observed.note(&machine("Pending"));
        let mut other = Observed::default();
        other.note(&machine("Running"));
        other.note(&json!({ "kind": "Secret" }));
        observed.merge(other);
        let all = "Machine: Ready False NotReady\nMachine: phase Pending\nMachine: phase Running\n";
        assert_eq!(observed.to_string(), all);
        assert_eq!(Observed::read(all).unwrap(), observed);
        assert!(Observed::read("nothing").is_err());
    }

    #[test]
    fn what_one_run_says_beyond_the_other_is_told() {
        let (one, other) = ("A: x\nA: y\nB: x\n", "A: x\nC: z\n");
        let (one, other) = (Observed::read(one).unwrap(), Observed::read(other).unwrap());
        assert_eq!(one.beyond(&other), ["A: y", "B: x"]);
        assert_eq!(other.beyond(&one), ["C: z"]);
    }
}
