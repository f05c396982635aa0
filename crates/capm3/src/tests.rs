//! Test thoroughness, and the crash sweep over the controllers of this crate.

use metal3_harness::{CrashSweep, Report, TestEnv, WriteFault};

/// When set, the sweeps run every case instead of a sample.
const EVERY: &str = "METAL3_MACHINES_EVERY_CASE";
/// The sample: one case of this many. It covers each fault and most writes.
const SAMPLE: usize = 11;
/// Schedules of two programs in the sample, and in the full run. Random histories of the plan cover more.
const INTERLEAVINGS: [u64; 2] = [2, 12];

/// Whether every case is requested.
pub(crate) fn every_case() -> bool {
    std::env::var_os(EVERY).is_some()
}

/// Runs each write of a scenario with each fault.
pub(crate) async fn sweep<W: TestEnv>(scenario: W) -> Report {
    sweep_sampled(scenario, SAMPLE).await
}

/// The same with another sample, for a long scenario.
pub(crate) async fn sweep_sampled<W: TestEnv>(scenario: W, sample: usize) -> Report {
    let (every, interleavings) = if every_case() {
        (1, INTERLEAVINGS[1])
    } else {
        (sample, INTERLEAVINGS[0])
    };
    let report = CrashSweep::of(scenario)
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
