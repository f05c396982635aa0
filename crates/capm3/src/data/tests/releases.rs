//! Pause, release and leftover claims of a Metal3Data.

use std::sync::Arc;

use metal3_runtime::cache::Key;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::Next;
use serde_json::{Value, json};

use super::super::object::action::{Action, Plan, Read};
use super::super::object::facts::{Facts, PoolClaim, Responses};
use super::super::object::plan::plan;
use super::super::reason;
use super::{Fixture, fixture, metadata, owner, pool_claim, read};

const FINALIZER: &str = "metal3data.infrastructure.cluster.x-k8s.io";

/// The cached and the live claim, and the live Metal3Data. `None`: it was not read.
#[derive(Clone, Copy)]
struct Found {
    claim: Option<&'static str>,
    live_claim: Option<&'static str>,
    live_data: Option<&'static str>,
}

/// Nothing is cached, and nothing was read.
const NOTHING: Found = Found {
    claim: Some(""),
    live_claim: None,
    live_data: None,
};

/// An object of this UID; of no UID, none.
fn observed<T: serde::de::DeserializeOwned>(uid: Option<&str>, wrap: impl Fn(Value) -> Value) -> Observed<T> {
    match uid {
        None => Observed::Unknown(UnknownReason::NotRead),
        Some("") => Observed::Absent,
        Some(uid) => Observed::Present(read(wrap(json!({ "name": "w-0", "namespace": "lab", "uid": uid })))),
    }
}

/// The Metal3Data in deletion, with the finalizer, created for the claim `uid-w-0`.
fn deleting() -> Fixture {
    let mut fixture = fixture(json!({}));
    let meta = &mut fixture.data.metadata;
    meta.finalizers = Some(vec![FINALIZER.to_owned(), "other".to_owned()]);
    meta.owner_references = read(owner("Metal3DataClaim", "w-0", "uid-w-0"));
    meta.deletion_timestamp = read(json!("2026-01-01T00:00:00Z"));
    fixture
}

fn facts<'a>(fixture: &'a Fixture, key: &'a Key, responses: &'a Responses) -> Facts<'a> {
    Facts {
        key,
        data: Some(&fixture.data),
        cluster: Observed::Absent,
        rendering: fixture.rendering(),
        claim: Observed::Absent,
        owned: Vec::new(),
        unreadable: None,
        responses,
    }
}

fn planned(fixture: &Fixture, exists: bool, owned: Vec<PoolClaim>, found: Found) -> Plan {
    let responses = Responses {
        claim: observed(found.live_claim, |meta| meta),
        data: observed(found.live_data, |meta| meta),
        rejection: None,
    };
    plan(&Facts {
        data: exists.then_some(&fixture.data),
        claim: observed(found.claim, |meta| json!({ "metadata": meta, "spec": {} })).map(Arc::new),
        owned,
        ..facts(fixture, &Key::of(&fixture.data), &responses)
    })
}

/// The names of the released claims, with `!` when they are deleted too.
fn released(plan: &Plan) -> Vec<String> {
    let name = |action: &Action| match action {
        Action::Release { release, .. } => {
            let mark = if release.delete { "!" } else { "" };
            format!("{}{mark}", release.observed.key.name)
        }
        other => panic!("{other:?}"),
    };
    plan.actions.iter().map(name).collect()
}

#[test]
fn addresses_are_released_only_when_a_live_read_shows_that_the_claim_is_deleted() {
    let fixture = deleting();
    let owned = || vec![pool_claim("a", "uid-tpl-2", false), pool_claim("b", "uid-old", true)];
    let held = Plan::waiting(reason::CLAIM_EXISTS, "waiting for Metal3DataClaim w-0 to be deleted");
    let reading = Plan::reading(vec![Read::Claim(Key::of(&fixture.data).sibling("w-0"))]);
    for (claim, live_claim, expected) in [
        (None, None, Some(&held)),
        (Some("uid-w-0"), None, Some(&held)),
        (Some(""), None, Some(&reading)),
        (Some("uid-new"), None, Some(&reading)),
        (Some(""), Some("uid-w-0"), Some(&held)),
        (Some(""), Some("uid-new"), None),
        (Some(""), Some(""), None),
    ] {
        let found = Found {
            claim,
            live_claim,
            ..NOTHING
        };
        let plan = planned(&fixture, true, owned(), found);
        match expected {
            Some(expected) => assert_eq!(&plan, expected),
            None => assert_eq!(
                (released(&plan), plan.next),
                (vec!["a!".into(), "b".into()], Next::Requeue)
            ),
        }
    }
}

