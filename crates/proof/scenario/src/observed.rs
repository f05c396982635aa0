//! States that objects reported in a run: phases, and conditions with their reasons, by kind. Counts and times are left
//! out: the simulators and the real services take different times.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::expectation::text;

/// Fields with a phase.
const PHASES: [&str; 2] = ["/status/phase", "/status/provisioning/state"];

/// States by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObservedStates(BTreeMap<String, BTreeSet<String>>);

impl ObservedStates {
    /// Records the states of an object.
    pub fn record(&mut self, object: &Value) {
        let phases = PHASES
            .iter()
            .map(|at| text(object, at))
            .filter(|phase| !phase.is_empty());
        let mut states: Vec<String> = phases.map(|phase| format!("phase {phase}")).collect();
        let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
        for condition in conditions.into_iter().flatten() {
            let [aspect, status, reason] = ["/type", "/status", "/reason"].map(|at| text(condition, at));
            states.push(format!("{aspect} {status} {reason}"));
        }
        if !states.is_empty() {
            self.0
                .entry(text(object, "/kind").to_owned())
                .or_default()
                .extend(states);
        }
    }

    /// Parses a written report, a line for each state.
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

    /// States of this run that the other does not have, a line for each.
    #[must_use]
    pub fn missing_in(&self, there: &Self) -> Vec<String> {
        let mut only = Vec::new();
        for (kind, states) in &self.0 {
            let known = there.0.get(kind);
            let new = states
                .iter()
                .filter(|one| !known.is_some_and(|known| known.contains(*one)));
            only.extend(new.map(|one| format!("{kind}: {one}")));
        }
        only
    }

    /// Adds the states of another run.
    pub fn merge(&mut self, other: Self) {
        for (kind, states) in other.0 {
            self.0.entry(kind).or_default().extend(states);
        }
    }
}

/// A line for each state, `Kind: state`, sorted.
impl fmt::Display for ObservedStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, states) in &self.0 {
            for one in states {
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
    fn phases_and_conditions_are_recorded_once_by_kind() {
        let machine = |phase: &str| {
            json!({ "kind": "Machine", "status": { "phase": phase,
                "conditions": [{ "type": "Ready", "status": "False", "reason": "NotReady" }] } })
        };
        let mut observed = ObservedStates::default();
        observed.record(&machine("Pending"));
        observed.record(&machine("Pending"));
        let mut other = ObservedStates::default();
        other.record(&machine("Running"));
        other.record(&json!({ "kind": "Secret" }));
        observed.merge(other);
        let all = "Machine: Ready False NotReady\nMachine: phase Pending\nMachine: phase Running\n";
        assert_eq!(observed.to_string(), all);
        assert_eq!(ObservedStates::read(all).unwrap(), observed);
        assert!(ObservedStates::read("nothing").is_err());
    }

    #[test]
    fn states_of_one_run_only_are_reported() {
        let (one, other) = ("A: x\nA: y\nB: x\n", "A: x\nC: z\n");
        let (one, other) = (ObservedStates::read(one).unwrap(), ObservedStates::read(other).unwrap());
        assert_eq!(one.missing_in(&other), ["A: y", "B: x"]);
        assert_eq!(other.missing_in(&one), ["C: z"]);
    }
}
