//! Running hosts with a HostUpdatePolicy.

use std::collections::BTreeMap;
use std::sync::Arc;

use metal3_domain::ids::NodeUuid;
use metal3_runtime::plan::{Observed, UnknownReason};
use serde_json::{Value, json};

use super::Row;
use super::given::{deprovisioning, external, failing, provisioned, with};
use crate::facts::{CleaningOrder, CleaningProgress, HostFreshness, RefusalClass};
use crate::node::firmware::Files;
use crate::tests::fixture::{Fixture, NODE, OTHER_UID, UID, at};

const AT_REBOOT: &str = "Mode: applied when the host is rebooted the next time, as its HostUpdatePolicy allows";

impl Fixture {
    /// A policy with this spec, owned by the host.
    pub(in crate::tests) fn policy(self, spec: Value) -> Self {
        self.policy_of(spec, UID)
    }

    fn policy_of(self, spec: Value, owner: &str) -> Self {
        let owner = json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "name": "h", "uid": owner });
        let object = json!({
            "metadata": { "name": "h", "namespace": "metal", "resourceVersion": "9", "ownerReferences": [owner] },
            "spec": spec,
        });
        let object = serde_json::from_value(object).unwrap();
        self.with(|fixture| fixture.update_policy = Observed::Present(Arc::new(object)))
    }

    /// The settings ask for another mode than the machine has, as their report says.
    fn differs(self) -> Self {
        self.settings(json!({ "Mode": "bios" }), reported())
    }

    /// The same after a service that failed, as their report says.
    fn has_failed_before(self) -> Self {
        let at_reboot = AT_REBOOT.trim_start_matches("Mode: ");
        let message = format!("Mode: the last service failed (Timeout); {at_reboot}");
        self.settings(json!({ "Mode": "bios" }), reported_as(&message))
    }

    /// All that a service depends on was read in this reconcile.
    fn all_live(self) -> Self {
        self.live().with(|fixture| {
            fixture.update_policy_freshness = HostFreshness::Live;
            fixture.firmware_settings_freshness = HostFreshness::Live;
            fixture.components_freshness = HostFreshness::Live;
        })
    }

    fn serviced(self, progress: CleaningProgress) -> Self {
        let order = CleaningOrder {
            node: NodeUuid::parse(NODE).unwrap(),
            settings: BTreeMap::from([("Mode".to_owned(), json!("Bios"))]),
            files: Files::new(),
            left: None,
            is_only: true,
            progress,
        };
        self.with(|fixture| fixture.cleaning_order = Some(order))
    }
}

fn reported() -> Value {
    reported_as(AT_REBOOT)
}

fn reported_as(when: &str) -> Value {
    let condition = |kind: &str, message: &str| {
        json!({ "type": kind, "status": "True", "reason": "Success", "message": message, "observedGeneration": 2,
            "lastTransitionTime": at(0) })
    };
    json!([condition("ChangeDetected", when), condition("Valid", "")])
}

fn at_reboots() -> Value {
    json!({ "firmwareSettings": "onReboot" })
}

fn off() -> Value {
    json!({ "power_state": "power off" })
}

fn on() -> Value {
    json!({ "power_state": "power on" })
}

/// The node of a service that changes the mode.
fn steps() -> Value {
    let step = json!({ "interface": "bios", "step": "apply_configuration", "args": { "settings": [{ "name": "Mode", "value": "Bios" }] } });
    json!({ "power_state": "power on", "driver_internal_info": { "service_steps": [step] } })
}

/// The node while the BMC writes firmware.
fn writing() -> Value {
    json!({ "power_state": "power on", "driver_internal_info": { "redfish_fw_updates": [{ "component": "bios", "url": "http://f/1" }] } })
}

fn failed() -> Value {
    json!({ "last_error": "Timeout", "maintenance": true, "maintenance_reason": "Timeout", "fault": "service failure" })
}

fn stopped() -> Fixture {
    provisioned()
        .node_with("active", off())
        .status(json!({ "poweredOn": false }))
}

