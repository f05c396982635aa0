//! Valid and invalid edge cases of formats.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use metal3_schema::Schema;
use serde_json::json;

fn accepts(format: &str, text: &str) -> bool {
    let property = json!({"type": "string", "format": format});
    let schema = Schema::parse(&json!({"type": "object", "properties": {"f": property}})).unwrap();
    schema.validate(&json!({ "f": text })).is_empty()
}

fn check(format: &str, good: &[&str], bad: &[&str]) {
    for text in good {
        assert!(accepts(format, text), "{format} takes {text:?}");
    }
    for text in bad {
        assert!(!accepts(format, text), "{format} refuses {text:?}");
    }
}

#[test]
fn durations_are_those_of_go_or_of_scala() {
    let go = [
        "0",
        "+0",
        "-0",
        "1.ns",
        "1.us",
        "1.\u{b5}s",
        "1.\u{3bc}s",
        "1.ms",
        "1.s",
        "1.m",
        "1.h",
        "-1.h2.m",
        ".5h",
    ];
    check("duration", &go, &["", "+", ".h", "1.", "1..h", "1.x", "h", "-"]);
    let far = ["9999999.h", "9223372036854775808.ns", "1.h9999999.h"];
    check("duration", &["2562047.h"], &far);
    let scala = ["1 day 2 hours", "3wk", "2 WEEKS", "in 5 minutes"];
    check("duration", &scala, &["1 parsec", "99999999999999999999 days"]);
}

#[test]
fn addresses_follow_the_rules_of_kubernetes() {
    let good = ["192.0.2.255", "010.0.0.1", "0000.0.0.0"];
    check(
        "ipv4",
        &good,
        &[
            "10..0.1",
            "10.a.0.1",
            "10.+1.0.1",
            "10.0.0.256",
            "10.0.0.1.1",
            "10.0.0.1000",
        ],
    );
    check(
        "ipv6",
        &["::", "2001:db8::1"],
        &["fe80::g", "1:2", "10.0.0.1", "fe80::01.2.3.4"],
    );
    let good = [
        "10.0.0.0/0",
        "10.0.0.0/32",
        "0:0:0:0:0:0:0:0/0",
        "2001:0db8::/128",
        "::ffff:10.0.0.0/100",
    ];
    let bad = ["10.0.0.0/", "10.0.0.0/+8", "10.0.0.0/33", "::/129", "a/8", "10.0.0.0"];
    check("cidr", &good, &bad);
    let bad = [
        "00:5e:00:53:01:0g",
        "00:5e:00:53:01:000",
        "00:5e:00:53:01:0",
        "005e00530100",
        "",
    ];
    check("mac", &["00:5E:00:53:01:af", "00-5e-00-53-01-00-00-01"], &bad);
}

#[test]
fn dates_have_ten_characters_and_days_that_exist() {
    let good = ["2024-02-29", "2000-02-29", "2023-12-31", "2023-11-30", "2023-02-28"];
    let bad = [
        "2024/02-29",
        "2024-02/29",
        "2024-02-299",
        "1900-02-29",
        "2023-11-31",
        "2023-00-01",
        "2023-13-01",
        "2023-01-00",
        "2023-01-32",
        "+023-01-01",
        "2023-1-01",
    ];
    check("date", &good, &bad);
}

#[test]
fn numbers_of_cards_and_books_have_their_check_digit() {
    let cards = [
        "5555555555554444",
        "5105105105105100",
        "30569309025904",
        "38520000023237",
        "3530111333300000",
        "6011000990139424",
        "4012888888881881",
        "371449635398431",
        "378734493671000",
    ];
    check(
        "creditcard",
        &cards,
        &["5555555555554445", "371449635398432", "1234567812345670"],
    );
    check(
        "isbn10",
        &["0 3\t2\n1\u{c}7\r5-1043"],
        &["03217510431", "032175104", "X804429570"],
    );
    check(
        "isbn13",
        &["978 0 321-75104-1"],
        &["978032175104", "978032175104X", "978000000004", "978000000004X"],
    );
}
