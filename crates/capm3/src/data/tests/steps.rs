use metal3_domain::derived::RenderedPart;
use proptest::prelude::*;
use serde_json::json;

use super::super::claims::{ClaimState, NewClaim};
use super::super::secrets::{SecretAction, action};
use super::super::step::{Facts, Step, Waiting, next};
use super::super::{Problem, claims};
use super::{Fixture, fixture, grant, metadata, name, owner, read};

/// A template with both parts; the metadata takes an address from pool `p`.
fn with_both_parts() -> Fixture {
    fixture(json!({ "metaData": { "ipAddressesFromPool": [{ "key": "ip", "name": "p" }] }, "networkData": {} }))
}

fn secret(owner_kind: &str, uid: &str) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
    let mut metadata = metadata("w-0-metadata");
    metadata["ownerReferences"] = owner(owner_kind, "x", uid);
    read(metadata)
}

#[test]
fn addresses_are_claimed_and_awaited_before_both_secrets_are_created() {
    let mut fixture = with_both_parts();
    let Ok(Step::Claim(claims)) = fixture.next() else {
        panic!("{:?}", fixture.next())
    };
    let [NewClaim::Metal3(claim)] = claims.as_slice() else {
        panic!("{claims:?}")
    };
    assert_eq!(claim.metadata.name.as_deref(), Some("tpl-2-p"));

    fixture.claims.metal3.insert(name("tpl-2-p"), ClaimState::Pending);
    assert_eq!(fixture.next(), Ok(Step::Wait(Waiting::Addresses("p".into()))));

    fixture
        .claims
        .metal3
        .insert(name("tpl-2-p"), ClaimState::Granted(grant()));
    let Ok(Step::Write(secrets, None)) = fixture.next() else {
        panic!("{:?}", fixture.next())
    };
    let written: Vec<_> = secrets
        .iter()
        .map(|secret| (secret.name.as_str(), secret.part, secret.content.reveal()))
        .collect();
    let meta_data = "ip: 10.1.2.50\nproviderid: lab/host-7/w-0\n";
    assert_eq!(
        written,
        [
            ("w-0-metadata", RenderedPart::MetaData, meta_data),
            (
                "w-0-networkdata",
                RenderedPart::NetworkData,
                "links: []\nnetworks: []\nservices: []\n"
            ),
        ]
    );
    for secret in &secrets {
        let object = secret.to_object(&fixture.data, "alpha");
        fixture.secrets.insert(secret.name.to_string(), object.metadata);
    }
    let ready = Step::Ready {
        meta_data: Some(name("w-0-metadata")),
        network_data: Some(name("w-0-networkdata")),
    };
    assert_eq!(fixture.next(), Ok(ready));
}

#[test]
fn existing_secret_is_never_written_again() {
    let mut fixture = with_both_parts();
    fixture
        .claims
        .metal3
        .insert(name("tpl-2-p"), ClaimState::Granted(grant()));
    fixture
        .secrets
        .insert("w-0-metadata".into(), secret("Metal3Data", "uid-tpl-2"));
    let Ok(Step::Write(secrets, None)) = fixture.next() else {
        panic!("{:?}", fixture.next())
    };
    assert_eq!(
        secrets.iter().map(|secret| secret.part).collect::<Vec<_>>(),
        [RenderedPart::NetworkData]
    );
}

#[test]
fn host_machine_and_pools_are_not_needed_once_all_secrets_exist() {
    let mut fixture = with_both_parts();
    fixture
        .secrets
        .insert("w-0-metadata".into(), secret("Metal3Data", "uid-tpl-2"));
    fixture
        .secrets
        .insert("w-0-networkdata".into(), secret("Metal3Data", "uid-tpl-2"));
    fixture.metal3_machine.spec.data_template.as_mut().unwrap().name = Some("another".into());
    let bare = Facts {
        machine: None,
        host: None,
        ..fixture.facts()
    };
    assert!(matches!(next(&bare), Ok(Step::Ready { .. })), "{:?}", next(&bare));
}

