//! Power-on, power-off and reboot.

use serde_json::json;

use super::Row;
use super::given::{available, failing, provisioned, with};
use crate::facts::{RefusalClass, RequestedReboot};
use crate::tests::fixture::{OTHER_UID, at};

const ABORTED: &str = "Pending power operation was aborted due to conductor restart";

pub(super) fn power() -> Vec<Row> {
    let on = || json!({ "power_state": "power on" });
    let off = || json!({ "power_state": "power off" });
    let recorded = "Continuing with hard poweroff after soft poweroff fails. More details: power: timeout";
    let to_be_off = || provisioned().spec(json!({ "online": false }));
    let never_off = || {
        let node = with(on(), json!({ "disable_power_off": true }));
        provisioned()
            .spec(json!({ "disablePowerOff": true }))
            .node_with("active", node)
    };
    let failed = json!({ "last_error": "Failed to change power state to 'power on' by 'soft rebooting': no answer" });
    let rebooted = |change: serde_json::Value| {
        let mut fixture = never_off().annotated("reboot.metal3.io", "").live();
        metal3_runtime::patch::apply(&change, &mut fixture.node.as_mut().unwrap().as_mut().unwrap().0);
        fixture.requested_reboot = Some(RequestedReboot::Accepted);
        fixture
    };
    vec![
        provisioned().node_with("active", off()).row(
            "off, and to be on",
            "requests power on, writes the status, waits for the node",
        ),
        provisioned()
            .status(json!({ "poweredOn": false }))
            .node_with("active", off())
            .row(
                "off, known as such, and to be on",
                "requests power on, waits for the node",
            ),
        provisioned()
            .node_with(
                "active",
                json!({ "power_state": "power off", "target_power_state": "power on", "reservation": "conductor" }),
            )
            .reserved_for(60)
            .row("switching", "writes the status, waits for a time"),
        provisioned()
            .node_with(
                "active",
                json!({ "power_state": "power off", "target_power_state": "power on", "reservation": "conductor" }),
            )
            .reserved_for(900)
            .row(
                "switching for longer than any power change takes",
                "requests power on, writes the status, waits for the node",
            ),
        provisioned()
            .node_with(
                "active",
                json!({ "power_state": "power off", "target_power_state": "power on" }),
            )
            .row(
                "switching when its conductor died",
                "requests power on, writes the status, waits for the node",
            ),
        to_be_off()
            .spec(json!({ "automatedCleaningMode": "disabled" }))
            .node_with("active", on())
            .live()
            .row(
                "on, and to be off, and the same edit forbids cleaning",
                "requests change node, replan",
            ),
        to_be_off()
            .spec(json!({ "disablePowerOff": true }))
            .node_with("active", on())
            .live()
            .row(
                "on, and to be off, and the same edit forbids that",
                "requests change node, replan",
            ),
        to_be_off()
            .node_with("active", on())
            .row("on, and to be off", "reads Node, reads Host, replan"),
        to_be_off().node_with("active", on()).live().row(
            "on, and to be off, read live",
            "requests soft power off, waits for the node",
        ),
        to_be_off()
            .node_with("active", with(on(), json!({ "last_error": "power: timeout" })))
            .live()
            .row(
                "on, and to be off, with an error of another time",
                "requests soft power off, waits for the node",
            ),
        to_be_off()
            .node_with("active", with(on(), json!({ "last_error": "power: timeout" })))
            .live()
            .requested_power(true)
            .row(
                "on, and to be off, with an error of the last power-on",
                "requests soft power off, waits for the node",
            ),
        to_be_off()
            .node_with("active", with(on(), json!({ "last_error": "power: timeout" })))
            .live()
            .status(failing(
                "power management error",
                "PowerOn operation failed: power: timeout",
                1,
            ))
            .row(
                "on, and to be off, after a power-on that failed",
                "requests soft power off, waits for the node",
            ),
        provisioned()
            .node_with("active", with(off(), json!({ "last_error": "power: timeout" })))
            .status(json!({ "poweredOn": false }))
            .row(
                "off, and to be on, with an error of another time",
                "requests power on, waits for the node",
            ),
        provisioned()
            .node_with("active", with(off(), json!({ "last_error": "power: timeout" })))
            .status(json!({ "poweredOn": false }))
            .requested_power(true)
            .row(
                "powering on failed",
                "writes the status, power management error: PowerOn operation failed: power: timeout, waits for a time",
            ),
        to_be_off()
            .node_with("active", with(on(), json!({ "last_error": "power: timeout" })))
            .live()
            .requested_power(false)
            .row(
                "powering off failed",
                "writes the status, power management error: Continuing with hard poweroff after soft \
                 poweroff fails. More details: power: timeout, waits for a time",
            ),
        to_be_off()
            .node_with("active", with(on(), json!({ "last_error": "power: timeout" })))
            .live()
            .status(failing("power management error", recorded, 1))
            .hours_later(1)
            .row(
                "powering off failed, recorded and later",
                "requests power off, writes the status, error cleared, waits for the node",
            ),
        to_be_off()
            .node_with("active", on())
            .live()
            .status(failing("power management error", recorded, 1))
            .row(
                "powering off failed, recorded, and Ironic erased the error of the node since",
                "waits for a time",
            ),
        provisioned()
            .node_with("active", off())
            .status(json!({ "poweredOn": false }))
            .status(failing(
                "power management error",
                "PowerOn operation failed: power: timeout",
                1,
            ))
            .row(
                "powering on failed, recorded, and Ironic erased the error of the node since",
                "waits for a time",
            ),
        to_be_off()
            .node_with("active", on())
            .live()
            .refused("soft power off", RefusalClass::Invalid, "unsupported")
            .row("soft unsupported", "requests power off, waits for the node"),
        to_be_off()
            .node_with("active", on())
            .live()
            .refused("soft power off", RefusalClass::Transient, "locked")
            .row(
                "soft rejected, for a lock or a lost connection",
                "requests soft power off, waits for the node",
            ),
        provisioned()
            .node_with("active", off())
            .refused("power on", RefusalClass::Persistent, "no")
            .row(
                "power-on rejected again and again",
                "writes the status, provisioned registration error: Ironic rejected the request (power on): no, waits \
                 for a time",
            ),
        provisioned()
            .node_with("active", off())
            .refused("power on", RefusalClass::Persistent, "no")
            .status(failing(
                "provisioned registration error",
                "Ironic rejected the request (power on): no",
                1,
            ))
            .hours_later(1)
            .row(
                "power-on rejected again and again, recorded and later",
                "requests power on, writes the status, error cleared, waits for the node",
            ),
        to_be_off()
            .node_with("active", on())
            .live()
            .refused("soft power off", RefusalClass::Access, "unauthorised")
            .row(
                "soft rejected, for credentials that Ironic rejects",
                "writes the status, provisioned registration error: Ironic rejected the request (soft power \
                 off): unauthorised, waits for a time",
            ),
        never_off()
            .annotated("reboot.metal3.io", "")
            .live()
            .refused("soft rebooting", RefusalClass::Transient, "locked")
            .row(
                "a soft reboot rejected, for a lock or a lost connection",
                "requests soft rebooting, waits for the node",
            ),
        to_be_off()
            .node_with("active", with(on(), json!({ "instance_uuid": OTHER_UID })))
            .live()
            .row(
                "on, and to be off, and the node serves another instance",
                "writes the status, provisioned registration error: in Ironic the node serves instance \
                 7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c, which is not this host; the node is not changed. If \
                 nothing uses that instance, remove instance_uuid from node \
                 11111111-2222-4333-8444-555555555555; if it is the former instance of this host from before \
                 a move between clusters, set the annotation baremetalhost.metal3.io/former-instance to it, \
                 waits for the node",
            ),
        to_be_off()
            .node_with("active", with(on(), json!({ "reservation": "c1" })))
            .reserved_for(60)
            .live()
            .row("on, and to be off, and Ironic holds the node", "waits for a time"),
        to_be_off()
            .node_with("active", with(on(), json!({ "reservation": "c1" })))
            .reserved_for(900)
            .live()
            .row(
                "on, and to be off, and a reservation of the node stays",
                "requests soft power off, waits for the node",
            ),
        to_be_off()
            .node_with("active", with(off(), json!({ "reservation": "c1" })))
            .reserved_for(900)
            .requested_power(false)
            .row(
                "off, and Ironic has not ended the request yet",
                "writes the status, waits for the node",
            ),
        to_be_off()
            .node_with(
                "active",
                with(on(), json!({ "reservation": "c1", "updated_at": at(86_400) })),
            )
            .live()
            .reserved_for(60)
            .row(
                "on, and to be off, and Ironic holds the node and has another clock",
                "waits for a time",
            ),
        to_be_off()
            .node_with("active", with(on(), json!({ "last_error": "service aborted" })))
            .live()
            .row(
                "an error that is not of power",
                "requests soft power off, waits for the node",
            ),
        provisioned()
            .annotated("reboot.metal3.io", "")
            .node_with("active", on())
            .live()
            .row("a reboot requested", "requests soft power off, waits for the node"),
        provisioned()
            .annotated("reboot.metal3.io", r#"{"mode":"hard"}"#)
            .node_with("active", on())
            .live()
            .row("a hard reboot requested", "requests power off, waits for the node"),
        provisioned()
            .annotated("reboot.metal3.io", "")
            .node_with("active", off())
            .row("a reboot half done", "changes the host, replan"),
        provisioned()
            .annotated("reboot.metal3.io/client", "")
            .status(json!({ "poweredOn": false }))
            .node_with("active", off())
            .row("kept off", "settled"),
        available()
            .spec(json!({ "online": true }))
            .annotated("reboot.metal3.io", "")
            .status(json!({ "poweredOn": true }))
            .node_with("available", on())
            .live()
            .row("a reboot requested of a host without image", "settled"),
        never_off().annotated("reboot.metal3.io", "").live().row(
            "a reboot requested of a host that is never off",
            "requests soft rebooting, waits for the node",
        ),
        rebooted(json!({})).row(
            "the reboot of a host that is never off is over",
            "changes the host, replan",
        ),
        rebooted(json!({ "target_power_state": "power on", "reservation": "conductor" }))
            .row("the reboot is in progress", "waits for a time"),
        rebooted(json!({ "reservation": "conductor" })).reserved_for(900).row(
            "the reboot is in progress for longer than most take",
            "writes the status, power management error: Ironic has not ended the reboot of the machine: the conductor \
             conductor holds the node for more than 15 minutes; a lock that stays goes with a restart of that conductor, \
             waits for the node",
        ),
        rebooted(json!({ "reservation": "conductor", "updated_at": at(86_400) }))
            .reserved_for(60)
            .row("the reboot is in progress, and Ironic has another clock", "waits for a time"),
        rebooted(json!({ "last_error": "During sync_power_state, the power state was lost" })).row(
            "the reboot is over, and the node has another error",
            "changes the host, replan",
        ),
        rebooted(json!({ "last_error": ABORTED })).row(
            "the conductor of the reboot restarted",
            "writes the status, power management error: Reboot operation failed: Pending power operation was aborted \
             due to conductor restart, waits for a time",
        ),
        rebooted(json!({ "target_power_state": "power on" })).row(
            "the conductor of the reboot died, and another one has its node",
            "writes the status, power management error: Reboot operation failed: the conductor that rebooted the \
             machine stopped before the end, waits for a time",
        ),
        rebooted(failed.clone()).row(
            "the reboot failed",
            "writes the status, power management error: Reboot operation failed: Failed to change power state to \
             'power on' by 'soft rebooting': no answer, waits for a time",
        ),
        never_off()
            .annotated("reboot.metal3.io", "")
            .live()
            .status(failing(
                "power management error",
                "Reboot operation failed: no answer",
                1,
            ))
            .hours_later(1)
            .row(
                "the reboot failed, recorded and later, and this process did not request it",
                "requests rebooting, writes the status, error cleared, waits for the node",
            ),
        never_off()
            .annotated("reboot.metal3.io", "")
            .live()
            .status(failing(
                "power management error",
                &format!("Reboot operation failed: {ABORTED}"),
                1,
            ))
            .hours_later(1)
            .row(
                "the conductor of the reboot restarted, recorded and later",
                "requests soft rebooting, writes the status, error cleared, waits for the node",
            ),
        never_off()
            .annotated("reboot.metal3.io", "")
            .live()
            .status(failing(
                "power management error",
                "Reboot operation failed: the conductor that rebooted the machine stopped before the end",
                1,
            ))
            .hours_later(1)
            .row(
                "the conductor of the reboot died, recorded and later",
                "requests soft rebooting, writes the status, error cleared, waits for the node",
            ),
        to_be_off()
            .node_with("active", with(on(), json!({ "last_error": ABORTED })))
            .live()
            .requested_power(false)
            .row(
                "the conductor restarted during a soft power-off",
                "writes the status, power management error: PowerOff operation failed: Pending power operation was aborted due to \
                 conductor restart, waits for a time",
            ),
        never_off().annotated("reboot.metal3.io/client", "").live().row(
            "a host kept off that is never off",
            "withheld: RequestRefused, waits for the user",
        ),
        never_off()
            .spec(json!({ "online": false }))
            .status(failing(
                "power management error",
                "Reboot operation failed: no answer",
                1,
            ))
            .row(
                "a host to be off that is never off, after a failed reboot that is not requested any more",
                "writes the status, error cleared, withheld: RequestRefused, waits for the user",
            ),
        provisioned()
            .node_with("active", json!({ "power_state": null }))
            .row("power unknown", "waits for the node"),
    ]
}
