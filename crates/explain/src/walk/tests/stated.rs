//! Kinds that state their waits themselves, and those that nothing serves.

use super::*;

fn of_host(kind: &str, change: Value) -> Value {
    object("metal3.io/v1alpha1", kind, "h0", change)
}

fn chain(objects: &[Value], start: &str) -> (Vec<String>, State) {
    let explanation = explained(objects, start, None);
    (links(&explanation), explanation.state)
}

fn assert_waits(object: Value, start: &str, link: &str) {
    let (links, state) = chain(&[object], start);
    assert!(links.len() == 1 && links[0].ends_with(link), "{start}: {links:?}");
    assert_ne!(state, State::Ready, "{start}");
}

#[test]
fn each_kind_that_can_wait_states_why() {
    let deleting = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"] } });
    for (object, start, link) in [
        (
            of_host("PreprovisioningImage", json!({})),
            "preprovisioningimage/h0",
            "NotYetReported",
        ),
        (
            of_host("BMCEventSubscription", json!({ "status": { "error": "refused" } })),
            "bes/h0",
            "waits",
        ),
        (of_host("BMCEventSubscription", deleting.clone()), "bes/h0", "Deleting"),
        (
            of_host(
                "PreprovisioningImage",
                json!({ "status": { "conditions": conditions(&[("Error", "True", "ConfigurationError")]) } }),
            ),
            "preprovisioningimages/h0",
            "ConfigurationError",
        ),
        (
            of_host(
                "HostFirmwareSettings",
                json!({ "spec": { "settings": {} }, "status": { "settings": {}, "conditions": conditions(&[("Valid", "False", "ConfigurationError")]) } }),
            ),
            "hfs/h0",
            "ConfigurationError",
        ),
        (of_host("HardwareData", deleting.clone()), "hardwaredata/h0", "Deleting"),
        (
            object("ipam.metal3.io/v1alpha1", "IPAddress", "h0", deleting.clone()),
            "ipaddress/h0",
            "Deleting",
        ),
        (
            object(
                "infrastructure.cluster.x-k8s.io/v1beta2",
                "Metal3MachineTemplate",
                "h0",
                json!({ "spec": { "template": { "spec": { "hostSelector": { "matchLabels": { "a b": "c" } } } } } }),
            ),
            "m3mt/h0",
            "InvalidHostSelector",
        ),
    ] {
        assert_waits(object, start, link);
    }
}

#[test]
fn deleted_claim_states_what_the_release_of_its_host_waits_for() {
    let deleted = |conditions: Value| {
        let metadata = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["metal3.io/hostclaim"] });
        of_host(
            "HostClaim",
            json!({ "metadata": metadata, "status": { "conditions": conditions } }),
        )
    };
    let failed = conditions(&[("Associated", "False", "HostClaimDeletionFailed")]);
    assert_waits(deleted(failed), "hostclaim/h0", "HostClaimDeletionFailed");
    assert_waits(
        deleted(conditions(&[("Associated", "True", "BareMetalHostAssociated")])),
        "hostclaim/h0",
        "Deleting",
    );
}

#[test]
fn switch_states_why_or_that_nothing_serves_it() {
    for (object, start, link) in [
        (
            of_host("BareMetalSwitch", json!({})),
            "baremetalswitch/h0",
            "KindUnserved",
        ),
        (
            of_host(
                "BareMetalSwitch",
                json!({ "status": { "conditions": conditions(&[("Valid", "Unknown", "StateUnknown")]) } }),
            ),
            "bms/h0",
            "StateUnknown",
        ),
    ] {
        assert_waits(object, start, link);
    }
}

#[test]
fn image_of_a_drive_states_what_it_waits_for() {
    for (object, link) in [
        (
            of_host(
                "DataImage",
                json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"] }, "spec": { "url": "x" } }),
            ),
            "Deleting",
        ),
        (
            of_host(
                "DataImage",
                json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" }, "spec": { "url": "x" }, "status": { "error": { "count": 1, "message": "no drive" } } }),
            ),
            "has an error",
        ),
    ] {
        let (links, state) = chain(&[object], "dataimage/h0");
        assert!(links.len() == 1 && links[0].ends_with(link), "{links:?}");
        assert_ne!(state, State::Ready);
    }
    let served = of_host(
        "DataImage",
        json!({ "spec": { "url": "x" }, "status": { "attachedImage": { "url": "x" } } }),
    );
    assert_eq!(chain(&[served], "dataimage/h0"), (Vec::new(), State::Ready));
}

#[test]
fn settings_that_differ_wait_for_the_preparation_of_their_host() {
    let settings = of_host(
        "HostFirmwareSettings",
        json!({ "spec": { "settings": {} }, "status": { "settings": {}, "conditions": conditions(&[("Valid", "True", "Success"), ("ChangeDetected", "True", "Success")]) } }),
    );
    let preparing = host("h0", json!({ "status": { "provisioning": { "state": "preparing" } } }));
    let (links, state) = chain(&[settings, preparing], "hfs/h0");
    assert_eq!(
        links,
        [
            "HostFirmwareSettings/h0 has settings that the machine does not have",
            "BareMetalHost/h0 Preparing"
        ]
    );
    assert_eq!(state, State::Waiting);
}

