//! What a small run asserts: counts and their growth, never times.

use anyhow::ensure;

use crate::outcome::Outcome;
use crate::outcome::{Api, Size};
use crate::table::{GROWING, LIFE, growth};

/// The largest exponent of growth of a count.
const MOST: f64 = 1.1;
/// Figures of [`GROWING`] that are counts.
const COUNTS: [&str; 3] = ["API writes", "API reads", "Ironic requests"];

/// Fails with each violation.
pub(crate) fn check(outcome: &Outcome) -> anyhow::Result<()> {
    let mut wrong: Vec<String> = outcome.sizes.iter().flat_map(idle_violations).collect();
    for (what, of) in GROWING.into_iter().filter(|(what, _)| COUNTS.contains(what)) {
        for phase in LIFE {
            let grows = growth(&outcome.sizes, phase, of);
            let more = grows.into_iter().filter(|exponent| *exponent > MOST);
            wrong.extend(more.map(|exponent| format!("{phase}: {what} grow with the exponent {exponent:.2}")));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

fn idle_violations(size: &Size) -> Vec<String> {
    let idle = size.phase("idle");
    let writes = idle.map(|phase| Api::total(&phase.api.writes));
    let wrong = writes != Some(0);
    wrong
        .then(|| format!("{} idle hosts: {writes:?} writes", size.hosts))
        .into_iter()
        .collect()
}
