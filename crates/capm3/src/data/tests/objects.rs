use metal3_api::infrastructure::v1beta2::Metal3Data;
use metal3_domain::derived::RenderedPart;
use metal3_runtime::plan::PlannedEvent;
use metal3_runtime::work::Next;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::claims::{ClaimState, Naming, NewClaim};
use super::super::object::action::{Action, Plan};
use super::super::object::facts::{PoolClaim, Rendering};
use super::super::object::plan::{Waiting, render};
use super::super::secrets::{NewSecret, SecretAction, action};
use super::super::subject::name_of;
use super::super::{Problem, reason};
use super::{Fixture, fixture, grant, metadata, name, owner, pool_claim, read};

/// A template with both parts; the metadata takes an address from pool `p`.
fn with_both_parts() -> Fixture {
    fixture(json!({ "metaData": { "ipAddressesFromPool": [{ "key": "ip", "name": "p" }] }, "networkData": {} }))
}

fn secret(owner_kind: &str, uid: &str) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
    let mut metadata = metadata("w-0-metadata");
    metadata["ownerReferences"] = owner(owner_kind, "x", uid);
    read(metadata)
}

impl Fixture {
    /// The claim on pool `p` has this state.
    fn claim_is(&mut self, state: ClaimState) {
        self.rendering.claims.metal3.insert(name("tpl-2-p"), state);
    }

    fn has_secret(&mut self, name: &str, owner_uid: &str) {
        let secret = secret("Metal3Data", owner_uid);
        self.rendering.secrets.insert(name.into(), secret);
    }
}

/// A claim in deletion of a Metal3Data of another name.
fn of_another_name(name: &str) -> PoolClaim {
    let PoolClaim::Metal3(claim) = pool_claim(name, "uid-old", true) else {
        panic!("a claim on an IPPool")
    };
    let mut claim = (*claim).clone();
    claim.metadata.owner_references = read(owner("Metal3Data", "tpl", "uid-old"));
    PoolClaim::Metal3(claim.into())
}

/// A plan that only waits for this.
fn wait(waiting: Waiting) -> Next {
    Next::waiting(reason::WAITING, waiting.to_string())
}

/// The message of a plan that writes no object because of an error.
fn failure(plan: &Plan) -> String {
    let Next::Waiting(waiting) = &plan.next else {
        panic!("{plan:?}")
    };
    assert_eq!(waiting.reason, reason::RENDERING_FAILED);
    let event = PlannedEvent::warning(reason::RENDERING_FAILED, waiting.message.clone());
    assert_eq!(plan.events, [event]);
    waiting.message.clone()
}

fn secrets(plan: &Plan) -> Vec<&NewSecret> {
    let mut secrets: Vec<&NewSecret> = Vec::new();
    for action in &plan.actions {
        match action {
            Action::CreateSecret(secret) => secrets.push(secret),
            other => panic!("{other:?}"),
        }
    }
    secrets
}

fn is_ready(plan: &Plan) -> bool {
    plan.actions == [Action::StopAwaitingClaims] && plan.next == Next::Done
}

fn is_released(plan: &Plan) -> bool {
    matches!(&plan.actions[..], [Action::Release { is_metal3: true, .. }]) && plan.next == Next::Requeue
}

/// The plan writes Secrets and then decides again.
fn writes(plan: &Plan) -> bool {
    !secrets(plan).is_empty() && plan.next == Next::Requeue
}

fn status(plan: &Plan) -> Value {
    plan.status.clone().unwrap().into_document()["status"].take()
}

