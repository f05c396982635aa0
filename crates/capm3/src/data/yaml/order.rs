//! The order of keys: numbers within them count as numbers, so `node9` stands before `node10`.
//!
//! Where the Go manager's order is none (it puts `a1x` before `a2`, `a2` before `a10` and `a10` before `a1x`), this one
//! still is: texts are compared piece by piece, and pieces have a total order.

use std::cmp::Ordering;

/// A piece of a key: signs come before numbers, numbers before letters.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Piece<'a> {
    Sign(char),
    /// Digits without leading zeros by how many there are, then themselves, then how long the number was with zeros.
    Number(usize, &'a str, usize),
    Letter(char),
}

/// Compares two keys.
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
    fn numbers_count_as_numbers_and_stand_between_signs_and_letters() {
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
