//! Each word of the target at each place of an input, in order.

use std::collections::VecDeque;

use crate::dictionary::is_word;

/// Longest input that is swept.
const LONGEST_SWEPT: usize = 1 << 10;
/// Most inputs that wait.
const MOST_WAITING: usize = 1024;

/// The inputs to sweep, and the place in the first of them.
#[derive(Default)]
pub(crate) struct Sweep {
    waiting: VecDeque<Vec<u8>>,
    place: usize,
    change: usize,
}

impl Sweep {
    /// Adds an input.
    pub(crate) fn add(&mut self, input: &[u8]) {
        if input.len() <= LONGEST_SWEPT && self.waiting.len() < MOST_WAITING {
            self.waiting.push_back(input.to_vec());
        }
    }

    /// The next input: a word inserted where a word begins or ends, or instead of the word there.
    pub(crate) fn next(&mut self, words: &[&str]) -> Option<Vec<u8>> {
        loop {
            let base = self.waiting.front()?;
            if self.place > base.len() {
                self.waiting.pop_front();
                (self.place, self.change) = (0, 0);
                continue;
            }
            let (before, after) = base.split_at_checked(self.place)?;
            let in_word = after.first().is_some_and(|byte| is_word(*byte));
            let is_inside = in_word && before.last().is_some_and(|byte| is_word(*byte));
            let word = words.get(self.change / 2).filter(|_| !is_inside);
            let Some(word) = word else {
                (self.place, self.change) = (self.place + 1, 0);
                continue;
            };
            let replaces = self.change % 2 == 1;
            self.change += 1;
            if replaces && !in_word {
                continue;
            }
            let replaced = after.iter().take_while(|byte| replaces && is_word(**byte)).count();
            let rest = after.get(replaced..).unwrap_or_default();
            return Some([before, word.as_bytes(), rest].concat());
        }
    }
}