#[test]
fn addresses_are_claimed_and_awaited_before_both_secrets_are_created() {
    let mut fixture = with_both_parts();
    let plan = fixture.plan();
    let [Action::Claim(NewClaim::Metal3(claim))] = &plan.actions[..] else {
        panic!("{plan:?}")
    };
    assert_eq!(claim.metadata.name.as_deref(), Some("tpl-2-p"));

    fixture.claim_is(ClaimState::Pending);
    assert_eq!(fixture.plan().next, wait(Waiting::Addresses("p".into())));

    fixture.claim_is(ClaimState::Granted(grant()));
    let plan = fixture.plan();
    let written: Vec<_> = secrets(&plan)
        .into_iter()
        .map(|secret| (name_of(&secret.metadata), secret.part, secret.reveal()))
        .collect();
    let meta_data = "ip: 10.1.2.50\nproviderid: lab/host-7/w-0\n";
    let network_data = "links: []\nnetworks: []\nservices: []\n";
    let expected = [
        ("w-0-metadata", RenderedPart::MetaData, meta_data),
        ("w-0-networkdata", RenderedPart::NetworkData, network_data),
    ];
    assert_eq!(written, expected);
    for metadata in secrets(&plan).into_iter().map(|secret| secret.to_object().metadata) {
        let known = &mut fixture.rendering.secrets;
        known.insert(name_of(&metadata).to_owned(), metadata);
    }
    let plan = fixture.plan();
    assert!(is_ready(&plan), "{plan:?}");
    assert_eq!((status(&plan), plan.events.len()), (json!({ "ready": true }), 1));
}

#[test]
fn existing_secret_is_never_written_again() {
    let mut fixture = with_both_parts();
    fixture.claim_is(ClaimState::Granted(grant()));
    fixture.has_secret("w-0-metadata", "uid-tpl-2");
    let plan = fixture.plan();
    let parts: Vec<_> = secrets(&plan).into_iter().map(|secret| secret.part).collect();
    assert_eq!(parts, [RenderedPart::NetworkData]);
}

#[test]
fn host_machine_and_pools_are_not_needed_once_all_secrets_exist() {
    let mut fixture = with_both_parts();
    fixture.has_secret("w-0-metadata", "uid-tpl-2");
    fixture.has_secret("w-0-networkdata", "uid-tpl-2");
    fixture.metal3_machine.spec.data_template.as_mut().unwrap().name = Some("another".into());
    let bare = Rendering {
        machine: None,
        host: None,
        ..fixture.rendering()
    };
    let plan = render(&fixture.data, &bare);
    assert!(is_ready(&plan), "{plan:?}");
}

#[test]
fn secrets_are_those_that_the_object_names() {
    let mut fixture = with_both_parts();
    fixture.has_secret("older-metadata", "uid-tpl-2");
    fixture.has_secret("older-networdata", "uid-tpl-2");
    let named = |meta_data: Value, network_data: Value| {
        let mut data = serde_json::to_value(&fixture.data).unwrap();
        (data["spec"]["metaData"], data["spec"]["networkData"]) = (meta_data, network_data);
        let data: Metal3Data = read(data);
        let bare = Rendering {
            machine: None,
            host: None,
            ..fixture.rendering()
        };
        is_ready(&render(&data, &bare))
    };
    let (meta_data, network_data) = (
        json!({ "name": "older-metadata" }),
        json!({ "name": "older-networdata" }),
    );
    assert!(named(meta_data.clone(), network_data.clone()));
    assert!(!named(meta_data, Value::Null) && !named(Value::Null, network_data));
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
    fixture.has_secret("w-0-networkdata", "uid-of-old");
    assert_eq!(fixture.plan().next, wait(Waiting::Secret("w-0-networkdata".into())));
}

#[test]
fn missing_objects_are_named_in_the_wait() {
    let fixture = with_both_parts();
    let all = || fixture.rendering();
    for (rendering, expected) in [
        (
            Rendering {
                template: None,
                ..all()
            },
            Waiting::Template("tpl".into()),
        ),
        (Rendering { claim: None, ..all() }, Waiting::Claim("w-0".into())),
        (
            Rendering {
                metal3_machine: None,
                ..all()
            },
            Waiting::Metal3Machine("w-0".into()),
        ),
        (Rendering { machine: None, ..all() }, Waiting::Machine("w-0".into())),
        (Rendering { host: None, ..all() }, Waiting::Host("w-0".into())),
    ] {
        let plan = render(&fixture.data, &rendering);
        let needs_user_action = matches!(expected, Waiting::Template(_));
        assert_eq!(plan.status.is_some(), needs_user_action, "{plan:?}");
        assert_eq!((plan.next, plan.actions), (wait(expected), Vec::new()));
    }
}

