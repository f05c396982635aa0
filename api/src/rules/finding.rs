//! Findings of the rules.

use std::{fmt, io};

use serde::Serialize;
use serde_json::Value;

use super::{Decision, FieldPath, beginning};

/// Refusals, and warnings, that a review keeps. An object of a few MiB can violate a rule a million times.
pub const KEPT: usize = 20;
/// Longest text of a finding, and longest JSON of a value that is shown, in bytes.
const LONGEST_TEXT: usize = 1024;

/// Whether a finding rejects the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The request is rejected.
    Refuse,
    /// The request is accepted with a warning.
    Warn,
}

/// The API server's classes of field errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A required member is absent.
    Required,
    /// The value is invalid.
    Invalid,
    /// The value occurs twice.
    Duplicate,
    /// The value is not a supported one.
    NotSupported,
    /// The member may not be set or changed.
    Forbidden,
}

impl Reason {
    /// The `reason` of a cause in a `Status`.
    #[must_use]
    pub const fn cause(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid => "Invalid value",
            Self::Duplicate => "Duplicate value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
        }
    }
}

/// One finding of one rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The row that reported it.
    pub rule: &'static str,
    /// Whether it rejects the request.
    pub level: Level,
    /// The member.
    pub path: FieldPath,
    /// Class of the error.
    pub reason: Reason,
    /// The value, if it may be shown.
    pub value: Option<Value>,
    /// The problem, with the text of the Go managers where they have one.
    pub problem: String,
    /// How to correct it.
    pub cure: String,
}

impl Finding {
    /// Problem and cure, as one text.
    #[must_use]
    pub fn detail(&self) -> String {
        if self.cure.is_empty() {
            self.problem.clone()
        } else {
            format!("{}; {}", self.problem, self.cure)
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shows_value = matches!(self.reason, Reason::Invalid | Reason::Duplicate | Reason::NotSupported);
        match self.value.as_ref().filter(|_| shows_value) {
            Some(value) => write!(f, "{}: {}: {value}: {}", self.path, self.reason.label(), self.detail()),
            None => write!(f, "{}: {}: {}", self.path, self.reason.label(), self.detail()),
        }
    }
}

/// Collects the findings of a review: the first ones, and the number of the rest.
#[derive(Debug)]
pub struct Findings {
    rule: &'static str,
    found: Vec<Finding>,
    refusals: usize,
    warnings: usize,
}

impl Findings {
    /// Collects findings, those of `rule` first.
    pub(super) fn of(rule: &'static str) -> Self {
        Self {
            rule,
            found: Vec::new(),
            refusals: 0,
            warnings: 0,
        }
    }

    /// Collects the findings of this rule from now on.
    pub(super) fn begin(&mut self, rule: &'static str) {
        self.rule = rule;
    }

    pub(super) fn into_decision(mut self) -> Decision {
        if self.refusals > 0 {
            // The answer to a rejected request contains no warnings.
            self.found.retain(|finding| finding.level == Level::Refuse);
            self.warnings = 0;
        }
        Decision {
            findings: self.found,
            more_refusals: self.refusals.saturating_sub(KEPT),
            more_warnings: self.warnings.saturating_sub(KEPT),
        }
    }

    /// Whether one more finding is kept.
    fn has_room(&mut self, level: Level) -> bool {
        let count = match level {
            Level::Refuse => &mut self.refusals,
            Level::Warn => &mut self.warnings,
        };
        *count += 1;
        *count <= KEPT
    }

    /// Reports a missing member.
    pub fn required(&mut self, path: impl Into<FieldPath>, problem: impl Into<String>, cure: impl Into<String>) {
        self.refuse(Reason::Required, path, None::<()>, problem, cure);
    }

    /// Reports an invalid value.
    pub fn invalid(
        &mut self,
        path: impl Into<FieldPath>,
        value: impl Serialize,
        problem: impl Into<String>,
        cure: impl Into<String>,
    ) {
        self.refuse(Reason::Invalid, path, Some(value), problem, cure);
    }

    /// Reports an invalid value without showing it: it is long or may contain a credential.
    pub fn unreadable(&mut self, path: impl Into<FieldPath>, problem: impl Into<String>, cure: impl Into<String>) {
        self.refuse(Reason::Invalid, path, None::<()>, problem, cure);
    }

    /// Reports a duplicate value.
    pub fn duplicate(
        &mut self,
        path: impl Into<FieldPath>,
        value: impl Serialize,
        problem: impl Into<String>,
        cure: impl Into<String>,
    ) {
        self.refuse(Reason::Duplicate, path, serde_json::to_value(value).ok(), problem, cure);
    }

    /// Reports an unsupported value.
    pub fn not_supported(
        &mut self,
        path: impl Into<FieldPath>,
        value: impl Serialize,
        problem: impl Into<String>,
        cure: impl Into<String>,
    ) {
        self.refuse(Reason::NotSupported, path, Some(value), problem, cure);
    }

    /// Reports a member that may not be set or changed.
    pub fn forbidden(&mut self, path: impl Into<FieldPath>, problem: impl Into<String>, cure: impl Into<String>) {
        self.refuse(Reason::Forbidden, path, None::<()>, problem, cure);
    }

    /// Reports a warning; the request is accepted.
    pub fn warn(&mut self, path: impl Into<FieldPath>, problem: impl Into<String>, cure: impl Into<String>) {
        if self.has_room(Level::Warn) {
            self.keep(
                Level::Warn,
                Reason::Invalid,
                &path.into(),
                None,
                &problem.into(),
                &cure.into(),
            );
        }
    }

