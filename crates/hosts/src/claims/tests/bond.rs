use metal3_api::meta::Time;
use serde_json::{Value, json};

use super::super::bond::{Cleaning, Record, Trace, consumer, promises_cleaning};
use super::{bound, claim, host, key, merged, now, record};

#[test]
fn consumer_is_a_claim_only_by_kind_group_and_valid_names() {
    let with = |change: Value| {
        let consumer_ref = merged(super::consumer("c"), &change);
        consumer(&host(&json!({ "spec": { "consumerRef": consumer_ref } })))
    };
    assert_eq!(with(json!({})), Some(key("tenant", "c")));
    assert_eq!(
        with(json!({ "apiVersion": "metal3.io/v1beta1" })),
        Some(key("tenant", "c"))
    );
    for other in [
        json!({ "kind": "Metal3Machine" }),
        json!({ "apiVersion": "metal3.io.example/v1" }),
        json!({ "apiVersion": "v1" }),
        json!({ "name": "../x" }),
        json!({ "name": null }),
        json!({ "namespace": "a/b" }),
        json!({ "namespace": "a.b" }),
        json!({ "namespace": null }),
        json!({ "name": "C%2e" }),
    ] {
        assert_eq!(with(other.clone()), None, "{other}");
    }
}

#[test]
fn record_keeps_what_the_spec_said_when_the_host_was_bound() {
    for (mode, cleaning) in [
        (json!(null), Cleaning::Metadata),
        (json!("metadata"), Cleaning::Metadata),
        (json!("disabled"), Cleaning::Disabled),
    ] {
        let free = host(&json!({ "spec": { "automatedCleaningMode": mode } }));
        let mut taken = host(&bound());
        let (claim, tenant) = (claim(&json!({})), key("tenant", "c"));
        let trace = Trace::new(&claim, &tenant, (&key("metal", "h"), &free));
        Record::new(&claim, &trace, &free, Time::new(now())).write(&mut taken);
        let found = Record::of(&taken).unwrap();
        assert_eq!(found.cleaning, cleaning, "{mode}");
        assert_eq!((found.id, found.uid.as_str()), (trace.id, "claim-uid"));
    }
}

#[test]
fn host_is_cleaned_as_promised_whatever_its_spec_says_today() {
    let with = |text: Option<String>| {
        let annotations = json!({ "hostclaim.metal3.io/bond": text });
        let spec = json!({ "automatedCleaningMode": "disabled", "consumerRef": super::consumer("c") });
        promises_cleaning(&host(
            &json!({ "metadata": { "annotations": annotations }, "spec": spec }),
        ))
    };
    assert!(with(Some(record("metadata"))));
    assert!(!with(Some(record("disabled"))));
    assert!(
        with(Some("{".to_owned())) && with(Some(record("burn"))),
        "unreadable is no permission"
    );
    assert!(!with(None));
}