#[test]
fn missing_references_are_errors_and_foreign_namespaces_are_not_followed() {
    let mut unnamed = with_both_parts();
    unnamed.data.spec.template = None;
    assert_eq!(unnamed.plan(), Plan::default());
    let mut unclaimed = with_both_parts();
    unclaimed.data.spec.claim = None;
    assert_eq!(
        failure(&unclaimed.plan()),
        Problem::Unset.of("spec.claim.name").to_string()
    );
    let mut unowned = with_both_parts();
    unowned.claim.metadata.owner_references = None;
    assert!(failure(&unowned.plan()).ends_with(&Problem::NoOwner.to_string()));
    let mut unnumbered = with_both_parts();
    unnumbered.data.spec.index = None;
    assert_eq!(failure(&unnumbered.plan()), Problem::Unset.of("spec.index").to_string());
    for (name, namespace) in [("another", None), ("tpl", Some("elsewhere"))] {
        let mut other = with_both_parts();
        let template = other.metal3_machine.spec.data_template.as_mut().unwrap();
        (template.name, template.namespace) = (Some(name.to_owned()), namespace.map(ToOwned::to_owned));
        let expected = format!(
            "it names {}",
            namespace.map_or("\"another\"", |_| "namespace \"elsewhere\"")
        );
        assert!(failure(&other.plan()).contains(&expected), "{expected}");
    }
}

#[test]
fn annotation_that_names_no_host_of_the_namespace_is_an_error() {
    for text in ["lab/x/host-7", "other/host-7"] {
        let mut case = with_both_parts();
        let annotations = case.metal3_machine.metadata.annotations.get_or_insert_default();
        annotations.insert("metal3.io/BareMetalHost".to_owned(), text.to_owned());
        assert!(failure(&case.plan()).contains("it must be lab/<host>"), "{text}");
    }
}

#[test]
fn foreign_claims_are_awaited_and_an_own_claim_in_deletion_is_released() {
    let with = |state: ClaimState| {
        let mut fixture = with_both_parts();
        fixture.claim_is(state);
        fixture
    };
    let foreign = |owner: &str| {
        wait(Waiting::ForeignClaim {
            claim: "tpl-2-p".into(),
            pool: "p".into(),
            owner: owner.into(),
        })
    };
    let owner = "Metal3Data old".to_owned();
    assert_eq!(
        with(ClaimState::Foreign { owner }).plan().next,
        foreign("Metal3Data old")
    );
    let mut another = with(ClaimState::Deleting { is_owned: false });
    assert_eq!(
        another.plan().next,
        foreign("another owner"),
        "it may belong to another object"
    );
    another.rendering.deleting = vec![of_another_name("tpl-2-p")];
    assert_eq!(
        another.plan().next,
        foreign("another owner"),
        "names of claims can be equal"
    );
    let mut own = with(ClaimState::Deleting { is_owned: true });
    let held_by_another = Next::waiting(reason::WAITING, "waiting for the claim lab/tpl-2-p to be deleted");
    assert_eq!(own.plan().next, held_by_another);
    own.rendering.deleting = vec![pool_claim("tpl-2-p", "uid-tpl-2", true)];
    assert!(is_released(&own.plan()), "{:?}", own.plan());
    let message = "none left".into();
    let refused = failure(&with(ClaimState::Failed { message }).plan());
    assert!(
        refused.contains("none left") && refused.contains("extend the pool"),
        "{refused}"
    );
}

#[test]
fn claim_is_not_released_once_a_secret_is_rendered() {
    let mut fixture = with_both_parts();
    fixture.claim_is(ClaimState::Deleting { is_owned: true });
    fixture.rendering.deleting = vec![pool_claim("tpl-2-p", "uid-tpl-2", true)];
    let mut users = secret("Metal3Data", "uid-tpl-2");
    users.owner_references = None;
    fixture.rendering.secrets.insert("w-0-metadata".into(), users);
    assert!(
        is_released(&fixture.plan()),
        "the user's Secret contains nothing rendered"
    );
    fixture.has_secret("w-0-metadata", "uid-tpl-2");
    let plan = fixture.plan();
    let Next::Waiting(waiting) = &plan.next else {
        panic!("{plan:?}")
    };
    assert_eq!(status(&plan), json!({ "errorMessage": waiting.message }));
    for word in ["claim tpl-2-p", "pool p", "Secret w-0-metadata", "delete the Machine"] {
        assert!(waiting.message.contains(word), "{}", waiting.message);
    }
}

