//! Text on the page: bare, in single or double quotes, or as a block of lines.
//!
//! A line is folded at a blank once it has passed 80 columns. Whatever is not printable, and whatever some reader takes
//! for the end of a line, is escaped in double quotes.

use std::fmt::Write as _;

use serde_json::Number;

use super::STEP;
use super::lookalike::is_retyped;
use super::sheet::Sheet;

/// Column after which a line is folded at the next blank.
const WIDTH: usize = 80;

/// What a text is used as.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// A key on one line, which must not be folded.
    Key,
    /// Anything else.
    Value,
}

/// How a text may stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Bare,
    Single,
    Double,
    Block,
}

/// Writes a text. Its further lines have the given indentation.
pub(super) fn write(text: &str, usage: Use, indent: usize, sheet: &mut Sheet) {
    let may_fold = usage == Use::Value;
    match style(text) {
        Style::Bare => bare(text, may_fold, indent, sheet),
        Style::Single => single(text, may_fold, indent, sheet),
        Style::Block if may_fold => block(text, indent, sheet),
        Style::Double | Style::Block => double(text, may_fold, indent, sheet),
    }
}

/// A number that YAML 1.1 takes for one: with a point and a sign where there is an exponent.
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
        Style::Bare
    }
}

/// What may stand unescaped: nothing beyond the basic plane, no byte order mark, no sign but one that ends a line.
///
/// differs (`yaml-escapes`): the Go manager fails on some of the others, or writes them so that readers disagree.
const fn is_printable(character: char) -> bool {
    matches!(character,
        '\n' | ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

/// Whether a bare text would be read as structure.
fn has_indicators(text: &str) -> bool {
    const OPENING: &str = "#,[]{}&*!|>'\"%@`";
    let blank_follows = |rest: &str| rest.is_empty() || rest.starts_with(' ');
    let opens = text.starts_with(|first| OPENING.contains(first))
        || text.strip_prefix(['?', '-']).is_some_and(blank_follows)
        || text.starts_with("---")
        || text.starts_with("...");
    opens || text.contains(": ") || text.ends_with(':') || text.contains(" #")
}

/// Whether a line is folded at this blank instead of writing it: it is long, and no other blank stands beside this one.
fn folds_here(sheet: &Sheet, may_fold: bool, before: Option<char>, after: Option<char>) -> bool {
    may_fold && sheet.column() > WIDTH && before != Some(' ') && after != Some(' ')
}

/// Each character with the one before and the one after it.
fn neighbours(text: &str) -> impl Iterator<Item = (Option<char>, char, Option<char>)> {
    let before = std::iter::once(None).chain(text.chars().map(Some));
    let after = text.chars().skip(1).map(Some).chain(std::iter::once(None));
    before
        .zip(text.chars())
        .zip(after)
        .map(|((before, character), after)| (before, character, after))
}

fn bare(text: &str, may_fold: bool, indent: usize, sheet: &mut Sheet) {
    for (before, character, after) in neighbours(text) {
        if character == ' ' && folds_here(sheet, may_fold, before, after) {
            sheet.fold(indent);
        } else {
            sheet.push(character);
        }
    }
}

fn single(text: &str, may_fold: bool, indent: usize, sheet: &mut Sheet) {
    sheet.push('\'');
    for (before, character, after) in neighbours(text) {
        let inner = before.is_some() && after.is_some();
        if character == ' ' && inner && folds_here(sheet, may_fold, before, after) {
            sheet.fold(indent);
        } else {
            if character == '\'' {
                sheet.push('\'');
            }
            sheet.push(character);
        }
    }
    sheet.push('\'');
}

fn double(text: &str, may_fold: bool, indent: usize, sheet: &mut Sheet) {
    sheet.push('"');
    for (before, character, after) in neighbours(text) {
        let inner = before.is_some() && after.is_some();
        if character == ' ' && inner && folds_here(sheet, may_fold, before, None) {
            sheet.fold(indent);
            if after == Some(' ') {
                // The blank at the start of a line would be taken for indentation.
                sheet.push('\\');
            }
        } else if is_printable(character) && !matches!(character, '\n' | '"' | '\\') {
            sheet.push(character);
        } else {
            sheet.push_str(&escape(character));
        }
    }
    sheet.push('"');
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
    // Writing into a string does not fail.
    let _ = match code {
        0..=0xff => write!(text, "\\x{code:02X}"),
        0x100..=0xffff => write!(text, "\\u{code:04X}"),
        _ => write!(text, "\\U{code:08X}"),
    };
    text
}

/// Lines as they are. The header tells their indentation where the first of them cannot, and which breaks at the end
/// belong to the text.
fn block(text: &str, indent: usize, sheet: &mut Sheet) {
    sheet.push('|');
    if text.starts_with([' ', '\n']) {
        sheet.push_str(&STEP.to_string());
    }
    match text.strip_suffix('\n') {
        None => sheet.push('-'),
        Some(rest) if rest.is_empty() || rest.ends_with('\n') => sheet.push('+'),
        Some(_) => {}
    }
    sheet.push('\n');
    for character in text.chars() {
        if character != '\n' && sheet.column() == 0 {
            sheet.indent(indent);
        }
        sheet.push(character);
    }
    sheet.end_line();
}
