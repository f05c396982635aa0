//! How often the managers ask for their Leases.

use super::{Turn, none};
use crate::claim::Proof;
use crate::lifecycle::swap::logs::Write;
use crate::lifecycle::swap::managers::Way;
use crate::lifecycle::swap::products::{Family, products};

/// A leader renews every six seconds, and standbys watch.
const PERIOD: u64 = 6_000;
/// A start reads and takes each Lease, and so does a switch.
const START: u64 = 25_000;
const DAY: u64 = 24 * 60 * 60 * 1000;

impl Turn {
    /// At most half a request a second for the three products, once they lead.
    pub(super) fn leases(&self) -> Proof {
        if self.to == Family::Go {
            return Ok("of this program only".to_owned());
        }
        if self.way == Way::Killed {
            return Ok("a killed leader is followed by one that asks until its Lease ends".to_owned());
        }
        let products = products(&self.release);
        let is_of = |one: &&Write| {
            let is_manager = products.iter().any(|product| product.has(&one.user));
            is_manager && one.is_ours() && one.resource == "leases"
        };
        let times: Vec<u64> = self.leases.iter().filter(is_of).map(|one| one.at).collect();
        let Some(first) = times.first() else {
            return none(vec!["no request for a Lease is in the log".to_owned()], String::new());
        };
        let passed = times.iter().map(|at| (at + DAY - first) % DAY);
        // A request that is in the log before an earlier one seems to be a day later.
        let steady: Vec<u64> = passed.filter(|passed| (START..DAY / 2).contains(passed)).collect();
        let span = steady.iter().max().zip(steady.iter().min());
        let span = span.map_or(0, |(last, first)| last - first);
        let leaders = u64::try_from(products.len())?;
        // One more for each leader: the span begins and ends with a request.
        let most = (span * leaders).div_ceil(PERIOD) + leaders;
        let seen = u64::try_from(steady.len())?;
        let figures = format!("{seen} requests in {} s", span / 1000);
        let violations = if span == 0 {
            vec!["no request for a Lease follows the start".to_owned()]
        } else if seen > most {
            vec![format!("{figures}, at most {most}")]
        } else {
            Vec::new()
        };
        none(violations, figures)
    }
}