pub(super) fn begins() -> Vec<Row> {
    let asked = || stopped().policy(at_reboots()).differs();
    let starts = "requests power on, waits for the node";
    vec![
        asked().row("off, and to be on: the machine is not read", "reads ReportedBios, replan"),
        asked().machine_reports("Uefi").row(
            "another value",
            "reads Node, reads FirmwareSettings, reads UpdatePolicy, reads Host, replan",
        ),
        asked().machine_reports("Uefi").all_live().row(
            "another value, compared live",
            "requests service, creates a schema, reports the settings, writes the status, waits for the node",
        ),
        asked().machine_reports("Bios").row(
            "in force",
            "requests power on, creates a schema, reports the settings, waits for the node",
        ),
        stopped()
            .differs()
            .row("another value, without a policy", "reads ReportedBios, replan"),
        stopped()
            .policy(json!({ "firmwareSettings": "onPreparing", "firmwareUpdates": "onReboot" }))
            .differs()
            .machine_reports("Uefi")
            .row(
                "a policy for updates alone",
                "requests power on, creates a schema, reports the settings, waits for the node",
            ),
        asked()
            .with(|fixture| fixture.update_policy = Observed::Unknown(UnknownReason::NotListed))
            .machine_reports("Uefi")
            .row("the policy is not known", "reads UpdatePolicy, replan"),
        asked()
            .with(|fixture| fixture.update_policy = Observed::Unknown(UnknownReason::NotPermitted))
            .machine_reports("Bios")
            .row(
                "a policy that this program may not read",
                "requests power on, creates a schema, reports the settings, waits for the node",
            ),
        asked().spec(json!({ "online": false })).row("not to be on", "settled"),
        provisioned()
            .status(json!({ "poweredOn": true }))
            .node_with("active", on())
            .policy(at_reboots())
            .differs()
            .row("on", "settled"),
        asked()
            .node_with("active", with(off(), json!({ "disable_power_off": true })))
            .spec(json!({ "disablePowerOff": true }))
            .row("a machine that is never off", "reads ReportedBios, replan"),
        asked()
            .status(failing("servicing error", "Timeout", 1))
            .row("the last service failed, which its report lacks", "reads ReportedBios, replan"),
        asked()
            .has_failed_before()
            .status(failing("servicing error", "Timeout", 1))
            .row("the last service failed", starts),
        asked().machine_reports("Uefi").serviced(CleaningProgress::Begun).row(
            "the machine did not take the value",
            "requests power on, creates a schema, reports the settings, waits for the node",
        ),
        asked()
            .machine_reports("Uefi")
            .all_live()
            .refused("service", RefusalClass::Invalid, "it allows no steps")
            .row(
                "Ironic rejects the service",
                "requests power on, creates a schema, reports the settings, waits for the node",
            ),
        asked()
            .machine_reports("Uefi")
            .all_live()
            .with(|fixture| fixture.settings.builds_agent_images = true)
            .row(
                "the image of the agent is not known",
                "requests power on, creates a schema, reports the settings, waits for the node",
            ),
        asked()
            .with(|fixture| fixture.bios = Observed::Unknown(UnknownReason::Unreadable("x".to_owned())))
            .row("the machine could not be read", starts),
        asked()
            .machine_reports("Uefi")
            .status(failing("power management error", "PowerOn operation failed: x", 1))
            .serviced(CleaningProgress::Failed)
            .with(|fixture| fixture.now = at(7200))
            .row(
                "the power failed after the last service",
                "requests power on, creates a schema, reports the settings, writes the status, error cleared, waits for the node",
            ),
        external()
            .status(json!({ "poweredOn": false }))
            .node_with("active", off())
            .policy(at_reboots())
            .differs()
            .machine_reports("Uefi")
            .all_live()
            .row(
                "externally provisioned",
                "requests service, creates a schema, reports the settings, writes the status, waits for the node",
            ),
        stopped().policy_of(json!({}), OTHER_UID).row(
            "a policy of a former host",
            "requests power on, owns the policy, waits for the node",
        ),
    ]
}

pub(super) fn follows() -> Vec<Row> {
    let host = || provisioned().status(json!({ "poweredOn": true, "operationalStatus": "servicing" }));
    let runs = |state: &str| host().policy(at_reboots()).differs().node_with(state, steps());
    let taken_back = |state: &str| {
        let later = reported_as("Mode: applied when the host is prepared the next time");
        let asks = host().policy(json!({})).settings(json!({ "Mode": "bios" }), later);
        asks.node_with(state, steps()).serviced(CleaningProgress::Begun)
    };
    let has_failed = || {
        let node = with(steps(), failed());
        host().policy(at_reboots()).differs().node_with("service failed", node)
    };
    let recorded = || {
        has_failed()
            .has_failed_before()
            .status(failing("servicing error", "Timeout", 1))
            .with(|fixture| fixture.now = at(7200))
    };
    vec![
        runs("servicing").row("runs", "waits for the node"),
        runs("service wait").row("waits for its agent", "waits for the node"),
        taken_back("servicing").row("taken back while Ironic is busy", "waits for the node"),
        taken_back("service wait").row(
            "taken back",
            "reads Node, reads FirmwareSettings, reads UpdatePolicy, reads Host, replan",
        ),
        taken_back("service wait")
            .all_live()
            .row("taken back, compared live", "requests abort, waits for the node"),
        taken_back("service wait")
            .with(|fixture| fixture.cleaning_order = None)
            .all_live()
            .row("a service of another client without a policy", "waits for the node"),
        has_failed().live().row(
            "failed",
            "requests clear maintenance, requests abort, writes the status, servicing error: Timeout, waits for the node",
        ),
        recorded().live().row(
            "failed a while ago",
            "requests clear maintenance, requests abort, waits for the node",
        ),
        taken_back("service wait")
            .with(|fixture| {
                let (node, _) = fixture.node.as_mut().unwrap().as_mut().unwrap();
                node["service_step"] = json!({ "interface": "bios", "abort_after": true });
            })
            .all_live()
            .row("taken back before, and not abortable", "waits for the node"),
        deprovisioning()
            .live()
            .node_with("service wait", writing())
            .live()
            .row("deprovisioned while the BMC writes firmware", "writes the status, waits for the node"),
        host()
            .policy(at_reboots())
            .has_failed_before()
            .status(failing("servicing error", "Timeout", 1))
            .node_with("active", on())
            .row("ended after a failure, and the system runs", "writes the status, error cleared, settled"),
        host()
            .status(failing("servicing error", "Timeout", 1))
            .node_with("active", on())
            .row(
                "ended after a failure, and nothing is asked any more",
                "writes the status, error cleared, settled",
            ),
        host()
            .node_with("active", on())
            .row("ended", "writes the status, settled"),
    ]
}
