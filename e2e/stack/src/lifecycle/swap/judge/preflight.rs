//! Whether `preflight` said what then happened.

use std::collections::BTreeSet;

use super::{Turn, none};
use crate::claim::Proof;
use crate::lifecycle::swap::stage::{host, stops};

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
            was_there && !self.named.contains(**name) && !of_user.contains(**name) && !self.taken().contains(**name)
        };
        let surprises: Vec<String> = acted.iter().filter(is_surprise).map(|name| (**name).clone()).collect();
        none(
            surprises,
            format!("{} hosts named, orders to {}", self.named.len(), acted.len()),
        )
    }
}
