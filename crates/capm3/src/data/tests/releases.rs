//! Pause, release and leftover claims of a Metal3Data.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::infrastructure::v1beta2::Metal3DataClaim;
use metal3_runtime::cache::Key;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::queue::Outcome;
use metal3_runtime::work::Next;
use serde_json::json;

use super::super::claims::ClaimState;
use super::super::object::action::{Action, Plan, Read};
use super::super::object::facts::{Facts, PoolClaim, Rejection, Rendering, Responses};
use super::super::object::plan::{Waiting, plan};
use super::super::reason;
use super::{Fixture, fixture, metadata, name, owner, pool_claim, read};

/// A Metal3Data that was created for the claim `uid-w-0`, and what is known of other objects.
struct Case {
    fixture: Fixture,
    exists: bool,
    claim: Observed<Arc<Metal3DataClaim>>,
    owned: Vec<PoolClaim>,
    unreadable: Option<Next>,
    responses: Responses,
}

impl Case {
    /// It is live. Nothing else exists, and nothing was read live.
    fn live() -> Self {
        let mut fixture = fixture(json!({}));
        fixture.data.metadata.owner_references = read(owner("Metal3DataClaim", "w-0", "uid-w-0"));
        Self {
            fixture,
            exists: true,
            claim: Observed::Absent,
            owned: Vec::new(),
            unreadable: None,
            responses: Responses::default(),
        }
    }

    /// It is in deletion, with the finalizer.
    fn deleting() -> Self {
        let mut case = Self::live();
        let meta = &mut case.fixture.data.metadata;
        meta.finalizers = read(json!(["metal3data.infrastructure.cluster.x-k8s.io", "other"]));
        meta.deletion_timestamp = read(json!("2026-01-01T00:00:00Z"));
        case
    }

    fn plan(&self) -> Plan {
        plan(&Facts {
            key: &Key::of(&self.fixture.data),
            data: self.exists.then_some(&self.fixture.data),
            cluster: Observed::Absent,
            rendering: self.fixture.rendering(),
            claim: self.claim.clone(),
            owned: self.owned.clone(),
            unreadable: self.unreadable.clone(),
            responses: &self.responses,
        })
    }
}

/// An object of this UID: absent without one, unknown for `?`.
fn observed(uid: &str) -> Observed<ObjectMeta> {
    match uid {
        "?" => Observed::Unknown(UnknownReason::NotRead),
        "" => Observed::Absent,
        uid => Observed::Present(read(json!({ "uid": uid }))),
    }
}

