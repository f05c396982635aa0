//! Data of machines and their addresses: in deletion, without IPAM, and templates.

use super::*;

fn infrastructure(kind: &str, name: &str, change: Value) -> Value {
    object(&format!("{INFRASTRUCTURE}/v1beta2"), kind, name, change)
}

fn deleting(mut object: Value) -> Value {
    let deletion = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"] });
    merge(&mut object["metadata"], deletion);
    object
}

/// A Metal3Data in deletion that was created for the claim `m0`.
fn released() -> Value {
    let owner = json!([{ "apiVersion": format!("{INFRASTRUCTURE}/v1beta2"), "kind": "Metal3DataClaim", "name": "m0",
        "uid": "uid-m0" }]);
    let data = json!({ "metadata": { "ownerReferences": owner }, "spec": { "claim": { "name": "m0" } },
        "status": { "ready": true } });
    deleting(infrastructure("Metal3Data", "t-0", data))
}

#[test]
fn data_in_deletion_waits_for_its_claim_only_while_that_exists() {
    let claim = infrastructure("Metal3DataClaim", "m0", json!({}));
    let end = ("Metal3Data/t-0 ClaimLives", State::Waiting);
    assert_end("m3d/t-0", &[released(), claim.clone()], end);
    let end = ("Metal3DataClaim/m0 Deleting", State::Waiting);
    assert_end("m3d/t-0", &[released(), deleting(claim.clone())], end);
    // Another claim has the name now.
    let mut later = claim;
    later["metadata"]["uid"] = json!("later");
    for objects in [vec![released(), later], vec![released()]] {
        let explanation = explained(&objects, "m3d/t-0", None);
        assert_eq!(links(&explanation), ["Metal3Data/t-0 Deleting"]);
        assert!(!explanation.chain[0].cure.contains("Machine"));
    }
    let address = deleting(owned(
        "IPClaim",
        "t-0-lan",
        "t-0",
        json!({ "spec": { "pool": { "name": "lan" } } }),
    ));
    let explanation = explained(&[released(), address], "m3d/t-0", None);
    assert_eq!(
        links(&explanation),
        ["Metal3Data/t-0 Deleting", "IPClaim/t-0-lan Deleting"]
    );
    // Whether the claim exists is not known.
    let explanation = explained(&[released()], "m3d/t-0", Some("Metal3DataClaim"));
    assert_eq!(
        (links(&explanation), explanation.state),
        (vec!["Metal3Data/t-0 Deleting".to_owned()], State::Unknown)
    );
}

#[test]
fn data_template_has_no_conditions_and_waits_for_nothing() {
    let template = |change: Value| infrastructure("Metal3DataTemplate", "t", change);
    let healthy = template(json!({ "status": { "indexes": [{ "name": "m0", "index": 0 }] } }));
    let explanation = explained(std::slice::from_ref(&healthy), "m3dt/t", None);
    assert_eq!((links(&explanation), explanation.state), (vec![], State::Ready));
    let end = ("Metal3DataTemplate/t Deleting", State::Waiting);
    assert_end("m3dt/t", &[deleting(healthy)], end);
    let paused = template(json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": "" } } }));
    assert_end("m3dt/t", &[paused], ("Metal3DataTemplate/t Paused", State::Blocked));
    assert_end("m3dt/t", &[], ("Metal3DataTemplate/t does not exist", State::Absent));
}

#[test]
fn claim_on_a_pool_in_deletion_leads_to_the_pool() {
    let refused = json!({ "spec": { "pool": { "name": "lan" } },
        "status": { "conditions": conditions(&[("Ready", "False", "AllocationFailed")]) } });
    let claim = owned("IPClaim", "c", "t-0", refused);
    let pool = owned(
        "IPPool",
        "lan",
        "t-9",
        json!({ "spec": { "namePrefix": "lan", "pools": [] } }),
    );
    let end = ("IPPool/lan Deleting", State::Waiting);
    assert_end("ipclaim/c", &[claim.clone(), deleting(pool.clone())], end);
    let end = ("IPClaim/c AllocationFailed", State::Blocked);
    assert_end("ipclaim/c", &[claim.clone(), pool.clone()], end);
    // The reason of the claim is a cause, also when its pool may not be read.
    let explanation = explained(&[claim, pool], "ipclaim/c", Some("IPPool"));
    assert_eq!(
        (links(&explanation).len(), explanation.state, explanation.not_read.len()),
        (1, State::Blocked, 1)
    );
}

/// The same without a kind.
fn without_kind(objects: &[Value], start: &str, absent: &[&str]) -> Explanation {
    let start = ObjectId::foreign(INFRASTRUCTURE, "Metal3Data", start);
    let mut snapshot = Snapshot::default();
    loop {
        match explain(&start, &snapshot) {
            Ok(explanation) => return explanation,
            Err(wanted) => {
                for read in wanted {
                    let is_absent = matches!(&read, Read::List { kind, .. } if absent.contains(&kind.kind.as_str()));
                    let answer = match is_absent {
                        true => Err(Unread::NotInstalled),
                        false => Ok(offline::answer(objects, &read)),
                    };
                    snapshot.insert(read, answer);
                }
            }
        }
    }
}

#[test]
fn error_of_data_is_shown_without_the_kinds_of_ipam() {
    let failed = json!({ "spec": { "template": { "name": "t" } }, "status": { "errorMessage": "no such interface" } });
    let objects = [
        infrastructure("Metal3Data", "t-0", failed),
        infrastructure("Metal3DataTemplate", "t", json!({})),
    ];
    let explanation = without_kind(&objects, "t-0", &["IPClaim", "IPAddressClaim"]);
    assert_eq!(links(&explanation), ["Metal3Data/t-0 RenderingFailed"]);
    assert_eq!(explanation.state, State::Blocked);
    // A claim may wait that may not be read: the error is shown all the same.
    let explanation = explained(&objects, "m3d/t-0", Some("IPClaim"));
    assert_eq!(links(&explanation), ["Metal3Data/t-0 RenderingFailed"]);
    assert_eq!(explanation.state, State::Unknown);
    // The claims of Cluster API are followed without those of Metal3.
    let mut claim = owned("IPAddressClaim", "c", "t-0", json!({}));
    claim["apiVersion"] = json!("ipam.cluster.x-k8s.io/v1beta2");
    claim["spec"] =
        json!({ "poolRef": { "apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "p" } });
    let [data, template] = objects;
    let explanation = without_kind(&[data, template, claim], "t-0", &["IPClaim"]);
    assert_eq!(
        links(&explanation)[1],
        "IPAddressClaim/c waits for an address of its pool"
    );
}