    fn refuse(
        &mut self,
        reason: Reason,
        path: impl Into<FieldPath>,
        value: Option<impl Serialize>,
        problem: impl Into<String>,
        cure: impl Into<String>,
    ) {
        if self.has_room(Level::Refuse) {
            let value = value.and_then(short_value);
            self.keep(
                Level::Refuse,
                reason,
                &path.into(),
                value,
                &problem.into(),
                &cure.into(),
            );
        }
    }

    fn keep(
        &mut self,
        level: Level,
        reason: Reason,
        path: &FieldPath,
        value: Option<Value>,
        problem: &str,
        cure: &str,
    ) {
        self.found.push(Finding {
            rule: self.rule,
            level,
            path: beginning(&path.as_str(), LONGEST_TEXT).into(),
            reason,
            value,
            problem: beginning(&problem, LONGEST_TEXT),
            cure: beginning(&cure, LONGEST_TEXT),
        });
    }
}

/// The value as JSON; `None` for a long one, of which no copy is made.
///
/// differs: `short-findings`
fn short_value(value: impl Serialize) -> Option<Value> {
    let mut text = ShortText(Vec::new());
    serde_json::to_writer(&mut text, &value).ok()?;
    serde_json::from_slice(&text.0).ok()
}

/// Receives a short text. A write beyond the limit is an error.
struct ShortText(Vec<u8>);

impl io::Write for ShortText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len().saturating_add(bytes.len()) > LONGEST_TEXT {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(by: impl FnOnce(&mut Findings)) -> Finding {
        let mut findings = Findings::of("row");
        by(&mut findings);
        let mut found = findings.into_decision().findings;
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    #[test]
    fn findings_have_the_format_of_api_server_errors() {
        let table: [(Finding, &str, &str); 6] = [
            (
                found(|it| it.required("spec.a", "is missing", "set it")),
                "FieldValueRequired",
                "spec.a: Required value: is missing; set it",
            ),
            (
                found(|it| it.invalid("spec.a", 7, "is odd", "write 8")),
                "FieldValueInvalid",
                "spec.a: Invalid value: 7: is odd; write 8",
            ),
            (
                found(|it| it.duplicate("spec.a", "x", "is there twice", "keep one")),
                "FieldValueDuplicate",
                "spec.a: Duplicate value: \"x\": is there twice; keep one",
            ),
            (
                found(|it| it.not_supported("spec.a", json!(["x"]), "is unknown", "write y")),
                "FieldValueNotSupported",
                "spec.a: Unsupported value: [\"x\"]: is unknown; write y",
            ),
            (
                found(|it| it.forbidden("spec.a", "may not be set", "remove it")),
                "FieldValueForbidden",
                "spec.a: Forbidden: may not be set; remove it",
            ),
            (
                found(|it| it.invalid("spec.a", 7, "is odd", "")),
                "FieldValueInvalid",
                "spec.a: Invalid value: 7: is odd",
            ),
        ];
        for (finding, cause, text) in table {
            assert_eq!(finding.reason.cause(), cause);
            assert_eq!(finding.to_string(), text);
            assert_eq!((finding.rule, finding.level), ("row", Level::Refuse));
        }
    }

    #[test]
    fn a_warning_accepts_the_request_and_has_a_cure() {
        let finding = found(|it| it.warn("spec.a", "is odd", "write 8"));
        assert_eq!(
            (finding.level, finding.detail().as_str()),
            (Level::Warn, "is odd; write 8")
        );
    }

    #[test]
    fn a_review_keeps_the_first_findings_and_counts_the_rest() {
        let decide = |is_refused: bool| {
            let mut findings = Findings::of("row");
            for number in 0..KEPT + 3 {
                findings.warn(format!("spec.b[{number}]"), "is odd", "write 8");
            }
            findings.begin("other");
            for number in 0..if is_refused { KEPT + 5 } else { 0 } {
                findings.invalid(format!("spec.a[{number}]"), number, "is odd", "write 8");
            }
            findings.into_decision()
        };
        let kept = |decision: &Decision, rule: &str| decision.findings.iter().filter(|it| it.rule == rule).count();
        let accepted = decide(false);
        assert_eq!((accepted.more_refusals, accepted.more_warnings), (0, 3));
        assert_eq!((kept(&accepted, "row"), kept(&accepted, "other")), (KEPT, 0));
        let refused = decide(true);
        assert_eq!(
            (refused.more_refusals, refused.more_warnings),
            (5, 0),
            "no warnings then"
        );
        assert_eq!((kept(&refused, "row"), kept(&refused, "other")), (0, KEPT));
    }

    #[test]
    fn a_finding_about_a_long_value_is_short() {
        let long = "\u{e9}".repeat(LONGEST_TEXT);
        let finding = found(|it| it.invalid(long.clone(), [&long], format!("{long} is odd"), long.clone()));
        assert_eq!(finding.value, None);
        for text in [finding.path.as_str(), &finding.problem, &finding.cure] {
            assert_eq!(text, format!("{}...", "\u{e9}".repeat(LONGEST_TEXT / 2)));
        }
        let finding = found(|it| it.invalid("spec.a", "x".repeat(LONGEST_TEXT - 2), "is odd", ""));
        assert_eq!(finding.value, Some("x".repeat(LONGEST_TEXT - 2).into()));
    }
}