#[test]
fn finalizer_is_removed_after_the_last_claim() {
    let found = Found {
        live_claim: Some(""),
        ..NOTHING
    };
    let plan = planned(&deleting(), true, Vec::new(), found);
    let [Action::Patch(patch)] = &plan.actions[..] else {
        panic!("{plan:?}")
    };
    let document = patch.clone().into_document();
    assert_eq!(document["metadata"]["finalizers"], json!(["other"]));
    assert_eq!(plan.next, Next::Done);
}

#[test]
fn claim_of_an_earlier_object_is_released_after_a_live_read() {
    let mut fixture = deleting();
    fixture.data.metadata.finalizers = None;
    let orphan = || vec![pool_claim("b", "uid-tpl-2", true), pool_claim("c", "uid-tpl-2", false)];
    let with = |live_data| Found { live_data, ..NOTHING };
    assert_eq!(
        planned(&fixture, true, orphan(), with(None)),
        Plan::default(),
        "it belongs to the cached object"
    );
    assert_eq!(
        planned(&fixture, false, orphan(), with(None)),
        Plan::reading(vec![Read::Data])
    );
    assert_eq!(
        planned(&fixture, false, orphan(), with(Some("uid-tpl-2"))),
        Plan::default()
    );
    for live_data in [Some(""), Some("uid-new")] {
        let plan = planned(&fixture, false, orphan(), with(live_data));
        assert_eq!((released(&plan), plan.next), (vec!["b".to_owned()], Next::Requeue));
    }
}

#[test]
fn pause_stops_releases_and_a_missing_cluster_stops_only_new_data() {
    let mut fixture = deleting();
    let released = Found {
        live_claim: Some(""),
        ..NOTHING
    };
    let labels = json!({ "cluster.x-k8s.io/cluster-name": "alpha" });
    fixture.data.metadata.labels = read(labels);
    assert_eq!(planned(&fixture, true, Vec::new(), released).actions.len(), 1);
    fixture.data.metadata.annotations = Some([("cluster.x-k8s.io/paused".to_owned(), String::new())].into());
    assert_eq!(planned(&fixture, true, Vec::new(), released), Plan::default());
    fixture.data.metadata.annotations = None;
    fixture.data.metadata.deletion_timestamp = None;
    assert_eq!(
        planned(&fixture, true, Vec::new(), NOTHING),
        Plan::waiting(reason::CLUSTER_NOT_FOUND, "waiting for Cluster lab/alpha")
    );
}

#[test]
fn rejection_of_a_new_object_is_only_recorded() {
    let fixture = fixture(json!({}));
    let message = "the API server rejects it".to_owned();
    let responses = Responses {
        rejection: Some(message.clone()),
        ..Responses::default()
    };
    let key = Key::of(&fixture.data);
    let plan = plan(&facts(&fixture, &key, &responses));
    let status = plan.status.unwrap().into_document();
    assert_eq!(status["status"], json!({ "errorMessage": message }));
    assert_eq!(
        (plan.actions, plan.events, plan.next),
        (Vec::new(), Vec::new(), Next::Done)
    );
}

#[test]
fn unclaimed_data_object_is_left_alone() {
    let mut fixture = fixture(json!({}));
    let responses = Responses::default();
    let key = Key::of(&fixture.data);
    for (uid, answer, why) in [
        ("uid-w-0", "tpl-3", "does not name this Metal3Data"),
        ("uid-new", "tpl-2", "has another UID than the owner reference"),
    ] {
        fixture.data.metadata.owner_references = read(owner("Metal3DataClaim", "w-0", "uid-w-0"));
        let mut meta = metadata("w-0");
        meta["uid"] = uid.into();
        fixture.claim = read(json!({ "metadata": meta, "spec": {}, "status": { "renderedData": { "name": answer } } }));
        let plan = plan(&facts(&fixture, &key, &responses));
        assert_eq!(
            plan,
            Plan::waiting(reason::NOT_NAMED, format!("Metal3DataClaim w-0 {why}"))
        );
    }
}
