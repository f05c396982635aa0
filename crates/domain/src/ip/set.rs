//! A set of addresses, kept as intervals.

use std::collections::BTreeMap;

use super::{Address, AddressCount, Range};

/// A set of addresses of one family.
///
/// Invariant: intervals are disjoint and never touch, so equal sets are equal values. Every operation costs what the
/// intervals it meets cost, whatever their size; inserting or removing one address is logarithmic.
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

    /// Whether no address is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// Its intervals, lowest first.
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

    /// Whether the address is in it.
    #[must_use]
    pub fn contains(&self, address: A) -> bool {
        self.interval_around(address).is_some()
    }

    /// Adds every address of a range.
    pub fn insert(&mut self, range: Range<A>) {
        // Neighbours are merged too, so the search starts one address lower and ends one higher.
        let reach = Range::spanning(
            range.first().previous().unwrap_or(range.first()),
            range.last().next().unwrap_or(range.last()),
        );
        let (mut first, mut last) = (range.first(), range.last());
        for met in self.take_meeting(reach) {
            first = first.min(met.first());
            last = last.max(met.last());
        }
        self.intervals.insert(first, last);
    }

    /// Takes every address of a range out.
    pub fn remove(&mut self, range: Range<A>) {
        for met in self.take_meeting(range) {
            if let Some(last) = range.first().previous().filter(|last| met.contains(*last)) {
                self.intervals.insert(met.first(), last);
            }
            if let Some(first) = range.last().next().filter(|first| met.contains(*first)) {
                self.intervals.insert(first, met.last());
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
            .flat_map(|range| self.meeting(range).filter_map(move |met| met.intersection(&range)))
            .collect()
    }

    /// The runs of addresses inside `within` that are not in this set, lowest first.
    pub fn gaps(&self, within: Range<A>) -> impl Iterator<Item = Range<A>> {
        let mut meeting = self.meeting(within);
        let mut rest = Some(within);
        std::iter::from_fn(move || {
            while let Some(left) = rest {
                let Some(met) = meeting.next() else {
                    return rest.take();
                };
                let after = met.last().next().filter(|first| left.contains(*first));
                rest = after.map(|first| Range::spanning(first, left.last()));
                if let Some(last) = met.first().previous().filter(|last| left.contains(*last)) {
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
        // Logarithmic: an interval that covers the start is left at its end, where by the invariant a free address follows.
        let start = self
            .interval_around(searched.first())
            .map_or(Some(searched.first()), |met| met.last().next())?;
        searched.contains(start).then_some(start)
    }

    fn interval_around(&self, address: A) -> Option<Range<A>> {
        let (first, last) = self.intervals.range(..=address).next_back()?;
        (address <= *last).then(|| Range::spanning(*first, *last))
    }

    /// The intervals that share an address with `range`, lowest first.
    fn meeting(&self, range: Range<A>) -> impl Iterator<Item = Range<A>> {
        let start = self
            .interval_around(range.first())
            .map_or(range.first(), |met| met.first());
        self.intervals
            .range(start..=range.last())
            .map(|(first, last)| Range::spanning(*first, *last))
    }

    fn take_meeting(&mut self, range: Range<A>) -> Vec<Range<A>> {
        let taken: Vec<_> = self.meeting(range).collect();
        for met in &taken {
            self.intervals.remove(&met.first());
        }
        taken
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
