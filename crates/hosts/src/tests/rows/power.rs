//! On, off and reboot.

use serde_json::json;

use super::given::{available, failing, provisioned};
use super::{Row, row};
use crate::facts::{Cure, Refused};

pub(super) fn power() -> Vec<Row> {
    let on = || json!({ "power_state": "power on" });
    let off = || json!({ "power_state": "power off" });
    let told = "Continuing with hard poweroff after soft poweroff fails. More details: power: timeout";
    vec![
        row(
            "off, and to be on",
            provisioned().node_with("active", off()),
            "asks power on, writes the status, waits for the node",
        ),
        row(
            "off, known as such, and to be on",
            provisioned()
                .status(json!({ "poweredOn": false }))
                .node_with("active", off()),
            "asks power on, waits for the node",
        ),
        row(
            "switching",
            provisioned().node_with(
                "active",
                json!({ "power_state": "power off", "target_power_state": "power on" }),
            ),
            "writes the status, waits for the node",
        ),
        row(
            "on, and to be off",
            provisioned().spec(json!({ "online": false })).node_with("active", on()),
            "reads Host, reads Node, again",
        ),
        row(
            "on, and to be off, read live",
            provisioned()
                .spec(json!({ "online": false }))
                .node_with("active", on())
                .live(),
            "asks soft power off, waits for the node",
        ),
        row(
            "switching off failed",
            provisioned()
                .spec(json!({ "online": false }))
                .node_with(
                    "active",
                    json!({ "power_state": "power on", "last_error": "power: timeout" }),
                )
                .live(),
            "writes the status, power management error: Continuing with hard poweroff after soft poweroff fails. More details: power: timeout, waits for a time",
        ),
        row(
            "switching off failed, told and later",
            provisioned()
                .spec(json!({ "online": false }))
                .node_with(
                    "active",
                    json!({ "power_state": "power on", "last_error": "power: timeout" }),
                )
                .live()
                .status(failing("power management error", told, 1))
                .later(1),
            "asks power off, writes the status, well again, waits for the node",
        ),
        row(
            "soft refused",
            provisioned()
                .spec(json!({ "online": false }))
                .node_with("active", on())
                .live()
                .with(|scene| {
                    scene.refused = Some(Refused {
                        request: "soft power off",
                        cure: Cure::Change,
                        message: "unsupported".into(),
                        is_fresh: false,
                    })
                }),
            "asks power off, waits for the node",
        ),
        row(
            "soft not taken, for a lock or a lost connection",
            provisioned()
                .spec(json!({ "online": false }))
                .node_with("active", on())
                .live()
                .with(|scene| {
                    scene.refused = Some(Refused {
                        request: "soft power off",
                        cure: Cure::Wait,
                        message: "locked".into(),
                        is_fresh: false,
                    })
                }),
            "asks soft power off, waits for the node",
        ),
        row(
            "soft not taken, for a login that Ironic refuses",
            provisioned()
                .spec(json!({ "online": false }))
                .node_with("active", on())
                .live()
                .with(|scene| {
                    scene.refused = Some(Refused {
                        request: "soft power off",
                        cure: Cure::Access,
                        message: "unauthorised".into(),
                        is_fresh: false,
                    })
                }),
            "writes the status, provisioned registration error: Ironic refuses the request (soft power off): unauthorised, waits for a time",
        ),
        row(
            "a soft reboot not taken, for a lock or a lost connection",
            provisioned()
                .spec(json!({ "disablePowerOff": true }))
                .annotated("reboot.metal3.io", "")
                .node_with(
                    "active",
                    json!({ "power_state": "power on", "disable_power_off": true }),
                )
                .live()
                .with(|scene| {
                    scene.refused = Some(Refused {
                        request: "soft rebooting",
                        cure: Cure::Wait,
                        message: "locked".into(),
                        is_fresh: false,
                    })
                }),
            "asks soft rebooting, changes the host, again",
        ),
        row(
            "on, and to be off, and the node serves another",
            provisioned()
                .spec(json!({ "online": false }))
                .node_with(
                    "active",
                    json!({ "power_state": "power on", "instance_uuid": crate::tests::scene::OTHER_UID }),
                )
                .live(),
            "writes the status, provisioned registration error: in Ironic the node serves instance 7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c, which is not this host; it is left as it is. If nothing needs that instance, remove instance_uuid from node 11111111-2222-4333-8444-555555555555; if it is this host's own from before it moved between clusters, name it in the annotation baremetalhost.metal3.io/former-instance, waits for the node",
        ),
        row(
            "on, and to be off, and Ironic holds the node",
            provisioned()
                .spec(json!({ "online": false }))
                .node_with("active", json!({ "power_state": "power on", "reservation": "c1" }))
                .live(),
            "waits for the node",
        ),
        row(
            "an error that is not of power",
            provisioned()
                .spec(json!({ "online": false }))
                .node_with(
                    "active",
                    json!({ "power_state": "power on", "last_error": "service aborted" }),
                )
                .live(),
            "asks soft power off, waits for the node",
        ),
        row(
            "a reboot asked",
            provisioned()
                .annotated("reboot.metal3.io", "")
                .node_with("active", on())
                .live(),
            "asks soft power off, waits for the node",
        ),
        row(
            "a hard reboot asked",
            provisioned()
                .annotated("reboot.metal3.io", r#"{"mode":"hard"}"#)
                .node_with("active", on())
                .live(),
            "asks power off, waits for the node",
        ),
        row(
            "a reboot half done",
            provisioned()
                .annotated("reboot.metal3.io", "")
                .node_with("active", off()),
            "changes the host, again",
        ),
        row(
            "held off",
            provisioned()
                .annotated("reboot.metal3.io/client", "")
                .status(json!({ "poweredOn": false }))
                .node_with("active", off()),
            "settled",
        ),
        row(
            "a reboot asked of a host without image",
            available()
                .spec(json!({ "online": true }))
                .annotated("reboot.metal3.io", "")
                .status(json!({ "poweredOn": true }))
                .node_with("available", on())
                .live(),
            "settled",
        ),
        row(
            "a reboot asked of a host that is never off",
            provisioned()
                .spec(json!({ "disablePowerOff": true }))
                .annotated("reboot.metal3.io", "")
                .node_with(
                    "active",
                    json!({ "power_state": "power on", "disable_power_off": true }),
                )
                .live(),
            "asks soft rebooting, changes the host, again",
        ),
        row(
            "a host held off that is never off",
            provisioned()
                .spec(json!({ "disablePowerOff": true }))
                .annotated("reboot.metal3.io/client", "")
                .node_with(
                    "active",
                    json!({ "power_state": "power on", "disable_power_off": true }),
                )
                .live(),
            "held: RequestRefused, waits for the user",
        ),
        row(
            "power unknown",
            provisioned().node_with("active", json!({ "power_state": null })),
            "waits for the node",
        ),
    ]
}
