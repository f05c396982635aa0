use proptest::prelude::*;
use regex::Regex;
use serde_json::{Value, json};

use super::document;

/// The texts that parsers of YAML 1.1 retype when plain: the patterns of the type repository as the most common parser
/// implements them, independent of the tested code.
fn retyped_by_older_readers() -> Regex {
    let forms = [
        "~|null|Null|NULL|",
        "y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF",
        "[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?0o[0-7]+",
        "[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\\.[0-9_]*",
        "[-+]?[0-9][0-9_]*\\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+(?:[eE][-+]?[0-9]+)",
        "[-+]?\\.[0-9_]+(?:[eE][-+]?[0-9]+)?|[-+]?\\.(?:inf|Inf|INF)|\\.(?:nan|NaN|NAN)",
        "[0-9]{4}-[0-9]{2}-[0-9]{2}",
        "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \\t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\\.[0-9]*)?(?:[ \\t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?",
        "<<|=",
    ];
    Regex::new(&format!("^(?:{})$", forms.join("|"))).unwrap()
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[-+0-9_.:eExXobTtZ ]{0,12}",
        "[-?:#,&*!|>'\"%@`=<~ a\\n]{0,10}",
        "(y|n|yes|on|off|null|true|inf|nan|0x|[.]|[YNOF]){1,2}",
        "[a-z \\n]{0,120}",
        "\\PC{0,40}",
        any::<String>(),
    ]
}

proptest! {
    #[test]
    fn text_reads_back_as_it_was_as_key_and_as_value(key in texts(), value in texts(), item in texts()) {
        let written = json!({ &key: value, "list": [item, { "inner": &key }, [&value]] });
        let text = document(&written);
        let read: Value = serde_saphyr::from_str(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(read, written, "{}", text);
    }

    #[test]
    fn no_plain_text_is_retyped_or_rejected_by_parsers_of_yaml_1_1(value in texts()) {
        let text = document(&json!({ "k": value }));
        prop_assert!(text.chars().all(|c| matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{fffd}') && c != '\u{feff}'), "{text:?}");
        prop_assert!(!text.contains(['\u{2028}', '\u{2029}']), "{text:?}");
        let bare = text.trim_start_matches("k: ").trim_end_matches('\n');
        if !bare.starts_with(['"', '\'', '|']) {
            prop_assert!(!retyped_by_older_readers().is_match(bare), "{text:?}");
        }
    }

    #[test]
    fn numbers_stay_numbers_for_parsers_of_yaml_1_1(number in any::<f64>().prop_filter("JSON has no others", |number| number.is_finite())) {
        let text = document(&json!({ "k": number }));
        let written = text.trim_start_matches("k: ").trim_end_matches('\n');
        prop_assert!(Regex::new("^-?[0-9]+\\.[0-9]+(e[-+][0-9]+)?$").unwrap().is_match(written), "{text}");
        prop_assert_eq!(written.parse::<f64>().unwrap(), number);
    }
}

#[test]
fn collections_are_blocks_and_empty_ones_stay_on_their_line() {
    let value = json!({
        "b": { "list": ["x", { "o": 1, "m": [] }, [1, ["z"]], {}], "empty": {} }, "a10": null, "a9": [true, 1.5],
    });
    let expected = "a9:\n- true\n- 1.5\na10: null\nb:\n  empty: {}\n  list:\n  - x\n  - m: []\n    o: 1\n  - - 1\n    - - z\n  - {}\n";
    assert_eq!(document(&value), expected);
    assert_eq!(document(&json!({})), "{}\n");
    assert_eq!(document(&json!([])), "[]\n");
}

#[test]
fn long_text_is_folded_at_a_single_space() {
    let (word, tail) = ("w".repeat(78), "x  y z");
    assert_eq!(
        document(&json!({ "k": format!("{word} {tail}") })),
        format!("k: {word}\n  x  y z\n")
    );
    let quoted = format!(": {word}  {word}");
    assert_eq!(document(&json!({ "k": quoted })), format!("k: ': {word}  {word}'\n"));
    let escaped = format!("\t{word}  {word}");
    assert_eq!(
        document(&json!({ "k": escaped })),
        format!("k: \"\\t{word}\n  \\ {word}\"\n")
    );
}

#[test]
fn long_key_has_an_explicit_indicator() {
    let long = "k".repeat(129);
    assert_eq!(document(&json!({ &long: "v" })), format!("? {long}\n: v\n"));
    assert_eq!(document(&json!({ "a\nb": ["v"] })), "? |-\n  a\n  b\n:\n  - v\n");
    let short = "k".repeat(128);
    assert_eq!(document(&json!({ &short: "v" })), format!("{short}: v\n"));
}

#[test]
fn invisible_and_line_breaking_characters_are_escaped() {
    for (text, written) in [
        ("a\u{85}b", "\"a\\Nb\""),
        ("a\u{2028}b", "\"a\\Lb\""),
        ("\u{feff}b", "\"\\uFEFFb\""),
        ("a\u{7f}b", "\"a\\x7Fb\""),
        ("\u{1f680}", "\"\\U0001F680\""),
        ("a\rb", "\"a\\rb\""),
        ("nbsp\u{a0}x", "nbsp\u{a0}x"),
    ] {
        assert_eq!(document(&json!({ "k": text })), format!("k: {written}\n"));
    }
}
