//! What a machine waits for when its conditions do not tell.

use super::*;

#[test]
fn object_that_is_done_and_not_seen_yet_is_named() {
    let mut done = metal3_machine("m0", ("Ready", "True", "Ready"));
    done["status"]["initialization"] = json!({ "provisioned": true });
    let explanation = explained(&[machine("m0", json!({})), done], "machine/m0", None);
    assert_eq!(links(&explanation), ["Machine/m0 waits for its infrastructure"]);
    assert!(explanation.names_a_cause() && explanation.chain[0].cure.contains("Metal3Machine/m0 waits for nothing"));
}

#[test]
fn machine_that_names_no_bootstrap_data_is_a_cause() {
    let without_data = json!({ "spec": { "bootstrap": { "dataSecretName": null } } });
    let explanation = explained(&[cluster(json!({})), machine("m0", without_data)], "machine/m0", None);
    assert_eq!(links(&explanation), ["Machine/m0 has no bootstrap data"]);
    assert_eq!(explanation.state, State::Blocked);
}

#[test]
fn machine_whose_conditions_are_true_waits_for_its_host_until_it_is_deployed() {
    let machines = [
        machine("m0", json!({})),
        metal3_machine("m0", ("Ready", "True", "Ready")),
    ];
    let on = |host: &[Value]| {
        let explanation = explained(&[machines.as_slice(), host].concat(), "machine/m0", None);
        assert!(explanation.names_a_cause(), "{explanation:?}");
        links(&explanation)
    };
    let failed = [host("h0", failed("provisioning error"))];
    assert_eq!(
        on(&failed),
        [
            "Machine/m0 waits for its infrastructure",
            "Metal3Machine/m0 waits for its host",
            "BareMetalHost/h0 ProvisioningError",
        ]
    );
    // The machine has a HostClaim instead, or the host is gone.
    let without = [
        "Machine/m0 waits for its infrastructure",
        "Metal3Machine/m0 waits for its host",
    ];
    assert_eq!(on(&[]), without);
    // The host is done, and the machine has not seen that.
    assert_eq!(on(&[host("h0", json!({}))]), without);
}
