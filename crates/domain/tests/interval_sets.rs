//! The interval set against a set that lists every address, on a small universe at either end of each family.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use metal3_domain::ip::{Address, AddressCount, IntervalSet, Range};
use proptest::prelude::*;

/// Addresses in the universe.
const SIZE: u128 = 48;

#[derive(Debug, Clone, Copy)]
enum Change {
    Insert(u128, u128),
    Remove(u128, u128),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        3 => (0..SIZE, 0..SIZE).prop_map(|(one, other)| Change::Insert(one, other)),
        2 => (0..SIZE, 0..SIZE).prop_map(|(one, other)| Change::Remove(one, other)),
    ];
    prop::collection::vec(change, 0..24)
}

/// The universe: addresses at the bottom or at the top of a family.
struct Universe {
    base: u128,
}

impl Universe {
    fn of<A: Address>(at_top: bool) -> Self {
        Self {
            base: if at_top { A::HIGHEST.to_number() - (SIZE - 1) } else { 0 },
        }
    }

    fn range<A: Address>(&self, one: u128, other: u128) -> Result<Range<A>, TestCaseError> {
        Ok(Range::spanning(self.at(one)?, self.at(other)?))
    }

    fn at<A: Address>(&self, place: u128) -> Result<A, TestCaseError> {
        A::from_number(self.base + place).ok_or_else(|| TestCaseError::fail("outside of the family"))
    }

    fn build<A: Address>(&self, changes: &[Change]) -> Result<(IntervalSet<A>, BTreeSet<A>), TestCaseError> {
        let (mut set, mut model) = (IntervalSet::new(), BTreeSet::new());
        for change in changes {
            let (Change::Insert(one, other) | Change::Remove(one, other)) = *change;
            let places = one.min(other)..=one.max(other);
            let addresses = places.map(|place| self.at(place)).collect::<Result<Vec<A>, _>>()?;
            match change {
                Change::Insert(..) => {
                    set.insert(self.range(one, other)?);
                    model.extend(addresses);
                }
                Change::Remove(..) => {
                    set.remove(self.range(one, other)?);
                    model.retain(|address| !addresses.contains(address));
                }
            }
        }
        Ok((set, model))
    }

    fn check<A: Address>(&self, set: &IntervalSet<A>, model: &BTreeSet<A>) -> Result<(), TestCaseError> {
        let whole = self.range::<A>(0, SIZE - 1)?;
        let mut runs = 0;
        let mut previous_in = false;
        for place in 0..SIZE {
            let address = self.at::<A>(place)?;
            let is_in = model.contains(&address);
            prop_assert_eq!(set.contains(address), is_in, "{}", address);
            runs += u32::from(is_in && !previous_in);
            previous_in = is_in;
            let free = (place..SIZE)
                .map(|place| self.at::<A>(place))
                .find(|address| match address {
                    Ok(address) => !model.contains(address),
                    Err(_) => true,
                });
            prop_assert_eq!(set.first_free(whole, address), free.transpose()?, "from {}", address);
        }
        prop_assert_eq!(
            set.ranges().count(),
            usize::try_from(runs).unwrap_or(usize::MAX),
            "intervals are maximal"
        );
        let counted = u128::try_from(model.len()).unwrap_or(u128::MAX);
        prop_assert_eq!(set.count(), AddressCount::Exactly(counted));
        prop_assert_eq!(set.is_empty(), model.is_empty());
        Ok(())
    }

    fn check_gaps<A: Address>(
        &self,
        set: &IntervalSet<A>,
        model: &BTreeSet<A>,
        (one, other): (u128, u128),
    ) -> Result<(), TestCaseError> {
        let within = self.range::<A>(one, other)?;
        let mut free = BTreeSet::new();
        let mut last_gap: Option<Range<A>> = None;
        for gap in set.gaps(within) {
            if let Some(last) = last_gap {
                prop_assert!(
                    last.last().next().is_some_and(|next| next < gap.first()),
                    "gaps touch or overlap"
                );
            }
            last_gap = Some(gap);
            for index in 0..gap.count().saturating() {
                free.extend(gap.nth(index));
            }
        }
        let places = one.min(other)..=one.max(other);
        let expected = places.map(|place| self.at(place)).collect::<Result<BTreeSet<A>, _>>()?;
        prop_assert_eq!(free, expected.difference(model).copied().collect::<BTreeSet<_>>());
        Ok(())
    }
}

fn agrees<A: Address>(
    one: &[Change],
    other: &[Change],
    at_top: bool,
    window: (u128, u128),
) -> Result<(), TestCaseError> {
    let universe = Universe::of::<A>(at_top);
    let (set, model) = universe.build::<A>(one)?;
    let (set2, model2) = universe.build::<A>(other)?;
    universe.check(&set, &model)?;
    universe.check_gaps(&set, &model, window)?;
    universe.check(&set.union(&set2), &model.union(&model2).copied().collect())?;
    universe.check(&set.difference(&set2), &model.difference(&model2).copied().collect())?;
    universe.check(
        &set.intersection(&set2),
        &model.intersection(&model2).copied().collect(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn v4_sets_match_a_plain_set(
        one in changes(), other in changes(), at_top: bool, window in (0..SIZE, 0..SIZE)
    ) {
        agrees::<Ipv4Addr>(&one, &other, at_top, window)?;
    }

    #[test]
    fn v6_sets_match_a_plain_set(
        one in changes(), other in changes(), at_top: bool, window in (0..SIZE, 0..SIZE)
    ) {
        agrees::<Ipv6Addr>(&one, &other, at_top, window)?;
    }

    #[test]
    fn equal_sets_are_equal_values(order in prop::collection::vec((0..SIZE, 0..SIZE), 1..12)) {
        let universe = Universe::of::<Ipv4Addr>(false);
        let ranges = order.iter().map(|(one, other)| universe.range::<Ipv4Addr>(*one, *other));
        let ranges = ranges.collect::<Result<Vec<_>, _>>()?;
        let forwards: IntervalSet<_> = ranges.iter().copied().collect();
        let backwards: IntervalSet<_> = ranges.iter().rev().copied().collect();
        prop_assert_eq!(forwards, backwards);
    }
}