/// The names of the released claims, with `!` when they are deleted too.
fn released(plan: &Plan) -> String {
    let name = |action: &Action| match action {
        Action::Release { release, .. } if release.delete => format!("{}!", release.observed.key.name),
        Action::Release { release, .. } => release.observed.key.name.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(plan.next, Next::Requeue);
    plan.actions.iter().map(name).collect::<Vec<_>>().join(" ")
}

#[test]
fn addresses_are_released_only_when_a_live_read_shows_that_the_claim_is_deleted() {
    let mut case = Case::deleting();
    case.owned = vec![pool_claim("a", "uid-tpl-2", false), pool_claim("b", "uid-old", true)];
    let held = Plan::waiting(reason::CLAIM_EXISTS, "waiting for Metal3DataClaim w-0 to be deleted");
    let reading = Plan::reading(vec![Read::Claim(Key::of(&case.fixture.data).sibling("w-0"))]);
    for (cached, live, expected) in [
        ("?", "?", Some(&held)),
        ("uid-w-0", "?", Some(&held)),
        ("", "?", Some(&reading)),
        ("uid-new", "?", Some(&reading)),
        ("", "uid-w-0", Some(&held)),
        ("", "uid-new", None),
        ("", "", None),
    ] {
        case.responses.claim = observed(live);
        case.claim = observed(cached).map(|metadata| {
            let claim = Metal3DataClaim::default();
            Arc::new(Metal3DataClaim { metadata, ..claim })
        });
        let plan = case.plan();
        match expected {
            Some(expected) => assert_eq!(&plan, expected),
            None => assert_eq!(released(&plan), "a! b"),
        }
    }
}

#[test]
fn finalizer_is_removed_after_the_last_claim() {
    let mut case = Case::deleting();
    case.responses.claim = Observed::Absent;
    let plan = case.plan();
    let [Action::Patch(patch)] = &plan.actions[..] else {
        panic!("{plan:?}")
    };
    let document = patch.clone().into_document();
    assert_eq!(document["metadata"]["finalizers"], json!(["other"]));
    assert_eq!(plan.next, Next::Done);
}

#[test]
fn claim_of_an_earlier_object_is_released_after_a_live_read() {
    let mut case = Case::deleting();
    case.fixture.data.metadata.finalizers = None;
    case.owned = vec![pool_claim("b", "uid-tpl-2", true), pool_claim("c", "uid-tpl-2", false)];
    assert_eq!(case.plan(), Plan::default(), "they belong to the cached object");
    case.exists = false;
    assert_eq!(case.plan(), Plan::reading(vec![Read::Data]));
    case.responses.data = observed("uid-tpl-2");
    assert_eq!(case.plan(), Plan::default());
    for uid in ["", "uid-new"] {
        case.responses.data = observed(uid);
        assert_eq!(released(&case.plan()), "b");
    }
}

/// A live Metal3Data that its claim names, whose claim on pool `p` is in deletion.
fn with_claim_in_deletion(state: ClaimState, claim: PoolClaim) -> Case {
    let mut case = Case::live();
    case.fixture = fixture(json!({ "metaData": { "ipAddressesFromPool": [{ "key": "ip", "name": "p" }] } }));
    let data = &mut case.fixture.data;
    data.metadata.owner_references = read(owner("Metal3DataClaim", "w-0", "uid-w-0"));
    data.metadata.finalizers = read(json!(["metal3data.infrastructure.cluster.x-k8s.io"]));
    data.spec.meta_data = read(json!({ "name": "w-0-metadata", "namespace": "lab" }));
    case.fixture.claim.status.rendered_data = read(json!({ "name": "tpl-2", "namespace": "lab" }));
    let rendering = &mut case.fixture.rendering;
    rendering.claims.metal3.insert(name("tpl-2-p"), state);
    rendering.deleting = vec![claim];
    case
}

/// An earlier Metal3Data of this name ended without releasing it, or its owner was lost.
#[test]
fn claim_in_deletion_of_an_earlier_object_is_released_while_the_new_one_lives() {
    let mut unowned = pool_claim("tpl-2-p", "uid-old", true);
    if let PoolClaim::Metal3(claim) = &mut unowned {
        Arc::make_mut(claim).metadata.owner_references = None;
    }
    for claim in [pool_claim("tpl-2-p", "uid-old", true), unowned] {
        let mut case = with_claim_in_deletion(ClaimState::Deleting { is_owned: false }, claim);
        assert_eq!(case.plan(), Plan::reading(vec![Read::Data]));
        // The cached object is the earlier one.
        for uid in ["uid-new", ""] {
            case.responses.data = observed(uid);
            assert_eq!(case.plan(), Plan::default());
        }
        case.responses.data = observed("uid-tpl-2");
        let host = Key::of(&case.fixture.data).sibling("host-7");
        assert_eq!(case.plan(), Plan::reading(vec![Read::Host(host.clone())]));
        case.responses.host = Some(host);
        assert_eq!(released(&case.plan()), "tpl-2-p");
    }
}

#[test]
fn own_claim_in_deletion_is_released_after_live_reads() {
    let claim = pool_claim("tpl-2-p", "uid-tpl-2", true);
    let mut case = with_claim_in_deletion(ClaimState::Deleting { is_owned: true }, claim);
    case.responses.data = observed("uid-tpl-2");
    // The cache of hosts may be older than the image.
    let host = Key::of(&case.fixture.data).sibling("host-7");
    assert_eq!(case.plan(), Plan::reading(vec![Read::Host(host.clone())]));
    case.responses.host = Some(host);
    assert_eq!(released(&case.plan()), "tpl-2-p");
    case.fixture.host.spec.image = read(json!({ "url": "http://192.0.2.9/os.raw" }));
    assert_eq!(case.plan().actions, [], "the read shows an image");
}

#[test]
fn pause_stops_releases_and_a_missing_cluster_stops_only_new_data() {
    let mut case = Case::deleting();
    case.responses.claim = Observed::Absent;
    case.fixture.data.metadata.labels = read(json!({ "cluster.x-k8s.io/cluster-name": "alpha" }));
    assert_eq!(case.plan().actions.len(), 1);
    case.fixture.data.metadata.deletion_timestamp = None;
    let missing = Plan::waiting(reason::CLUSTER_NOT_FOUND, "waiting for Cluster lab/alpha");
    assert_eq!(case.plan(), missing);
    case.fixture.data.metadata.annotations = read(json!({ "cluster.x-k8s.io/paused": "" }));
    assert_eq!(case.plan(), Plan::default());
}

#[test]
fn rejection_of_a_new_object_is_only_recorded() {
    let mut case = Case::live();
    case.responses.rejection = Some(Rejection {
        message: "the API server rejects it".to_owned(),
        is_unserved: false,
    });
    let Plan { status, .. } = case.plan();
    let recorded = status.clone().unwrap().into_document();
    assert_eq!(
        recorded["status"],
        json!({ "errorMessage": "the API server rejects it" })
    );
    assert_eq!(
        case.plan(),
        Plan {
            status,
            ..Plan::default()
        }
    );
}

#[test]
fn claim_whose_kind_is_not_served_is_created_again_within_a_minute() {
    let mut case = Case::live();
    let message = "the API server does not serve the kind";
    case.responses.rejection = Some(Rejection {
        message: message.to_owned(),
        is_unserved: true,
    });
    let plan = case.plan();
    assert_eq!(plan.next.outcome(), Outcome::RequeueAfter(Duration::from_mins(1)));
    assert_eq!(
        plan.status.unwrap().into_document()["status"],
        json!({ "errorMessage": message })
    );
    case.fixture.data.status.error_message = Some(message.to_owned());
    assert_eq!(case.plan().status, None, "each minute without another write");
}

#[test]
fn data_object_that_its_claim_does_not_name_is_left_alone() {
    for (uid, named, why) in [
        ("uid-w-0", "tpl-3", "does not name this Metal3Data"),
        ("uid-new", "tpl-2", "has another UID than the owner reference"),
    ] {
        let (mut case, mut meta) = (Case::live(), metadata("w-0"));
        meta["uid"] = uid.into();
        let status = json!({ "renderedData": { "name": named } });
        case.fixture.claim = read(json!({ "metadata": meta, "spec": {}, "status": status }));
        let expected = Plan::waiting(reason::NOT_NAMED, format!("Metal3DataClaim w-0 {why}"));
        assert_eq!(case.plan(), expected);
    }
}

#[test]
fn data_object_whose_claim_is_not_in_the_cache_gets_no_finalizer() {
    let (mut case, mut meta) = (Case::live(), metadata("w-0"));
    meta["uid"] = "uid-w-0".into();
    meta["ownerReferences"] = owner("Metal3Machine", "w-0", "uid-w-0");
    let status = json!({ "renderedData": { "name": "tpl-2" } });
    case.fixture.claim = read(json!({ "metadata": meta, "spec": {}, "status": status }));
    assert!(
        matches!(case.plan().actions[..], [Action::Patch(_)]),
        "its claim names it"
    );
    let plan = plan(&Facts {
        key: &Key::of(&case.fixture.data),
        data: Some(&case.fixture.data),
        cluster: Observed::Absent,
        rendering: Rendering {
            claim: None,
            ..case.fixture.rendering()
        },
        claim: Observed::Absent,
        owned: Vec::new(),
        unreadable: None,
        responses: &case.responses,
    });
    let waiting = Waiting::Claim("w-0".to_owned());
    assert_eq!(
        (plan.actions, plan.next),
        (Vec::new(), Next::waiting(reason::WAITING, waiting.to_string()))
    );
}

#[test]
fn object_that_cannot_be_read_is_reported_in_the_status_until_it_is_corrected() {
    let mut case = Case::live();
    let template = Key::of(&case.fixture.data).sibling("tpl");
    case.fixture.data.metadata.finalizers = read(json!(["metal3data.infrastructure.cluster.x-k8s.io"]));
    let shown = |case: &Case| case.plan().status.map(|patch| patch.into_document()["status"].take());
    let wait = |why: &UnknownReason| reason::unreadable("Metal3DataTemplate", &template, why);

    let wrong = UnknownReason::Unreadable("spec.metaData: invalid type".to_owned());
    case.unreadable = Some(wait(&wrong));
    let message = "Metal3DataTemplate lab/tpl cannot be read: spec.metaData: invalid type; correct it";
    assert_eq!(shown(&case).unwrap()["errorMessage"], message);
    assert_eq!(case.plan().next, Next::waiting(reason::OBJECT_UNREADABLE, message));
    assert_eq!(case.plan().actions, []);

    case.unreadable = Some(wait(&UnknownReason::NotPermitted));
    let message = "Metal3DataTemplate lab/tpl cannot be read: this program may not list its kind; apply the roles of this release";
    assert_eq!(shown(&case).unwrap()["errorMessage"], message);
    let later = Next::waiting_with_recheck(reason::OBJECT_UNREADABLE, message, Duration::from_mins(1));
    assert_eq!(case.plan().next, later);

    // An object that was not listed yet is no error.
    case.unreadable = Some(wait(&UnknownReason::NotListed));
    assert_eq!(shown(&case), None);
}
