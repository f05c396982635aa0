//! Hosts with HostFirmwareComponents.

mod left;
mod outcomes;

use std::collections::BTreeMap;

use metal3_api::metal3::v1alpha1::FirmwareUpdate;
use metal3_domain::allowed::Allowed;
use metal3_domain::ids::NodeUuid;
use metal3_runtime::plan::{Observed, UnknownReason};
use serde_json::{Value, json};

use super::Row;
use super::given::{available, failing, powering_off, preparing, provisioned};
use crate::facts::{CleaningOrder, CleaningProgress, HostFreshness};
use crate::node::firmware::{self, Files};
use crate::tests::fixture::{Fixture, NODE, OTHER_UID, UID, at};

const URL: &str = "http://u:canary@192.0.2.9/bios-2?signature=canary";
const CHANGED: &str = "2026-01-31T12:00:00.123456Z";
const LATER: &str = "2026-01-31T12:20:00Z";
/// A failed cleaning as Ironic shows it.
fn failed() -> Value {
    json!({ "last_error": "Timeout", "maintenance": true, "maintenance_reason": "Timeout", "fault": "clean failure",
        "provision_updated_at": LATER })
}

fn update(url: &str) -> Value {
    json!([{ "component": "bios", "url": url }])
}

impl Fixture {
    /// HostFirmwareComponents with these updates, records and conditions.
    pub(in crate::tests) fn components(self, asked: Value, recorded: Value, conditions: Vec<Value>) -> Self {
        let owner = json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "name": "h", "uid": UID });
        let object = json!({
            "metadata": { "name": "h", "namespace": "metal", "resourceVersion": "8", "generation": 2, "ownerReferences": [owner] },
            "spec": { "updates": asked },
            "status": { "updates": recorded, "components": [{ "component": "bios", "initialVersion": "1", "currentVersion": "1" }],
                "lastUpdated": at(0), "conditions": reported().into_iter().chain(conditions).collect::<Vec<_>>() },
        });
        let object = serde_json::from_value(object).unwrap();
        self.with(|fixture| fixture.components = Observed::Present(object))
    }

    /// The firmware of the machine was read.
    pub(in crate::tests) fn machine_has(self, version: &str) -> Self {
        let found = json!([{ "component": "bios", "initial_version": "1", "current_version": version }]);
        self.with(|fixture| fixture.versions = Observed::Present(serde_json::from_value(found).unwrap()))
    }

    pub(in crate::tests) fn components_live(self) -> Self {
        self.with(|fixture| fixture.components_freshness = HostFreshness::Live)
    }

    /// This process ordered a cleaning with updates.
    fn ordered(self, progress: CleaningProgress) -> Self {
        let order = CleaningOrder {
            node: NodeUuid::parse(NODE).unwrap(),
            settings: BTreeMap::new(),
            files: files(&update(URL)),
            left: None,
            is_only: true,
            progress,
        };
        self.with(|fixture| fixture.cleaning_order = Some(order))
    }
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({ "type": kind, "status": status, "reason": reason, "message": message, "observedGeneration": 2,
        "lastTransitionTime": at(0) })
}

fn reported() -> Vec<Value> {
    vec![
        condition("ChangeDetected", "True", "OK", "bios: made while the host is prepared"),
        condition("Valid", "True", "OK", ""),
    ]
}

fn files(updates: &Value) -> Files {
    let updates: Vec<FirmwareUpdate> = serde_json::from_value(updates.clone()).unwrap();
    firmware::in_steps(&[firmware::step(&updates)])
}

fn listed(updates: &Value) -> String {
    let files: Vec<_> = files(updates).into_iter().collect();
    files.join(" ")
}

fn open(reason: &str) -> Vec<Value> {
    open_on(NODE, reason)
}

fn open_on(node: &str, reason: &str) -> Vec<Value> {
    let message = match reason {
        "UpdateBegun" => format!("bios: under way in Ironic for node {node}"),
        _ => format!("bios: ordered of Ironic for node {node}, which changed its state last at {CHANGED}"),
    };
    let message = format!("{message}; ordered files: {}", listed(&update(URL)));
    vec![condition("Updating", "True", reason, &message)]
}

/// The record that the update of this URL was made.
fn made(url: &str) -> Vec<Value> {
    let message = format!("bios: made; made files: {}", listed(&update(url)));
    vec![condition("Updating", "False", "UpdateMade", &message)]
}

/// The node shows a cleaning with the update of this URL.
fn cleaned(url: &str) -> Value {
    let updates: Vec<FirmwareUpdate> = serde_json::from_value(update(url)).unwrap();
    json!({ "target_provision_state": "manageable",
        "driver_internal_info": { "clean_steps": [firmware::step(&updates)] } })
}

fn at_rest(changed: &str) -> Value {
    json!({ "provision_updated_at": changed })
}

