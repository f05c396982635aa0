//! Natural order of keys: numbers compare as numbers, so `node9` precedes `node10`.
//!
//! The Go manager's order is not transitive (`a1x` before `a2`, `a2` before `a10`, `a10` before `a1x`); this one is
//! total: texts are compared piece by piece.

use std::cmp::Ordering;

/// A piece of a key: symbols precede numbers, numbers precede letters.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Piece<'a> {
    Sign(char),
    /// The number of significant digits, the digits, and the length with leading zeros.
    Number(usize, &'a str, usize),
    Letter(char),
}

pub(super) fn natural(left: &str, right: &str) -> Ordering {
    Pieces(left).cmp(Pieces(right))
}

struct Pieces<'a>(&'a str);

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let first = self.0.chars().next()?;
        let digits = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (piece, rest) = self.0.split_at_checked(digits.max(first.len_utf8()))?;
        self.0 = rest;
        Some(if digits > 0 {
            let significant = piece.trim_start_matches('0');
            Piece::Number(significant.len(), significant, digits)
        } else if first.is_alphabetic() {
            Piece::Letter(first)
        } else {
            Piece::Sign(first)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_as_numbers_and_sort_between_symbols_and_letters() {
        let sorted = [
            "",
            "_under",
            "9",
            "10",
            "Alpha",
            "Node2",
            "a",
            "a-b",
            "a.b",
            "a0",
            "a00",
            "a1",
            "a1x",
            "a01",
            "a2",
            "a10",
            "a100000000000000000000",
            "a200000000000000000000",
            "ab",
            "zone",
            "é",
        ];
        for (position, left) in sorted.iter().enumerate() {
            for (other, right) in sorted.iter().enumerate() {
                assert_eq!(natural(left, right), position.cmp(&other), "{left:?} and {right:?}");
            }
        }
    }
}
