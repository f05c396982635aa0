//! Translation of Go's regular expressions to those of the `regex` crate.
//!
//! Both follow RE2. In Go `\d`, `\s`, `\w` and `\b` are ASCII only, `[` inside a class is a literal, and `\Q...\E`
//! quotes. In both, matching is unanchored, `$` is the end of the text, and there is no backtracking.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use regex::Regex;

/// Go rejects more repetitions.
const MAX_REPEAT: u32 = 1000;

/// Compiled patterns by source. The same definitions are parsed repeatedly, and most of the time goes into their
/// patterns. Clones share the compiled pattern.
static COMPILED: Mutex<BTreeMap<String, Regex>> = Mutex::new(BTreeMap::new());

/// Compiles a pattern of a schema.
pub(crate) fn compile(source: &str) -> Result<Regex, String> {
    let known = COMPILED.lock().get(source).cloned();
    if let Some(regex) = known {
        return Ok(regex);
    }
    let regex = compile_uncached(source)?;
    COMPILED.lock().insert(source.to_owned(), regex.clone());
    Ok(regex)
}

fn compile_uncached(source: &str) -> Result<Regex, String> {
    Regex::new(&translate(source)?).map_err(|error| match error {
        regex::Error::CompiledTooBig(limit) => format!("it needs more than {limit} bytes when compiled"),
        other => other.to_string().lines().last().unwrap_or_default().trim().to_owned(),
    })
}

fn translate(source: &str) -> Result<String, String> {
    let mut out = String::with_capacity(source.len());
    let mut rest = source.chars();
    let mut class = Class::Outside;
    while let Some(c) = rest.next() {
        match (c, class) {
            ('\\', _) => escape(&mut rest, class != Class::Outside, &mut out)?,
            ('[', Class::Outside) => {
                class = Class::Start;
                out.push('[');
                continue;
            }
            ('[', _) if rest.as_str().starts_with(':') => named_class(&mut rest, &mut out),
            ('[', _) => out.push_str("\\["),
            ('^', Class::Start) => {
                out.push('^');
                continue;
            }
            (']', Class::Start) => out.push_str("\\]"),
            (']', Class::Inside) => {
                out.push(']');
                class = Class::Outside;
                continue;
            }
            ('&' | '~', Class::Start | Class::Inside) => {
                out.push('\\');
                out.push(c);
            }
            ('-', Class::Inside) if out.ends_with('-') => out.push_str("\\-"),
            ('{', Class::Outside) => {
                check_repeat(rest.as_str())?;
                out.push('{');
            }
            _ => out.push(c),
        }
        if class == Class::Start {
            class = Class::Inside;
        }
    }
    Ok(out)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Outside,
    /// Directly after `[` or `[^`, where `]` is a literal.
    Start,
    Inside,
}

/// `[:alpha:]`, after the opening bracket.
fn named_class(rest: &mut std::str::Chars<'_>, out: &mut String) {
    let Some((name, after)) = rest.as_str().split_once(":]") else {
        return out.push_str("\\[");
    };
    out.push('[');
    out.push_str(name);
    out.push_str(":]");
    *rest = after.chars();
}

fn escape(rest: &mut std::str::Chars<'_>, in_class: bool, out: &mut String) -> Result<(), String> {
    let Some(c) = rest.next() else {
        return Err("trailing backslash at end of expression".into());
    };
    match c {
        'd' if in_class => out.push_str("0-9"),
        'w' if in_class => out.push_str("0-9A-Za-z_"),
        's' if in_class => out.push_str(r"\t\n\f\r "),
        'd' => out.push_str("[0-9]"),
        'w' => out.push_str("[0-9A-Za-z_]"),
        's' => out.push_str(r"[\t\n\f\r ]"),
        'D' => out.push_str("[^0-9]"),
        'W' => out.push_str("[^0-9A-Za-z_]"),
        'S' => out.push_str(r"[^\t\n\f\r ]"),
        'b' if !in_class => out.push_str(r"(?-u:\b)"),
        'Q' if !in_class => {
            let tail = rest.as_str();
            let (literal, after) = tail.split_once(r"\E").unwrap_or((tail, ""));
            out.push_str(&regex::escape(literal));
            *rest = after.chars();
        }
        '<' | '>' => out.push(c),
        'u' | 'U' => return Err(format!("invalid escape sequence: `\\{c}`")),
        _ => {
            out.push('\\');
            out.push(c);
        }
    }
    Ok(())
}

fn check_repeat(after_brace: &str) -> Result<(), String> {
    let Some((inside, _)) = after_brace.split_once('}') else {
        return Ok(());
    };
    let too_many = |count: &str| count.parse::<u32>().is_ok_and(|count| count > MAX_REPEAT);
    if inside.split(',').any(too_many) {
        return Err(format!(
            "invalid repeat count: `{{{inside}}}`, the limit is {MAX_REPEAT}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::compile;

    #[test]
    fn classes_are_ascii_only() {
        for (pattern, text, matches) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "٣", false),
            (r"^[\d-]+$", "1-2", true),
            (r"^[\w.]+$", "é", false),
            (r"^\S+$", "a\u{a0}b", true),
            (r"\bb", "éb", true),
            (r"^[a[]$", "[", true),
            (r"^[]a]+$", "]a", true),
            (r"^[^]a]+$", "]", false),
            (r"^[[:alpha:]_]+$", "a_", true),
            (r"^[[:alpha:]]$", "1", false),
            (r"^[a&&b]+$", "&", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"^a\/b$", "a/b", true),
            (r"^\<a\>$", "<a>", true),
            (r"a$", "a\n", false),
            (r"^[-a-z]*$", "-a", true),
            (r"^[+--]$", ",", true),
            (r"^[^][a]$", "b", true),
            (r"^[^][a]$", "[", false),
            (r"^[[a:]+$", "[:", true),
            (r"^\w$", "a", true),
            (r"^\w$", "é", false),
            (r"^\W$", "é", true),
            (r"^\D$", "٣", true),
            (r"^a\sb$", "a b", true),
            (r"^a\sb$", "a\u{a0}b", false),
            (r"^[\s\d]+$", "1 2", true),
            (r"^[\s]$", "\u{a0}", false),
            (r"^a{1000}$", "a", false),
        ] {
            assert_eq!(
                compile(pattern).unwrap().is_match(text),
                matches,
                "{pattern} on {text:?}"
            );
        }
    }

    #[test]
    fn a_cached_pattern_gives_the_same_results() {
        for _ in 0..2 {
            assert!(compile("^a+$").unwrap().is_match("aa"));
            assert!(!compile("^a+$").unwrap().is_match("b"));
            assert!(compile("(").is_err());
        }
    }

    #[test]
    fn patterns_that_go_rejects_are_rejected() {
        for pattern in ["(", r"a\", "a{1001}", r"(?=a)", r"\u0041", "a**b[", r"[\b]", r"[\Qa\E]"] {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
    }
}
