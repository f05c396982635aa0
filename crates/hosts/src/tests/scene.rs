//! Facts that are owned, and what a plan says, in a line.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::{BareMetalHost, ErrorType, HardwareData, OperationalStatus, ProvisioningState};
use metal3_ironic::model::inventory::Inspection;
use metal3_ironic::model::node::{Node, Validation};
use metal3_ironic::model::port::Port;
use metal3_ironic::slots::Turn;
use metal3_runtime::patch::{MergePatch, apply};
use serde_json::{Value, json};

use crate::action::{Order, Plan, Step, Wait};
use crate::facts::{Budget, Facts, HostSeen, LastView, NodeSeen, NodeSight, Outage, Refused, Secret, Sight};
use crate::plan::plan_under;
use crate::rules::Rules;
use crate::settings::Settings;

pub(crate) const UID: &str = "6b1f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5b";
pub(crate) const OTHER_UID: &str = "7c2f7a52-1c2d-4e3f-8a9b-0c1d2e3f4a5c";
pub(crate) const NODE: &str = "11111111-2222-4333-8444-555555555555";
pub(crate) const MAC: &str = "52:54:00:00:00:01";
pub(crate) const START: i64 = 1_800_000_000;

pub(crate) fn at(seconds: i64) -> Time {
    Time::new(DateTime::from_timestamp(START + seconds, 0).unwrap())
}

pub(crate) fn image(name: &str) -> Value {
    json!({ "url": format!("http://192.0.2.9/{name}.qcow2"), "checksum": "0".repeat(64), "checksumType": "sha256", "format": "qcow2" })
}

/// What a Secret is.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) metadata: ObjectMeta,
    pub(crate) values: Option<BTreeMap<String, ByteString>>,
}

pub(crate) fn secret(name: &str, values: &[(&str, &str)]) -> Stored {
    let metadata = json!({
        "name": name, "namespace": "metal", "resourceVersion": "40",
        "labels": { "environment.metal3.io": "baremetal" },
        "finalizers": ["baremetalhost.metal3.io/secret"],
        "ownerReferences": [{ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "name": "h", "uid": UID }],
    });
    let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
    Stored {
        metadata: serde_json::from_value(metadata).unwrap(),
        values: Some(
            values
                .iter()
                .map(|(key, value)| ((*key).to_owned(), bytes(value)))
                .collect(),
        ),
    }
}

/// Facts, owned.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    pub(crate) host: Value,
    pub(crate) host_seen: HostSeen,
    pub(crate) before: LastView,
    pub(crate) credentials: Option<Option<Stored>>,
    pub(crate) same_login: Option<Duration>,
    pub(crate) user_data: Option<Option<Stored>>,
    pub(crate) hardware_data: Option<Option<HardwareData>>,
    pub(crate) node: Option<Option<(Value, NodeSeen)>>,
    pub(crate) foreign: Option<String>,
    pub(crate) ports: Option<Vec<Port>>,
    pub(crate) inventory: Option<Option<Inspection>>,
    pub(crate) validation: Option<Validation>,
    pub(crate) history: Option<Option<String>>,
    pub(crate) refused: Option<Refused>,
    pub(crate) outage: Option<Outage>,
    pub(crate) turn: Option<Turn>,
    pub(crate) left: u32,
    pub(crate) settings: Settings,
    pub(crate) now: Time,
}

pub(crate) fn node(state: &str) -> Value {
    json!({
        "uuid": NODE, "name": "metal~h", "driver": "redfish", "provision_state": state, "power_state": "power off",
        "boot_interface": "redfish-virtual-media", "firmware_interface": "redfish", "inspect_interface": "agent",
        "raid_interface": "redfish", "automated_clean": true, "disable_power_off": false,
        "driver_info": { "redfish_address": "https://192.0.2.10", "redfish_system_id": "/redfish/v1/Systems/1",
            "redfish_username": "u", "redfish_password": "******" },
        "properties": { "capabilities": "boot_mode:uefi", "cpu_arch": "x86_64" },
        "health": "OK",
    })
}

fn tried() -> Value {
    json!({ "credentials": { "name": "bmc", "namespace": "metal" }, "credentialsVersion": "40" })
}

