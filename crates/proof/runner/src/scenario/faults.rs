//! Random faults of a run, derived from its seed: of requests of the products to the API server and to Ironic.
//!
//! The rate of each fault is random too, so that seeds differ in the prevailing fault. All faults are transient: a
//! retried request succeeds eventually. Lasting faults, and those of machines, are steps of scenarios.

use std::time::Duration;

use metal3_sim_faults::{Fault, Plan, Random, Rule};

/// Maximum rate of a fault, per thousand requests.
const MAX_PER_MILLE: u64 = 25;
/// Maximum rate of crashes; each causes all requests of a start.
const MAX_CRASHES_PER_MILLE: u64 = 4;
const WRITES: [&str; 3] = ["create", "patch", "delete"];
/// Longer than any watch takes.
const DELAY: Duration = Duration::from_secs(3);

const THROTTLED: Fault = Fault::Refused {
    code: 429,
    retry_after: Some(2),
};
const FAILED: Fault = Fault::Refused {
    code: 500,
    retry_after: None,
};
const UNAVAILABLE: Fault = Fault::Refused {
    code: 503,
    retry_after: None,
};

/// Faults at the API server.
pub(super) fn at_server(seed: u64) -> Plan {
    let mut generator = RuleGenerator::by(seed, 1);
    let mut plan = Plan::seeded(generator.number());
    for verb in WRITES {
        for crash in [Fault::CrashBefore, Fault::CrashAfter] {
            plan = plan.with(generator.rule(crash, MAX_CRASHES_PER_MILLE).verb(verb));
        }
        for fault in [Fault::ReplyLost, THROTTLED, FAILED, Fault::Delay(DELAY)] {
            plan = plan.with(generator.rule(fault, MAX_PER_MILLE).verb(verb));
        }
    }
    plan = plan.with(generator.rule(Fault::Conflict, MAX_PER_MILLE).verb("patch"));
    for verb in ["get", "list"] {
        for fault in [THROTTLED, FAILED, Fault::Delay(DELAY)] {
            plan = plan.with(generator.rule(fault, MAX_PER_MILLE).verb(verb));
        }
    }
    for fault in [
        Fault::WatchDropped { after: 3 },
        Fault::WatchFrozen { after: 5 },
        Fault::DuplicateEvents,
    ] {
        plan = plan.with(generator.rule(fault, 4 * MAX_PER_MILLE).verb("watch"));
    }
    plan
}

/// Faults at Ironic.
pub(super) fn at_ironic(seed: u64) -> Plan {
    let mut generator = RuleGenerator::by(seed, 2);
    let mut plan = Plan::seeded(generator.number());
    for fault in [Fault::ReplyLost, UNAVAILABLE, FAILED, Fault::Delay(DELAY)] {
        plan = plan.with(generator.rule(fault, MAX_PER_MILLE));
    }
    for method in ["PUT", "PATCH", "DELETE"] {
        plan = plan.with(generator.rule(Fault::Conflict, MAX_PER_MILLE).verb(method));
    }
    plan
}

/// Generator of rules from a seed, for one of several purposes.
struct RuleGenerator(Random);

impl RuleGenerator {
    fn by(seed: u64, purpose: u64) -> Self {
        let mut first = Random::seeded(seed);
        Self(Random::seeded(first.number() ^ purpose))
    }

    fn number(&mut self) -> u64 {
        self.0.number()
    }

    /// A fault with a random rate up to `most` per thousand.
    fn rule(&mut self, fault: Fault, most: u64) -> Rule {
        let often = self.0.below(most.saturating_add(1));
        Rule::random(u16::try_from(often).unwrap_or_default(), fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_a_function_of_the_seed() {
        assert_eq!(at_server(7), at_server(7));
        assert_ne!(at_server(7), at_server(8));
        assert_eq!(at_ironic(7), at_ironic(7));
        assert_ne!(at_ironic(7), at_ironic(8));
    }
}
