//! A seeded pseudo-random generator: SplitMix64.
//!
//! Implemented here because its sequence must stay stable: an update of a library must not change which request of a
//! recorded run fails. Not for secrets.

/// A seeded sequence of numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// The next number below a limit; 0 when the limit is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.number().checked_rem(limit).unwrap_or(0)
    }

    /// One of the choices; `None` when there are none.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        let count = u64::try_from(choices.len()).unwrap_or(u64::MAX);
        usize::try_from(self.below(count))
            .ok()
            .and_then(|index| choices.get(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_of_a_seed_is_the_published_one() {
        let mut random = Random::seeded(1_234_567);
        assert_eq!(random.number(), 6_457_827_717_110_365_317);
        assert_eq!(random.number(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn pick_from_no_choices_returns_none() {
        assert_eq!(Random::seeded(1).pick::<u8>(&[]), None);
        assert_eq!(Random::seeded(1).pick(&[5]), Some(&5));
    }
}
