//! Whether `preflight` said what then happened.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{HOST, Turn, none};
use crate::claim::Proof;
use crate::lifecycle::swap::stage::{FAILED, host, stops};

impl Turn {
    pub(super) fn stopped(&self) -> Proof {
        let expected = stops(self.to, &self.release);
        anyhow::ensure!(
            self.stops == expected,
            "preflight stops for {:?}, expected {expected:?}",
            self.stops
        );
        Ok(expected.into_iter().collect::<Vec<_>>().join(", "))
    }

    pub(super) fn refusals(&self) -> Proof {
        let wrong = self.refusals.iter().filter(|one| one.is_refused && !one.is_named);
        let violations = wrong.map(|one| format!("{} is refused, and preflight does not say so", one.plain));
        let refused = self.refusals.iter().filter(|one| one.is_refused).count();
        none(
            violations.collect(),
            format!("{refused} of {} refused", self.refusals.len()),
        )
    }

    /// Whether a failed host may have had no error when preflight looked: one that is tried again has none until it fails.
    fn was_tried_again(&self, name: &str) -> bool {
        let is_failed = FAILED.iter().any(|(number, _)| host(*number) == name);
        let has_none = |host: &Value| host["status"]["errorType"].as_str().is_none_or(str::is_empty);
        let [from, to, _] = self.marks.each_ref().map(|mark| mark.revision);
        let versions = self.versions.get(&(HOST.to_owned(), name.to_owned()));
        let between = versions.into_iter().flatten();
        let mut between = between.filter(|one| one.revision > from && one.revision <= to);
        is_failed
            && (self.host_at(name, 0).is_some_and(|host| has_none(&host)) || between.any(|one| has_none(&one.object)))
    }

    pub(super) fn predicted(&self) -> Proof {
        let of_user: BTreeSet<String> = self.work.asked_late().into_iter().map(host).collect();
        let acted: BTreeSet<&String> = self
            .orders
            .iter()
            .filter(|order| order.what.acts())
            .map(|order| &order.host)
            .collect();
        let is_surprise = |name: &&&String| {
            let was_there = self.host_at(name, 1).is_some();
            let is_expected = self.named.contains(**name) || of_user.contains(**name) || self.taken().contains(**name);
            was_there && !is_expected && !self.was_tried_again(name)
        };
        let surprises: Vec<String> = acted.iter().filter(is_surprise).map(|name| (**name).clone()).collect();
        none(
            surprises,
            format!("{} hosts named, orders to {}", self.named.len(), acted.len()),
        )
    }
}
