use std::collections::BTreeSet;

use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim, Metal3ObjectRef};
use proptest::prelude::*;
use serde_json::json;

use super::super::index::{Allocation, Answer, PUBLISHED_LIMIT, allocate};
use super::super::{Problem, request};
use super::{fixture, metadata, owner, read};

fn claim(name: &str) -> Metal3DataClaim {
    let mut metadata = metadata(name);
    metadata["ownerReferences"] = owner("Metal3Machine", name, "uid-machine");
    read(json!({ "metadata": metadata, "spec": { "template": { "name": "tpl" } } }))
}

fn object(name: &str, index: Option<i32>, claim: Option<&str>) -> Metal3Data {
    let claim = claim.map(|claim| json!({ "name": claim }));
    read(
        json!({ "metadata": metadata(name), "spec": { "index": index, "template": { "name": "tpl" }, "claim": claim } }),
    )
}

fn allocate_all(objects: &[Metal3Data], claims: &[Metal3DataClaim]) -> Allocation {
    let template = fixture(json!({})).template;
    allocate(
        &template,
        &objects.iter().collect::<Vec<_>>(),
        &claims.iter().collect::<Vec<_>>(),
        |claim| claim.metadata.annotations.is_some(),
    )
}

fn reference(name: impl Into<String>) -> Metal3ObjectRef {
    Metal3ObjectRef {
        name: Some(name.into()),
        namespace: None,
    }
}

/// Executes the actions.
fn act(objects: &mut Vec<Metal3Data>, claims: &mut [Metal3DataClaim], allocation: Allocation) {
    for (name, answer) in allocation.claims {
        let data = match answer {
            Answer::Create(object) => {
                objects.push((*object).clone());
                object.metadata.name
            }
            Answer::Adopt(data) => Some(data),
            _ => None,
        };
        let mut claims = claims.iter_mut();
        let claim = claims.find(|claim| claim.metadata.name.as_deref() == Some(&name));
        claim.unwrap().status.rendered_data = data.map(reference);
    }
}

#[test]
fn every_machine_gets_an_index_beyond_the_limit_of_the_status() {
    let mut objects = Vec::new();
    let mut claims: Vec<_> = (0..700).map(|n| claim(&format!("m-{n}"))).collect();
    let counts = |allocation: &Allocation| {
        let Allocation {
            claims,
            published,
            unpublished,
        } = allocation;
        (claims.len(), published.len(), *unpublished)
    };
    let first = allocate_all(&objects, &claims);
    assert_eq!(counts(&first), (700, PUBLISHED_LIMIT, 700 - PUBLISHED_LIMIT));
    act(&mut objects, &mut claims, first);
    let indexes: BTreeSet<i32> = objects.iter().filter_map(|object| object.spec.index).collect();
    assert!(indexes.into_iter().eq(0..700));
    let second = allocate_all(&objects, &claims);
    assert_eq!(counts(&second), (0, PUBLISHED_LIMIT, 700 - PUBLISHED_LIMIT));
}

