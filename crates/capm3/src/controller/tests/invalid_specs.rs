//! Specs that the schema accepts and that cannot be provisioned: they end in a condition, cost no further requests, and
//! delay no other machine.

use std::time::Duration;

use kube::Api;
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::meta::ConditionStatus;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde_json::{Value, json};

use super::steps::Step::{Cluster, Host, Machine};
use super::steps::machine_of;
use super::without_faults::{PROGRAM, Run};

/// The invalid spec, and the field that the condition names.
fn invalid_specs() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("no-image", json!({ "image": null }), "spec.image: "),
        (
            "no-checksum",
            json!({ "image": { "checksum": null } }),
            "spec.image.checksum: ",
        ),
        (
            "no-template",
            json!({ "dataTemplate": { "namespace": "default" } }),
            "spec.dataTemplate.name: ",
        ),
        (
            "far-template",
            json!({ "dataTemplate": { "name": "tpl", "namespace": "kube-system" } }),
            "spec.dataTemplate.namespace",
        ),
        (
            "far-secret",
            json!({ "metaData": { "name": "s", "namespace": "kube-system" } }),
            "spec.metaData.namespace",
        ),
        (
            "odd-selector",
            json!({ "hostSelector": { "matchExpressions": [{ "key": "a", "operator": "maybe", "values": [] }] } }),
            "spec.hostSelector: ",
        ),
    ]
}

/// Seconds until a valid machine has a host, among the invalid ones.
async fn delay(run: &Run) -> u64 {
    for step in [Host("h0"), Machine("m0")] {
        step.take(&run.user).await;
    }
    let hosts: Api<BareMetalHost> = Api::default_namespaced(run.user.clone());
    for waited in 0..600 {
        if hosts.get("h0").await.unwrap().spec.consumer_ref.is_some() {
            return waited;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("never")
}

#[tokio::test(start_paused = true)]
async fn invalid_spec_ends_in_a_condition_and_delays_no_other_machine() {
    let alone = Run::start();
    alone.take(&[Cluster]).await;
    let expected = delay(&alone).await;

    let run = Run::start();
    run.take(&[Cluster]).await;
    for (name, spec, _) in invalid_specs() {
        machine_of(&run.user, name, spec).await;
    }
    assert_eq!(delay(&run).await, expected);
    run.take(&[]).await;
    let machines: Api<Metal3Machine> = Api::default_namespaced(run.user.clone());
    for (name, _, field) in invalid_specs() {
        let machine = machines.get(name).await.unwrap();
        let conditions = &machine.status.conditions;
        let message = conditions
            .iter()
            .find(|one| one.type_ == "AssociateBareMetalHost")
            .unwrap();
        assert!(
            message.status == ConditionStatus::False && message.message.starts_with(field),
            "{name}: {message:?}"
        );
    }
    run.cluster.reset_audit();
    tokio::time::sleep(Duration::from_hours(24)).await;
    let audit = run.cluster.audit();
    let writes = audit
        .counts()
        .filter(|((user, verb, _), _)| user == PROGRAM && *verb != "watch");
    assert_eq!(writes.collect::<Vec<_>>(), [], "no loop");
}
