//! Test thoroughness, the crash sweep over the controllers of this crate, and the log of a test.

use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use metal3_harness::{CrashSweep, Report, TestEnv, WriteFault};
use serde_json::Value;
use tracing::Dispatch;
use tracing::subscriber::NoSubscriber;

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

/// A log kept in memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Records the log of this thread while the guard exists.
    pub(crate) fn of_this_thread() -> (Self, tracing::subscriber::DefaultGuard) {
        // With one subscriber only, a line that a thread of another test reaches first is switched off for all threads.
        static SECOND: OnceLock<Dispatch> = OnceLock::new();
        SECOND.get_or_init(|| Dispatch::new(NoSubscriber::default()));
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .with_writer(move || writer.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// The messages of the audit log, with the version of the host.
    pub(crate) fn on_record(&self) -> Vec<(String, String)> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let field = |line: &Value, at: &str| line.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        lines
            .filter(|line| field(line, "/target") == "metal3::audit")
            .map(|line| (field(&line, "/fields/message"), field(&line, "/fields/version")))
            .collect()
    }
}
