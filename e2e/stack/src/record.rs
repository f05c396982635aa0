//! What a running stack says about itself, and how to tell it from one that was killed.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::namespaces::{Started, process_start};
use crate::places::Places;

/// Written by `up` before the first process starts, and completed when all of them serve.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Holds the stack's namespaces; seen from the machine.
    pub(crate) holder: Started,
    /// Whether it is etcd and the API server alone.
    pub(crate) only_api: bool,
    /// What was started, with the milliseconds that it took.
    pub(crate) phases: Vec<(String, u64)>,
}

const FILE: &str = "stack.json";

impl Record {
    pub(crate) fn write(&self, places: &Places) -> anyhow::Result<()> {
        let path = places.state_file(FILE);
        fs::write(&path, serde_json::to_vec_pretty(self)?).with_context(|| format!("writing {}", path.display()))
    }

    /// The record of a stack whose processes are there. None: there is no stack, though files of one may be.
    pub(crate) fn of_running(places: &Places) -> anyhow::Result<Option<Self>> {
        let path = places.state_file(FILE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
        };
        // A record cut short by a crash is of a stack that never served.
        let Ok(record) = serde_json::from_slice::<Self>(&text) else {
            return Ok(None);
        };
        Ok(record.holder.is_alive().then_some(record))
    }

    /// The record, or an error that says how to get a stack.
    pub(crate) fn required(places: &Places) -> anyhow::Result<Self> {
        let hint = || format!("stack `{}` is not up: `make stack` starts it", places.name);
        Self::of_running(places)?.with_context(hint)
    }
}

impl Started {
    /// The same process, not another one with its number.
    pub(crate) fn is_alive(self) -> bool {
        process_start(self.pid) == Some(self.start)
    }
}

/// Measures, and bounds waits: the one place that reads the clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "this tool drives real processes in real time")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    pub(crate) fn millis(&self) -> u64 {
        u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Polls until the answer is there; the last reason is part of the error. The longer it takes, the less often it looks, by
/// a twentieth of what has passed: whoever looks takes the processors from those who work.
pub(crate) fn until<T>(
    limit: Duration,
    what: &str,
    mut attempt: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(500)];
    let watch = Stopwatch::start();
    let mut reason = None;
    while watch.elapsed() < limit {
        match attempt() {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => {}
            Err(error) => reason = Some(error),
        }
        let [least, most] = PAUSES;
        std::thread::sleep((watch.elapsed() / 20).clamp(least, most));
    }
    let text = format!("waited {} s for {what}", limit.as_secs());
    Err(match reason {
        Some(error) => error.context(text),
        None => anyhow::anyhow!(text),
    })
}
