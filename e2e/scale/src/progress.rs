//! Waits for hosts with a line every ten seconds, and records the states of the fleet on the way.

use std::time::Duration;

use anyhow::bail;
use tokio::time::{Instant, sleep};

use crate::fleet::{Fleet, Target};
use crate::meter::Meter;
use crate::outcome::Counts;

const INTERVAL: Duration = Duration::from_millis(20);
const LINE: Duration = Duration::from_secs(10);
/// States are recorded this often, and less often in long phases.
const STATES: Duration = Duration::from_secs(1);
/// No host has come to its target for this long.
const STUCK: Duration = Duration::from_mins(10);

/// States of a fleet over time.
pub(crate) type States = Vec<(f64, Counts)>;

/// What is waited for.
pub(crate) struct Wait<'a> {
    pub(crate) fleet: &'a Fleet,
    pub(crate) meter: &'a Meter,
    pub(crate) phase: &'a str,
    pub(crate) since: Instant,
    pub(crate) names: Vec<String>,
    pub(crate) target: Target,
}

impl Wait<'_> {
    /// Waits until all hosts are at the target.
    pub(crate) async fn finish(self) -> anyhow::Result<States> {
        let (mut line, mut states, mut next_states) = (self.since, States::new(), Duration::ZERO);
        let (mut best, mut progress) = (0, Instant::now());
        loop {
            let now = Instant::now();
            let done = self.fleet.count(&self.names, self.target);
            let passed = now.duration_since(self.since);
            if passed >= next_states || done == self.names.len() {
                states.push((passed.as_secs_f64(), self.fleet.states()));
                next_states = passed + STATES.max(passed / 10);
            }
            if done == self.names.len() {
                return Ok(states);
            }
            if done > best {
                (best, progress) = (done, now);
            }
            if now.duration_since(line) >= LINE {
                line = now;
                println!("{}", self.line(done, passed));
            }
            if now.duration_since(progress) > STUCK {
                let error = self.fleet.an_error().unwrap_or_default();
                bail!("{} stands still: {}; {error}", self.phase, self.line(done, passed));
            }
            // The count is over all hosts: large fleets are looked at less often.
            let pause = u32::try_from(self.names.len().div_ceil(1000)).unwrap_or(1);
            sleep(INTERVAL.saturating_mul(pause)).await;
        }
    }

    fn line(&self, done: usize, passed: Duration) -> String {
        let seconds = passed.as_secs_f64();
        let all = self.names.len();
        let states = self.fleet.states();
        let states: Vec<String> = states
            .iter()
            .map(|(state, number)| format!("{number} {state}"))
            .collect();
        let processes = self.meter.read().map(|(_, processes)| processes).unwrap_or_default();
        let manager = processes.get("manager").copied().unwrap_or_default();
        format!(
            "{:12} {seconds:6.0} s  {done} of {all} done, {:.1}/s, waiting until {} are {:?}: {}; manager {} MiB, {:.1} s of processor",
            self.phase,
            crate::outcome::number(u64::try_from(done).unwrap_or_default()) / seconds.max(0.001),
            all.saturating_sub(done),
            self.target,
            states.join(", "),
            manager.peak_kib / 1024,
            crate::outcome::number(manager.cpu_millis) / 1000.0,
        )
    }
}
