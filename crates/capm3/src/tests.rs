//! How thorough the tests are, and the trial of whatever controllers of this crate.

use metal3_harness::{CrashSweep, Report, TestEnv, WriteFault};

/// Set, it makes the sweeps try every case instead of a sample.
const EVERY: &str = "METAL3_MACHINES_EVERY_CASE";
/// The sample: every so-manieth case. It meets each blow, and most writes.
const SAMPLE: usize = 11;
/// Schedules of two programs in the sample, and of all. More of them are in the histories of the decisions alone.
const INTERLEAVINGS: [u64; 2] = [2, 12];

/// Whether every case is asked for.
pub(crate) fn every_case() -> bool {
    std::env::var_os(EVERY).is_some()
}

/// Each write of a story with each fault, counted.
pub(crate) async fn survives<W: TestEnv>(story: W) -> Report {
    survives_sampled(story, SAMPLE).await
}

/// The same, with a sample of its own: for a story that is long, and whose cases are dear.
pub(crate) async fn survives_sampled<W: TestEnv>(story: W, sample: usize) -> Report {
    let (every, interleavings) = if every_case() {
        (1, INTERLEAVINGS[1])
    } else {
        (sample, INTERLEAVINGS[0])
    };
    let report = CrashSweep::of(story)
        .every(every)
        .interleavings(interleavings)
        .run()
        .await;
    assert_eq!(
        report.cases,
        (report.effects.len() * WriteFault::ALL.len()).div_ceil(every)
    );
    report
}