impl Scene {
    /// A host in a state, whose node is not known.
    pub(crate) fn new(state: &str) -> Self {
        let mut host = json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": { "name": "h", "namespace": "metal", "uid": UID, "resourceVersion": "10", "generation": 1,
                "finalizers": ["baremetalhost.metal3.io"], "annotations": {} },
            "spec": { "online": true, "bootMACAddress": MAC, "architecture": "x86_64",
                "bmc": { "address": "redfish-virtualmedia://192.0.2.10/redfish/v1/Systems/1", "credentialsName": "bmc" } },
            "status": { "operationalStatus": "OK", "errorMessage": "", "poweredOn": false, "errorCount": 0,
                "provisioningFailCount": 0, "goodCredentials": tried(), "triedCredentials": tried(),
                "lastUpdated": at(0), "hardwareProfile": "unknown",
                "hardware": { "cpu": { "arch": "x86_64" } },
                "provisioning": { "state": state, "ID": NODE, "image": { "url": "" }, "bootMode": "UEFI",
                    "rootDeviceHints": { "deviceName": "/dev/sda" } } },
        });
        if matches!(state, "" | "unmanaged") {
            host.as_object_mut().unwrap().remove("status");
        }
        Self {
            host,
            host_seen: HostSeen::Cached,
            before: LastView::default(),
            credentials: Some(Some(secret("bmc", &[("username", "u"), ("password", "p")]))),
            same_login: None,
            user_data: None,
            hardware_data: Some(None),
            node: None,
            foreign: None,
            ports: None,
            inventory: None,
            validation: None,
            history: None,
            refused: None,
            outage: None,
            turn: None,
            left: 5,
            settings: Settings::default(),
            now: at(0),
        }
    }

    /// Changes the host.
    pub(crate) fn host(mut self, change: Value) -> Self {
        apply(&change, &mut self.host);
        self
    }

    pub(crate) fn spec(self, change: Value) -> Self {
        self.host(json!({ "spec": change }))
    }

    pub(crate) fn status(self, change: Value) -> Self {
        self.host(json!({ "status": change }))
    }

    pub(crate) fn annotated(self, name: &str, value: &str) -> Self {
        self.host(json!({ "metadata": { "annotations": { name: value } } }))
    }

    pub(crate) fn deleted(self) -> Self {
        self.host(json!({ "metadata": { "deletionTimestamp": at(0), "deletionGracePeriodSeconds": 0 } }))
    }

    /// A node in a state, as the feed shows it.
    pub(crate) fn node(self, state: &str) -> Self {
        self.node_with(state, json!({}))
    }

    pub(crate) fn node_with(mut self, state: &str, change: Value) -> Self {
        let mut node = node(state);
        apply(&change, &mut node);
        self.node = Some(Some((node, NodeSeen::Abreast)));
        self
    }

    /// The search found nothing.
    pub(crate) fn no_node(mut self) -> Self {
        self.node = Some(None);
        self
    }

    pub(crate) fn seen(mut self, seen: NodeSeen) -> Self {
        if let Some(Some((_, at))) = &mut self.node {
            *at = seen;
        }
        self
    }

    /// Host and node have been read.
    pub(crate) fn live(mut self) -> Self {
        self.host_seen = HostSeen::Live;
        self.seen(NodeSeen::Live)
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// It runs an image, and asks for another or the same.
    pub(crate) fn runs(self, runs: &str) -> Self {
        self.status(json!({ "provisioning": { "image": image(runs) }, "poweredOn": true }))
    }

    pub(crate) fn asks(self, asked: &str) -> Self {
        self.spec(json!({ "image": image(asked) }))
    }

    pub(crate) fn plan(&self) -> Plan {
        self.plan_under(&Rules::ALL)
    }

    pub(crate) fn plan_under(&self, rules: &Rules) -> Plan {
        let host: BareMetalHost = serde_json::from_value(self.host.clone()).unwrap();
        let node: Option<(Node, NodeSeen)> = self.node.as_ref().and_then(|node| {
            let (node, seen) = node.as_ref()?;
            Some((serde_json::from_value(node.clone()).unwrap(), *seen))
        });
        let facts = Facts {
            host: &host,
            host_seen: self.host_seen,
            before: self.before,
            credentials: sight(self.credentials.as_ref()),
            same_login: self.same_login,
            user_data: sight(self.user_data.as_ref()),
            network_data: Sight::Unknown,
            meta_data: Sight::Unknown,
            agent_network: Sight::Unknown,
            hardware_data: match &self.hardware_data {
                None => Sight::Unknown,
                Some(None) => Sight::Absent,
                Some(Some(data)) => Sight::Found(data),
            },
            node: match (&self.node, &node, &self.foreign) {
                (_, _, Some(name)) => NodeSight::Foreign { name },
                (None, _, None) => NodeSight::Unknown,
                (_, Some((node, seen)), None) => NodeSight::Found(node, *seen),
                (Some(_), None, None) => NodeSight::Absent,
            },
            ports: self.ports.as_deref().map_or(Sight::Unknown, Sight::Found),
            inventory: match &self.inventory {
                None => Sight::Unknown,
                Some(None) => Sight::Absent,
                Some(Some(found)) => Sight::Found(found),
            },
            validation: self.validation.as_ref().map_or(Sight::Unknown, Sight::Found),
            last_history_error: match &self.history {
                None => Sight::Unknown,
                Some(None) => Sight::Absent,
                Some(Some(text)) => Sight::Found(text),
            },
            refused: self.refused.as_ref(),
            outage: self.outage.as_ref(),
            turn: self.turn,
            budget: Budget {
                left: self.left,
                limit: 5,
                period: "hour",
            },
            settings: &self.settings,
            jitter: 7,
            now: self.now,
        };
        plan_under(&facts, rules)
    }

    /// The status as the plan leaves it.
    pub(crate) fn after(&self, plan: &Plan) -> BareMetalHost {
        let mut host = self.host.clone();
        for step in &plan.steps {
            if let Step::PatchHost(patch) | Step::PatchStatus(patch) = step {
                apply(&without_version(patch), &mut host);
            }
        }
        serde_json::from_value(host).unwrap()
    }

    pub(crate) fn state(&self) -> ProvisioningState {
        self.after(&Plan::default()).status.provisioning.state
    }

    /// What the plan does, in a line.
    pub(crate) fn tells(&self) -> String {
        let plan = self.plan();
        self.line(&plan)
    }

    pub(crate) fn line(&self, plan: &Plan) -> String {
        let (before, after) = (self.after(&Plan::default()), self.after(plan));
        let mut words: Vec<String> = plan.reads.iter().map(|read| format!("reads {read:?}")).collect();
        // Conditions follow from the rest.
        let plain = |host: &BareMetalHost| {
            let mut status = host.status.clone();
            (status.conditions, status.last_updated) = (Vec::new(), None);
            status
        };
        let is_told = plain(&before) != plain(&after);
        for step in &plan.steps {
            words.push(match step {
                Step::Ironic(Order { request, .. }) => format!("asks {}", request.verb()),
                Step::PatchHost(_) => "changes the host".to_owned(),
                Step::PatchStatus(_) if !is_told => continue,
                Step::PatchStatus(_) => "writes the status".to_owned(),
                Step::CreateHardwareData(_) => "creates hardware data".to_owned(),
                Step::PatchHardwareData(_) => "changes hardware data".to_owned(),
                Step::PatchSecret { name, .. } => format!("changes Secret {name}"),
            });
        }
        let (from, to) = (&before.status.provisioning.state, &after.status.provisioning.state);
        if from != to {
            words.push(format!("to {to}"));
        }
        if after.status.error_type != before.status.error_type
            || after.status.error_message != before.status.error_message
        {
            words.push(match after.status.error_type {
                Some(kind) => format!("{}: {}", kind_text(kind), after.status.error_message),
                None => "well again".to_owned(),
            });
        }
        if after.status.operational_status == OperationalStatus::Delayed {
            words.push("delayed".to_owned());
        }
        let held = after
            .status
            .conditions
            .iter()
            .find(|condition| condition.type_ == "Held");
        words.extend(held.map(|held| format!("held: {}", held.reason)));
        words.push(match &plan.wait {
            Wait::Settled => "settled".to_owned(),
            Wait::Again => "again".to_owned(),
            Wait::OnNode(_) => "waits for the node".to_owned(),
            Wait::OnSecret(name) => format!("waits for Secret {name}"),
            Wait::OnTurn => "waits for its turn".to_owned(),
            Wait::After(_, _) => "waits for a time".to_owned(),
            Wait::OnUser(_) => "waits for the user".to_owned(),
        });
        words.join(", ")
    }

    pub(crate) fn later(mut self, hours: i64) -> Self {
        self.now = (self.now.get() + TimeDelta::hours(hours)).into();
        self
    }
}

fn kind_text(kind: ErrorType) -> String {
    serde_json::to_value(kind).unwrap().as_str().unwrap().to_owned()
}

pub(crate) fn without_version(patch: &MergePatch) -> Value {
    let mut document = patch.clone().into_document();
    if let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    document
}

fn sight(stored: Option<&Option<Stored>>) -> Sight<Secret<'_>> {
    match stored {
        None => Sight::Unknown,
        Some(None) => Sight::Absent,
        Some(Some(stored)) => Sight::Found(Secret {
            metadata: &stored.metadata,
            values: stored.values.as_ref(),
        }),
    }
}
