//! The claim on the endpoint of a deleted, paused or live object.

use metal3_api::ipam::v1alpha1::IPClaim;

use super::*;
use crate::endpoint::held_claims::GrantedAddress;

fn held_claims(is_deleting: bool) -> HeldClaims {
    let claim: IPClaim = serde_json::from_value(json!({
        "metadata": {
            "name": "edge-control-plane-endpoint", "namespace": "metal", "uid": "i1", "resourceVersion": "8",
            "finalizers": ["metal3cluster.infrastructure.cluster.x-k8s.io"],
            "deletionTimestamp": is_deleting.then_some("2026-01-01T00:00:00Z"),
            "ownerReferences": [{
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Cluster", "name": "edge", "uid": "u1",
            }],
        },
        "spec": { "pool": { "name": "vips" } },
    }))
    .unwrap();
    HeldClaims {
        all: HeldClaim::metal3(&claim, GrantedAddress::Address("192.0.2.7".to_owned()))
            .into_iter()
            .collect(),
        unreadable: None,
    }
}

fn plan_deleting(change: Value, held_claims: &HeldClaims, descendant: Option<&str>) -> Plan {
    let mut document = json!({ "metadata": {
        "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["metal3cluster.infrastructure.cluster.x-k8s.io"],
    } });
    apply(&change, &mut document);
    let (object, cluster) = (object(document), cluster(json!({})));
    plan(&Facts {
        descendant,
        held_claims,
        ..facts(&object, Observed::Present(&cluster), &SourceValues::default())
    })
}

#[test]
fn claim_is_released_after_the_last_machine_and_before_the_finalizer() {
    for is_deleting in [false, true] {
        let held_claims = held_claims(is_deleting);
        let waits = plan_deleting(json!({}), &held_claims, Some("m0"));
        assert_eq!((waits.release.len(), &waits.action), (0, &None), "a machine is left");
        let gives = plan_deleting(json!({}), &held_claims, None);
        assert_eq!((&gives.release, &gives.action), (&held_claims.all, &None));
        assert!(!gives.is_idle());
    }
    let goes = plan_deleting(json!({}), &NO_HOLDS, None);
    assert_eq!(goes.release, []);
    assert_eq!(patched(&goes)["metadata"]["finalizers"], json!([]));
}

#[test]
fn object_waits_for_an_unreadable_claim_and_reports_it() {
    let unreadable = HeldClaims {
        unreadable: Some("IPClaim metal/edge-control-plane-endpoint: odd".to_owned()),
        ..HeldClaims::default()
    };
    let waits = plan_deleting(json!({}), &unreadable, None);
    assert_eq!(waits.action, None);
    let status = waits.status.unwrap();
    let ready = status.conditions.iter().find(|one| one.type_ == "Ready").unwrap();
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
        let plan = plan_deleting(
            json!({ "metadata": { "annotations": { annotation: "" } } }),
            &deleting,
            None,
        );
        assert_eq!((plan.release.len(), plan.action), (0, None), "{annotation}");
    }
    let object = object(json!({}));
    let unseen = Observed::Unknown(UnknownReason::Unreadable("odd".to_owned()));
    let plan = plan(&Facts {
        held_claims: &deleting,
        ..facts(&object, unseen, &SourceValues::default())
    });
    assert_eq!(plan, Plan::default());
}

#[test]
fn deleted_claim_that_is_not_the_endpoint_is_released_with_the_other_writes() {
    // The endpoint of the object is another address.
    let (object, cluster) = (object(json!({})), cluster(json!({})));
    for (is_deleting, released) in [(true, 1), (false, 0)] {
        let held_claims = held_claims(is_deleting);
        for cluster in [Observed::Present(&cluster), Observed::Absent] {
            let plan = plan(&Facts {
                held_claims: &held_claims,
                ..facts(&object, cluster, &SourceValues::default())
            });
            assert_eq!(plan.release.len(), released);
            assert!(plan.status.is_some());
        }
    }
}
