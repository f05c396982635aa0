//! Hosts with HostFirmwareSettings.

use std::collections::BTreeMap;

use metal3_domain::ids::NodeUuid;
use metal3_runtime::plan::{Observed, UnknownReason};
use serde_json::{Value, json};

use super::Row;
use super::given::{available, deprovisioning, failing, preparing, provisioned};
use crate::facts::{CleaningOrder, CleaningProgress, HostFreshness};
use crate::node::firmware::Files;
use crate::tests::fixture::{Fixture, NODE, UID, at};

const STILL: &str = "after the BIOS settings were applied the BMC still reports Mode=Uefi (asked: Bios); they are not applied again. \
     If that value is as wanted, write it as reported into spec.settings of the HostFirmwareSettings; otherwise remove the setting \
     there, correct the BMC and add the setting again";

impl Fixture {
    /// HostFirmwareSettings that ask for these values, with the conditions of a report.
    pub(in crate::tests) fn settings(self, asked: Value, conditions: Value) -> Self {
        let owner = json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "name": "h", "uid": UID });
        let object = json!({
            "metadata": { "name": "h", "namespace": "metal", "resourceVersion": "7", "generation": 2, "ownerReferences": [owner] },
            "spec": { "settings": asked },
            "status": { "settings": {}, "lastUpdated": at(0), "conditions": conditions },
        });
        let object = serde_json::from_value(object).unwrap();
        self.with(|fixture| fixture.firmware_settings = Observed::Present(object))
    }

    /// The settings of the machine were read.
    pub(in crate::tests) fn machine_reports(self, mode: &str) -> Self {
        let page = json!([{ "name": "Mode", "value": mode, "attribute_type": "Enumeration", "allowable_values": ["Uefi", "Bios"] }]);
        self.with(|fixture| fixture.bios = Observed::Present(serde_json::from_value(page).unwrap()))
    }

    fn settings_live(self) -> Self {
        self.with(|fixture| fixture.firmware_settings_freshness = HostFreshness::Live)
    }

    /// This process ordered a cleaning for this mode.
    pub(in crate::tests) fn cleaning_order(self, mode: &str, progress: CleaningProgress) -> Self {
        let order = CleaningOrder {
            node: NodeUuid::parse(NODE).unwrap(),
            settings: BTreeMap::from([("Mode".to_owned(), json!(mode))]),
            files: Files::new(),
            left: None,
            is_only: true,
            progress,
        };
        self.with(|fixture| fixture.cleaning_order = Some(order))
    }
}

/// A node that Ironic made manageable after a step of its cleaning failed.
fn failed_at_once(error: &str) -> Value {
    json!({ "last_error": error, "maintenance": true, "maintenance_reason": error, "fault": "clean failure" })
}

/// The conditions of a report.
fn reported(detected: &str, valid: &str) -> Value {
    let condition = |kind: &str, status: &str| {
        json!({ "type": kind, "status": status, "reason": "Success", "message": "", "observedGeneration": 2,
            "lastTransitionTime": at(0) })
    };
    json!([condition("ChangeDetected", detected), condition("Valid", valid)])
}

fn asks() -> Value {
    json!({ "Mode": "bios" })
}