fn asked() -> Fixture {
    preparing().components(update(URL), json!([]), Vec::new())
}

/// An order is recorded.
fn recorded(reason: &str) -> Fixture {
    preparing().components(update(URL), update(URL), open(reason))
}

/// The condition that records a hold.
/// A cleaning with two updates failed, in a node with an update of the second that an earlier cleaning left. This process saw
/// that one alone in the step, or did not see the step.
pub(in crate::tests) fn order_of_two(seen: Option<&str>) -> Fixture {
    let both = json!([{ "component": "bios", "url": URL }, { "component": "bmc", "url": URL }]);
    let message = format!(
        "bios, bmc: under way in Ironic for node {NODE}; ordered files: {}",
        listed(&both)
    );
    let node = super::given::with(
        failed(),
        json!({ "driver_internal_info": { "redfish_fw_updates": [{ "component": "bmc", "url": URL }] } }),
    );
    preparing()
        .components(
            both.clone(),
            both.clone(),
            vec![condition("Updating", "True", "UpdateBegun", &message)],
        )
        .node_with("clean failed", node)
        .ordered(CleaningProgress::Failed)
        .with(|fixture| {
            if let Some(order) = &mut fixture.cleaning_order {
                order.files = files(&both);
                order.left = seen.map(|name| files(&json!([{ "component": name, "url": URL }])));
            }
        })
}

fn held() -> Value {
    json!({ "conditions": [{ "type": "Held", "status": "True", "reason": "FirmwarePending", "message": "x",
        "lastTransitionTime": at(0) }] })
}

fn no_right() -> UnknownReason {
    UnknownReason::Unreadable("the account of this program may not get hostfirmwarecomponents.metal3.io".to_owned())
}

const NOT_KNOWN: &str = "writes the status, preparation error: it is not known whether changes of the firmware are requested (the \
     account of this program may not get hostfirmwarecomponents.metal3.io), so the host is not cleaned and not made available; an \
     administrator of the cluster corrects that, as the roles and definitions of the release do, withheld: FirmwarePending, waits for \
     a time";

fn refused_component(component: &str, url: &str) -> Fixture {
    preparing()
        .node("manageable")
        .components(json!([{ "component": component, "url": url }]), json!([]), Vec::new())
        .machine_has("1")
        .spec(json!({ "raid": { "softwareRAIDVolumes": [{ "level": "1" }] } }))
}

pub(super) fn preparation() -> Vec<Row> {
    let mut rows = orders();
    rows.extend(outcomes::outcomes());
    rows.extend(unknown());
    rows.extend(left::left());
    rows
}

fn orders() -> Vec<Row> {
    vec![
        preparing()
            .node("manageable")
            .components(json!([]), json!([]), Vec::new())
            .row("asks for no update", "writes the status, to available, replan"),
        preparing()
            .node("manageable")
            .components(update(URL), update(URL), Vec::new())
            .row("recorded by a Go manager", "writes the status, to available, replan"),
        asked()
            .node("manageable")
            .row("the machine is not read", "reads Versions, replan"),
        asked().node("manageable").machine_has("1").row(
            "an update",
            "reads Node, reads FirmwareComponents, reads Host, replan",
        ),
        asked()
            .node("manageable")
            .machine_has("1")
            .live()
            .components_live()
            .row(
                "an update, compared live",
                "records UpdateOrdered, requests clean, waits for the node",
            ),
        asked()
            .node("manageable")
            .machine_has("1")
            .live()
            .with(|fixture| fixture.unreadable = Some("the account of this program may not get x".to_owned()))
            .row(
                "an update that may not be read again",
                "writes the status, preparation error: it is not known whether changes of the firmware are requested (the account of \
                 this program may not get x), so the host is not cleaned and not made available; an administrator of the cluster \
                 corrects that, as the roles and definitions of the release do, withheld: FirmwarePending, waits for a time",
            ),
        asked()
            .node("available")
            .machine_has("1")
            .row("an update, node available", "requests manage, waits for the node"),
        asked()
            .node("manageable")
            .machine_has("1")
            .live()
            .components_live()
            .with(|fixture| fixture.is_firmware_status_refused = true)
            .row(
                "the record is not permitted",
                "writes the status, preparation error: updates of the firmware cannot be recorded (the account of this program \
                 may not patch hostfirmwarecomponents/status.metal3.io), so none is made, and the host is not made available; an \
                 administrator of the cluster grants that right, as the roles of the release do, withheld: FirmwarePending, waits for \
                 a time",
            ),
        refused_component("psu", "http://192.0.2.9/1").row(
            "another kind of component",
            "reports the firmware, writes the status, preparation error: its HostFirmwareComponents cannot be applied: psu: only bios, bmc, or names \
             that start with nic: are allowed; correct its name or remove it. Nothing is changed until spec.updates is corrected, \
             waits for the user",
        ),
        refused_component("bmc", "http://192.0.2.9/1").row(
            "a component that the machine does not have",
            "reports the firmware, writes the status, preparation error: its HostFirmwareComponents cannot be applied: bmc: Ironic knows no such \
             component of the machine, but bios; correct its name or remove it. Nothing is changed until spec.updates is \
             corrected, waits for the user",
        ),
        refused_component("bios", "file:///etc/shadow").row(
            "a file of the conductor",
            "reports the firmware, writes the status, preparation error: its HostFirmwareComponents cannot be applied: bios: its URL is not valid: the \
             URL's scheme \"file\" cannot be fetched for an update; use http or https. Nothing is changed until spec.updates is \
             corrected, waits for the user",
        ),
        refused_component("bios", URL)
            .with(|fixture| fixture.settings.image_hosts = Allowed::parse(["192.0.2.1"]).unwrap())
            .row(
                "a host that is not allowed",
                "reports the firmware, writes the status, preparation error: its HostFirmwareComponents cannot be applied: bios: the host of its URL is \
                 not in --allowed-image-hosts; ask the administrator of this program to add it, or use another URL. Nothing is \
                 changed until spec.updates is corrected, waits for the user",
            ),
        asked()
            .node_with("manageable", json!({ "firmware_interface": "no-firmware" }))
            .machine_has("1")
            .row(
                "a driver without the interface",
                "reports the firmware, writes the status, preparation error: its HostFirmwareComponents cannot be applied: bios: the driver of its BMC \
                 has no interface for firmware updates in Ironic; remove the update, or use a Redfish address in spec.bmc.address of \
                 the host. Nothing is changed until spec.updates is corrected, waits for the user",
            ),
        asked()
            .node("manageable")
            .machine_has("1")
            .live()
            .components_live()
            .spec(json!({ "externallyProvisioned": true }))
            .row(
                "of a machine of another",
                "writes the status, to available, replan",
            ),
    ]
}