#[test]
fn secret_counts_unless_it_belongs_to_another_data_object_or_is_in_deletion() {
    let data = with_both_parts().data;
    let mut deleting = secret("Metal3Data", "uid-tpl-2");
    deleting.deletion_timestamp = read(json!("2026-01-01T00:00:00Z"));
    let mut users = secret("Metal3Data", "uid-tpl-2");
    users.owner_references = None;
    for (secret, expected) in [
        (None, SecretAction::Write),
        (Some(secret("Metal3Data", "uid-tpl-2")), SecretAction::Keep),
        (Some(secret("Metal3Data", "uid-of-old")), SecretAction::Wait),
        (Some(deleting), SecretAction::Wait),
        (Some(users), SecretAction::Keep),
        (Some(secret("Metal3Machine", "uid-w-0")), SecretAction::Keep),
    ] {
        assert_eq!(action(&data, secret.as_ref()), expected, "{secret:?}");
    }
    let mut fixture = with_both_parts();
    fixture
        .secrets
        .insert("w-0-networkdata".into(), secret("Metal3Data", "uid-of-old"));
    assert_eq!(
        fixture.next(),
        Ok(Step::Wait(Waiting::Secret("w-0-networkdata".into())))
    );
}

#[test]
fn missing_objects_are_named_in_the_wait() {
    let fixture = with_both_parts();
    let all = fixture.facts();
    for (facts, expected) in [
        (Facts { template: None, ..all }, Waiting::Template("tpl".into())),
        (Facts { claim: None, ..all }, Waiting::Claim("w-0".into())),
        (
            Facts {
                metal3_machine: None,
                ..all
            },
            Waiting::Metal3Machine("w-0".into()),
        ),
        (Facts { machine: None, ..all }, Waiting::Machine("w-0".into())),
        (Facts { host: None, ..all }, Waiting::Host("w-0".into())),
    ] {
        assert_eq!(next(&facts), Ok(Step::Wait(expected)));
    }
}

#[test]
fn missing_references_are_errors_and_foreign_namespaces_are_not_followed() {
    let mut unnamed = with_both_parts();
    unnamed.data.spec.template = None;
    assert_eq!(unnamed.next(), Ok(Step::Idle));
    let mut unclaimed = with_both_parts();
    unclaimed.data.spec.claim = None;
    assert_eq!(unclaimed.next().unwrap_err().field, "spec.claim.name");
    let mut unowned = with_both_parts();
    unowned.claim.metadata.owner_references = None;
    assert_eq!(unowned.next().unwrap_err().problem, Problem::NoOwner);
    let mut unnumbered = with_both_parts();
    unnumbered.data.spec.index = None;
    assert_eq!(unnumbered.next().unwrap_err().field, "spec.index");
    for (name, namespace) in [("another", None), ("tpl", Some("elsewhere"))] {
        let mut other = with_both_parts();
        let template = other.metal3_machine.spec.data_template.as_mut().unwrap();
        (template.name, template.namespace) = (Some(name.to_owned()), namespace.map(ToOwned::to_owned));
        assert!(matches!(
            other.next().unwrap_err().problem,
            Problem::OtherTemplate { .. }
        ));
    }
}

#[test]
fn foreign_claims_are_awaited_and_an_own_claim_in_deletion_is_released() {
    let with = |state: ClaimState| {
        let mut fixture = with_both_parts();
        fixture.claims.metal3.insert(name("tpl-2-p"), state);
        fixture.next()
    };
    let foreign = |owner: &str| {
        Ok(Step::Wait(Waiting::ForeignClaim {
            claim: "tpl-2-p".into(),
            pool: "p".into(),
            owner: owner.into(),
        }))
    };
    assert_eq!(
        with(ClaimState::Foreign {
            owner: "Metal3Data old".into()
        }),
        foreign("Metal3Data old")
    );
    assert_eq!(with(ClaimState::Deleting { is_owned: false }), foreign("another owner"));
    assert!(
        matches!(with(ClaimState::Deleting { is_owned: true }), Ok(Step::ReleaseClaim { claim, .. }) if claim == name("tpl-2-p"))
    );
    let refused = with(ClaimState::Failed {
        message: "none left".into(),
    })
    .unwrap_err()
    .to_string();
    assert!(
        refused.contains("none left") && refused.contains("extend the pool"),
        "{refused}"
    );
}