/// The Secrets may be deleted while the host runs, and a restore may leave them out.
#[test]
fn claim_is_not_released_while_the_host_has_an_image_although_the_secrets_are_gone() {
    let provisioned = [
        json!({ "image": { "url": "http://192.0.2.9/os.raw" } }),
        json!({ "customDeploy": { "method": "install" } }),
    ];
    for (spec, is_owned) in provisioned.iter().zip([true, false]) {
        let mut fixture = with_both_parts();
        fixture.claim_is(ClaimState::Deleting { is_owned });
        let owner = if is_owned { "uid-tpl-2" } else { "uid-old" };
        fixture.rendering.deleting = vec![pool_claim("tpl-2-p", owner, true)];
        assert!(is_released(&fixture.plan()), "nothing uses it");
        let mut host = serde_json::to_value(&fixture.host).unwrap();
        host["spec"]
            .as_object_mut()
            .unwrap()
            .extend(spec.as_object().unwrap().clone());
        fixture.host = read(host);
        assert_eq!(fixture.plan().actions, []);
        let message = status(&fixture.plan())["errorMessage"].as_str().unwrap().to_owned();
        for word in ["claim tpl-2-p", "pool p", "BareMetalHost host-7", "delete the Machine"] {
            assert!(message.contains(word), "{message}");
        }
    }
}

#[test]
fn claim_named_after_the_host_counts_under_any_setting() {
    let mut fixture = with_both_parts();
    let granted = ClaimState::Granted(grant());
    fixture.rendering.claims.metal3.insert(name("host-7-p"), granted);
    for naming in [Naming::Data, Naming::Host] {
        fixture.rendering.naming = naming;
        assert!(writes(&fixture.plan()), "{:?}", fixture.plan());
    }
}

#[test]
fn failing_part_keeps_the_earlier_secret_and_blocks_the_later_one() {
    let bad_link =
        json!({ "links": { "ethernets": [{ "id": "a", "type": "phy", "macAddress": { "string": "zz" } }] } });
    let plan = fixture(json!({ "metaData": {}, "networkData": bad_link })).plan();
    assert_eq!(secrets(&plan).len(), 1);
    let message = failure(&plan);
    assert!(
        message.starts_with("Metal3DataTemplate tpl: spec.networkData.links"),
        "{message}"
    );
    let bad_key = json!({ "fromHostInterfaces": [{ "key": "k", "interface": "x" }] });
    let plan = fixture(json!({ "metaData": bad_key, "networkData": {} })).plan();
    assert!(secrets(&plan).is_empty());
    failure(&plan);
}

#[test]
fn rendered_text_is_redacted_in_debug_output() {
    let secret_text = json!({ "strings": [{ "key": "password", "value": "hunter2" }] });
    let shown = format!("{:?}", fixture(json!({ "metaData": secret_text })).plan());
    assert!(shown.contains("w-0-metadata") && !shown.contains("hunter2"), "{shown}");
}

proptest! {
    #[test]
    fn no_state_overwrites_an_existing_secret(meta in any::<bool>(), net in any::<bool>(), granted in any::<bool>()) {
        let mut fixture = with_both_parts();
        for (there, name) in [(meta, "w-0-metadata"), (net, "w-0-networkdata")] {
            if there {
                fixture.has_secret(name, "uid-tpl-2");
            }
        }
        if granted {
            fixture.claim_is(ClaimState::Granted(grant()));
        }
        let plan = fixture.plan();
        match &plan.actions[..] {
            [Action::StopAwaitingClaims] => prop_assert!(meta && net),
            [Action::Claim(_)] => prop_assert!(!(granted || meta && net)),
            _ => {
                prop_assert!(granted && !(meta && net) && writes(&plan));
                let exists = |secret: &&NewSecret| fixture.rendering.secrets.contains_key(name_of(&secret.metadata));
                prop_assert!(!secrets(&plan).iter().any(exists));
            }
        }
    }
}
