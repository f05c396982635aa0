//! The claim on the endpoint of a deleted, paused or live object.

use std::time::Duration;

use metal3_runtime::queue::Outcome;

use super::*;
use crate::endpoint::tests::held_claims as claims;

fn held_claims(is_deleting: bool) -> HeldClaims {
    claims::held_claims(&["u1"], is_deleting, claims::granted("192.0.2.7"))
}

fn plan_deleting(change: Value, held_claims: HeldClaims, descendant: Option<&str>) -> Plan {
    let mut document = deleting(&[FINALIZER]);
    apply(&change, &mut document);
    plan(&Facts {
        descendant: descendant.map(str::to_owned),
        held_claims,
        ..facts(&object(document), Observed::Present(&cluster(json!({}))))
    })
}

#[test]
fn claim_is_released_after_the_last_machine_and_before_the_finalizer() {
    for is_deleting in [false, true] {
        let held_claims = held_claims(is_deleting);
        let waits = plan_deleting(json!({}), held_claims.clone(), Some("m0"));
        assert_eq!(
            (waits.actions, waits.next),
            (vec![], Next::Requeue),
            "a machine is left"
        );
        let gives = plan_deleting(json!({}), held_claims.clone(), None);
        assert_eq!((released(&gives), change(&gives)), (held_claims.all, None));
        assert_eq!(gives.next, Next::Requeue);
    }
    let goes = plan_deleting(json!({}), HeldClaims::default(), None);
    assert_eq!(released(&goes), []);
    assert_eq!(patched(&goes)["metadata"]["finalizers"], json!([]));
}

/// The cached machines may be behind.
#[test]
fn nothing_is_given_up_before_the_machines_are_listed_live() {
    let live = |object: Value, held_claims: HeldClaims| {
        let facts = Facts {
            machines_are_live: false,
            held_claims,
            ..facts(&self::object(object), Observed::Present(&cluster(json!({}))))
        };
        (plan(&facts).reads, plan(&facts).actions.len())
    };
    let reads = (vec![Read::Machines], 0);
    assert_eq!(live(deleting(&[FINALIZER]), HeldClaims::default()), reads);
    assert_eq!(live(deleting(&[]), held_claims(false)), reads);
    assert_eq!(live(deleting(&[]), HeldClaims::default()), (vec![], 0));
}

#[test]
fn object_waits_for_an_unreadable_claim_and_reports_it() {
    let unreadable = HeldClaims {
        unreadable: Some("IPClaim metal/edge-control-plane-endpoint: odd".to_owned()),
        ..HeldClaims::default()
    };
    let waits = plan_deleting(json!({}), unreadable.clone(), None);
    assert_eq!(change(&waits), None);
    // A list without claims, once it is permitted, wakes nothing.
    let settled = Facts {
        held_claims: unreadable,
        ..facts(
            &after(&object(deleting(&[FINALIZER])), &waits),
            Observed::Present(&cluster(json!({}))),
        )
    };
    assert_eq!(
        plan(&settled).next.outcome(),
        Outcome::RequeueAfter(Duration::from_mins(1))
    );
    let ready = condition(&waits, "Ready");
    assert_eq!(ready.reason, "Deleting");
    assert!(
        ready.message.contains("cannot be read: IPClaim metal/edge"),
        "{}",
        ready.message
    );
}

#[test]
fn nothing_is_released_for_a_paused_or_moved_object_or_with_an_unreadable_cluster() {
    let deleting = held_claims(true);
    for annotation in [
        "cluster.x-k8s.io/paused",
        "clusterctl.cluster.x-k8s.io/delete-for-move",
        "cluster.x-k8s.io/managed-by",
    ] {
        let annotated = json!({ "metadata": { "annotations": { annotation: "" } } });
        let plan = plan_deleting(annotated, deleting.clone(), None);
        assert_eq!(plan.actions, [], "{annotation}");
    }
    let plan = plan(&Facts {
        held_claims: deleting,
        ..facts(&object(json!({})), unreadable_cluster())
    });
    assert_eq!(plan, Plan::default());
}

#[test]
fn deleted_claim_that_is_not_the_endpoint_is_released_with_the_other_writes() {
    // The endpoint of the object is another address.
    let (object, cluster) = (object(json!({})), cluster(json!({})));
    for is_deleting in [true, false] {
        let held_claims = held_claims(is_deleting);
        for cluster in [Observed::Present(&cluster), Observed::Absent] {
            let plan = plan(&Facts {
                held_claims: held_claims.clone(),
                ..facts(&object, cluster)
            });
            let expected = if is_deleting { &held_claims.all[..] } else { &[] };
            assert_eq!(released(&plan), expected);
            let is_last = matches!(plan.actions.last(), Some(Action::Release(_)));
            assert_eq!((is_last, status(&plan).conditions.is_empty()), (is_deleting, false));
        }
    }
}

#[test]
fn claim_of_an_object_that_is_not_in_the_cache_is_released_once_a_live_read_finds_none() {
    let unread = Observed::Unknown(UnknownReason::NotRead);
    let (kept, deleting) = (held_claims(false), held_claims(true));
    assert_eq!(
        plan_deleted(&kept, &unread),
        Default::default(),
        "the claim is not deleted"
    );
    let first = plan_deleted(&deleting, &unread);
    assert_eq!((first.reads, first.actions), (vec![Read::Object], vec![]));
    let exists = plan_deleted(&deleting, &Observed::Present(object(json!({}))));
    assert_eq!((exists.actions, exists.next), (vec![], Next::Done));
    let gone = plan_deleted(&deleting, &Observed::Absent);
    assert_eq!((gone.actions, gone.next), (deleting.all, Next::Requeue));
}
