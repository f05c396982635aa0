//! Time measurement and bounded waits.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The only reader of the clock.
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

thread_local! {
    /// Flags that cancel the waits of this thread.
    static CANCEL: RefCell<Vec<Arc<AtomicBool>>> = const { RefCell::new(Vec::new()) };
}

/// Does the work; its waits end when the flag is set.
pub(crate) fn cancel_when<T>(failed: &Arc<AtomicBool>, work: impl FnOnce() -> T) -> T {
    CANCEL.with_borrow_mut(|flags| flags.push(Arc::clone(failed)));
    let done = work();
    CANCEL.with_borrow_mut(Vec::pop);
    done
}

fn is_cancelled() -> bool {
    CANCEL.with_borrow(|flags| flags.iter().any(|failed| failed.load(Ordering::Relaxed)))
}

/// Polls until there is a result; the last error is part of the timeout error. The interval grows by a twentieth of the
/// elapsed time, to leave the processors to the system under test.
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
        if is_cancelled() {
            anyhow::bail!("cancelled the wait for {what}: a parallel activity failed");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_ends_when_its_flag_is_set() {
        let (failed, other) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let mut attempts = 0;
        let found = cancel_when(&failed, || {
            cancel_when(&other, || {
                until::<()>(Duration::from_mins(1), "rain", || {
                    attempts += 1;
                    failed.store(attempts == 2, Ordering::Relaxed);
                    Ok(None)
                })
            })
        });
        assert!(found.unwrap_err().to_string().contains("rain"));
        assert_eq!(attempts, 2);
        // Afterwards the flags are removed.
        assert_eq!(until(Duration::from_mins(1), "sun", || Ok(Some(1))).unwrap(), 1);
        assert!(!is_cancelled());
    }
}
