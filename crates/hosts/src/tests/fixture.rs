//! Owned facts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::{
    BareMetalHost, DataImage, HardwareData, HostFirmwareComponents, HostFirmwareSettings, HostUpdatePolicy,
    PreprovisioningImage, ProvisioningState,
};
use metal3_ironic::model::hardware::{BiosSetting, FirmwareComponent};
use metal3_ironic::model::inventory::Inspection;
use metal3_ironic::model::node::Validation;
use metal3_ironic::model::port::Port;
use metal3_ironic::slots::SlotState;
use metal3_runtime::patch::{MergePatch, apply};
use metal3_runtime::plan::{Observed, UnknownReason};
use serde_json::{Value, json};

use crate::action::{Action, Order, Plan, Request};
use crate::facts::{
    AgentImage, Budget, CleaningOrder, DiscAttempts, DiscFacts, DriveView, Facts, ForeignNode, FoundNode,
    HostFreshness, LoginAnswer, NodeFreshness, Outage, OutageKind, PreviousView, RefusalClass, Refused, RefusedReports,
    RequestedReboot, Secret,
};
use crate::ironics::{Elsewhere, Located, Names};
use crate::plan::plan_under;
use crate::plan::rules::Rules;
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

#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) metadata: ObjectMeta,
    pub(crate) values: Option<BTreeMap<String, ByteString>>,
}

impl Stored {
    const fn read(&self) -> Secret<'_> {
        Secret {
            metadata: &self.metadata,
            values: self.values.as_ref(),
        }
    }
}

