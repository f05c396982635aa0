//! Objects of a machine that users change or delete by hand.

use metal3_api::infrastructure::v1beta2::Metal3DataClaim;
use serde_json::{Value, json};

use super::case::{Case, FINALIZER, blank, condition_of, document, writes};
use super::simulation::read;
use crate::machine::action::{Plan, Reads};

const DATA: &str = "Metal3DataReady";
const HOST: &str = "AssociateBareMetalHost";

/// The machine's own claim on data, which names `data-m0`.
fn own_claim(deleted: Option<&str>) -> Metal3DataClaim {
    let owner = json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Machine", "name": "m0", "uid": "uid-m0" });
    let meta = json!({ "deletionTimestamp": deleted, "finalizers": [FINALIZER], "ownerReferences": [owner] });
    let status = json!({ "renderedData": { "name": "data-m0" } });
    read(&document(
        json!({ "metadata": meta, "status": status }),
        "m0",
        json!({}),
    ))
}

/// A machine whose host has no image yet.
fn unprovisioned() -> Case {
    Case::running().machine(json!({ "status": null })).host(blank())
}

#[test]
fn own_data_claim_that_is_deleted_before_the_host_has_an_image_is_released_and_made_again() {
    let mut case = unprovisioned();
    case.claim = Some(own_claim(Some("2026-01-01T00:00:00Z")));
    assert_eq!(case.decide(), Plan::reading(Reads::Host("h0".to_owned())));
    case.is_live = true;
    assert_eq!(case.decide(), Plan::reading(Reads::Machine));
    case.confirmed = true;
    let plan = case.decide();
    assert!(writes(&plan).contains(&"patch claim".to_owned()), "{:?}", writes(&plan));
    assert_eq!(
        condition_of(&plan, DATA).1,
        "waiting for Metal3DataClaim m0 to be deleted"
    );
    case.claim = None;
    assert!(writes(&case.decide()).contains(&"create claim".to_owned()));
}

#[test]
fn own_data_claim_is_kept_while_the_host_may_run_with_the_data() {
    let deleted = Some("2026-01-01T00:00:00Z");
    let busy = json!({ "status": { "provisioning": { "state": "deprovisioning" } } });
    let cases = [
        Case::running().machine(json!({ "status": { "renderedData": null } })),
        unprovisioned().host(busy),
        unprovisioned().with(|case| case.unreadable = Some("spec: wrong")),
        Case::running().host(json!({ "spec": { "consumerRef": null } })),
    ];
    for mut case in cases {
        case.claim = Some(own_claim(deleted));
        (case.confirmed, case.is_live) = (true, true);
        let plan = case.decide();
        assert!(
            !writes(&plan).contains(&"patch claim".to_owned()),
            "{:?}",
            writes(&plan)
        );
    }
}

#[test]
fn own_data_claim_is_deleted_with_its_data_before_the_host_has_an_image() {
    let data = |uid: &str, deleted: Option<&str>| -> Value {
        let owner = json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3DataClaim", "name": "m0", "uid": uid });
        let meta = json!({ "ownerReferences": [owner], "deletionTimestamp": deleted });
        document(json!({ "metadata": meta }), "data-m0", json!({}))
    };
    let deleted = Some("2026-01-01T00:00:00Z");
    for (uid, deleted, is_ended) in [
        ("uid-m0", deleted, true),
        ("uid-m0", None, false),
        ("uid-earlier", deleted, false),
    ] {
        let mut case = unprovisioned();
        case.claim = Some(own_claim(None));
        case.data = Some(read(&data(uid, deleted)));
        (case.confirmed, case.is_live) = (true, true);
        let plan = case.decide();
        assert_eq!(
            writes(&plan).contains(&"delete claim".to_owned()),
            is_ended,
            "{:?}",
            writes(&plan)
        );
        case.hosts = Case::running().hosts;
        let plan = case.decide();
        assert!(
            !writes(&plan).contains(&"delete claim".to_owned()),
            "{:?}",
            writes(&plan)
        );
    }
}

#[test]
fn recorded_host_that_serves_something_else_is_not_claimed_again() {
    let spec = |change: Value| {
        let mut spec = json!({ "consumerRef": null, "image": null, "userData": null, "metaData": null });
        spec.as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        json!({ "spec": spec })
    };
    let other = json!({ "url": "http://192.0.2.9/other.raw" });
    let given_away = [
        (
            spec(json!({ "image": other })),
            "has an image that is not of the machine",
        ),
        (
            spec(json!({ "image": { "url": "http://192.0.2.9/os.raw" }, "userData": { "name": "another" } })),
            "has an image",
        ),
        (spec(json!({ "customDeploy": { "method": "install" } })), "has an image"),
        (
            spec(json!({ "externallyProvisioned": true })),
            "is externally provisioned",
        ),
        (
            json!({ "metadata": { "labels": { "infrastructure.cluster.x-k8s.io/node-reuse": "kcp-other" } }, "spec": spec(json!({}))["spec"] }),
            "is kept for kcp-other",
        ),
    ];
    for (host, why) in given_away {
        let case = Case::running().host(host).with(|case| case.confirmed = true);
        let plan = case.decide();
        assert_eq!(writes(&plan), [""; 0]);
        let message = condition_of(&plan, HOST).1;
        assert!(
            message.contains(why) && message.contains("delete the Machine"),
            "{message}"
        );
    }
    let own = [
        json!({ "spec": { "consumerRef": null } }),
        spec(json!({ "image": { "url": "http://192.0.2.9/os.raw" } })),
        spec(json!({})),
    ];
    for host in own {
        let case = Case::running().host(host).with(|case| case.confirmed = true);
        assert!(writes(&case.decide()).contains(&"Claim h0".to_owned()));
    }
}
