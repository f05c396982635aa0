//! Text as YAML scalars: plain, in single or double quotes, or as a block of lines.
//!
//! A line is folded at the first space after 80 columns. Unprintable characters, and those that a parser treats as a
//! line break, are escaped in double quotes.

use std::fmt::Write as _;

use serde_json::Number;

use super::ambiguous::is_retyped;
use super::output::{Output, STEP};

/// Column after which a line is folded at the next space.
const WIDTH: usize = 80;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// A key on one line, which must not be folded.
    Key,
    /// Anything else.
    Value,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
    Block,
}

/// Writes a text. Its continuation lines have the given indentation.
pub(super) fn write(text: &str, usage: Use, indent: usize, out: &mut Output) {
    let may_fold = usage == Use::Value;
    match style(text) {
        Style::Plain => literal(text, None, (may_fold, indent), out),
        Style::Single => literal(text, Some('\''), (may_fold, indent), out),
        Style::Block if may_fold => block(text, indent, out),
        Style::Double | Style::Block => double(text, may_fold, indent, out),
    }
}

/// A number in the form of YAML 1.1: with a decimal point and a sign in front of an exponent.
pub(super) fn number(number: &Number) -> String {
    let text = number.to_string();
    let Some((mantissa, exponent)) = text.split_once(['e', 'E']) else {
        return text;
    };
    let point = if mantissa.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with(['+', '-']) { "" } else { "+" };
    format!("{mantissa}{point}e{sign}{exponent}")
}

fn style(text: &str) -> Style {
    let blank_before_break = text.contains(" \n");
    if !text.chars().all(is_printable) || blank_before_break {
        Style::Double
    } else if text.contains('\n') {
        if text.ends_with(' ') {
            Style::Double
        } else {
            Style::Block
        }
    } else if is_retyped(text) {
        Style::Double
    } else if text.starts_with(' ') || text.ends_with(' ') || has_indicators(text) {
        Style::Single
    } else {
        Style::Plain
    }
}

/// Characters without escape: those of the basic plane except byte order marks and control characters other than a line
/// feed.
///
/// differs (`yaml-escapes`): the Go manager fails on some of the rest, or writes them so that parsers disagree.
const fn is_printable(character: char) -> bool {
    matches!(character,
        '\n' | ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

/// Whether a plain text would be parsed as structure.
fn has_indicators(text: &str) -> bool {
    const OPENING: &str = "#,[]{}&*!|>'\"%@`";
    let blank_follows = |rest: &str| rest.is_empty() || rest.starts_with(' ');
    let opens = text.starts_with(|first| OPENING.contains(first))
        || text.strip_prefix(['?', '-']).is_some_and(blank_follows)
        || text.starts_with("---")
        || text.starts_with("...");
    opens || text.contains(": ") || text.ends_with(':') || text.contains(" #")
}

/// Whether a line may be folded at this character: it is long, and the character is its first space between others.
fn folds_here(out: &Output, may_fold: bool, (before, character, after): Neighbours) -> bool {
    let inner = before.is_some_and(|before| before != ' ') && after.is_some();
    may_fold && out.column() > WIDTH && character == ' ' && inner
}

/// A character with those before and after it.
type Neighbours = (Option<char>, char, Option<char>);

fn neighbours(text: &str) -> impl Iterator<Item = Neighbours> {
    let before = std::iter::once(None).chain(text.chars().map(Some));
    let after = text.chars().skip(1).map(Some).chain(std::iter::once(None));
    before
        .zip(text.chars())
        .zip(after)
        .map(|((before, character), after)| (before, character, after))
}

/// Writes a text without escapes, in these quotes if any.
fn literal(text: &str, quote: Option<char>, (may_fold, indent): (bool, usize), out: &mut Output) {
    quote.into_iter().for_each(|quote| out.push(quote));
    for place in neighbours(text) {
        let (_, character, after) = place;
        if folds_here(out, may_fold, place) && after != Some(' ') {
            out.fold(indent);
            continue;
        }
        if quote == Some(character) {
            out.push(character);
        }
        out.push(character);
    }
    quote.into_iter().for_each(|quote| out.push(quote));
}

fn double(text: &str, may_fold: bool, indent: usize, out: &mut Output) {
    out.push('"');
    for place in neighbours(text) {
        let (_, character, after) = place;
        if folds_here(out, may_fold, place) {
            out.fold(indent);
            if after == Some(' ') {
                // A parser would read a leading space as indentation.
                out.push('\\');
            }
        } else if is_printable(character) && !matches!(character, '\n' | '"' | '\\') {
            out.push(character);
        } else {
            out.push_str(&escape(character));
        }
    }
    out.push('"');
}

fn escape(character: char) -> String {
    let short = match character {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        other => return numbered(u32::from(other)),
    };
    format!("\\{short}")
}

fn numbered(code: u32) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = match code {
        0..=0xff => write!(text, "\\x{code:02X}"),
        0x100..=0xffff => write!(text, "\\u{code:04X}"),
        _ => write!(text, "\\U{code:08X}"),
    };
    text
}

/// Writes lines unchanged. The header contains the indentation when the first line is empty or begins with a space, and
/// the treatment of trailing line breaks.
fn block(text: &str, indent: usize, out: &mut Output) {
    out.push('|');
    if text.starts_with([' ', '\n']) {
        out.push_str(&STEP.to_string());
    }
    match text.strip_suffix('\n') {
        None => out.push('-'),
        Some(rest) if rest.is_empty() || rest.ends_with('\n') => out.push('+'),
        Some(_) => {}
    }
    out.push('\n');
    for character in text.chars() {
        if character != '\n' && out.column() == 0 {
            out.indent(indent);
        }
        out.push(character);
    }
    out.end_line();
}
