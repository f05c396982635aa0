//! Sets of addresses as intervals.

use std::collections::BTreeMap;

use super::{Address, AddressCount, Range};

/// A set of addresses of one family.
///
/// Invariant: intervals are disjoint and not adjacent, so equal sets are equal values. The cost of an operation depends
/// on the number of intervals it overlaps, not on their size; inserting or removing one address is logarithmic.
///
/// ```
/// use std::net::Ipv4Addr;
/// use metal3_domain::ip::{IntervalSet, Range};
///
/// let pool = Range::try_new(Ipv4Addr::new(192, 0, 2, 10), Ipv4Addr::new(192, 0, 2, 20))?;
/// let mut used = IntervalSet::new();
/// used.insert(Range::single(pool.first()));
/// assert_eq!(used.first_free(pool, pool.first()), Some(Ipv4Addr::new(192, 0, 2, 11)));
/// # Ok::<(), metal3_domain::ip::RangeError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntervalSet<A> {
    /// Last address by first address.
    intervals: BTreeMap<A, A>,
}

impl<A> Default for IntervalSet<A> {
    fn default() -> Self {
        Self {
            intervals: BTreeMap::new(),
        }
    }
}

impl<A: Address> IntervalSet<A> {
    /// The empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// The intervals, lowest first.
    pub fn ranges(&self) -> impl Iterator<Item = Range<A>> {
        self.intervals
            .iter()
            .map(|(first, last)| Range::spanning(*first, *last))
    }

    /// Number of addresses.
    #[must_use]
    pub fn count(&self) -> AddressCount {
        self.ranges()
            .map(|range| range.count())
            .fold(AddressCount::ZERO, AddressCount::plus)
    }

    /// Whether the set contains the address.
    #[must_use]
    pub fn contains(&self, address: A) -> bool {
        self.interval_around(address).is_some()
    }

    /// Adds every address of a range.
    pub fn insert(&mut self, range: Range<A>) {
        // Adjacent intervals are merged too, so the search covers one address more on each side.
        let reach = Range::spanning(
            range.first().previous().unwrap_or(range.first()),
            range.last().next().unwrap_or(range.last()),
        );
        let (mut first, mut last) = (range.first(), range.last());
        for interval in self.remove_overlapping(reach) {
            first = first.min(interval.first());
            last = last.max(interval.last());
        }
        self.intervals.insert(first, last);
    }

    /// Removes every address of a range.
    pub fn remove(&mut self, range: Range<A>) {
        for interval in self.remove_overlapping(range) {
            if let Some(last) = range.first().previous().filter(|last| interval.contains(*last)) {
                self.intervals.insert(interval.first(), last);
            }
            if let Some(first) = range.last().next().filter(|first| interval.contains(*first)) {
                self.intervals.insert(first, interval.last());
            }
        }
    }

    /// Every address in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        union.extend(other.ranges());
        union
    }

    /// Every address of this set that is not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut difference = self.clone();
        for range in other.ranges() {
            difference.remove(range);
        }
        difference
    }

    /// Every address in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        other
            .ranges()
            .flat_map(|range| {
                self.overlapping(range)
                    .filter_map(move |interval| interval.intersection(&range))
            })
            .collect()
    }

    /// The ranges inside `within` that are not in this set, lowest first.
    pub fn gaps(&self, within: Range<A>) -> impl Iterator<Item = Range<A>> {
        let mut overlapping = self.overlapping(within);
        let mut rest = Some(within);
        std::iter::from_fn(move || {
            while let Some(left) = rest {
                let Some(interval) = overlapping.next() else {
                    return rest.take();
                };
                let after = interval.last().next().filter(|first| left.contains(*first));
                rest = after.map(|first| Range::spanning(first, left.last()));
                if let Some(last) = interval.first().previous().filter(|last| left.contains(*last)) {
                    return Some(Range::spanning(left.first(), last));
                }
            }
            None
        })
    }

    /// The lowest address of `within`, at or after `from`, that is not in this set.
    #[must_use]
    pub fn first_free(&self, within: Range<A>, from: A) -> Option<A> {
        let searched = Range::try_new(from.max(within.first()), within.last()).ok()?;
        // Logarithmic: after an interval that covers the start, the next address is free by the invariant.
        let start = self
            .interval_around(searched.first())
            .map_or(Some(searched.first()), |interval| interval.last().next())?;
        searched.contains(start).then_some(start)
    }

    fn interval_around(&self, address: A) -> Option<Range<A>> {
        let (first, last) = self.intervals.range(..=address).next_back()?;
        (address <= *last).then(|| Range::spanning(*first, *last))
    }

    /// The intervals that share an address with `range`, lowest first.
    fn overlapping(&self, range: Range<A>) -> impl Iterator<Item = Range<A>> {
        let start = self
            .interval_around(range.first())
            .map_or(range.first(), |interval| interval.first());
        self.intervals
            .range(start..=range.last())
            .map(|(first, last)| Range::spanning(*first, *last))
    }

    fn remove_overlapping(&mut self, range: Range<A>) -> Vec<Range<A>> {
        let removed: Vec<_> = self.overlapping(range).collect();
        for interval in &removed {
            self.intervals.remove(&interval.first());
        }
        removed
    }
}

impl<A: Address> Extend<Range<A>> for IntervalSet<A> {
    fn extend<I: IntoIterator<Item = Range<A>>>(&mut self, ranges: I) {
        for range in ranges {
            self.insert(range);
        }
    }
}

impl<A: Address> FromIterator<Range<A>> for IntervalSet<A> {
    fn from_iter<I: IntoIterator<Item = Range<A>>>(ranges: I) -> Self {
        let mut set = Self::new();
        set.extend(ranges);
        set
    }
}
