//! The inputs that are changed further: the corpus, and inputs whose answers show something new.
//!
//! An answer is a sequence of words and signs. Known words are those of the dictionary, and those that the parser wrote on
//! its own; all others are alike. An input is kept for a new pair of neighbours, or of words with signs between them. An
//! accepted one is also kept for a new set of words that the parser wrote, and for a new set of known words:
//! structures meet that were apart before. Accepted inputs with a new pair, or a new set of the parser's words, are swept.

use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher as _};

use metal3_sim_faults::Random;

use crate::chance::below;
use crate::dictionary::{Dictionary, is_word, words};
use crate::sweep::Sweep;
use crate::target::Answer;

/// Most inputs that are kept for each reason. Later ones replace the earliest.
const MOST_KEPT: usize = 1024;
/// Bounds of the longest input that is kept, which is four times as long as the longest of the corpus.
const LONGEST_KEPT: (usize, usize) = (256, 4 << 10);
/// The part of an answer that is looked at.
const LOOKED_AT: usize = 4 << 10;

/// The pool.
pub(crate) struct Pool {
    corpus: Vec<Vec<u8>>,
    new_pairs: Kept,
    new_writings: Kept,
    new_sets: Kept,
    longest: usize,
    /// The inputs that are changed in order, not at random.
    pub(crate) sweep: Sweep,
    known: HashSet<Vec<u8>>,
    pairs: HashSet<u64>,
    writings: HashSet<u64>,
    sets: HashSet<u64>,
}

#[derive(Default)]
struct Kept {
    inputs: Vec<Vec<u8>>,
    next: usize,
}

impl Kept {
    fn keep(&mut self, input: Vec<u8>) {
        match self.inputs.get_mut(self.next) {
            Some(earliest) => *earliest = input,
            None => self.inputs.push(input),
        }
        self.next = (self.next + 1) % MOST_KEPT;
    }

    fn pick(&self, random: &mut Random) -> Option<&[u8]> {
        self.inputs.get(below(random, self.inputs.len())).map(Vec::as_slice)
    }
}

impl Pool {
    /// A pool with a corpus.
    pub(crate) fn new(corpus: &[Vec<u8>], dictionary: &Dictionary) -> Self {
        let longest = corpus.iter().map(Vec::len).max().unwrap_or(0);
        Self {
            corpus: corpus.to_vec(),
            new_pairs: Kept::default(),
            new_writings: Kept::default(),
            new_sets: Kept::default(),
            longest: (longest * 4).clamp(LONGEST_KEPT.0, LONGEST_KEPT.1),
            sweep: Sweep::default(),
            known: dictionary.words().map(<[u8]>::to_vec).collect(),
            pairs: HashSet::new(),
            writings: HashSet::new(),
            sets: HashSet::new(),
        }
    }

    /// The number of kinds of answers.
    pub(crate) fn kinds(&self) -> usize {
        self.sets.len()
    }

    /// An input to change.
    pub(crate) fn pick(&self, random: &mut Random) -> &[u8] {
        let corpus = self.corpus.get(below(random, self.corpus.len())).map(Vec::as_slice);
        let kept = match random.below(4) {
            0 => None,
            1 => self.new_pairs.pick(random),
            2 => self.new_writings.pick(random),
            _ => self.new_sets.pick(random),
        };
        kept.or(corpus).unwrap_or_default()
    }

    /// Keeps an input whose answer is new.
    pub(crate) fn add(&mut self, input: Vec<u8>, answer: &Answer) {
        let (accepted, text) = match answer {
            Answer::Accepted(text) => (true, text.as_bytes()),
            Answer::Rejected(text) => (false, text.as_bytes()),
        };
        let text = text.get(..LOOKED_AT).unwrap_or(text);
        let given: HashSet<&[u8]> = words(&input).collect();
        let (mut new_pair, mut last, mut last_word) = (false, 0, 0);
        let (mut written, mut set) = (BTreeSet::new(), BTreeSet::new());
        for token in tokens(text) {
            let class = self.class(token, &given);
            new_pair |= self.pairs.insert(hash((accepted, last, class)));
            if token.first().is_some_and(|byte| is_word(*byte)) {
                new_pair |= self.pairs.insert(hash((accepted, "words", last_word, class)));
                last_word = class;
                set.insert(class);
                if !given.contains(token) {
                    written.insert(class);
                }
            }
            last = class;
        }
        let new_writing = accepted && self.writings.insert(hash(written));
        let new_set = accepted && self.sets.insert(hash(set));
        if input.len() > self.longest {
            return;
        }
        if accepted && (new_pair || new_writing) {
            self.sweep.add(&input);
        }
        if new_pair {
            self.new_pairs.keep(input);
        } else if new_writing {
            self.new_writings.keep(input);
        } else if new_set {
            self.new_sets.keep(input);
        }
    }

    /// A hash of what the token is: itself when it is known, and else its class.
    fn class(&self, token: &[u8], given: &HashSet<&[u8]>) -> u64 {
        let is_written = !given.contains(token);
        let is_code = token.len() <= 3 && token.iter().all(u8::is_ascii_digit);
        let is_text = token.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
        let is_sign = token.first().is_some_and(u8::is_ascii_punctuation);
        if is_sign || self.known.contains(token) || (is_written && (is_code || is_text)) {
            hash(token)
        } else {
            hash(token.iter().any(u8::is_ascii_digit))
        }
    }
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Words and signs, without white space.
fn tokens(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let parts = text.chunk_by(|one, next| is_word(*one) && is_word(*next));
    parts.filter(|part| !part.first().is_some_and(u8::is_ascii_whitespace))
}
