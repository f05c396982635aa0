//! What goes wrong in a run by its seed: requests of the products to the API server and to Ironic.
//!
//! How often each fault strikes is drawn, too, so that one seed is full of crashes and another of lost answers. Nothing
//! here lasts: each request that fails may be made again, and sooner or later comes through. What lasts is a script's
//! business, and so is what happens to machines.

use std::time::Duration;

use metal3_sim_faults::{Fault, Plan, Random, Rule};

/// Of a thousand requests that a rule looks at, at most so many are struck.
const MOST: u64 = 25;
/// A crash costs every request of a start.
const MOST_CRASHES: u64 = 4;
const WRITES: [&str; 3] = ["create", "patch", "delete"];
/// Later than any watch.
const LATE: Duration = Duration::from_secs(3);

const THROTTLED: Fault = Fault::Refused {
    code: 429,
    retry_after: Some(2),
};
const FAILED: Fault = Fault::Refused {
    code: 500,
    retry_after: None,
};
const AWAY: Fault = Fault::Refused {
    code: 503,
    retry_after: None,
};

/// What the products suffer at the API server.
pub(super) fn at_server(seed: u64) -> Plan {
    let mut draw = Draw::by(seed, 1);
    let mut plan = Plan::seeded(draw.number());
    for verb in WRITES {
        for crash in [Fault::CrashBefore, Fault::CrashAfter] {
            plan = plan.with(draw.rule(crash, MOST_CRASHES).verb(verb));
        }
        for fault in [Fault::ReplyLost, THROTTLED, FAILED, Fault::Delay(LATE)] {
            plan = plan.with(draw.rule(fault, MOST).verb(verb));
        }
    }
    plan = plan.with(draw.rule(Fault::Conflict, MOST).verb("patch"));
    for verb in ["get", "list"] {
        for fault in [THROTTLED, FAILED, Fault::Delay(LATE)] {
            plan = plan.with(draw.rule(fault, MOST).verb(verb));
        }
    }
    for fault in [
        Fault::WatchDropped { after: 3 },
        Fault::WatchFrozen { after: 5 },
        Fault::DuplicateEvents,
    ] {
        plan = plan.with(draw.rule(fault, 4 * MOST).verb("watch"));
    }
    plan
}

/// What they suffer at Ironic.
pub(super) fn at_ironic(seed: u64) -> Plan {
    let mut draw = Draw::by(seed, 2);
    let mut plan = Plan::seeded(draw.number());
    for fault in [Fault::ReplyLost, AWAY, FAILED, Fault::Delay(LATE)] {
        plan = plan.with(draw.rule(fault, MOST));
    }
    for method in ["PUT", "PATCH", "DELETE"] {
        plan = plan.with(draw.rule(Fault::Conflict, MOST).verb(method));
    }
    plan
}

/// What is drawn of a seed for one of several purposes.
struct Draw(Random);

impl Draw {
    fn by(seed: u64, purpose: u64) -> Self {
        let mut first = Random::seeded(seed);
        Self(Random::seeded(first.number() ^ purpose))
    }

    fn number(&mut self) -> u64 {
        self.0.number()
    }

    /// A fault that strikes at most so many of a thousand.
    fn rule(&mut self, fault: Fault, most: u64) -> Rule {
        let often = self.0.below(most.saturating_add(1));
        Rule::random(u16::try_from(often).unwrap_or_default(), fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_means_the_same_trouble_each_time_and_another_seed_another() {
        assert_eq!(at_server(7), at_server(7));
        assert_ne!(at_server(7), at_server(8));
        assert_eq!(at_ironic(7), at_ironic(7));
        assert_ne!(at_ironic(7), at_ironic(8));
    }
}
