//! Holds simulated time back to a number of times the speed of real time.
//!
//! The clock of the runtime advances when every task waits, but not while a blocking task runs: a thread that sleeps stops it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::sleep;

/// Time is held back after each of these.
const TICK: Duration = Duration::from_secs(1);

/// Holds time back until it is dropped.
pub(super) struct Pace {
    is_free: Arc<AtomicBool>,
    _task: JoinSet<()>,
}

/// Time is not held back while this exists.
pub(super) struct NotHeldBack(Arc<AtomicBool>);

impl Drop for NotHeldBack {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Pace {
    /// From now on a second of real time is `speed` seconds.
    pub(super) fn start(speed: u32) -> Self {
        let is_free = Arc::<AtomicBool>::default();
        let (pause, reader) = (TICK.checked_div(speed).unwrap_or(TICK), Arc::clone(&is_free));
        let mut task = JoinSet::new();
        task.spawn(async move {
            loop {
                sleep(TICK).await;
                if !reader.load(Ordering::Relaxed) {
                    stop(pause).await;
                }
            }
        });
        Self { is_free, _task: task }
    }

    /// Time stands still for so long in real time.
    pub(super) async fn stand_still(&self, pause: Duration) {
        if !pause.is_zero() {
            stop(pause).await;
        }
    }

    pub(super) fn not_held_back(&self) -> NotHeldBack {
        self.is_free.store(true, Ordering::Relaxed);
        NotHeldBack(Arc::clone(&self.is_free))
    }
}

async fn stop(pause: Duration) {
    // It cannot panic, and is not cancelled.
    drop(spawn_blocking(move || std::thread::sleep(pause)).await);
}

#[cfg(test)]
mod tests {
    use metal3_domain::clock::{Clock as _, SystemClock};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_is_held_back_to_the_speed_and_stands_still() {
        let (clock, pace) = (SystemClock::start(), Pace::start(20));
        let (began, start) = (clock.monotonic(), Instant::now());
        sleep(TICK * 10).await;
        let real = || clock.monotonic().since(began);
        assert!(real() >= TICK * 9 / 20, "{:?}", real());
        let (before, at) = (real(), start.elapsed());
        pace.stand_still(Duration::from_millis(50)).await;
        assert!(start.elapsed() < at + TICK && real() - before >= Duration::from_millis(50));
        let (free, before) = (pace.not_held_back(), real());
        sleep(TICK * 3_600).await;
        assert!(real() - before < TICK * 3_600 / 20, "{:?}", real());
        drop(free);
    }
}
