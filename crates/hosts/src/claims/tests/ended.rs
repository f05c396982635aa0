use serde_json::{Value, json};

use super::super::bond::{Record, spent};
use super::super::ended::{Left, left};
use super::{bound, consumer, host, merged, now};

fn marked() -> Value {
    json!({ "metadata": { "annotations": { "reboot.metal3.io/hostclaim-work": "{}", "reboot.metal3.io/admin": "",
        "baremetalhost.metal3.io/paused": "metal3.io/hostclaim" } } })
}

fn runs() -> Value {
    json!({ "spec": { "image": { "url": "http://a/b" } },
        "status": { "provisioning": { "state": "provisioned", "image": { "url": "http://a/b" } } } })
}

fn of(change: Value, consumer: Value) -> Left {
    let without = merged(merged(bound(), &change), &json!({ "spec": { "consumerRef": null } }));
    left(
        &host(&merged(without, &json!({ "spec": { "consumerRef": consumer } }))),
        now(),
    )
}

#[test]
fn marks_of_a_bond_go_with_its_consumer_and_the_record_when_nothing_of_it_runs() {
    let machine = json!({ "kind": "Metal3Machine", "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "name": "m",
        "namespace": "metal" });
    assert_eq!(of(marked(), consumer("c")), Left::Nothing, "the bond holds");
    let Left::Marks(changed) = of(merged(marked(), &runs()), Value::Null) else {
        unreachable!()
    };
    let names = |host: &metal3_api::metal3::v1alpha1::BareMetalHost| -> Vec<String> {
        host.metadata
            .annotations
            .iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .collect()
    };
    assert_eq!(names(&changed), ["hostclaim.metal3.io/bond", "reboot.metal3.io/admin"]);
    assert!(changed.spec.image.is_some(), "nothing is erased by it");
    for (change, consumer) in [
        (marked(), Value::Null),
        (merged(marked(), &runs()), machine),
        (merged(marked(), &runs()), consumer("other")),
    ] {
        let Left::All(changed) = of(change, consumer) else {
            unreachable!()
        };
        assert_eq!(names(&changed), ["reboot.metal3.io/admin"]);
    }
    let asked = json!({ "spec": { "image": { "url": "http://a/b" } } });
    assert_eq!(
        of(asked, Value::Null),
        Left::Nothing,
        "the image of the claim is still asked for"
    );
}

#[test]
fn host_that_others_paused_or_that_moves_is_left_as_it_is() {
    for annotation in [
        "baremetalhost.metal3.io/paused",
        "clusterctl.cluster.x-k8s.io/delete-for-move",
    ] {
        let change = json!({ "metadata": { "annotations": { annotation: "user" } } });
        assert_eq!(of(change, Value::Null), Left::Nothing, "{annotation}");
    }
}

#[test]
fn host_is_kept_until_its_time() {
    let kept = |until: &str| {
        let metadata = json!({ "labels": { "infrastructure.cluster.x-k8s.io/node-reuse": "tenant.kcp" },
            "annotations": { "hostclaim.metal3.io/kept-until": until } });
        left(&host(&json!({ "metadata": metadata })), now())
    };
    assert!(matches!(kept("2026-01-01T12:30:00Z"), Left::Kept(_)));
    let Left::Marks(free) = kept("2026-01-01T12:00:00Z") else {
        unreachable!()
    };
    assert_eq!(free.label("infrastructure.cluster.x-k8s.io/node-reuse"), None);
    assert_eq!(free.annotation("hostclaim.metal3.io/kept-until"), None);
}

#[test]
fn record_is_spent_only_when_its_claim_is_not_the_consumer() {
    let with = |consumer: Value, text: Option<&str>| {
        let mut change = merged(bound(), &json!({ "spec": { "consumerRef": null } }));
        if let Some(text) = text {
            change = merged(
                change,
                &json!({ "metadata": { "annotations": { "hostclaim.metal3.io/bond": text } } }),
            );
        }
        host(&merged(change, &json!({ "spec": { "consumerRef": consumer } })))
    };
    assert_eq!(spent(&with(consumer("c"), None)), None);
    assert_eq!(spent(&with(consumer("c"), Some("{"))), None);
    for text in [None, Some("{")] {
        let mut ended = with(Value::Null, text);
        let text = spent(&ended).unwrap();
        let annotations = ended.metadata.annotations.as_mut().unwrap();
        annotations.insert("hostclaim.metal3.io/bond".to_owned(), text);
        assert!(Record::of(&ended).is_some());
        assert_eq!(spent(&ended), None, "it is written once");
    }
}
