use super::*;
use crate::names::NameError;

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn requirement(key: &str, operator: &str, values: &[&str]) -> Result<Requirement, SelectorError> {
    let values: Vec<_> = values.iter().map(|value| (*value).to_owned()).collect();
    Requirement::parse(&Expression {
        key,
        operator,
        values: &values,
    })
}

#[test]
fn operators_decide_by_value_and_presence() {
    // operator, values, then the result for zone=a, for zone=b and for no zone.
    let rows: [(&str, &[&str], [bool; 3]); 14] = [
        ("In", &["a", "c"], [true, false, false]),
        ("in", &["a"], [true, false, false]),
        ("=", &["a"], [true, false, false]),
        ("==", &["a"], [true, false, false]),
        ("NotIn", &["a", "c"], [false, true, true]),
        ("notin", &["b"], [true, false, true]),
        ("!=", &["a"], [false, true, true]),
        ("Exists", &[], [true, true, false]),
        ("EXISTS", &[], [true, true, false]),
        ("!", &[], [false, false, true]),
        ("DoesNotExist", &[], [false, false, true]),
        ("doesnotexist", &[], [false, false, true]),
        ("Gt", &["1"], [false, false, false]),
        ("Lt", &["1"], [false, false, false]),
    ];
    for (operator, values, matches) in rows {
        let requirement = requirement("zone", operator, values).unwrap();
        let given = [
            labels(&[("zone", "a")]),
            labels(&[("zone", "b")]),
            labels(&[("other", "a")]),
        ];
        assert_eq!(
            given.map(|labels| requirement.matches(&labels)),
            matches,
            "{operator} {values:?}"
        );
    }
}

#[test]
fn gt_and_lt_compare_whole_numbers() {
    let (gt, lt) = (
        requirement("ram", "Gt", &["64"]).unwrap(),
        requirement("ram", "lt", &["64"]).unwrap(),
    );
    for (value, greater, less) in [
        ("128", true, false),
        ("64", false, false),
        ("9", false, true),
        ("x", false, false),
        ("", false, false),
    ] {
        let labels = labels(&[("ram", value)]);
        assert_eq!((gt.matches(&labels), lt.matches(&labels)), (greater, less), "{value:?}");
    }
}

#[test]
fn number_of_values_must_fit_the_operator() {
    let rows: [(&str, &[&str]); 8] = [
        ("In", &[]),
        ("NotIn", &[]),
        ("=", &[]),
        ("==", &["a", "b"]),
        ("!=", &["a", "b"]),
        ("Exists", &["a"]),
        ("!", &["a"]),
        ("DoesNotExist", &["a"]),
    ];
    for (operator, values) in rows {
        let error = requirement("zone", operator, values).unwrap_err();
        assert!(
            matches!(error, SelectorError::Arity { found, .. } if found == values.len()),
            "{operator}: {error}"
        );
    }
    let rows: [(&str, &[&str]); 4] = [("Gt", &[]), ("Gt", &["1", "2"]), ("Lt", &["1.5"]), ("Lt", &["x"])];
    for (operator, values) in rows {
        let error = requirement("ram", operator, values).unwrap_err();
        assert!(
            matches!(error, SelectorError::Number { .. }),
            "{operator} {values:?}: {error}"
        );
    }
}

#[test]
fn unknown_operator_is_refused() {
    for operator in ["", "~", "is", "Not In", "in "] {
        let error = requirement("zone", operator, &["a"]).unwrap_err();
        assert!(matches!(error, SelectorError::Operator { .. }), "{operator:?}: {error}");
    }
}

#[test]
fn keys_follow_label_syntax() {
    let (long, longest) = ("k".repeat(64), "k".repeat(63));
    for key in ["a", "a.b_c-d", "example.com/zone", "A1", &longest] {
        assert_eq!(check_key(key), Ok(()), "{key:?}");
    }
    let rows = [
        ("", LabelError::Empty),
        ("example.com/", LabelError::Empty),
        (&long, LabelError::TooLong { length: 64 }),
        ("a b", LabelError::Character { character: ' ' }),
        ("-a", LabelError::Edge),
        ("a.", LabelError::Edge),
        ("/a", LabelError::Prefix(NameError::Empty)),
        (
            "Example/a",
            LabelError::Prefix(NameError::Character {
                character: 'E',
                dots: true,
            }),
        ),
        ("a/b/c", LabelError::Slashes),
    ];
    for (key, error) in rows {
        assert_eq!(check_key(key), Err(error), "{key:?}");
    }
}

#[test]
fn values_may_be_empty_but_follow_label_syntax() {
    assert!(requirement("zone", "In", &["", "a.B_9"]).is_ok());
    for value in ["a b", "-a", "a-", "a/b", &"v".repeat(64)] {
        let error = requirement("zone", "In", &[value]).unwrap_err();
        assert!(matches!(error, SelectorError::Value { .. }), "{value:?}: {error}");
    }
}

#[test]
fn selector_needs_every_pair_and_every_expression() {
    let values = ["b".to_owned()];
    let not_b = Expression {
        key: "zone",
        operator: "NotIn",
        values: &values,
    };
    let selector = Selector::parse(&labels(&[("rack", "1"), ("row", "2")]), [not_b]).unwrap();
    assert!(selector.matches(&labels(&[("rack", "1"), ("row", "2"), ("zone", "a")])));
    assert!(!selector.matches(&labels(&[("rack", "1"), ("row", "2"), ("zone", "b")])));
    assert!(!selector.matches(&labels(&[("rack", "1")])));
}

#[test]
fn empty_selector_matches_everything() {
    assert!(Selector::default().matches(&labels(&[])));
    assert!(
        Selector::parse(&labels(&[]), [])
            .unwrap()
            .matches(&labels(&[("a", "b")]))
    );
}

#[test]
fn pair_with_a_bad_value_is_refused() {
    let error = Selector::parse(&labels(&[("rack", "not valid")]), []).unwrap_err();
    assert!(matches!(error, SelectorError::Value { .. }), "{error}");
}
