//! The fault plan: which request to a simulator fails, and how.
//!
//! A simulator calls [`Plan::fault_for`] once for each request before it handles it, and injects the returned fault. A
//! rule of a plan applies to the n-th request or at random from a seed.
//!
//! Pure: no I/O, no clock. The same plan, seed and order of requests produce the same faults.
//!
//! ```
//! use metal3_sim_faults::{Call, Fault, Plan, Rule};
//!
//! let mut plan = Plan::none().with(Rule::at(2, Fault::Conflict).verb("patch").resource("ippools"));
//! let patch = Call { verb: "patch", resource: "ippools" };
//! assert_eq!(plan.fault_for(&patch), None);
//! assert_eq!(plan.fault_for(&Call { verb: "get", resource: "ippools" }), None);
//! assert_eq!(plan.fault_for(&patch), Some(Fault::Conflict));
//! assert_eq!(plan.fault_for(&patch), None);
//! ```
#![warn(missing_docs)]

mod random;

use std::time::Duration;

pub use random::Random;

/// A fault of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The caller crashes before the request takes effect.
    CrashBefore,
    /// The caller crashes after the request took effect, without an answer.
    CrashAfter,
    /// The request takes effect, the connection breaks before the answer.
    ReplyLost,
    /// The request fails with a conflict.
    Conflict,
    /// The request fails without effect.
    Refused {
        /// Status code: 429 or 5xx.
        code: u16,
        /// `Retry-After`, in seconds.
        retry_after: Option<u32>,
    },
    /// The watch ends with a broken connection after this many events.
    WatchDropped {
        /// Events that still arrive.
        after: u32,
    },
    /// The watch stays open without further events after this many events.
    WatchFrozen {
        /// Events that still arrive.
        after: u32,
    },
    /// The answer has the state of that many writes ago, as from a lagging follower.
    StaleRead {
        /// How many writes the answer lags behind.
        writes: u64,
    },
    /// The request takes effect and its answer comes this much later.
    Delay(Duration),
    /// Every event of the watch arrives twice.
    DuplicateEvents,
}

impl Fault {
    /// Refused with this status code, without a time to retry.
    #[must_use]
    pub const fn refused(code: u16) -> Self {
        Self::Refused {
            code,
            retry_after: None,
        }
    }
}

/// A request, as a plan matches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'a> {
    /// The verb, as the simulator names it (`get`, `patch`).
    pub verb: &'a str,
    /// The resource (`ippools`, `nodes`).
    pub resource: &'a str,
}

/// When a rule applies, counted over the requests that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Nth(u64),
    Chance { per_thousand: u16 },
}

/// One fault and the requests that it may apply to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    when: When,
    fault: Fault,
    verb: Option<String>,
    resource: Option<String>,
    matched: u64,
}

impl Rule {
    /// Applies to the n-th matching request, counted from 1, and no other.
    #[must_use]
    pub fn at(nth: u64, fault: Fault) -> Self {
        Self::new(When::Nth(nth), fault)
    }

    /// Applies to that many of a thousand matching requests, drawn from the plan's seed.
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
            matched: 0,
        }
    }

    /// Matches only requests of this verb.
    #[must_use]
    pub fn verb(mut self, verb: impl Into<String>) -> Self {
        self.verb = Some(verb.into());
        self
    }

    /// Matches only requests to this resource.
    #[must_use]
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.resource = Some(resource.into());
        self
    }

    fn matches(&self, call: &Call<'_>) -> bool {
        let same = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        same(&self.verb, call.verb) && same(&self.resource, call.resource)
    }

    fn applies(&mut self, random: &mut Random) -> bool {
        self.matched = self.matched.saturating_add(1);
        match self.when {
            When::Nth(nth) => self.matched == nth,
            When::Chance { per_thousand } => random.below(1000) < u64::from(per_thousand),
        }
    }
}

/// All faults of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    rules: Vec<Rule>,
    random: Random,
    injected: u64,
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
            injected: 0,
        }
    }

    /// Adds a rule. When several rules apply to a request, the first one wins.
    #[must_use]
    pub fn with(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// The fault of this request. Every matching rule counts the request, also when another rule applies.
    pub fn fault_for(&mut self, call: &Call<'_>) -> Option<Fault> {
        let mut first = None;
        for rule in self.rules.iter_mut().filter(|rule| rule.matches(call)) {
            if rule.applies(&mut self.random) && first.is_none() {
                first = Some(rule.fault);
            }
        }
        self.injected = self.injected.saturating_add(u64::from(first.is_some()));
        first
    }

    /// The number of injected faults. A test with faults should check that it is not 0.
    #[must_use]
    pub const fn injected(&self) -> u64 {
        self.injected
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
        (0..requests).map(|_| plan.fault_for(&GET)).collect()
    }

    #[test]
    fn an_empty_plan_injects_no_fault() {
        assert!(faults(&mut Plan::none(), 100).iter().all(Option::is_none));
    }

    #[test]
    fn a_rule_at_n_applies_to_the_nth_matching_request_only() {
        let mut plan = Plan::none().with(Rule::at(2, Fault::ReplyLost).resource("secrets"));
        let other = Call {
            verb: "get",
            resource: "nodes",
        };
        assert_eq!(plan.fault_for(&other), None);
        assert_eq!(faults(&mut plan, 4), [None, Some(Fault::ReplyLost), None, None]);
        assert_eq!(plan.injected(), 1);
    }

    #[test]
    fn the_first_of_two_applicable_rules_wins_and_both_count_the_request() {
        let mut plan = Plan::none()
            .with(Rule::at(1, Fault::Conflict))
            .with(Rule::at(1, Fault::CrashAfter));
        assert_eq!(faults(&mut plan, 2), [Some(Fault::Conflict), None]);
    }

    #[test]
    fn a_random_rule_depends_on_its_seed_and_applies_about_as_often_as_configured() {
        let run = |seed| faults(&mut Plan::seeded(seed).with(Rule::random(100, Fault::Conflict)), 10_000);
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
        let injected = run(7).iter().flatten().count();
        assert!((800..1200).contains(&injected), "{injected} of 10000 at 100 in 1000");
    }
}
