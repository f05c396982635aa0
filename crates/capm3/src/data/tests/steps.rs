use metal3_domain::derived::RenderedPart;
use proptest::prelude::*;
use serde_json::json;

use super::super::claims::{ClaimState, NewClaim};
use super::super::secrets::{SecretAction, action};
use super::super::step::{Facts, Step, Waiting, next};
use super::super::{Problem, claims};
use super::{World, grant, metadata, name, owner, read, world};

/// A template with both parts; the metadata takes an address from pool `p`.
fn both() -> World {
    world(json!({ "metaData": { "ipAddressesFromPool": [{ "key": "ip", "name": "p" }] }, "networkData": {} }))
}

fn secret(owner_kind: &str, uid: &str) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
    let mut metadata = metadata("w-0-metadata");
    metadata["ownerReferences"] = owner(owner_kind, "x", uid);
    read(metadata)
}

#[test]
fn addresses_are_claimed_then_waited_for_then_both_secrets_are_written() {
    let mut world = both();
    let Ok(Step::Claim(claims)) = world.next() else {
        panic!("{:?}", world.next())
    };
    let [NewClaim::Metal3(claim)] = claims.as_slice() else {
        panic!("{claims:?}")
    };
    assert_eq!(claim.metadata.name.as_deref(), Some("tpl-2-p"));

    world.claims.metal3.insert(name("tpl-2-p"), ClaimState::Pending);
    assert_eq!(world.next(), Ok(Step::Wait(Waiting::Addresses("p".into()))));

    world
        .claims
        .metal3
        .insert(name("tpl-2-p"), ClaimState::Granted(grant()));
    let Ok(Step::Write(secrets, None)) = world.next() else {
        panic!("{:?}", world.next())
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
        let object = secret.to_object(&world.data, "alpha");
        world.secrets.insert(secret.name.to_string(), object.metadata);
    }
    let ready = Step::Ready {
        meta_data: Some(name("w-0-metadata")),
        network_data: Some(name("w-0-networkdata")),
    };
    assert_eq!(world.next(), Ok(ready));
}

#[test]
fn a_secret_that_is_there_is_never_written_again() {
    let mut world = both();
    world
        .claims
        .metal3
        .insert(name("tpl-2-p"), ClaimState::Granted(grant()));
    world
        .secrets
        .insert("w-0-metadata".into(), secret("Metal3Data", "uid-tpl-2"));
    let Ok(Step::Write(secrets, None)) = world.next() else {
        panic!("{:?}", world.next())
    };
    assert_eq!(
        secrets.iter().map(|secret| secret.part).collect::<Vec<_>>(),
        [RenderedPart::NetworkData]
    );
}

#[test]
fn once_all_secrets_are_there_neither_host_nor_machine_nor_pools_are_asked_for() {
    let mut world = both();
    world
        .secrets
        .insert("w-0-metadata".into(), secret("Metal3Data", "uid-tpl-2"));
    world
        .secrets
        .insert("w-0-networkdata".into(), secret("Metal3Data", "uid-tpl-2"));
    world.metal3_machine.spec.data_template.as_mut().unwrap().name = Some("another".into());
    let bare = Facts {
        machine: None,
        host: None,
        ..world.facts()
    };
    assert!(matches!(next(&bare), Ok(Step::Ready { .. })), "{:?}", next(&bare));
}

#[test]
fn a_secret_counts_unless_it_is_another_data_objects_or_going_away() {
    let data = both().data;
    let mut leaving = secret("Metal3Data", "uid-tpl-2");
    leaving.deletion_timestamp = read(json!("2026-01-01T00:00:00Z"));
    let mut users = secret("Metal3Data", "uid-tpl-2");
    users.owner_references = None;
    for (secret, expected) in [
        (None, SecretAction::Write),
        (Some(secret("Metal3Data", "uid-tpl-2")), SecretAction::Keep),
        (Some(secret("Metal3Data", "uid-of-old")), SecretAction::Wait),
        (Some(leaving), SecretAction::Wait),
        (Some(users), SecretAction::Keep),
        (Some(secret("Metal3Machine", "uid-w-0")), SecretAction::Keep),
    ] {
        assert_eq!(verdict(&data, secret.as_ref()), expected, "{secret:?}");
    }
    let mut world = both();
    world
        .secrets
        .insert("w-0-networkdata".into(), secret("Metal3Data", "uid-of-old"));
    assert_eq!(world.next(), Ok(Step::Wait(Waiting::Secret("w-0-networkdata".into()))));
}

