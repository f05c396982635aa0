//! Generated cases by seed, on every processor.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// The seeds of a run: those that the environment variable names as `FIRST-LAST`, or as many as usual.
pub(crate) fn range(variable: &str, usual: u64) -> (u64, u64) {
    let wanted = std::env::var_os(variable).map(|text| text.into_string().unwrap());
    let Some(wanted) = wanted else {
        return (0, usual);
    };
    assert!(wanted.contains('-'), "{variable}={wanted}: write FIRST-LAST");
    let (first, last) = wanted.split_once('-').unwrap();
    (first.parse().unwrap(), last.parse().unwrap())
}

/// Runs the case of each seed, and returns the failures. No further one is started after this many.
pub(crate) fn failures<F: Send>(
    (first, end): (u64, u64),
    most: usize,
    run: impl Fn(u64) -> Result<(), F> + Sync,
) -> Vec<F> {
    let (next, failed) = (AtomicU64::new(first), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end || failed.lock().len() >= most {
                        return;
                    }
                    if let Err(failure) = run(seed) {
                        failed.lock().push(failure);
                    }
                }
            });
        }
    });
    failed.into_inner()
}
