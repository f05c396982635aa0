//! The next step, by table.

use chrono::{DateTime, TimeDelta, Utc};
use metal3_webhooks::certificates::plan::{Step, next_step};
use metal3_webhooks::certificates::state::{
    AUTHORITY_LIFE, Authority, CertificateState, SERVING_LIFE, Serving, Validity,
};

fn day(number: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(number)
}

fn names() -> Vec<String> {
    vec!["webhook.metal.svc".to_owned()]
}

/// Authorities made on these days, and a pair that one of them signed on a day.
fn state(made: &[i64], signer: usize, signed: i64) -> CertificateState {
    let authority = |made: &i64| Authority {
        name: format!("made on {made}"),
        span: Validity::new(day(*made), AUTHORITY_LIFE, None),
    };
    let authorities: Vec<Authority> = made.iter().map(authority).collect();
    let signer = &authorities[signer];
    CertificateState {
        serving: Serving {
            signed_by: signer.name.clone(),
            span: Validity::new(day(signed), SERVING_LIFE, Some(signer.span.until)),
            names: names(),
        },
        authorities,
    }
}

/// Name, stored state, whether all bundles are injected, time, and next step.
type Row = (&'static str, CertificateState, bool, DateTime<Utc>, Option<Step>);

#[test]
fn each_step_is_due_in_its_time() {
    let sign = |made: i64| Some(Step::Sign(format!("made on {made}")));
    let hour = TimeDelta::hours(1);
    let table: [Row; 14] = [
        ("fresh", state(&[0], 0, 0), true, day(0), None),
        ("not yet aging", state(&[0], 0, 0), true, day(59), None),
        ("the pair ages", state(&[0], 0, 0), true, day(60), sign(0)),
        ("the pair is expired", state(&[0], 0, 0), true, day(200), sign(0)),
        (
            "the authority ages",
            state(&[0], 0, 240),
            true,
            day(244),
            Some(Step::Announce),
        ),
        ("announced a moment ago", state(&[0, 244], 0, 240), true, day(244), None),
        (
            "announced, but not injected",
            state(&[0, 244], 0, 240),
            false,
            day(245),
            None,
        ),
        ("propagated", state(&[0, 244], 0, 240), true, day(244) + hour, sign(244)),
        ("signed a moment ago", state(&[0, 244], 1, 245), true, day(245), None),
        (
            "the old one is unused",
            state(&[0, 244], 1, 245),
            true,
            day(245) + hour,
            Some(Step::Retire(vec!["made on 0".into()])),
        ),
        (
            "only the new one is valid",
            state(&[0, 244], 0, 300),
            false,
            day(365),
            sign(244),
        ),
        (
            "all are expired",
            state(&[0], 0, 300),
            true,
            day(365),
            Some(Step::Begin),
        ),
        (
            "no better pair is possible",
            state(&[0, 244], 0, 300),
            false,
            day(350),
            None,
        ),
        ("a clock that was set back", state(&[100], 0, 100), true, day(0), None),
    ];
    for (name, state, trusted, now, expected) in table {
        assert_eq!(next_step(Some(&state), &names(), trusted, now), expected, "{name}");
    }
}

#[test]
fn without_stored_state_the_step_is_begin() {
    assert_eq!(next_step(None, &names(), true, day(0)), Some(Step::Begin));
}

#[test]
fn other_host_names_are_signed_at_once() {
    let other = vec!["other.metal.svc".to_owned()];
    assert_eq!(
        next_step(Some(&state(&[0], 0, 0)), &other, true, day(1)),
        Some(Step::Sign("made on 0".into()))
    );
}

#[test]
fn a_pair_of_an_unlisted_authority_is_replaced() {
    let mut state = state(&[0], 0, 0);
    state.serving.signed_by = "unlisted".into();
    assert_eq!(
        next_step(Some(&state), &names(), true, day(1)),
        Some(Step::Sign("made on 0".into()))
    );
}

#[test]
fn a_pair_never_expires_after_its_authority() {
    assert_eq!(state(&[0], 0, 300).serving.span.until, day(365));
}