#[test]
fn what_is_missing_is_waited_for_by_name() {
    let world = both();
    let all = world.facts();
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
fn references_that_lead_nowhere_are_errors_and_none_is_followed_elsewhere() {
    let mut unnamed = both();
    unnamed.data.spec.template = None;
    assert_eq!(unnamed.next(), Ok(Step::Idle));
    let mut unclaimed = both();
    unclaimed.data.spec.claim = None;
    assert_eq!(unclaimed.next().unwrap_err().field, "spec.claim.name");
    let mut unowned = both();
    unowned.claim.metadata.owner_references = None;
    assert_eq!(unowned.next().unwrap_err().problem, Problem::NoOwner);
    let mut unnumbered = both();
    unnumbered.data.spec.index = None;
    assert_eq!(unnumbered.next().unwrap_err().field, "spec.index");
    for (name, namespace) in [("another", None), ("tpl", Some("elsewhere"))] {
        let mut other = both();
        let template = other.metal3_machine.spec.data_template.as_mut().unwrap();
        (template.name, template.namespace) = (Some(name.to_owned()), namespace.map(ToOwned::to_owned));
        assert!(matches!(
            other.next().unwrap_err().problem,
            Problem::OtherTemplate { .. }
        ));
    }
}

#[test]
fn claims_of_others_are_waited_for_and_our_own_leaving_one_is_let_go() {
    let with = |state: ClaimState| {
        let mut world = both();
        world.claims.metal3.insert(name("tpl-2-p"), state);
        world.next()
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
    assert_eq!(
        with(ClaimState::Deleting { is_owned: false }),
        foreign("what is being deleted")
    );
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
fn a_claim_is_not_let_go_once_a_secret_was_rendered() {
    let mut world = both();
    world
        .claims
        .metal3
        .insert(name("tpl-2-p"), ClaimState::Deleting { is_owned: true });
    let mut users = secret("Metal3Data", "uid-tpl-2");
    users.owner_references = None;
    world.secrets.insert("w-0-metadata".into(), users);
    assert!(
        matches!(world.next(), Ok(Step::ReleaseClaim { .. })),
        "nothing was rendered into a Secret of the user's"
    );
    world
        .secrets
        .insert("w-0-metadata".into(), secret("Metal3Data", "uid-tpl-2"));
    let Ok(Step::Wait(waiting)) = world.next() else {
        panic!("{:?}", world.next())
    };
    let told = waiting.to_string();
    for word in ["claim tpl-2-p", "pool p", "Secret w-0-metadata", "delete the Machine"] {
        assert!(told.contains(word), "{told}");
    }
}

#[test]
fn a_claim_named_after_the_host_counts_whatever_new_ones_are_named_after() {
    let mut world = both();
    world
        .claims
        .metal3
        .insert(name("host-7-p"), ClaimState::Granted(grant()));
    for naming in [claims::Naming::Data, claims::Naming::Host] {
        world.naming = naming;
        assert!(matches!(world.next(), Ok(Step::Write(_, None))), "{:?}", world.next());
    }
}

#[test]
fn a_part_that_fails_leaves_the_earlier_one_written_and_the_later_one_not() {
    let bad_link =
        json!({ "links": { "ethernets": [{ "id": "a", "type": "phy", "macAddress": { "string": "zz" } }] } });
    let Ok(Step::Write(secrets, Some(error))) = world(json!({ "metaData": {}, "networkData": bad_link })).next() else {
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
    let Ok(Step::Write(secrets, Some(_))) = world(json!({ "metaData": bad_key, "networkData": {} })).next() else {
        panic!()
    };
    assert!(secrets.is_empty());
}

#[test]
fn rendered_text_shows_itself_to_nobody_by_accident() {
    let secret_text = json!({ "strings": [{ "key": "password", "value": "hunter2" }] });
    let step = world(json!({ "metaData": secret_text })).next().unwrap();
    let shown = format!("{step:?}");
    assert!(shown.contains("w-0-metadata") && !shown.contains("hunter2"), "{shown}");
}

proptest! {
    #[test]
    fn no_situation_writes_what_exists(meta in any::<bool>(), net in any::<bool>(), granted in any::<bool>()) {
        let mut world = both();
        for (there, name) in [(meta, "w-0-metadata"), (net, "w-0-networkdata")] {
            if there {
                world.secrets.insert(name.into(), secret("Metal3Data", "uid-tpl-2"));
            }
        }
        if granted {
            world.claims.metal3.insert(name("tpl-2-p"), ClaimState::Granted(grant()));
        }
        match world.next() {
            Ok(Step::Write(secrets, None)) => {
                prop_assert!(granted && !(meta && net));
                prop_assert!(secrets.iter().all(|secret| !world.secrets.contains_key(secret.name.as_str())));
            }
            Ok(Step::Ready { .. }) => prop_assert!(meta && net),
            Ok(Step::Claim(_)) => prop_assert!(!granted),
            other => prop_assert!(false, "{other:?}"),
        }
    }
}
