//! Time: how long something took, and waits that are bounded.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

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

thread_local! {
    /// What the work of this thread stands on, and whether it is broken.
    static GROUND: RefCell<Vec<Arc<AtomicBool>>> = const { RefCell::new(Vec::new()) };
}

/// Does work that has no hope once what it stands on is broken: its waits end then.
pub(crate) fn standing_on<T>(broken: &Arc<AtomicBool>, work: impl FnOnce() -> T) -> T {
    GROUND.with_borrow_mut(|ground| ground.push(Arc::clone(broken)));
    let done = work();
    GROUND.with_borrow_mut(Vec::pop);
    done
}

fn is_hopeless() -> bool {
    GROUND.with_borrow(|ground| ground.iter().any(|broken| broken.load(Ordering::Relaxed)))
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
        if is_hopeless() {
            anyhow::bail!("nobody waits any more for {what}: what goes on beside it broke");
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
    fn a_wait_ends_once_what_it_stands_on_is_broken() {
        let (broken, other) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let mut looks = 0;
        let found = standing_on(&broken, || {
            standing_on(&other, || {
                until::<()>(Duration::from_mins(1), "rain", || {
                    looks += 1;
                    broken.store(looks == 2, Ordering::Relaxed);
                    Ok(None)
                })
            })
        });
        assert!(found.unwrap_err().to_string().contains("rain"));
        assert_eq!(looks, 2);
        // It is over: nothing is left of what it stood on.
        assert_eq!(until(Duration::from_mins(1), "sun", || Ok(Some(1))).unwrap(), 1);
        assert!(!is_hopeless());
    }
}
