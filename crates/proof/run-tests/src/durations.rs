//! How long each test took, on stable Rust: test programs print only when a test ends.
//!
//! They start tests in the order of their names, as many at once as there are threads, and the next one when one ends. So the
//! order of the ends determines the starts.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::output::Program;

/// Tests that run at once.
pub(super) fn threads() -> usize {
    let set = std::env::var_os("RUST_TEST_THREADS").and_then(|text| text.to_str()?.parse().ok());
    set.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// The tests of a program with their durations, in the order in which they ended.
pub(super) fn durations(program: &Program, threads: usize) -> Vec<(&str, Duration)> {
    let mut names: Vec<&str> = program.tests.iter().map(|test| test.name.as_str()).collect();
    names.sort_unstable();
    let mut waiting = names.into_iter();
    let mut running: BTreeMap<&str, Duration> = waiting
        .by_ref()
        .take(threads)
        .map(|name| (name, program.began))
        .collect();
    let (mut durations, mut last) = (Vec::new(), program.began);
    for test in &program.tests {
        let name = test.name.as_str();
        // Of a test in another order only this is known.
        let start = running.remove(name).unwrap_or(last);
        durations.push((name, test.at.saturating_sub(start)));
        running.extend(waiting.next().map(|next| (next, test.at)));
        last = test.at;
    }
    durations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Ending, Test};

    #[test]
    fn start_of_a_test_is_the_end_of_one_before_it() {
        let test = |name: &str, second: u64| Test {
            name: name.to_owned(),
            ending: Ending::Passed,
            at: Duration::from_secs(second),
        };
        let program = Program {
            began: Duration::from_secs(10),
            // `a` and `b` run at once, `c` after `b`, `d` after `a`.
            tests: vec![test("b", 12), test("a", 15), test("d", 16), test("c", 20)],
            ..Program::default()
        };
        let seconds = |threads| {
            let all = durations(&program, threads).into_iter();
            all.map(|(name, took)| (name, took.as_secs())).collect::<Vec<_>>()
        };
        assert_eq!(seconds(2), [("b", 2), ("a", 5), ("d", 1), ("c", 8)]);
        // A test that ends out of order is counted from the end before it.
        assert_eq!(seconds(1), [("b", 2), ("a", 5), ("d", 1), ("c", 5)]);
    }
}
