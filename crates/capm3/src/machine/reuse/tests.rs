use chrono::DateTime;
use serde_json::json;

use super::*;

fn at(seconds: i64) -> Time {
    Time::new(DateTime::from_timestamp(seconds, 0).unwrap())
}

fn machine(labels: Value, owners: Value) -> Machine {
    let meta = json!({ "name": "m0", "namespace": "metal", "labels": labels, "ownerReferences": owners });
    serde_json::from_value(json!({ "metadata": meta })).unwrap()
}

fn owner(api_version: &str, kind: &str, name: &str) -> Value {
    json!([{ "apiVersion": api_version, "kind": kind, "name": name, "uid": "u1" }])
}

#[test]
fn set_of_a_machine_is_found_by_its_owner() {
    let control_plane = || json!({ "cluster.x-k8s.io/control-plane": "" });
    let of_kind = |version, kind: &str, plural: &str| {
        let kind = ApiResource {
            group: CONTROL_PLANE_GROUP.to_owned(),
            version: String::from(version),
            api_version: format!("{CONTROL_PLANE_GROUP}/{version}"),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        Ok(Some(SetOwner::ControlPlane(kind, "edge".to_owned(), "u1".to_owned())))
    };
    let plane = |version: &str, kind| owner(&format!("{CONTROL_PLANE_GROUP}/{version}"), kind, "edge");
    let is = |labels, owners| set_owner(&machine(labels, owners));
    assert_eq!(
        is(control_plane(), plane("v1beta2", "KubeadmControlPlane")),
        of_kind("v1beta2", "KubeadmControlPlane", "kubeadmcontrolplanes")
    );
    assert_eq!(
        is(control_plane(), plane("v1beta1", "RKE2ControlPlane")),
        of_kind("v1beta1", "RKE2ControlPlane", "rke2controlplanes")
    );
    let set = Ok(Some(SetOwner::MachineSet("edge".to_owned(), "u1".to_owned())));
    assert_eq!(
        is(json!({}), owner("cluster.x-k8s.io/v1beta1", "MachineSet", "edge")),
        set
    );
    for (labels, owners) in [
        (json!({}), owner("other.io/v1", "MachineSet", "edge")),
        (json!({}), plane("v1beta2", "KubeadmControlPlane")),
        (
            json!({}),
            owner("cluster.x-k8s.io/v1beta2", "MachineSet", "../machines/x"),
        ),
        (control_plane(), owner("cluster.x-k8s.io/v1beta2", "MachineSet", "edge")),
        (control_plane(), json!([])),
    ] {
        assert_eq!(is(labels, owners.clone()), Ok(None), "{owners}");
    }
    for owners in [
        plane("..", "KubeadmControlPlane"),
        plane("v1", "a/../secrets"),
        owner("controlplane.cluster.x-k8s.io/v1", "P", "a?b"),
    ] {
        assert!(is(control_plane(), owners.clone()).is_err(), "{owners}");
    }
}

#[test]
fn control_plane_of_either_contract_states_its_template_and_its_replicas() {
    let read = |spec: Value| serde_json::from_value::<ControlPlane>(json!({ "metadata": {}, "spec": spec })).unwrap();
    let reference = || json!({ "kind": "Metal3MachineTemplate", "name": "cp" });
    let current = read(json!({
        "replicas": 3, "machineTemplate": { "spec": { "infrastructureRef": reference() } },
        "rollout": { "strategy": { "rollingUpdate": { "maxSurge": 0 } } },
    }));
    let older = read(json!({
        "replicas": 3, "machineTemplate": { "infrastructureRef": reference() },
        "rolloutStrategy": { "rollingUpdate": { "maxSurge": 0 } },
    }));
    assert_eq!(current, older);
    assert_eq!((current.template.as_deref(), current.replicas), (Some("cp"), Some(3)));
    let foreign = json!({ "kind": "DockerMachineTemplate", "name": "cp" });
    for spec in [
        json!({}),
        json!({ "machineTemplate": { "spec": { "infrastructureRef": foreign } } }),
    ] {
        assert_eq!(read(spec).template, None);
    }
}

#[test]
fn only_a_set_that_becomes_smaller_needs_no_other_machine() {
    let of = |wanted, remaining, may_surge, is_current| Replicas {
        wanted,
        remaining,
        may_surge,
        is_current,
    };
    for (why, replicas, replaces) in [
        ("one of three is missing", of(Some(3), 2, false, false), true),
        (
            "the same, and the template is unchanged",
            of(Some(3), 2, true, true),
            true,
        ),
        ("it was four and is three", of(Some(3), 3, false, false), false),
        ("a new machine may have come first", of(Some(3), 3, true, false), true),
        (
            "none came first: the deleted one was as wanted",
            of(Some(3), 3, true, true),
            false,
        ),
        ("none is wanted", of(Some(0), 0, false, false), false),
        ("the number is not known", of(None, 3, false, true), true),
    ] {
        assert_eq!(replicas.replaces(), replaces, "{why}");
    }
}

#[test]
fn deployment_surges_unless_it_says_zero() {
    let read =
        |spec: Value| serde_json::from_value::<MachineDeployment>(json!({ "metadata": {}, "spec": spec })).unwrap();
    let rollout =
        |surge: Value| json!({ "replicas": 2, "rollout": { "strategy": { "rollingUpdate": { "maxSurge": surge } } } });
    let set = MachineSet::default();
    for (spec, may_surge) in [
        (rollout(json!(0)), false),
        (rollout(json!("0%")), false),
        (rollout(json!(1)), true),
        (rollout(json!("25%")), true),
        (json!({ "replicas": 2 }), true),
    ] {
        let replicas = of_deployment(&read(spec.clone()), &set, 2, at(10));
        assert_eq!((replicas.may_surge, replicas.wanted), (may_surge, Some(2)), "{spec}");
    }
    let newer = json!({ "template": { "spec": { "version": "v1.36.0" } } });
    let again = |seconds| json!({ "rollout": { "after": at(seconds) } });
    let created = |seconds| MachineSet {
        metadata: serde_json::from_value(json!({ "creationTimestamp": at(seconds) })).unwrap(),
        ..MachineSet::default()
    };
    for (spec, set, is_current) in [
        (json!({}), MachineSet::default(), true),
        (newer, created(9), false),
        // The MachineSet is older than the order to replace its machines, which may be for later.
        (again(5), created(4), false),
        (again(10), created(4), false),
        (again(11), created(4), false),
        (again(1000), created(4), true),
        (again(5), MachineSet::default(), false),
        // It came of that order.
        (again(5), created(5), false),
        (again(5), created(6), true),
    ] {
        assert_eq!(
            of_deployment(&read(spec.clone()), &set, 2, at(10)).is_current,
            is_current,
            "{spec} {:?}",
            set.metadata.creation_timestamp
        );
    }
}