#[test]
fn machine_deployment_is_followed_to_its_machine_that_waits() {
    let deployment = object(
        "cluster.x-k8s.io/v1beta2",
        "MachineDeployment",
        "md",
        json!({ "spec": { "clusterName": "edge" } }),
    );
    let of_deployment = json!({ "metadata": { "labels": { "cluster.x-k8s.io/deployment-name": "md" } } });
    let objects = [
        cluster(json!({})),
        deployment,
        machine("other", json!({})),
        machine("m0", of_deployment),
        metal3_machine(
            "m0",
            ("AssociateBareMetalHost", "False", "AssociateBareMetalHostFailed"),
        ),
    ];
    let (links, _) = chain(&objects, "md/md");
    assert_eq!(links[1], "Machine/m0 waits for its infrastructure", "{links:?}");
    assert!(links[2].starts_with("Metal3Machine/m0"), "{links:?}");
}

/// A busy host said nothing of the outage.
#[test]
fn chain_ends_in_the_fault_of_ironic() {
    for reason in ["IronicUnreachable", "IronicLoginRefused", "IronicNotTrusted"] {
        let busy = host(
            "h0",
            json!({ "status": { "provisioning": { "state": "inspecting" }, "conditions": conditions(&[("Held", "True", reason)]) } }),
        );
        let explanation = explained(&[busy], "bmh/h0", None);
        assert_eq!(links(&explanation), [format!("BareMetalHost/h0 {reason}")]);
        assert_eq!(explanation.state, State::Blocked);
        assert!(explanation.names_a_cause());
    }
}

/// A management cluster whose Cluster API and CRDs have no newer version.
#[test]
fn objects_of_v1beta1_are_followed_to_the_cause() {
    let reference = |kind: &str| json!({ "apiVersion": format!("{INFRASTRUCTURE}/v1beta1"), "kind": kind, "name": "edge", "namespace": "lab" });
    let cluster = object(
        "cluster.x-k8s.io/v1beta1",
        "Cluster",
        "edge",
        json!({ "spec": { "infrastructureRef": reference("Metal3Cluster") }, "status": { "infrastructureReady": true } }),
    );
    let machine = object(
        "cluster.x-k8s.io/v1beta1",
        "Machine",
        "edge",
        json!({ "spec": { "clusterName": "edge", "bootstrap": { "dataSecretName": "data" },
            "infrastructureRef": reference("Metal3Machine") },
            "status": { "infrastructureReady": false, "conditions": [
                { "type": "Ready", "status": "False", "severity": "Info", "reason": "WaitingForInfrastructure" }] } }),
    );
    let waiting = object(
        "infrastructure.cluster.x-k8s.io/v1beta1",
        "Metal3Machine",
        "edge",
        json!({ "status": { "ready": false, "conditions": [{ "type": "AssociateBMH", "status": "False", "severity": "Error",
            "reason": "AssociateBMHFailed", "message": "no host", "lastTransitionTime": "2026-01-01T00:00:00Z" }] } }),
    );
    let (links, _) = chain(&[cluster, machine, waiting], "cluster/edge");
    assert_eq!(
        links.get(..2),
        Some(
            [
                "Cluster/edge 1 of 1 machines are not ready".to_owned(),
                "Machine/edge waits for its infrastructure".to_owned()
            ]
            .as_slice()
        )
    );
    assert!(
        links.get(2).is_some_and(|link| link.starts_with("Metal3Machine/edge")),
        "{links:?}"
    );
}

/// Conditions of HostFirmwareComponents, whether the host failed, and the chain.
type Row = (
    &'static [(&'static str, &'static str, &'static str)],
    bool,
    &'static [&'static str],
    State,
);

const VALID: (&str, &str, &str) = ("Valid", "True", "OK");
const DUE: (&str, &str, &str) = ("ChangeDetected", "True", "OK");
const DONE: (&str, &str, &str) = ("ChangeDetected", "False", "OK");

/// The Go manager writes no `Updating`, and this program keeps it after the updates were made.
const UPDATES: [Row; 6] = [
    (&[VALID, DONE], false, &[], State::Ready),
    (
        &[VALID, DUE],
        false,
        &[
            "HostFirmwareComponents/h0 has updates that are not made",
            "BareMetalHost/h0 Preparing",
        ],
        State::Waiting,
    ),
    (
        &[
            ("Valid", "False", "InvalidComponent"),
            DUE,
            ("Updating", "True", "UpdateOrdered"),
        ],
        false,
        &["HostFirmwareComponents/h0 InvalidComponent"],
        State::Blocked,
    ),
    (
        &[VALID, DUE, ("Updating", "True", "UpdateBegun")],
        false,
        &["HostFirmwareComponents/h0 UpdateBegun", "BareMetalHost/h0 Preparing"],
        State::Waiting,
    ),
    (
        &[VALID, DUE, ("Updating", "False", "UpdateFailed")],
        true,
        &[
            "HostFirmwareComponents/h0 UpdateFailed",
            "BareMetalHost/h0 PreparationError",
        ],
        State::Blocked,
    ),
    (
        &[VALID, DONE, ("Updating", "False", "UpdateMade")],
        false,
        &[],
        State::Ready,
    ),
];

#[test]
fn updates_of_the_firmware_lead_to_the_host_that_makes_them() {
    let preparing = host("h0", json!({ "status": { "provisioning": { "state": "preparing" } } }));
    let failed = host("h0", failed("preparation error"));
    for (all, has_failed, links, state) in UPDATES {
        let status = json!({ "status": { "conditions": conditions(all) } });
        let host = if has_failed { &failed } else { &preparing };
        let objects = [of_host("HostFirmwareComponents", status), host.clone()];
        let expected: Vec<String> = links.iter().map(|&link| link.to_owned()).collect();
        assert_eq!(chain(&objects, "hfc/h0"), (expected, state), "{all:?}");
    }
}