pub(super) fn preparation() -> Vec<Row> {
    let asked = || {
        preparing()
            .node("manageable")
            .settings(asks(), reported("True", "True"))
    };
    vec![
        preparing()
            .node("manageable")
            .settings(json!({}), reported("False", "True"))
            .row("asks for no setting", "writes the status, to available, replan"),
        preparing()
            .node("manageable")
            .with(|fixture| fixture.firmware_settings = Observed::Unknown(UnknownReason::NotListed))
            .row("settings not known", "reads FirmwareSettings, replan"),
        preparing()
            .node("manageable")
            .with(|fixture| fixture.firmware_settings = Observed::Unknown(UnknownReason::NotPermitted))
            .row("settings that this program may not list", "writes the status, to available, replan"),
        preparing()
            .node("manageable")
            .settings(asks(), json!([]))
            .row("never reported", "reads ReportedBios, replan"),
        asked().row("the machine is not read", "reads Bios, replan"),
        asked()
            .with(|fixture| fixture.bios = Observed::Unknown(UnknownReason::Unreadable("x".to_owned())))
            .row("the machine could not be read for the report", "reads Bios, replan"),
        asked()
            .machine_reports("Bios")
            .row("in force", "creates a schema, reports the settings, writes the status, to available, replan"),
        asked().machine_reports("Uefi").row(
            "another value",
            "reads Node, reads FirmwareSettings, reads Host, replan",
        ),
        asked().machine_reports("Uefi").live().settings_live().row(
            "another value, compared live",
            "requests clean, creates a schema, reports the settings, waits for the node",
        ),
        preparing()
            .node("available")
            .settings(asks(), reported("True", "True"))
            .machine_reports("Uefi")
            .row(
                "another value, node available",
                "requests manage, creates a schema, reports the settings, waits for the node",
            ),
        asked()
            .machine_reports("Uefi")
            .live()
            .settings_live()
            .spec(json!({ "externallyProvisioned": true }))
            .row("of a machine of another", "creates a schema, reports the settings, writes the status, to available, replan"),
        preparing()
            .node_with(
                "manageable",
                json!({ "instance_uuid": crate::tests::fixture::OTHER_UID }),
            )
            .settings(asks(), reported("True", "True"))
            .machine_reports("Uefi")
            .row("the node serves another instance", "creates a schema, reports the settings, writes the status, preparation error: in Ironic the node serves instance \
                 7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c, which is not this host; the node is not changed. If nothing uses that \
                 instance, remove instance_uuid from node 11111111-2222-4333-8444-555555555555; if it is the former instance of this \
                 host from before a move between clusters, set the annotation baremetalhost.metal3.io/former-instance to it, waits \
                 for the node"),
        preparing()
            .node("manageable")
            .settings(json!({ "Turbo": 1, "Mode": "bios" }), reported("True", "False"))
            .machine_reports("Uefi")
            .spec(json!({ "raid": { "softwareRAIDVolumes": [{ "level": "1" }] } }))
            .row("an unknown setting", "creates a schema, reports the settings, writes the status, preparation error: its HostFirmwareSettings cannot be \
                 applied: Turbo: it is not in the schema of the machine; remove it or correct its name. Nothing is changed until \
                 spec.settings is corrected, waits for the user"),
        asked()
            .with(|fixture| fixture.bios = Observed::Present(Vec::new()))
            .row("Ironic has no settings of the machine", "reports the settings, writes the status, to available, replan"),
        asked()
            .machine_reports("Uefi")
            .with(|fixture| {
                if let Observed::Present(settings) = &mut fixture.firmware_settings {
                    settings.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
                }
            })
            .row("the settings are deleted", "writes the status, to available, replan"),
        asked()
            .machine_reports("Uefi")
            .cleaning_order("Bios", CleaningProgress::Begun)
            .row("not taken", "creates a schema, reports the settings, writes the status, preparation error: after the BIOS settings were applied \
                 the BMC still reports Mode=Uefi (asked: Bios); they are not applied again. If that value is as wanted, write it as \
                 reported into spec.settings of the HostFirmwareSettings; otherwise remove the setting there, correct the BMC and add \
                 the setting again, waits for the user"),
        asked()
            .machine_reports("Uefi")
            .cleaning_order("Bios", CleaningProgress::Unconfirmed)
            .live()
            .settings_live()
            .row(
                "the response is lost",
                "requests clean, creates a schema, reports the settings, waits for the node",
            ),
        asked()
            .machine_reports("Uefi")
            .cleaning_order("Bios", CleaningProgress::Failed)
            .live()
            .settings_live()
            .row(
                "the cleaning failed",
                "requests clean, creates a schema, reports the settings, waits for the node",
            ),
        asked()
            .machine_reports("Uefi")
            .cleaning_order("Other", CleaningProgress::Begun)
            .live()
            .settings_live()
            .row(
                "changed since",
                "requests clean, creates a schema, reports the settings, waits for the node",
            ),
        preparing().node_with("manageable", failed_at_once("Mode")).row(
            "a step failed at once, and Ironic went on",
            "writes the status, preparation error: Mode, waits for a time",
        ),
        preparing()
            .node_with("manageable", failed_at_once("Mode"))
            .status(failing("preparation error", "Mode", 1))
            .live()
            .hours_later(1)
            .row(
                "a step failed at once, recorded and later",
                "requests clear maintenance, writes the status, error cleared, waits for the node",
            ),
        preparing()
            .node_with("manageable", {
                let mut node = failed_at_once("Mode");
                node["maintenance_reason"] = json!("a new disk");
                node
            })
            .status(failing("preparation error", "Mode", 1))
            .live()
            .hours_later(1)
            .row(
                "a step failed at once, and an operator began a maintenance",
                "writes the status, preparation error: the node is in maintenance (a new disk), so Ironic does not operate it; \
                 end its maintenance in Ironic, waits for the node",
            ),
        asked()
            .machine_reports("Uefi")
            .status(failing("preparation error", STILL, 1))
            .with(|fixture| fixture.began_elsewhere = true)
            .row(
                "not taken, before a restart",
                "creates a schema, reports the settings, waits for the user",
            ),
        asked()
            .machine_reports("Uefi")
            .status(failing(
                "preparation error",
                "after the BIOS settings were applied the BMC still reports Mode=x",
                1,
            ))
            .live()
            .settings_live()
            .row(
                "the machine reports another value since",
                "requests clean, creates a schema, reports the settings, writes the status, error cleared, waits for the node",
            ),
    ]
}

pub(super) fn elsewhere() -> Vec<Row> {
    let asked = |conditions| available().node("available").settings(asks(), conditions);
    vec![
        asked(reported("False", "True")).row("in force", "settled"),
        asked(reported("True", "False")).row("invalid", "settled"),
        asked(reported("True", "True")).row("another value, not read", "reads Bios, replan"),
        asked(reported("True", "True")).machine_reports("Uefi").row(
            "another value",
            "creates a schema, reports the settings, writes the status, to preparing, replan",
        ),
        asked(json!([])).row("changed since the report", "reads ReportedBios, replan"),
        provisioned()
            .node_with("active", super::given::written("a"))
            .settings(asks(), reported("True", "True"))
            .machine_reports("Uefi")
            .row(
                "of a running machine",
                "creates a schema, reports the settings, settled",
            ),
        deprovisioning()
            .node("deleting")
            .settings(asks(), reported("True", "True"))
            .row("of a machine that is torn down", "waits for the node"),
    ]
}
