//! One object of a list that cannot be decoded.

use super::*;

fn broken(name: &str) -> Value {
    host(name, json!({ "status": { "errorType": "error of tomorrow" } }))
}

#[test]
fn object_that_cannot_be_decoded_is_named_and_the_others_are_seen() {
    let free = host("h1", failed("registration error"));
    let objects = [
        metal3_machine("m0", NO_HOST),
        broken("h2"),
        free,
        broken("h3"),
        secret(),
    ];
    let explanation = explained(&objects, "m3m/m0", None);
    assert_eq!(
        links(&explanation).last().unwrap(),
        "BareMetalHost/h1 RegistrationError"
    );
    assert_eq!(explanation.state, State::Blocked);
    let named: Vec<String> = explanation.not_read.iter().map(|one| one.what.to_string()).collect();
    assert_eq!(named, ["BareMetalHost/h2", "BareMetalHost/h3"]);
}

#[test]
fn object_that_cannot_be_decoded_may_be_the_cause_when_no_other_is() {
    let explanation = explained(&[metal3_machine("m0", NO_HOST), broken("h2")], "m3m/m0", None);
    assert_eq!(links(&explanation), ["Metal3Machine/m0 AssociateBareMetalHostFailed"]);
    assert_eq!(explanation.state, State::Unknown);
    let mut unreadable = machine("m1", json!({}));
    unreadable["spec"]["clusterName"] = json!(7);
    let explanation = explained(&[cluster(json!({})), unreadable.clone()], "cluster/edge", None);
    assert_eq!(explanation.state, State::Unknown);
    // A machine that waits is a cause.
    let objects = [cluster(json!({})), unreadable, machine("m0", json!({}))];
    let end = ("Metal3Machine/m0 does not exist", State::Blocked);
    assert_end("cluster/edge", &objects, end);
}
