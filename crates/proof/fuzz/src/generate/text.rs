//! Changes of text: bytes, words, lines, and parts of another input of the same grammar.

use metal3_sim_faults::Random;

use crate::chance::{below, number};
use crate::dictionary::{Dictionary, is_word};

/// Characters and texts that parsers treat specially.
const PIECES: [&str; 40] = [
    "",
    "0",
    "1",
    "-1",
    "00",
    "9",
    "a",
    "Z",
    "/",
    ":",
    "@",
    "%",
    "?",
    "#",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "\\",
    ",",
    ";",
    "=",
    "&",
    ".",
    "-",
    "_",
    "~",
    " ",
    "\t",
    "\n",
    "\0",
    "\u{7f}",
    "\u{e9}",
    "\u{1f600}",
    "%2f",
    "%zz",
    "18446744073709551616",
    "2147483648",
];

pub(super) fn piece(random: &mut Random) -> &'static str {
    random.pick(&PIECES).copied().unwrap_or_default()
}

/// Makes one change.
pub(super) fn change(dictionary: &Dictionary, base: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = position(base, random);
    let end = at + below(random, base.len() - at + 1).min(12);
    let has_lines = base.contains(&b'\n') || other.contains(&b'\n');
    match random.below(if has_lines { 20 } else { 15 }) {
        0 => drop(base.drain(at..end)),
        1 => {
            let piece: Vec<u8> = part(base, at, end).to_vec();
            base.splice(at..at, piece);
        }
        2 => drop(base.splice(at..end, random.number().to_le_bytes().into_iter().take(1))),
        3 => {
            let from = below(random, other.len() + 1);
            let piece: Vec<u8> = other.iter().skip(from).take(1 + below(random, 24)).copied().collect();
            base.splice(at..end, piece);
        }
        4 => drop(base.splice(at..end, number(random).into_bytes())),
        5 => drop(base.splice(at..at, piece(random).bytes())),
        6 => drop(base.splice(at..end, piece(random).bytes())),
        7 | 8 => drop(base.splice(at..at, dictionary.word(random).bytes())),
        9 => {
            let (from, to) = word_around(base, at);
            base.splice(from..to, dictionary.word(random).bytes());
        }
        10 => take_end(base, at, other, random),
        11 => take_part(base, at, other, random),
        12 => level_word(base, at, random),
        13 => change_digit(base, at, random),
        _ => change_lines(dictionary, base, other, random),
    }
}

fn part(text: &[u8], from: usize, to: usize) -> &[u8] {
    text.get(from..to).unwrap_or_default()
}

/// A position, mostly one where a word begins or ends, or the end of the text.
fn position(base: &[u8], random: &mut Random) -> usize {
    let at = below(random, base.len() + 1);
    match random.below(8) {
        0 => return base.len(),
        1 | 2 => return at,
        _ => {}
    }
    let in_word = |at: usize| base.get(at).is_some_and(|byte| is_word(*byte));
    let inside = |at: usize| in_word(at) && at.checked_sub(1).is_some_and(in_word);
    (at..base.len()).find(|at| !inside(*at)).unwrap_or(base.len())
}

fn word_around(base: &[u8], at: usize) -> (usize, usize) {
    let before = base.iter().take(at).rev().take_while(|byte| is_word(**byte)).count();
    let after = base.iter().skip(at).take_while(|byte| is_word(**byte)).count();
    (at - before, at + after)
}

/// Replaces the end by an end of the other input that begins with the same byte, and an empty end by one that begins with
/// a sign.
fn take_end(base: &mut Vec<u8>, at: usize, other: &[u8], random: &mut Random) {
    let begin = base.get(at).copied();
    let fits = |byte: u8| begin.map_or(!is_word(byte), |begin| begin == byte);
    let places: Vec<usize> = (0..other.len())
        .filter(|place| other.get(*place).copied().is_some_and(fits))
        .collect();
    if let Some(place) = random.pick(&places) {
        base.splice(at.., other.iter().skip(*place).copied());
    }
}

/// Inserts a part of the other input that stands behind the same byte, of one to four words.
fn take_part(base: &mut Vec<u8>, at: usize, other: &[u8], random: &mut Random) {
    let before = |text: &[u8], at: usize| at.checked_sub(1).and_then(|at| text.get(at).copied());
    let wanted = before(base, at);
    let places: Vec<usize> = (0..=other.len())
        .filter(|place| before(other, *place) == wanted)
        .collect();
    let Some(place) = random.pick(&places).copied() else {
        return;
    };
    let mut to = place;
    for _ in 0..=random.below(4) {
        to += other.iter().skip(to).take_while(|byte| is_word(**byte)).count();
        to += other.iter().skip(to).take_while(|byte| !is_word(**byte)).count();
    }
    base.splice(at..at, part(other, place, to).iter().copied());
}

/// Makes all digits of a word, or of two of its digits, the lowest or the highest.
fn level_word(base: &mut [u8], at: usize, random: &mut Random) {
    let (from, to) = word_around(base, at);
    let to = if random.below(2) == 0 { to } else { to.min(from + 2) };
    let word = part(base, from, to);
    let levels: &[u8] = if word.iter().all(u8::is_ascii_hexdigit) {
        b"09fF"
    } else {
        b"09azAZ"
    };
    let level = random.pick(levels).copied().unwrap_or(b'0');
    if let Some(word) = base.get_mut(from..to) {
        word.fill(level);
    }
}

/// Exchanges one digit or letter for another of its class.
fn change_digit(base: &mut [u8], at: usize, random: &mut Random) {
    let class: &[u8] = match base.get(at) {
        Some(b'0'..=b'9') => b"0123456789",
        Some(b'a'..=b'f') => b"0123456789abcdef",
        Some(byte) if byte.is_ascii_uppercase() => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        _ => b"abcdefghijklmnopqrstuvwxyz",
    };
    if let (Some(byte), Some(new)) = (base.get_mut(at), random.pick(class)) {
        *byte = *new;
    }
}

/// Removes, repeats, exchanges or adds a line.
fn change_lines(dictionary: &Dictionary, base: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let mut lines: Vec<&[u8]> = base.split_inclusive(|byte| *byte == b'\n').collect();
    let others: Vec<&[u8]> = other.split_inclusive(|byte| *byte == b'\n').collect();
    let word = dictionary.word(random).as_bytes();
    let (at, to) = (below(random, lines.len()), below(random, lines.len() + 1));
    match random.below(6) {
        0 if at < lines.len() => drop(lines.remove(at)),
        1 => lines.extend(lines.get(at).copied()),
        2 if at < lines.len() && to < lines.len() => lines.swap(at, to),
        3 => lines.insert(to, word),
        _ => lines.splice(to..to, random.pick(&others).copied()).for_each(drop),
    }
    // A line in the middle ends.
    let last = lines.len().saturating_sub(1);
    let mut text = Vec::with_capacity(base.len());
    for (number, line) in lines.into_iter().enumerate() {
        text.extend_from_slice(line);
        if number < last && !line.ends_with(b"\n") {
            text.push(b'\n');
        }
    }
    *base = text;
}
