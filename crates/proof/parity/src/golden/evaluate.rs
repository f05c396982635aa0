//! Evaluates whether cases match, deviate as a rule predicts, or fail.
//!
//! Pure. A rule counts only when it changes the recorded answer; otherwise the case must match. Rules for one case
//! apply in the order of the list.

use serde_json::Value;

use super::case::Case;
use super::group::Group;
use super::parity::{self, Document};
use crate::values;

/// Result of one group.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// Number of matching cases.
    pub(super) hold: usize,
    /// Number of cases that deviate as predicted.
    pub(super) deviate: usize,
    /// Failures, one line each.
    pub(super) failures: Vec<String>,
    /// Number of uses of each rule, by row.
    pub(super) used: Vec<(&'static str, usize)>,
}

/// Evaluates the cases of one group.
///
/// `is_whole`: the cases are the whole recorded set, which the rules were written for. Then each rule must match a case
/// and few of them. Other folders may contain any part of what is possible.
pub(super) fn evaluate(group: &Group, cases: &[&Case], document: &Document, is_whole: bool) -> Report {
    let mut report = Report {
        used: group.rules.iter().map(|rule| (rule.row, 0)).collect(),
        ..Report::default()
    };
    for case in cases {
        evaluate_case(group, case, &mut report);
    }
    for (row, count) in &report.used {
        let error = if *count == 0 && is_whole {
            Some("matches no case")
        } else if document.why(row).is_none() {
            Some("has no reason in docs/parity.md")
        } else if is_whole
            && count * 10 > cases.len()
            && !document.why(row).is_some_and(|why| why.contains(parity::SHARE))
        {
            Some("covers more than a tenth of the group, and its row does not explain it")
        } else {
            None
        };
        report
            .failures
            .extend(error.map(|error| format!("{}: the rule {row} {error}", group.name)));
    }
    report
}

fn evaluate_case(group: &Group, case: &Case, report: &mut Report) {
    let recorded = (group.expectation)(case);
    let mut predicted = recorded.clone();
    let mut needed = Vec::new();
    for rule in group.rules.iter().filter(|rule| (rule.touches)(&case.input)) {
        let before = predicted.clone();
        (rule.predict)(&case.input, &mut predicted);
        if predicted != before {
            needed.push(rule.row);
        }
    }
    let answer = (group.answer)(case);
    if answer != predicted {
        report.failures.push(failure(case, &needed, &predicted, &answer));
    } else if needed.is_empty() {
        report.hold += 1;
    } else {
        report.deviate += 1;
        for (_, count) in report.used.iter_mut().filter(|(row, _)| needed.contains(row)) {
            *count += 1;
        }
    }
}

fn failure(case: &Case, rules: &[&str], predicted: &Value, answer: &Value) -> String {
    let expected = if rules.is_empty() {
        "recorded".to_owned()
    } else {
        format!("predicted by {}", rules.join(", "))
    };
    let differences = values::differences(predicted, answer).join("\n    ");
    format!(
        "{}: the answer differs from the one {expected}:\n    {differences}",
        case.label()
    )
}

#[cfg(test)]
mod tests {
    use super::super::group::Rule;
    use super::*;
    use serde_json::json;

    const TENFOLD: Rule = Rule {
        row: "tenfold",
        touches: |input| input.as_i64() >= Some(100),
        predict: |input, recorded| *recorded = (input.as_i64().unwrap_or_default() * 10).into(),
    };
    const NEVER: Rule = Rule {
        row: "never",
        touches: |_| false,
        predict: |_, _| {},
    };
    const IDLE: Rule = Rule {
        row: "idle",
        touches: |_| true,
        predict: |_, _| {},
    };

    /// Doubles small numbers and multiplies large ones by ten.
    const fn group(rules: &'static [Rule]) -> Group {
        Group {
            name: "numbers",
            answer: |case| {
                let number = case.input.as_i64().unwrap_or_default();
                (number * if number >= 100 { 10 } else { 2 }).into()
            },
            expectation: |case| case.expect.clone(),
            rules,
        }
    }

    fn run(rules: &'static [Rule], cases: &[(i64, i64)], document: &str) -> Report {
        run_set(rules, cases, document, true)
    }

    fn run_set(rules: &'static [Rule], cases: &[(i64, i64)], document: &str, is_whole: bool) -> Report {
        let case = |(index, (input, expect)): (usize, &(i64, i64))| Case {
            group: "numbers".into(),
            file: "f".into(),
            name: format!("case {index}"),
            input: json!(input),
            expect: json!(expect),
        };
        let cases: Vec<Case> = cases.iter().enumerate().map(case).collect();
        evaluate(
            &group(rules),
            &cases.iter().collect::<Vec<_>>(),
            &Document::parse(document),
            is_whole,
        )
    }

    const ROWS: &str =
        "| tenfold | x | large numbers are more than a tenth of the cases |\n| never | x | y |\n| idle | x | y |";

    #[test]
    fn a_failing_case_reports_the_differing_path() {
        let report = run(&[], &[(1, 2), (2, 5)], ROWS);
        assert_eq!((report.hold, report.deviate, report.failures.len()), (1, 0, 1));
        assert!(
            report.failures[0].contains("case 1") && report.failures[0].contains('5'),
            "{report:?}"
        );
    }

    #[test]
    fn a_deviating_case_must_equal_what_its_rule_predicts() {
        assert_eq!(run(&[TENFOLD], &[(1, 2), (100, 200)], ROWS).deviate, 1);
        let without = run(&[], &[(1, 2), (100, 200)], ROWS);
        assert_eq!((without.deviate, without.failures.len()), (0, 1));
        const WRONG: Rule = Rule {
            predict: |_, recorded| *recorded = json!(0),
            ..TENFOLD
        };
        let error = run(&[WRONG], &[(100, 200)], ROWS);
        assert!(error.failures[0].contains("predicted by tenfold"), "{error:?}");
    }

    #[test]
    fn a_rule_that_matches_no_case_or_changes_none_fails() {
        for rules in [const { &[NEVER] }, const { &[IDLE] }] {
            let report = run(rules, &[(1, 2)], ROWS);
            assert_eq!(report.hold, 1);
            assert!(report.failures[0].contains("matches no case"), "{report:?}");
        }
    }

    #[test]
    fn another_set_need_not_use_every_rule_or_use_it_rarely() {
        let part = run_set(&[NEVER], &[(1, 2)], ROWS, false);
        assert_eq!((part.hold, part.failures.as_slice()), (1, [].as_slice()));
        let same = run_set(&[TENFOLD], &[(100, 200)], "| tenfold | x | y |", false);
        assert_eq!((same.deviate, same.failures.as_slice()), (1, [].as_slice()));
        assert!(run_set(&[TENFOLD], &[(100, 200)], "", false).failures[0].contains("no reason"));
    }

    #[test]
    fn a_rule_needs_a_row_and_above_a_tenth_an_explanation() {
        let cases = [(1, 2), (100, 200)];
        let unknown = run(&[TENFOLD], &cases, "");
        assert!(unknown.failures[0].contains("no reason"), "{unknown:?}");
        let silent = run(&[TENFOLD], &cases, "| tenfold | x | y |");
        assert!(silent.failures[0].contains("more than a tenth"), "{silent:?}");
        let mut many = vec![(1, 2); 9];
        many.push((100, 200));
        assert!(run(&[TENFOLD], &many, "| tenfold | x | y |").failures.is_empty());
    }
}
