//! Sorting, in one place.
//!
//! Each type of a row would bring its own copy of the code that sorts into the program: a tenth of what the commands add to it. Here
//! positions are sorted instead, which is the same code for all of them. `collect` into a sorted set or map contains that code
//! too; `extend` does not.

use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Sorts rows. Equal ones keep their order.
pub(crate) fn sort_by<T>(rows: &mut Vec<T>, compare: impl Fn(&T, &T) -> Ordering) {
    let order = positions(rows.len(), &|a, b| match (rows.get(a), rows.get(b)) {
        (Some(a), Some(b)) => compare(a, b),
        _ => Ordering::Equal,
    });
    let mut taken: Vec<Option<T>> = std::mem::take(rows).into_iter().map(Some).collect();
    rows.extend(order.into_iter().filter_map(|at| taken.get_mut(at)?.take()));
}

/// Sorts rows in their own order.
pub(crate) fn sort<T: Ord>(rows: &mut Vec<T>) {
    sort_by(rows, T::cmp);
}

/// The set of these.
pub(crate) fn set<T: Ord>(all: impl IntoIterator<Item = T>) -> BTreeSet<T> {
    let mut set = BTreeSet::new();
    set.extend(all);
    set
}

fn positions(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut positions: Vec<usize> = (0..count).collect();
    positions.sort_by(|a, b| compare(*a, *b));
    positions
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
        sort::<(i32, i32)>(&mut Vec::new());
    }
}