#[test]
fn claim_is_not_released_once_a_secret_is_rendered() {
    let mut fixture = with_both_parts();
    fixture
        .claims
        .metal3
        .insert(name("tpl-2-p"), ClaimState::Deleting { is_owned: true });
    let mut users = secret("Metal3Data", "uid-tpl-2");
    users.owner_references = None;
    fixture.secrets.insert("w-0-metadata".into(), users);
    assert!(
        matches!(fixture.next(), Ok(Step::ReleaseClaim { .. })),
        "the user's Secret contains nothing rendered"
    );
    fixture
        .secrets
        .insert("w-0-metadata".into(), secret("Metal3Data", "uid-tpl-2"));
    let Ok(Step::Wait(waiting)) = fixture.next() else {
        panic!("{:?}", fixture.next())
    };
    let message = waiting.to_string();
    for word in ["claim tpl-2-p", "pool p", "Secret w-0-metadata", "delete the Machine"] {
        assert!(message.contains(word), "{message}");
    }
}

#[test]
fn claim_named_after_the_host_counts_under_any_setting() {
    let mut fixture = with_both_parts();
    fixture
        .claims
        .metal3
        .insert(name("host-7-p"), ClaimState::Granted(grant()));
    for naming in [claims::Naming::Data, claims::Naming::Host] {
        fixture.naming = naming;
        assert!(
            matches!(fixture.next(), Ok(Step::Write(_, None))),
            "{:?}",
            fixture.next()
        );
    }
}

#[test]
fn failing_part_keeps_the_earlier_secret_and_blocks_the_later_one() {
    let bad_link =
        json!({ "links": { "ethernets": [{ "id": "a", "type": "phy", "macAddress": { "string": "zz" } }] } });
    let Ok(Step::Write(secrets, Some(error))) = fixture(json!({ "metaData": {}, "networkData": bad_link })).next()
    else {
        panic!()
    };
    assert_eq!(secrets.len(), 1);
    assert!(
        error
            .field
            .starts_with("Metal3DataTemplate tpl: spec.networkData.links"),
        "{error}"
    );
    let bad_key = json!({ "fromHostInterfaces": [{ "key": "k", "interface": "x" }] });
    let Ok(Step::Write(secrets, Some(_))) = fixture(json!({ "metaData": bad_key, "networkData": {} })).next() else {
        panic!()
    };
    assert!(secrets.is_empty());
}

#[test]
fn rendered_text_is_redacted_in_debug_output() {
    let secret_text = json!({ "strings": [{ "key": "password", "value": "hunter2" }] });
    let step = fixture(json!({ "metaData": secret_text })).next().unwrap();
    let shown = format!("{step:?}");
    assert!(shown.contains("w-0-metadata") && !shown.contains("hunter2"), "{shown}");
}

proptest! {
    #[test]
    fn no_state_overwrites_an_existing_secret(meta in any::<bool>(), net in any::<bool>(), granted in any::<bool>()) {
        let mut fixture = with_both_parts();
        for (there, name) in [(meta, "w-0-metadata"), (net, "w-0-networkdata")] {
            if there {
                fixture.secrets.insert(name.into(), secret("Metal3Data", "uid-tpl-2"));
            }
        }
        if granted {
            fixture.claims.metal3.insert(name("tpl-2-p"), ClaimState::Granted(grant()));
        }
        match fixture.next() {
            Ok(Step::Write(secrets, None)) => {
                prop_assert!(granted && !(meta && net));
                prop_assert!(secrets.iter().all(|secret| !fixture.secrets.contains_key(secret.name.as_str())));
            }
            Ok(Step::Ready { .. }) => prop_assert!(meta && net),
            Ok(Step::Claim(_)) => prop_assert!(!granted),
            other => prop_assert!(false, "{other:?}"),
        }
    }
}
