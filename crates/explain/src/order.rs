//! Sorting, in one place.
//!
//! Each type of a row would bring its own copy of the code that sorts into the program: a tenth of what the commands add to it. Here
//! positions are sorted instead, which is the same code for all of them. `collect` into a sorted set or map contains that code
//! too; `extend` does not.

use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Sorts rows. Equal ones keep their order.
pub(crate) fn sort_by<T>(rows: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let swaps = swaps(rows.len(), &|a, b| match (rows.get(a), rows.get(b)) {
        (Some(a), Some(b)) => compare(a, b),
        _ => Ordering::Equal,
    });
    for (a, b) in swaps {
        rows.swap(a, b);
    }
}

/// Sorts rows in their own order.
pub(crate) fn sort<T: Ord>(rows: &mut [T]) {
    sort_by(rows, T::cmp);
}

/// The set of these.
pub(crate) fn set<T: Ord>(all: impl IntoIterator<Item = T>) -> BTreeSet<T> {
    let mut set = BTreeSet::new();
    set.extend(all);
    set
}

/// The swaps that sort so many rows, each of two positions.
fn swaps(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<(usize, usize)> {
    let mut sources: Vec<usize> = (0..count).collect();
    sources.sort_by(|a, b| compare(*a, *b));
    let mut swaps = Vec::new();
    for start in 0..count {
        // Each row of a cycle comes from the next place of it.
        let mut at = start;
        while let Some(source) = sources.get_mut(at) {
            let from = std::mem::replace(source, at);
            if from == start || from == at {
                break;
            }
            swaps.push((at, from));
            at = from;
        }
    }
    swaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_equal_ones_keep_their_order() {
        let mut rows = vec![("b", 1), ("a", 2), ("b", 0), ("a", 1)];
        sort_by(&mut rows, |a, b| a.0.cmp(b.0));
        assert_eq!(rows, [("a", 2), ("a", 1), ("b", 1), ("b", 0)]);
        sort(&mut rows);
        assert_eq!(rows, [("a", 1), ("a", 2), ("b", 0), ("b", 1)]);
        sort::<(i32, i32)>(&mut []);
    }

    #[test]
    fn each_order_of_some_rows_is_sorted() {
        for seed in 0..500_u64 {
            let mut state = seed;
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state >> 33
            };
            let count = next() % 12;
            let mut rows: Vec<(u64, u64)> = (0..count).map(|at| (next() % 5, at)).collect();
            let mut expected = rows.clone();
            expected.sort_by_key(|row| row.0);
            sort_by(&mut rows, |a, b| a.0.cmp(&b.0));
            assert_eq!(rows, expected);
        }
    }
}