#[test]
fn used_indexes_are_kept_and_the_lowest_free_one_is_assigned() {
    let mut deleting = object("tpl-2", Some(2), Some("gone"));
    deleting.metadata.deletion_timestamp = read(json!("2026-01-01T00:00:00Z"));
    let mut foreign = object("tpl-4", None, None);
    foreign.spec.template = None;
    let objects = [
        object("tpl-0", Some(0), None),
        object("tpl-1", Some(1), Some("a")),
        deleting,
        foreign,
        object("odd", Some(5), Some("b")),
    ];
    let answers = allocate_all(&objects, &[claim("x"), claim("y")]).claims;
    let made: Vec<_> = answers
        .iter()
        .map(|(claim, answer)| match answer {
            Answer::Create(object) => (claim.as_str(), object.metadata.name.clone().unwrap(), object.spec.index),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        made,
        [("x", "tpl-3".to_owned(), Some(3)), ("y", "tpl-6".to_owned(), Some(6))]
    );
}

/// Release 1.10 names the objects of both templates after their `templateReference`.
#[test]
fn templates_that_shared_their_indexes_still_do() {
    let mut others = object("shared-0", Some(0), Some("a"));
    others.spec.template = Some(reference("another"));
    let objects = [others, object("shared-1", Some(1), Some("b"))];
    let answers = allocate_all(&objects, &[claim("x")]).claims;
    assert!(
        matches!(&answers[..], [(_, Answer::Create(object))] if object.spec.index == Some(2)),
        "{answers:?}"
    );
}

#[test]
fn index_beyond_the_maximum_is_rejected_without_overflow() {
    let objects = [
        object("far", Some(i32::MAX), Some("a")),
        object("tpl-0", Some(0), Some("b")),
        object("below", Some(-1), Some("c")),
    ];
    let answers = allocate_all(&objects, &[claim("x")]).claims;
    assert!(
        matches!(&answers[..], [(_, Answer::Create(object))] if object.spec.index == Some(1)),
        "{answers:?}"
    );
}

#[test]
fn one_claim_never_blocks_another() {
    let mut ownerless = claim("a");
    ownerless.metadata.owner_references = None;
    let mut without_template = claim("b");
    without_template.spec.template = None;
    let mut paused = claim("c");
    paused.metadata.annotations = Some([("cluster.x-k8s.io/paused".to_owned(), String::new())].into());
    let answers = allocate_all(&[], &[ownerless, without_template, paused, claim("d")]).claims;
    let [(a, Answer::Refuse(error)), (d, Answer::Create(_))] = answers.as_slice() else {
        panic!("{answers:?}")
    };
    assert_eq!((a.as_str(), d.as_str(), &error.problem), ("a", "d", &Problem::NoOwner));
}

#[test]
fn claim_adopts_the_object_created_for_it_and_waits_for_another_one() {
    let made_for = |uid: &str| {
        let mut object = object("tpl-5", Some(5), Some("m"));
        object.metadata.owner_references = read(owner("Metal3DataClaim", "m", uid));
        object
    };
    let answer = |object: Metal3Data| allocate_all(&[object], &[claim("m")]).claims.pop().unwrap().1;
    assert_eq!(answer(made_for("uid-m")), Answer::Adopt("tpl-5".into()));
    assert_eq!(
        answer(object("tpl-5", Some(5), Some("m"))),
        Answer::Adopt("tpl-5".into()),
        "without owner: moved or created by an older manager"
    );
    assert_eq!(answer(made_for("uid-of-an-earlier-m")), Answer::Wait("tpl-5".into()));
    let mut deleting = made_for("uid-m");
    deleting.metadata.deletion_timestamp = read(json!("2026-01-01T00:00:00Z"));
    assert_eq!(answer(deleting), Answer::Wait("tpl-5".into()));
}

#[test]
fn deleted_claim_releases_its_objects_and_needs_no_other_object() {
    let mut deleting = claim("m");
    deleting.metadata.deletion_timestamp = read(json!("2026-01-01T00:00:00Z"));
    deleting.metadata.owner_references = None;
    let answers = allocate_all(&[object("tpl-5", Some(5), Some("m"))], &[deleting.clone()]).claims;
    assert_eq!(answers, [("m".to_owned(), Answer::Release(vec!["tpl-5".into()]))]);
    assert_eq!(
        allocate_all(&[], &[deleting]).claims,
        [("m".to_owned(), Answer::Release(vec![]))]
    );
}

#[test]
fn claim_on_a_template_of_another_namespace_is_refused_when_new_and_released_when_served() {
    let foreign = |change: fn(&mut Metal3DataClaim)| {
        let mut claim = claim("m");
        let template = claim.spec.template.as_mut().unwrap();
        template.namespace = Some("elsewhere".to_owned());
        change(&mut claim);
        claim
    };
    let new = allocate_all(&[], &[foreign(|_| {})]).claims;
    let [(_, Answer::Refuse(error))] = new.as_slice() else {
        panic!("{new:?}")
    };
    assert_eq!(error.field, "spec.template.namespace");
    assert!(error.to_string().contains("elsewhere"), "{error}");
    let served = [object("tpl-5", Some(5), Some("m"))];
    let deleting = foreign(|claim| claim.metadata.deletion_timestamp = read(json!("2026-01-01T00:00:00Z")));
    assert_eq!(
        allocate_all(&served, &[deleting]).claims,
        [("m".to_owned(), Answer::Release(vec!["tpl-5".into()]))]
    );
    let running = foreign(|claim| claim.status.rendered_data = Some(reference("tpl-5")));
    assert_eq!(allocate_all(&served, &[running]).claims, [], "a served claim is kept");
}

#[test]
fn machine_creates_one_claim_in_its_own_namespace() {
    let mut machine = fixture(json!({})).metal3_machine;
    let made = request::claim_of(&machine).unwrap().unwrap();
    assert_eq!(
        made.spec.template,
        Some(Metal3ObjectRef {
            name: Some("tpl".into()),
            namespace: Some("lab".into())
        })
    );
    assert_eq!(
        made.metadata.finalizers,
        Some(vec!["metal3machine.infrastructure.cluster.x-k8s.io".to_owned()])
    );
    machine.spec.network_data = read(json!({ "name": "n", "namespace": "elsewhere" }));
    assert_eq!(
        request::claim_of(&machine).unwrap_err().field,
        "spec.networkData.namespace"
    );
    machine.spec.network_data = None;
    machine.status.rendered_data = Some(Metal3ObjectRef::default());
    assert_eq!(request::claim_of(&machine), Ok(None));
}

proptest! {
    #[test]
    fn no_index_is_assigned_twice_and_a_repeated_plan_changes_nothing(
        used in proptest::collection::btree_map(0..12i32, proptest::option::of(0..8u8), 0..8),
        wanting in proptest::collection::btree_set(0..8u8, 0..8),
    ) {
        let mut objects: Vec<_> = used
            .iter()
            .map(|(index, owner)| object(&format!("tpl-{index}"), Some(*index), owner.map(|owner| format!("m-{owner}")).as_deref()))
            .collect();
        let mut claims: Vec<_> = wanting.iter().map(|number| claim(&format!("m-{number}"))).collect();
        let answers = allocate_all(&objects, &claims);
        prop_assert_eq!(answers.claims.len(), claims.len());
        act(&mut objects, &mut claims, answers);
        let indexes: BTreeSet<i32> = objects.iter().filter_map(|object| object.spec.index).collect();
        prop_assert_eq!(indexes.len(), objects.len());
        prop_assert!(claims.iter().all(|claim| claim.status.rendered_data.is_some()));
        prop_assert!(allocate_all(&objects, &claims).claims.is_empty());
    }
}
