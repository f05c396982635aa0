//! The fault plan: which request to a simulator fails, and how.
//!
//! A simulator asks [`Plan::strike`] once for each request, before it does anything, and then does what the answer
//! says. A test writes the plan: *at the n-th request*, or *at random, from a seed*.
//!
//! It does **not** act, sleep, know a protocol or read a clock. It keeps one invariant: the same plan, seed and order of
//! requests give the same faults.
//!
//! ```
//! use metal3_sim_faults::{Call, Fault, Plan, Rule};
//!
//! let mut plan = Plan::none().with(Rule::at(2, Fault::Conflict).verb("patch").resource("ippools"));
//! let patch = Call { verb: "patch", resource: "ippools" };
//! assert_eq!(plan.strike(&patch), None);
//! assert_eq!(plan.strike(&Call { verb: "get", resource: "ippools" }), None);
//! assert_eq!(plan.strike(&patch), Some(Fault::Conflict));
//! assert_eq!(plan.strike(&patch), None);
//! ```
#![warn(missing_docs)]

mod random;

use std::time::Duration;

pub use random::Random;

/// What goes wrong with one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The caller dies before the request takes effect.
    CrashBefore,
    /// The caller dies after the request took effect; it never sees the answer.
    CrashAfter,
    /// The request takes effect, the connection breaks before the answer.
    ReplyLost,
    /// The request is refused because somebody else wrote first.
    Conflict,
    /// The request is refused without effect.
    Refused {
        /// Status code: 429 or 5xx.
        code: u16,
        /// The wait that the server asks for, in whole seconds.
        retry_after: Option<u32>,
    },
    /// The watch ends with a broken connection after this many events.
    WatchDropped {
        /// Events that still arrive.
        after: u32,
    },
    /// The watch stays open and nothing arrives any more after this many events.
    WatchFrozen {
        /// Events that still arrive.
        after: u32,
    },
    /// The answer shows the state of that many writes ago, as a follower that lags would.
    StaleRead {
        /// How many writes the answer lags behind.
        writes: u64,
    },
    /// The request takes effect and its answer comes this much later.
    Delay(Duration),
    /// Every event of the watch arrives twice.
    DuplicateEvents,
}

/// A request, as far as a plan can tell requests apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'a> {
    /// What is done, in the words of the simulator (`get`, `patch`).
    pub verb: &'a str,
    /// What it is done to (`ippools`, `nodes`).
    pub resource: &'a str,
}

/// When a rule strikes, counted over the requests it looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Nth(u64),
    Chance { per_thousand: u16 },
}

/// One fault and the requests it may strike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    when: When,
    fault: Fault,
    verb: Option<String>,
    resource: Option<String>,
    seen: u64,
}

impl Rule {
    /// Strikes the n-th request that the rule looks at, counted from 1, and no other.
    #[must_use]
    pub fn at(nth: u64, fault: Fault) -> Self {
        Self::new(When::Nth(nth), fault)
    }

    /// Strikes that many of a thousand requests, drawn from the plan's seed.
    #[must_use]
    pub fn random(per_thousand: u16, fault: Fault) -> Self {
        Self::new(When::Chance { per_thousand }, fault)
    }

    fn new(when: When, fault: Fault) -> Self {
        Self {
            when,
            fault,
            verb: None,
            resource: None,
            seen: 0,
        }
    }

    /// Looks at requests of this verb only.
    #[must_use]
    pub fn verb(mut self, verb: impl Into<String>) -> Self {
        self.verb = Some(verb.into());
        self
    }

    /// Looks at requests to this resource only.
    #[must_use]
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.resource = Some(resource.into());
        self
    }

    fn looks_at(&self, call: &Call<'_>) -> bool {
        let same = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        same(&self.verb, call.verb) && same(&self.resource, call.resource)
    }

    fn strikes(&mut self, random: &mut Random) -> bool {
        self.seen = self.seen.saturating_add(1);
        match self.when {
            When::Nth(nth) => self.seen == nth,
            When::Chance { per_thousand } => random.below(1000) < u64::from(per_thousand),
        }
    }
}

/// All faults of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    rules: Vec<Rule>,
    random: Random,
    struck: u64,
}

impl Plan {
    /// No faults.
    #[must_use]
    pub fn none() -> Self {
        Self::seeded(0)
    }

    /// No faults yet; rules with a chance draw from this seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self {
            rules: Vec::new(),
            random: Random::seeded(seed),
            struck: 0,
        }
    }

    /// The plan with one more rule. Where several strike one request, the first of them counts.
    #[must_use]
    pub fn with(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// What happens to this request. Every rule that looks at it counts it, whether or not another one strikes.
    pub fn strike(&mut self, call: &Call<'_>) -> Option<Fault> {
        let mut first = None;
        for rule in self.rules.iter_mut().filter(|rule| rule.looks_at(call)) {
            if rule.strikes(&mut self.random) && first.is_none() {
                first = Some(rule.fault);
            }
        }
        self.struck = self.struck.saturating_add(u64::from(first.is_some()));
        first
    }

    /// How many requests it has struck. A test under faults that strike nobody holds whatever is broken.
    #[must_use]
    pub const fn struck(&self) -> u64 {
        self.struck
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: Call<'_> = Call {
        verb: "get",
        resource: "secrets",
    };

    fn faults(plan: &mut Plan, requests: usize) -> Vec<Option<Fault>> {
        (0..requests).map(|_| plan.strike(&GET)).collect()
    }

    #[test]
    fn an_empty_plan_never_strikes() {
        assert!(faults(&mut Plan::none(), 100).iter().all(Option::is_none));
    }

    #[test]
    fn a_rule_at_n_strikes_the_nth_request_it_looks_at_and_no_other() {
        let mut plan = Plan::none().with(Rule::at(2, Fault::ReplyLost).resource("secrets"));
        let other = Call {
            verb: "get",
            resource: "nodes",
        };
        assert_eq!(plan.strike(&other), None);
        assert_eq!(faults(&mut plan, 4), [None, Some(Fault::ReplyLost), None, None]);
        assert_eq!(plan.struck(), 1);
    }

    #[test]
    fn the_first_of_two_striking_rules_counts_and_the_second_has_passed() {
        let mut plan = Plan::none()
            .with(Rule::at(1, Fault::Conflict))
            .with(Rule::at(1, Fault::CrashAfter));
        assert_eq!(faults(&mut plan, 2), [Some(Fault::Conflict), None]);
    }

    #[test]
    fn a_random_rule_strikes_by_its_seed_alone_and_about_as_often_as_it_says() {
        let run = |seed| faults(&mut Plan::seeded(seed).with(Rule::random(100, Fault::Conflict)), 10_000);
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
        let struck = run(7).iter().flatten().count();
        assert!((800..1200).contains(&struck), "{struck} of 10000 at 100 in 1000");
    }
}