pub(crate) fn secret(name: &str, values: &[(&str, &str)]) -> Stored {
    let metadata = json!({
        "name": name, "namespace": "metal", "resourceVersion": "40",
        "labels": { "environment.metal3.io": "baremetal", "clusterctl.cluster.x-k8s.io/move": "" },
        "finalizers": ["baremetalhost.metal3.io/secret"],
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

/// The DataImage of the host, its drive, and what was done about it.
#[derive(Debug, Clone)]
pub(crate) struct GivenDisc {
    pub(crate) object: Observed<DataImage>,
    pub(crate) freshness: HostFreshness,
    pub(crate) drive: Observed<DriveView>,
    pub(crate) attempts: DiscAttempts,
}

impl Default for GivenDisc {
    fn default() -> Self {
        Self {
            object: Observed::Absent,
            freshness: HostFreshness::Cached,
            drive: Observed::Unknown(UnknownReason::NotRead),
            attempts: DiscAttempts::default(),
        }
    }
}

impl GivenDisc {
    fn facts(&self) -> DiscFacts<'_> {
        DiscFacts {
            object: self.object.as_ref(),
            freshness: self.freshness,
            drive: self.drive.as_ref(),
            attempts: self.attempts.clone(),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Fixture {
    pub(crate) ironics: Names,
    pub(crate) located: Located,
    pub(crate) elsewhere: Elsewhere,
    pub(crate) host: Value,
    pub(crate) host_freshness: HostFreshness,
    pub(crate) previous: PreviousView,
    pub(crate) deleted_for: Option<Duration>,
    pub(crate) credentials: Option<Option<Stored>>,
    pub(crate) login_unchanged_for: Option<Duration>,
    pub(crate) login_answer: Option<LoginAnswer>,
    pub(crate) login_pause: Option<Duration>,
    pub(crate) agent_network: Option<Option<Stored>>,
    pub(crate) agent_network_on_node: bool,
    pub(crate) user_data: Option<Option<Stored>>,
    pub(crate) pull_secret: Option<Option<Stored>>,
    pub(crate) agent_image: Observed<PreprovisioningImage>,
    pub(crate) agent_image_refused: Option<&'static str>,
    pub(crate) hardware_data: Option<Option<HardwareData>>,
    pub(crate) node: Option<Option<(Value, NodeFreshness)>>,
    pub(crate) reserved_for: Option<Duration>,
    pub(crate) unanswered: Option<Duration>,
    pub(crate) creation_left: Option<Duration>,
    pub(crate) foreign: Option<ForeignNode>,
    pub(crate) machine_of: Option<metal3_runtime::cache::Key>,
    pub(crate) boot_port_exists: bool,
    pub(crate) ports: Option<Vec<Port>>,
    pub(crate) inventory: Option<Option<Inspection>>,
    pub(crate) validation: Option<Validation>,
    pub(crate) history: Option<Option<String>>,
    pub(crate) refused: Option<Refused>,
    pub(crate) requested_power: Option<bool>,
    pub(crate) requested_reboot: Option<RequestedReboot>,
    pub(crate) aborts_deployments: bool,
    pub(crate) outage: Option<Outage>,
    pub(crate) components: Observed<HostFirmwareComponents>,
    pub(crate) components_freshness: HostFreshness,
    pub(crate) update_policy: Observed<Arc<HostUpdatePolicy>>,
    pub(crate) update_policy_freshness: HostFreshness,
    pub(crate) unreadable: Option<String>,
    pub(crate) versions: Observed<Vec<FirmwareComponent>>,
    pub(crate) is_firmware_status_refused: bool,
    pub(crate) updates_left_for: Option<Duration>,
    pub(crate) firmware_settings: Observed<HostFirmwareSettings>,
    pub(crate) firmware_settings_freshness: HostFreshness,
    pub(crate) bios: Observed<Vec<BiosSetting>>,
    pub(crate) cleaning_order: Option<CleaningOrder>,
    pub(crate) began_elsewhere: bool,
    pub(crate) erasing: Observed<()>,
    pub(crate) disc: GivenDisc,
    pub(crate) slot: Option<SlotState>,
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

fn credentials_status() -> Value {
    json!({ "credentials": { "name": "bmc", "namespace": "metal" }, "credentialsVersion": "40" })
}

impl Fixture {
    #[expect(clippy::too_many_lines, reason = "a line for each fact")]
    pub(crate) fn new(state: &str) -> Self {
        let mut host = json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": { "name": "h", "namespace": "metal", "uid": UID, "resourceVersion": "10", "generation": 1,
                "finalizers": ["baremetalhost.metal3.io"], "annotations": {} },
            "spec": { "online": true, "bootMACAddress": MAC, "architecture": "x86_64",
                "bmc": { "address": "redfish-virtualmedia://192.0.2.10/redfish/v1/Systems/1", "credentialsName": "bmc" } },
            "status": { "operationalStatus": "OK", "errorMessage": "", "poweredOn": false, "errorCount": 0,
                "provisioningFailCount": 0, "goodCredentials": credentials_status(), "triedCredentials": credentials_status(),
                "lastUpdated": at(0), "hardwareProfile": "unknown", "hardware": { "cpu": { "arch": "x86_64" } },
                "provisioning": { "state": state, "ID": NODE, "image": { "url": "" }, "bootMode": "UEFI",
                    "rootDeviceHints": { "deviceName": "/dev/sda" } } },
        });
        if matches!(state, "" | "unmanaged") {
            host.as_object_mut().unwrap().remove("status");
        }
        Self {
            ironics: Names::one("a"),
            located: Observed::Unknown(UnknownReason::NotRead),
            elsewhere: Elsewhere::Nothing,
            host,
            host_freshness: HostFreshness::Cached,
            previous: PreviousView::default(),
            deleted_for: None,
            credentials: Some(Some(secret("bmc", &[("username", "u"), ("password", "p")]))),
            login_unchanged_for: None,
            login_answer: None,
            login_pause: None,
            agent_network: None,
            agent_network_on_node: false,
            user_data: None,
            pull_secret: None,
            agent_image: Observed::Unknown(UnknownReason::NotRead),
            agent_image_refused: None,
            hardware_data: Some(None),
            node: None,
            reserved_for: None,
            unanswered: None,
            creation_left: None,
            foreign: None,
            machine_of: None,
            boot_port_exists: true,
            ports: None,
            inventory: None,
            validation: None,
            history: None,
            refused: None,
            requested_power: None,
            requested_reboot: None,
            aborts_deployments: true,
            outage: None,
            components: Observed::Absent,
            components_freshness: HostFreshness::Cached,
            update_policy: Observed::Absent,
            update_policy_freshness: HostFreshness::Cached,
            unreadable: None,
            versions: Observed::Unknown(UnknownReason::NotRead),
            is_firmware_status_refused: false,
            updates_left_for: None,
            firmware_settings: Observed::Absent,
            firmware_settings_freshness: HostFreshness::Cached,
            bios: Observed::Unknown(UnknownReason::NotRead),
            cleaning_order: None,
            began_elsewhere: false,
            erasing: Observed::Absent,
            disc: GivenDisc::default(),
            slot: None,
            left: 5,
            settings: Settings::default(),
            now: at(0),
        }
    }

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

    /// A node in a state, from the feed.
    pub(crate) fn node(self, state: &str) -> Self {
        self.node_with(state, json!({}))
    }

    pub(crate) fn node_with(mut self, state: &str, change: Value) -> Self {
        let mut node = node(state);
        apply(&change, &mut node);
        self.node = Some(Some((node, NodeFreshness::InState)));
        self
    }

    /// This process observes the reservation of the node for so long.
    pub(crate) fn reserved_for(self, seconds: u64) -> Self {
        self.with(|fixture| fixture.reserved_for = Some(Duration::from_secs(seconds)))
    }

    pub(crate) fn no_node(mut self) -> Self {
        self.node = Some(None);
        self
    }

    pub(crate) fn freshness(mut self, freshness: NodeFreshness) -> Self {
        if let Some(Some((_, at))) = &mut self.node {
            *at = freshness;
        }
        self
    }

    pub(crate) fn live(self) -> Self {
        self.host_freshness(HostFreshness::Live).freshness(NodeFreshness::Live)
    }

    pub(crate) fn host_freshness(self, freshness: HostFreshness) -> Self {
        self.with(|fixture| fixture.host_freshness = freshness)
    }

    /// The HostFirmwareComponents were not read, for this reason.
    pub(crate) fn components_unknown(self, why: UnknownReason) -> Self {
        self.with(|fixture| fixture.components = Observed::Unknown(why))
    }

    /// Ironic may still begin with a change for so long.
    pub(crate) fn unanswered(self, seconds: u64) -> Self {
        self.with(|fixture| fixture.unanswered = Some(Duration::from_secs(seconds)))
    }

    /// Ironic may still begin with a creation that another process sent, for so long.
    pub(crate) fn creation_left(self, seconds: u64) -> Self {
        self.with(|fixture| fixture.creation_left = Some(Duration::from_secs(seconds)))
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Ironic rejected a request before this reconcile.
    pub(crate) fn refused(self, request: &'static str, class: RefusalClass, message: &str) -> Self {
        let refused = Refused {
            request,
            class,
            message: message.to_owned(),
            is_fresh: false,
            is_over: false,
            is_lock: false,
        };
        self.with(|fixture| fixture.refused = Some(refused))
    }

    /// This process requested that the machine is on, or off.
    pub(crate) fn requested_power(self, on: bool) -> Self {
        self.with(|fixture| fixture.requested_power = Some(on))
    }

    pub(crate) fn ironic_unreachable(self) -> Self {
        let (since, reason) = (at(-600), "connection refused".to_owned());
        self.with(|fixture| {
            fixture.outage = Some(Outage {
                ironic: None,
                kind: OutageKind::Unreachable,
                since,
                reason,
            })
        })
    }

    /// The BMC's Secret does not exist.
    pub(crate) fn no_secret(self) -> Self {
        self.with(|fixture| fixture.credentials = Some(None))
    }

    /// The image in the status; the machine is on.
    pub(crate) fn status_image(self, name: &str) -> Self {
        self.status(json!({ "provisioning": { "image": image(name) }, "poweredOn": true }))
    }

    pub(crate) fn spec_image(self, name: &str) -> Self {
        self.spec(json!({ "image": image(name) }))
    }

    pub(crate) fn plan(&self) -> Plan {
        self.plan_under(&Rules::ALL)
    }

    #[expect(clippy::too_many_lines, reason = "a line for each fact")]
    pub(crate) fn plan_under(&self, rules: &Rules) -> Plan {
        let host: BareMetalHost = serde_json::from_value(self.host.clone()).unwrap();
        let node = self.found_node();
        let facts = Facts {
            ironics: &self.ironics,
            located: &self.located,
            elsewhere: self.elsewhere,
            host: &host,
            host_freshness: self.host_freshness,
            previous: self.previous,
            deleted_for: self.deleted_for,
            credentials: observed(&self.credentials).map(Stored::read),
            login_unchanged_for: self.login_unchanged_for,
            login_answer: self
                .login_answer
                .as_ref()
                .map_or(Observed::Unknown(UnknownReason::NotRead), Observed::Present),
            login_pause: self.login_pause,
            user_data: observed(&self.user_data).map(Stored::read),
            network_data: Observed::Unknown(UnknownReason::NotRead),
            meta_data: Observed::Unknown(UnknownReason::NotRead),
            agent_network: observed(&self.agent_network).map(Stored::read),
            agent_network_on_node: self.agent_network_on_node,
            pull_secret: observed(&self.pull_secret).map(Stored::read),
            agent_image: AgentImage {
                object: self.agent_image.as_ref(),
                refused: self.agent_image_refused,
            },
            hardware_data: observed(&self.hardware_data),
            node: &node,
            reserved_for: self.reserved_for,
            unanswered: self.unanswered,
            creation_left: self.creation_left.max(self.unanswered),
            machine_of: self.machine_of.as_ref(),
            boot_port_exists: self.boot_port_exists,
            ports: known(self.ports.as_deref()),
            inventory: observed(&self.inventory),
            validation: known(self.validation.as_ref()),
            last_history_error: observed(&self.history).map(String::as_str),
            refused: self.refused.as_ref(),
            requested_power: self.requested_power,
            requested_reboot: self.requested_reboot.clone(),
            aborts_deployments: self.aborts_deployments,
            outage: self.outage.as_ref(),
            firmware_components: self.components.as_ref(),
            firmware_components_freshness: self.components_freshness,
            update_policy: self.update_policy.as_deref(),
            update_policy_freshness: self.update_policy_freshness,
            unreadable: self.unreadable.as_deref(),
            versions: self.versions.as_deref(),
            refused_reports: RefusedReports::default(),
            is_firmware_status_refused: self.is_firmware_status_refused,
            updates_left_for: self.updates_left_for,
            firmware_settings: self.firmware_settings.as_ref(),
            firmware_settings_freshness: self.firmware_settings_freshness,
            bios: self.bios.as_deref(),
            disc: self.disc.facts(),
            cleaning_order: self.cleaning_order.clone(),
            began_elsewhere: self.began_elsewhere,
            erasing: match &self.erasing {
                Observed::Absent if self.began_elsewhere => Observed::Unknown(UnknownReason::NotRead),
                known => known.clone(),
            },
            slot: self.slot,
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

    fn found_node(&self) -> Observed<FoundNode> {
        let own = |(node, freshness): &(Value, NodeFreshness)| {
            FoundNode::Own(Arc::new(serde_json::from_value(node.clone()).unwrap()), *freshness)
        };
        match &self.foreign {
            Some(foreign) => Observed::Present(FoundNode::Foreign(foreign.clone())),
            None => observed(&self.node).map(own),
        }
    }

    pub(crate) fn after(&self, plan: &Plan) -> BareMetalHost {
        let mut host = self.host.clone();
        let changes = plan.actions.iter().filter_map(|action| match action {
            Action::PatchHost(patch) => Some(patch),
            _ => None,
        });
        for patch in changes.chain(&plan.status) {
            apply(&without_version(patch), &mut host);
        }
        serde_json::from_value(host).unwrap()
    }

    /// The same with the host after the plan.
    pub(crate) fn performed(mut self) -> Self {
        let plan = self.plan();
        self.host = serde_json::to_value(self.after(&plan)).unwrap();
        if plan.actions.contains(&Action::EndRefusal) {
            self.refused = None;
        }
        self
    }

    /// The same with the node after the changes of the plan before it.
    pub(crate) fn with_changed_node(mut self) -> Self {
        let plan = self.plan();
        let patches = requests(&plan).filter_map(|request| match request {
            Request::PatchNode(_, patch) => Some(patch.clone()),
            _ => None,
        });
        let operations: Vec<Value> = patches
            .flat_map(|patch| patch.into_body().unwrap().as_array().unwrap().clone())
            .collect();
        if let Some(Some((node, _))) = &mut self.node {
            for operation in operations {
                let path: Vec<&str> = operation["path"].as_str().unwrap().split('/').skip(1).collect();
                let change = path.iter().rev().fold(
                    operation.get("value").cloned().unwrap_or_default(),
                    |inner, key| json!({ (*key): inner }),
                );
                apply(&change, node);
            }
        }
        self
    }

    pub(crate) fn state(&self) -> ProvisioningState {
        self.after(&Plan::default()).status.provisioning.state
    }

    pub(crate) fn hours_later(mut self, hours: i64) -> Self {
        self.now = (self.now.get() + TimeDelta::hours(hours)).into();
        self
    }
}

/// The requests to Ironic.
pub(crate) fn requests(plan: &Plan) -> impl Iterator<Item = &Request> {
    orders(plan).map(|order| &order.request)
}

pub(crate) fn orders(plan: &Plan) -> impl Iterator<Item = &Order> {
    plan.actions.iter().filter_map(|action| match action {
        Action::Ironic(order) => Some(order),
        _ => None,
    })
}

/// Whether the plan writes to the API or sends a request.
pub(crate) fn has_writes(plan: &Plan) -> bool {
    let is_write = |action: &Action| !action.is_record() && *action != Action::ReserveBudget;
    plan.status.is_some() || plan.actions.iter().any(is_write)
}

pub(crate) fn without_version(patch: &MergePatch) -> Value {
    let mut document = patch.clone().into_document();
    if let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    document
}

fn known<T>(found: Option<T>) -> Observed<T> {
    found.map_or(Observed::Unknown(UnknownReason::NotRead), Observed::Present)
}

fn observed<T>(read: &Option<Option<T>>) -> Observed<&T> {
    match read {
        None => Observed::Unknown(UnknownReason::NotRead),
        Some(found) => Observed::from(found.as_ref()),
    }
}
