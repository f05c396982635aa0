//! `naming`: from a machine to its claim, and from claims to Metal3Data and their numbers.

use metal3_api::infrastructure::names::DATA_CLAIM_FINALIZER;
use metal3_api::infrastructure::v1beta2::{
    Metal3Data, Metal3DataClaim, Metal3DataTemplate, Metal3Machine, Metal3ObjectRef,
};
use metal3_api::kind::Kind as _;
use metal3_capm3::data::index::{self, Answer};
use metal3_capm3::data::request;
use serde_json::{Map, Value, json};

use super::rules;
use super::world::{World, items, text};
use crate::golden::case::Case;
use crate::golden::group::Group;

pub(super) const DATA: Group = Group {
    name: "naming/data_names",
    answer: answer_data,
    expectation: super::expectation,
    rules: rules::DATA_NAMES,
};

pub(super) const CLAIMS: Group = Group {
    name: "naming/claim_names",
    answer: answer_claims,
    expectation: super::expectation,
    rules: &[],
};

fn answer_claims(case: &Case) -> Value {
    let Some(mut machine) = World::of(case).all::<Metal3Machine>().pop() else {
        return json!("no Metal3Machine");
    };
    let mut shown = Map::new();
    match request::claim_of(&machine) {
        Ok(None) => {}
        Ok(Some(claim)) => {
            machine.spec.data_template.clone_from(&claim.spec.template);
            let mut claim = json!(claim);
            claim
                .as_object_mut()
                .map(|claim| claim.insert("status".into(), json!({})));
            shown.insert("dataClaims".into(), json!([claim]));
        }
        Err(_) => {
            shown.insert("error".into(), true.into());
        }
    }
    shown.insert("machineSpec".into(), json!(machine.spec));
    shown.insert("machineStatus".into(), json!(machine.status));
    shown.into()
}

fn answer_data(case: &Case) -> Value {
    let mut world = World::of(case);
    let mut failed = run(&mut world);
    for step in items(&case.input, "steps") {
        items(step, "apply").for_each(|object| world.apply(object));
        for object in items(step, "delete") {
            mark_deleted(&mut world, text(object, "/kind"), text(object, "/metadata/name"));
        }
        failed = run(&mut world);
    }
    show(&world, failed)
}

/// Does what is to be done for the one template; whether a claim was refused.
fn run(world: &mut World) -> bool {
    let Some(template) = world.all::<Metal3DataTemplate>().pop() else {
        return false;
    };
    let (objects, claims) = (world.all::<Metal3Data>(), world.all::<Metal3DataClaim>());
    let (objects, claims): (Vec<_>, Vec<_>) = (objects.iter().collect(), claims.iter().collect());
    let allocation = index::allocate(&template, &objects, &claims, |_| false);
    let mut refused = false;
    for (name, answer) in allocation.claims {
        let data = match answer {
            Answer::Adopt(data) => Some(data),
            Answer::Create(object) => {
                world.apply(&json!(object));
                object.metadata.name
            }
            Answer::Refuse(_) => {
                refused = true;
                None
            }
            Answer::Wait(_) => None,
            Answer::Surplus(objects) => {
                objects.iter().for_each(|object| world.remove(Metal3Data::KIND, object));
                continue;
            }
            Answer::Release(objects) => {
                objects.iter().for_each(|object| world.remove(Metal3Data::KIND, object));
                world.remove(Metal3DataClaim::KIND, &name);
                continue;
            }
        };
        if let Some(mut claim) = world.get::<Metal3DataClaim>(&name) {
            claim.metadata.finalizers = Some(vec![DATA_CLAIM_FINALIZER.to_owned()]);
            claim.status.rendered_data = data.map(|name| Metal3ObjectRef {
                name: Some(name),
                namespace: claim.metadata.namespace.clone(),
            });
            world.apply(&json!(claim));
        }
    }
    refused
}

fn mark_deleted(world: &mut World, kind: &str, name: &str) {
    if let Some(mut object) = world.raw(kind, name).cloned() {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("deletionTimestamp".into(), "2026-01-01T00:00:00Z".into());
        }
        world.apply(&object);
    }
}

fn show(world: &World, refused: bool) -> Value {
    let template = world.all::<Metal3DataTemplate>().pop().unwrap_or_default();
    let objects = world.all::<Metal3Data>();
    let allocation = index::allocate(&template, &objects.iter().collect::<Vec<_>>(), &[], |_| false);
    let claim = |claim: Metal3DataClaim| {
        json!({
            "name": claim.metadata.name,
            "deleting": claim.metadata.deletion_timestamp.is_some(),
            "finalizers": claim.metadata.finalizers,
            "status": claim.status,
        })
    };
    let object = |object: &Metal3Data| {
        let mut object = json!(object);
        object
            .as_object_mut()
            .map(|object| object.insert("status".into(), json!({})));
        object
            .pointer_mut("/metadata")
            .and_then(Value::as_object_mut)
            .map(|metadata| metadata.remove("uid"));
        object
    };
    let mut shown = Map::new();
    shown.insert("claims".into(), world.all().into_iter().map(claim).collect());
    if !objects.is_empty() {
        shown.insert("metal3Datas".into(), objects.iter().map(object).collect());
    }
    if refused {
        shown.insert("error".into(), true.into());
    }
    shown.insert("templateIndexes".into(), json!(allocation.published));
    shown.insert(
        "templateOwnerReferences".into(),
        json!(template.metadata.owner_references),
    );
    shown.into()
}