fn unknown() -> Vec<Row> {
    vec![
        preparing()
            .node("manageable")
            .components_unknown(UnknownReason::NotPermitted)
            .row("this program may not list them", "reads FirmwareComponents, replan"),
        preparing()
            .node("manageable")
            .components_unknown(no_right())
            .row("neither list nor read, nothing to clean", "writes the status, to available, replan"),
        preparing()
            .node("manageable")
            .components_unknown(no_right())
            .spec(json!({ "raid": { "softwareRAIDVolumes": [{ "level": "1" }] } }))
            .row("neither list nor read, with volumes to make", NOT_KNOWN),
        preparing()
            .node_with("clean failed", failed())
            .components_unknown(no_right())
            .row("neither list nor read, and a cleaning failed", NOT_KNOWN),
        preparing()
            .node("manageable")
            .components_unknown(no_right())
            .with(|fixture| fixture.began_elsewhere = true)
            .row("neither list nor read, and another process may have begun", NOT_KNOWN),
        preparing()
            .status(held())
            .no_secret()
            .components_unknown(no_right())
            .row(
                "another error replaces the hold",
                "writes the status, registration error: BMC CredentialsName secret doesn't exist: create Secret bmc with \
                 username and password, withheld: FirmwarePending, waits for Secret bmc",
            ),
        preparing()
            .status(held())
            .node("manageable")
            .row("the hold is over", "writes the status, to available, replan"),
        preparing()
            .node_with("clean failed", failed())
            .status(failing("preparation error", "it is not known whether changes of the firmware are requested (x)", 1))
            .row("the error of the hold is over", "writes the status, error cleared, replan"),
    ]
}

pub(super) fn elsewhere() -> Vec<Row> {
    vec![
        powering_off()
            .components(update(URL), update(URL), open_on(OTHER_UID, "UpdateBegun"))
            .node_with("manageable", json!({ "power_state": "power on" }))
            .live()
            .row(
                "deleted while its BMC may write the firmware, and Ironic lost the node",
                "writes the status, power management error: Ironic lost the node while it updated the firmware of the machine (bios), \
                 so the machine is not touched until its BMC must have ended that, about two hours after the node was lost; what is \
                 not made then is made again, withheld: FirmwareUpdatesLeft, waits for a time",
            ),
        available()
            .node("available")
            .components(update(URL), update(URL), Vec::new())
            .row("recorded", "settled"),
        available()
            .node("available")
            .components(update(URL), json!([]), Vec::new())
            .row("to be updated", "writes the status, to preparing, replan"),
        available()
            .node("available")
            .components_unknown(UnknownReason::NotPermitted)
            .row("not known", "settled"),
        provisioned()
            .node_with("active", super::given::written("a"))
            .components(update(URL), json!([]), Vec::new())
            .machine_has("1")
            .row("of a running machine", "reports the firmware, settled"),
    ]
}
