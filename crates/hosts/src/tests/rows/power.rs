//! Power-on, power-off and reboot.

use serde_json::json;

use super::given::{available, failing, provisioned};
use super::{Row, row};
use crate::facts::{RefusalClass, Refused};

pub(super) fn power() -> Vec<Row> {
    let on = || json!({ "power_state": "power on" });
    let off = || json!({ "power_state": "power off" });
    let recorded = "Continuing with hard poweroff after soft poweroff fails. More details: power: timeout";
    vec![
        row(
            "off, and to be on",
            provisioned().node_with("active", off()),
            "requests power on, writes the status, waits for the node",
        ),
        row(
            "off, known as such, and to be on",
            provisioned()
                .status(json!({ "poweredOn": false }))
                .node_with("active", off()),
            "requests power on, waits for the node",
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
            "reads Host, reads Node, replan",
        ),
        row(
            "on, and to be off, read live",
            provisioned()
                .spec(json!({ "online": false }))
                .node_with("active", on())
                .live(),
            "requests soft power off, waits for the node",
        ),
        row(
            "powering off failed",
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
            "powering off failed, recorded and later",
            provisioned()
                .spec(json!({ "online": false }))
                .node_with(
                    "active",
                    json!({ "power_state": "power on", "last_error": "power: timeout" }),
                )
                .live()
                .status(failing("power management error", recorded, 1))
                .hours_later(1),
            "requests power off, writes the status, error cleared, waits for the node",
        ),
        row(
            "soft unsupported",
            provisioned()
                .spec(json!({ "online": false }))
                .node_with("active", on())
                .live()
                .with(|fixture| {
                    fixture.refused = Some(Refused {
                        request: "soft power off",
                        class: RefusalClass::Invalid,
                        message: "unsupported".into(),
                        is_fresh: false,
                    })
                }),
            "requests power off, waits for the node",
        ),
        row(
            "soft rejected, for a lock or a lost connection",
            provisioned()
                .spec(json!({ "online": false }))
                .node_with("active", on())
                .live()
                .with(|fixture| {
                    fixture.refused = Some(Refused {
                        request: "soft power off",
                        class: RefusalClass::Transient,
                        message: "locked".into(),
                        is_fresh: false,
                    })
                }),
            "requests soft power off, waits for the node",
        ),
        row(
            "soft rejected, for credentials that Ironic rejects",
            provisioned()
                .spec(json!({ "online": false }))
                .node_with("active", on())
                .live()
                .with(|fixture| {
                    fixture.refused = Some(Refused {
                        request: "soft power off",
                        class: RefusalClass::Access,
                        message: "unauthorised".into(),
                        is_fresh: false,
                    })
                }),
            "writes the status, provisioned registration error: Ironic rejected the request (soft power off): unauthorised, waits for a time",
        ),
        row(
            "a soft reboot rejected, for a lock or a lost connection",
            provisioned()
                .spec(json!({ "disablePowerOff": true }))
                .annotated("reboot.metal3.io", "")
                .node_with(
                    "active",
                    json!({ "power_state": "power on", "disable_power_off": true }),
                )
                .live()
                .with(|fixture| {
                    fixture.refused = Some(Refused {
                        request: "soft rebooting",
                        class: RefusalClass::Transient,
                        message: "locked".into(),
                        is_fresh: false,
                    })
                }),
            "requests soft rebooting, changes the host, replan",
        ),
        row(
            "on, and to be off, and the node serves another instance",
            provisioned()
                .spec(json!({ "online": false }))
                .node_with(
                    "active",
                    json!({ "power_state": "power on", "instance_uuid": crate::tests::fixture::OTHER_UID }),
                )
                .live(),
            "writes the status, provisioned registration error: in Ironic the node serves instance 7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c, which is not this host; the node is not changed. If nothing uses that instance, remove instance_uuid from node 11111111-2222-4333-8444-555555555555; if it is the former instance of this host from before a move between clusters, set the annotation baremetalhost.metal3.io/former-instance to it, waits for the node",
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
            "requests soft power off, waits for the node",
        ),
        row(
            "a reboot requested",
            provisioned()
                .annotated("reboot.metal3.io", "")
                .node_with("active", on())
                .live(),
            "requests soft power off, waits for the node",
        ),
        row(
            "a hard reboot requested",
            provisioned()
                .annotated("reboot.metal3.io", r#"{"mode":"hard"}"#)
                .node_with("active", on())
                .live(),
            "requests power off, waits for the node",
        ),
        row(
            "a reboot half done",
            provisioned()
                .annotated("reboot.metal3.io", "")
                .node_with("active", off()),
            "changes the host, replan",
        ),
        row(
            "kept off",
            provisioned()
                .annotated("reboot.metal3.io/client", "")
                .status(json!({ "poweredOn": false }))
                .node_with("active", off()),
            "settled",
        ),
        row(
            "a reboot requested of a host without image",
            available()
                .spec(json!({ "online": true }))
                .annotated("reboot.metal3.io", "")
                .status(json!({ "poweredOn": true }))
                .node_with("available", on())
                .live(),
            "settled",
        ),
        row(
            "a reboot requested of a host that is never off",
            provisioned()
                .spec(json!({ "disablePowerOff": true }))
                .annotated("reboot.metal3.io", "")
                .node_with(
                    "active",
                    json!({ "power_state": "power on", "disable_power_off": true }),
                )
                .live(),
            "requests soft rebooting, changes the host, replan",
        ),
        row(
            "a host kept off that is never off",
            provisioned()
                .spec(json!({ "disablePowerOff": true }))
                .annotated("reboot.metal3.io/client", "")
                .node_with(
                    "active",
                    json!({ "power_state": "power on", "disable_power_off": true }),
                )
                .live(),
            "withheld: RequestRefused, waits for the user",
        ),
        row(
            "power unknown",
            provisioned().node_with("active", json!({ "power_state": null })),
            "waits for the node",
        ),
    ]
}
