//! The claim on the endpoint of an object that goes, rests or lives.

use metal3_api::ipam::v1alpha1::IPClaim;

use super::*;
use crate::endpoint::hold::Granted;

fn holds(is_going: bool) -> Holds {
    let claim: IPClaim = serde_json::from_value(json!({
        "metadata": {
            "name": "edge-control-plane-endpoint", "namespace": "metal", "uid": "i1", "resourceVersion": "8",
            "finalizers": ["metal3cluster.infrastructure.cluster.x-k8s.io"],
            "deletionTimestamp": is_going.then_some("2026-01-01T00:00:00Z"),
            "ownerReferences": [{
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Cluster", "name": "edge", "uid": "u1",
            }],
        },
        "spec": { "pool": { "name": "vips" } },
    }))
    .unwrap();
    Holds {
        all: Hold::metal3(&claim, Granted::Address("192.0.2.7".to_owned()))
            .into_iter()
            .collect(),
        hidden: None,
    }
}

/// The plan for an object that is deleted.
fn leaving(change: Value, holds: &Holds, descendant: Option<&str>) -> Plan {
    let mut document = json!({ "metadata": {
        "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["metal3cluster.infrastructure.cluster.x-k8s.io"],
    } });
    apply(&change, &mut document);
    let (object, cluster) = (object(document), cluster(json!({})));
    plan(&Facts {
        descendant,
        holds,
        ..facts(&object, Observed::Present(&cluster), &Readings::default())
    })
}

#[test]
fn claim_is_given_back_after_the_last_machine_and_before_the_object_may_go() {
    for is_going in [false, true] {
        let holds = holds(is_going);
        let waits = leaving(json!({}), &holds, Some("m0"));
        assert_eq!((waits.release.len(), &waits.action), (0, &None), "a machine is left");
        let gives = leaving(json!({}), &holds, None);
        assert_eq!((&gives.release, &gives.action), (&holds.all, &None));
        assert!(!gives.is_idle());
    }
    let goes = leaving(json!({}), &NO_HOLDS, None);
    assert_eq!(goes.release, []);
    assert_eq!(patched(&goes)["metadata"]["finalizers"], json!([]));
}

#[test]
fn object_waits_for_a_claim_that_cannot_be_read_and_says_so() {
    let hidden = Holds {
        hidden: Some("IPClaim metal/edge-control-plane-endpoint: odd".to_owned()),
        ..Holds::default()
    };
    let waits = leaving(json!({}), &hidden, None);
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
fn nothing_is_given_back_for_an_object_that_rests_or_lives_elsewhere_or_whose_cluster_cannot_be_read() {
    let going = holds(true);
    for annotation in [
        "cluster.x-k8s.io/paused",
        "clusterctl.cluster.x-k8s.io/delete-for-move",
        "cluster.x-k8s.io/managed-by",
    ] {
        let plan = leaving(
            json!({ "metadata": { "annotations": { annotation: "" } } }),
            &going,
            None,
        );
        assert_eq!((plan.release.len(), plan.action), (0, None), "{annotation}");
    }
    let object = object(json!({}));
    let unseen = Observed::Unknown(UnknownReason::Unreadable("odd".to_owned()));
    let plan = plan(&Facts {
        holds: &going,
        ..facts(&object, unseen, &Readings::default())
    });
    assert_eq!(plan, Plan::default());
}

#[test]
fn claim_that_is_deleted_is_given_back_beside_what_else_is_done_for_an_object_that_does_not_need_it() {
    // The endpoint of the object is another.
    let (object, cluster) = (object(json!({})), cluster(json!({})));
    for (is_going, given_back) in [(true, 1), (false, 0)] {
        let holds = holds(is_going);
        for cluster in [Observed::Present(&cluster), Observed::Absent] {
            let plan = plan(&Facts {
                holds: &holds,
                ..facts(&object, cluster, &Readings::default())
            });
            assert_eq!(plan.release.len(), given_back);
            assert!(plan.status.is_some());
        }
    }
}
