//! What is due, by table.

use chrono::{DateTime, TimeDelta, Utc};
use metal3_webhooks::certificates::ledger::{AUTHORITY_LIFE, Authority, Ledger, SERVING_LIFE, Serving, Span};
use metal3_webhooks::certificates::plan::{Step, due};

fn day(number: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(number)
}

fn names() -> Vec<String> {
    vec!["webhook.metal.svc".to_owned()]
}

/// Authorities made on these days, and a pair that one of them signed on a day.
fn ledger(made: &[i64], signer: usize, signed: i64) -> Ledger {
    let authority = |made: &i64| Authority {
        name: format!("made on {made}"),
        span: Span::new(day(*made), AUTHORITY_LIFE, None),
    };
    let authorities: Vec<Authority> = made.iter().map(authority).collect();
    let signer = &authorities[signer];
    Ledger {
        serving: Serving {
            signed_by: signer.name.clone(),
            span: Span::new(day(signed), SERVING_LIFE, Some(signer.span.until)),
            names: names(),
        },
        authorities,
    }
}

/// What it is, what is stored, whether all of it was told, when, and what is due.
type Row = (&'static str, Ledger, bool, DateTime<Utc>, Option<Step>);

#[test]
fn each_step_is_due_in_its_time() {
    let sign = |made: i64| Some(Step::Sign(format!("made on {made}")));
    let hour = TimeDelta::hours(1);
    let table: [Row; 14] = [
        ("fresh", ledger(&[0], 0, 0), true, day(0), None),
        ("not yet aging", ledger(&[0], 0, 0), true, day(59), None),
        ("the pair ages", ledger(&[0], 0, 0), true, day(60), sign(0)),
        ("the pair is over", ledger(&[0], 0, 0), true, day(200), sign(0)),
        (
            "the authority ages",
            ledger(&[0], 0, 240),
            true,
            day(244),
            Some(Step::Announce),
        ),
        (
            "announced a moment ago",
            ledger(&[0, 244], 0, 240),
            true,
            day(244),
            None,
        ),
        (
            "announced, but not told",
            ledger(&[0, 244], 0, 240),
            false,
            day(245),
            None,
        ),
        ("noticed", ledger(&[0, 244], 0, 240), true, day(244) + hour, sign(244)),
        ("signed a moment ago", ledger(&[0, 244], 1, 245), true, day(245), None),
        (
            "the old one is unused",
            ledger(&[0, 244], 1, 245),
            true,
            day(245) + hour,
            Some(Step::Retire(vec!["made on 0".into()])),
        ),
        (
            "only the new one lives",
            ledger(&[0, 244], 0, 300),
            false,
            day(365),
            sign(244),
        ),
        ("all is over", ledger(&[0], 0, 300), true, day(365), Some(Step::Begin)),
        (
            "no better pair to be had",
            ledger(&[0, 244], 0, 300),
            false,
            day(350),
            None,
        ),
        ("a clock that was set back", ledger(&[100], 0, 100), true, day(0), None),
    ];
    for (name, ledger, trusted, now, expected) in table {
        assert_eq!(due(Some(&ledger), &names(), trusted, now), expected, "{name}");
    }
}

#[test]
fn without_anything_stored_it_begins() {
    assert_eq!(due(None, &names(), true, day(0)), Some(Step::Begin));
}

#[test]
fn other_host_names_are_signed_at_once() {
    let other = vec!["other.metal.svc".to_owned()];
    assert_eq!(
        due(Some(&ledger(&[0], 0, 0)), &other, true, day(1)),
        Some(Step::Sign("made on 0".into()))
    );
}

#[test]
fn a_pair_of_an_authority_that_is_not_listed_is_signed_anew() {
    let mut ledger = ledger(&[0], 0, 0);
    ledger.serving.signed_by = "somebody".into();
    assert_eq!(
        due(Some(&ledger), &names(), true, day(1)),
        Some(Step::Sign("made on 0".into()))
    );
}

#[test]
fn a_pair_never_outlives_its_authority() {
    assert_eq!(ledger(&[0], 0, 300).serving.span.until, day(365));
}
