//! Label selectors: the whole grammar of Kubernetes, with its error texts.

use metal3_schema::{FieldError, label_key_violations, label_value_violations};
use serde_json::Value;

use crate::store::object;

/// One requirement of a selector.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LabelTest {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Greater(i64),
    Less(i64),
}

impl LabelTest {
    pub(super) fn holds(&self, object: &Value) -> bool {
        let value = object::label(object, &self.key);
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            Test::In(values) => value.is_some_and(|value| values.iter().any(|other| other == value)),
            Test::NotIn(values) => value.is_none_or(|value| values.iter().all(|other| other != value)),
            Test::Exists => value.is_some(),
            Test::Absent => value.is_none(),
            Test::Greater(limit) => number().is_some_and(|number| number > *limit),
            Test::Less(limit) => number().is_some_and(|number| number < *limit),
        }
    }
}

/// The requirements of a selector, or what is wrong with it.
pub(super) fn parsed(text: &str) -> Result<Vec<LabelTest>, String> {
    Tokens::of(text).requirements()
}

/// The tokens of a label selector.
struct Tokens<'a> {
    tokens: std::iter::Peekable<std::vec::IntoIter<&'a str>>,
}

impl<'a> Tokens<'a> {
    fn of(text: &'a str) -> Self {
        let mut tokens = Vec::new();
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '=' | '!' if rest.starts_with("==") || rest.starts_with("!=") => 2,
                '=' | '!' | '(' | ')' | ',' | '<' | '>' => 1,
                _ => rest
                    .find(|c: char| c.is_whitespace() || "=!(),<>".contains(c))
                    .unwrap_or(rest.len()),
            };
            let (token, after) = rest.split_at(length);
            tokens.push(token);
            rest = after.trim_start();
        }
        Self {
            tokens: tokens.into_iter().peekable(),
        }
    }

    /// The next token; empty at the end.
    fn ahead(&mut self) -> &'a str {
        self.tokens.peek().copied().unwrap_or_default()
    }

    fn take(&mut self) -> &'a str {
        self.tokens.next().unwrap_or_default()
    }

    fn requirements(mut self) -> Result<Vec<LabelTest>, String> {
        let mut tests = Vec::new();
        if self.ahead().is_empty() {
            return Ok(tests);
        }
        let first = self.ahead();
        if !is_start(first) {
            return Err(format!("found '{first}', expected: !, identifier, or 'end of string'"));
        }
        loop {
            let test = self.requirement();
            tests.push(test.map_err(|why| format!("unable to parse requirement: {why}"))?);
            match self.take() {
                "" => return Ok(tests),
                "," if is_start(self.ahead()) => {}
                "," => {
                    let found = self.ahead();
                    return Err(format!("found '{found}', expected: identifier after ','"));
                }
                other => return Err(format!("found '{other}', expected: ',' or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<LabelTest, String> {
        let absent = self.tokens.next_if_eq(&"!").is_some();
        let key = self.take();
        if !is_name(key) {
            return Err(format!("found '{key}', expected: identifier"));
        }
        let wrong = label_key_violations(key);
        if !wrong.is_empty() {
            return Err(FieldError::invalid("<nil>", key, wrong.join("; ")).to_string());
        }
        let test = match self.ahead() {
            _ if absent => Test::Absent,
            "" | "," => Test::Exists,
            _ => {
                let operator = self.take();
                self.test(key, operator)?
            }
        };
        Ok(LabelTest {
            key: key.to_owned(),
            test,
        })
    }

    fn test(&mut self, key: &str, operator: &str) -> Result<Test, String> {
        let values = match operator {
            "in" | "notin" => self.set()?,
            "=" | "==" | "!=" | ">" | "<" => vec![self.value()?],
            other => return Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt")),
        };
        let number = || {
            let text = values.first().map(String::as_str).unwrap_or_default();
            let why = "for 'Gt', 'Lt' operators, the value must be an integer";
            let wrong = |_| FieldError::invalid("values[0]", text, why).to_string();
            text.parse().map_err(wrong)
        };
        for (index, value) in values.iter().enumerate() {
            let wrong = label_value_violations(value);
            if !wrong.is_empty() {
                let at = format!("values[{index}][{key}]");
                return Err(FieldError::invalid(at, value.as_str(), wrong.join("; ")).to_string());
            }
        }
        Ok(match operator {
            ">" => Test::Greater(number()?),
            "<" => Test::Less(number()?),
            "!=" | "notin" => Test::NotIn(values),
            _ => Test::In(values),
        })
    }

    /// A value; empty before a comma and at the end.
    fn value(&mut self) -> Result<String, String> {
        if matches!(self.ahead(), "" | ",") {
            return Ok(String::new());
        }
        match self.take() {
            token if is_name(token) => Ok(token.to_owned()),
            token => Err(format!("found '{token}', expected: identifier")),
        }
    }

    /// The values in parentheses in their alphabetical order. Nothing between two commas is the empty value.
    fn set(&mut self) -> Result<Vec<String>, String> {
        let found = self.take();
        if found != "(" {
            return Err(format!("found '{found}' expected: '('"));
        }
        if self.tokens.next_if_eq(&")").is_some() {
            return Ok(Vec::new());
        }
        let mut values = Vec::new();
        loop {
            if matches!(self.ahead(), "," | ")") {
                values.push(String::new());
            } else if is_name(self.ahead()) {
                values.push(self.take().to_owned());
            } else {
                let found = self.ahead();
                let wanted = if values.is_empty() {
                    "',', ')' or identifier"
                } else {
                    "',', or identifier"
                };
                return Err(format!("found '{found}', expected: {wanted}"));
            }
            match self.take() {
                "," => {}
                ")" => break,
                other => return Err(format!("found '{other}', expected: ',' or ')'")),
            }
        }
        values.sort_unstable();
        values.dedup();
        Ok(values)
    }
}

fn is_name(token: &str) -> bool {
    !token.is_empty() && !token.contains(|c: char| "=!(),<>".contains(c))
}

fn is_start(token: &str) -> bool {
    token == "!" || is_name(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_set_is_the_empty_value() {
        let values = |text: &str| match parsed(text).unwrap().remove(0).test {
            Test::In(values) => values,
            other => panic!("{other:?}"),
        };
        assert_eq!(values("a in (,web)"), ["", "web"]);
        assert_eq!(values("a in (web,,other)"), ["", "other", "web"]);
        assert_eq!(values("a in (web,)"), ["", "web"]);
        assert!(values("a in ()").is_empty());
        assert_eq!(values("a in (in,notin)"), ["in", "notin"]);
    }

    #[test]
    fn errors_name_what_was_found() {
        for (text, expected) in [
            ("a=b=c", "found '=', expected: ',' or 'end of string'"),
            ("app,", "found '', expected: identifier after ','"),
            (",app", "found ',', expected: !, identifier, or 'end of string'"),
            ("!", "unable to parse requirement: found '', expected: identifier"),
            ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
            ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        ] {
            assert_eq!(parsed(text).unwrap_err(), expected, "{text}");
        }
    }
}
