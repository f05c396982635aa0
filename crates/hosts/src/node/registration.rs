//! The node that a host wants, and what to change of the one it has.
//!
//! A node is created with everything at once. Of a node that exists only what differs is changed, and of its maps only
//! the keys that are ours: what an operator of Ironic added stays.

use std::fmt;

use metal3_api::metal3::v1alpha1::{
    AutomatedCleaningMode, BareMetalHost, BootMode, HardwareDetails, InspectionMode, ProvisioningState,
};
use metal3_domain::bmc::Profile;
use metal3_ironic::calls::node::NewNode;
use metal3_ironic::model::node::Node;
use metal3_ironic::text;
use serde_json::{Map, Value};

use super::bmc::FAKE_DRIVER;
use super::changes::{Changes, Comparison, Part, Passwords};
use super::instance::{CUSTOM_AGENT, RAMDISK};
use super::{AgentNetwork, Controller, Credentials, NodeSettings, Refusal, capabilities, name, ports};

/// The inspect interface of the agent.
const AGENT: &str = "agent";

/// A node as a host wants it. `Debug` shows no login.
#[derive(Clone, PartialEq)]
pub struct NodeRecord {
    name: String,
    profile: Profile,
    inspect_interface: &'static str,
    deploy_interface: Option<&'static str>,
    /// Each key that is ours; `None`: it shall not be there.
    driver_info: Vec<(&'static str, Option<Value>)>,
    /// `None`: nobody knows how the machine boots, so it stays.
    boot_mode: Option<BootMode>,
    architecture: Architecture,
    automated_clean: bool,
    disable_power_off: bool,
    network: AgentNetwork,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Architecture {
    Known(String),
    /// Good enough where nothing is known.
    Guess(String),
}

impl NodeRecord {
    /// The node that the host wants. `hardware` is what its HardwareData says, if there is one.
    ///
    /// # Errors
    /// When a field of the host cannot be said in Ironic's words, or asks for what its BMC cannot do.
    pub fn of(
        host: &BareMetalHost,
        credentials: &Credentials,
        hardware: Option<&HardwareDetails>,
        network: &AgentNetwork,
        settings: &NodeSettings,
    ) -> Result<Self, Refusal> {
        let bmc = host.spec.bmc.clone().unwrap_or_default();
        let controller = Controller::of(&bmc.address, settings)?;
        let profile = controller.profile();
        let boot_mode = boot_mode(host);
        check_abilities(host, &controller, boot_mode, settings)?;
        let mut driver_info = controller.driver_info(&bmc, credentials, settings);
        driver_info.extend(settings.ramdisk.driver_info(&profile));
        for (key, value) in &driver_info {
            text::check(&format!("driver_info/{key}"), value.as_ref().unwrap_or(&Value::Null))?;
        }
        Ok(Self {
            name: name::of(host)?,
            profile,
            inspect_interface: inspect_interface(host, &profile),
            deploy_interface: deploy_interface(host, &profile),
            driver_info,
            boot_mode,
            architecture: architecture(host, hardware, settings),
            automated_clean: host.spec.automated_cleaning_mode != Some(AutomatedCleaningMode::Disabled),
            disable_power_off: host.spec.disable_power_off == Some(true),
            network: network.clone(),
        })
    }

    /// The node's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The body that creates it.
    #[must_use]
    pub fn creation(&self) -> NewNode {
        let (Architecture::Known(architecture) | Architecture::Guess(architecture)) = &self.architecture;
        let mode = self.boot_mode.unwrap_or_default();
        let mut properties = Map::from_iter([("cpu_arch".to_owned(), architecture.as_str().into())]);
        if let Some(capabilities) = capabilities::with_boot_mode(None, mode) {
            properties.insert("capabilities".to_owned(), capabilities.into());
        }
        // differs: node-created-whole. The Go manager creates a part of it and changes the rest right away.
        let mut more = Map::from_iter([("automated_clean".to_owned(), self.automated_clean.into())]);
        let deploy = ("deploy_interface", self.deploy_interface);
        for (kind, wanted) in self.interfaces().into_iter().chain([deploy]) {
            if let Some(wanted) = wanted {
                more.insert(kind.to_owned(), wanted.into());
            }
        }
        if let AgentNetwork::Data(network) = &self.network {
            more.insert("network_data".to_owned(), Value::Object(network.clone()));
        }
        let present = |(key, value): &(&str, Option<Value>)| Some(((*key).to_owned(), value.clone()?));
        NewNode {
            name: self.name.clone(),
            driver: self.profile.driver.to_owned(),
            driver_info: self.driver_info.iter().filter_map(present).collect(),
            properties,
            more,
            disable_power_off: self.disable_power_off.then_some(true),
        }
    }

    /// What is to be changed of the node as it is found.
    ///
    /// # Errors
    /// When the machine must not be switched off and this Ironic does not know that.
    pub fn changes(&self, found: &Node, passwords: Passwords) -> Result<Changes, Refusal> {
        let mut changes = Comparison::with(found, passwords);
        let name = found.name.as_deref().map(Value::from);
        changes.field("name", name, Some(self.name.as_str().into()));
        self.compare_interfaces(found, &mut changes);
        // differs: driver-info-keys. The Go manager replaces the whole map.
        for (key, wanted) in &self.driver_info {
            if !(wanted.is_none() && is_authority(key, found)) {
                changes.entry(Part::DriverInfo, key, wanted.clone());
            }
        }
        match (found.disable_power_off, self.disable_power_off) {
            (None, true) => return Err(Refusal::DisablePowerOff),
            (None, false) => {}
            (Some(found), wanted) => changes.field("disable_power_off", Some(found.into()), Some(wanted.into())),
        }
        let cleans = found.automated_clean.map(Value::from);
        changes.field("automated_clean", cleans, Some(self.automated_clean.into()));
        self.compare_properties(found, &mut changes);
        if let Some(wanted) = self.network.wanted() {
            // differs: agent-network-cleared. The Go manager leaves the network data of a host that names none any more.
            let shown = Value::Object(found.network_data.0.clone());
            changes.field("network_data", Some(shown), Some(Value::Object(wanted)));
        }
        Ok(changes.done())
    }

    /// Interfaces are only brought in line when the BMC is of another type than the node was made for: otherwise
    /// somebody chose them, or they are of an age when there were fewer.
    fn compare_interfaces(&self, found: &Node, changes: &mut Comparison<'_>) {
        // differs: bmc-type-change. The Go manager keeps driver and interfaces of the former type.
        let is_retyped = found.driver.as_deref() != Some(self.profile.driver)
            || found.boot_interface.as_deref() != self.profile.interfaces.boot;
        changes.driver(self.profile.driver);
        for (kind, wanted) in self.interfaces() {
            if is_retyped || kind == "inspect_interface" {
                changes.kind(kind, shown(found, kind), wanted);
            }
        }
    }

    fn compare_properties(&self, found: &Node, changes: &mut Comparison<'_>) {
        let shown = |key: &str| found.properties.text(key);
        let capabilities = self
            .boot_mode
            .and_then(|mode| capabilities::with_boot_mode(shown("capabilities"), mode));
        if let Some(capabilities) = capabilities {
            changes.entry(Part::Properties, "capabilities", Some(capabilities.into()));
        }
        let architecture = match &self.architecture {
            Architecture::Known(known) => Some(known),
            Architecture::Guess(guess) => shown("cpu_arch").is_none().then_some(guess),
        };
        if let Some(architecture) = architecture {
            changes.entry(Part::Properties, "cpu_arch", Some(architecture.as_str().into()));
        }
    }

    /// Every interface that the BMC's type decides. `None` leaves the choice to Ironic.
    const fn interfaces(&self) -> [(&'static str, Option<&'static str>); 8] {
        let interfaces = &self.profile.interfaces;
        [
            ("bios_interface", interfaces.bios),
            ("boot_interface", interfaces.boot),
            ("firmware_interface", interfaces.firmware),
            ("inspect_interface", Some(self.inspect_interface)),
            ("management_interface", interfaces.management),
            ("power_interface", interfaces.power),
            ("raid_interface", interfaces.raid),
            ("vendor_interface", interfaces.vendor),
        ]
    }
}

impl fmt::Debug for NodeRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeRecord")
            .field("name", &self.name)
            .field("driver", &self.profile.driver)
            .finish_non_exhaustive()
    }
}

fn shown<'a>(node: &'a Node, kind: &str) -> Option<&'a str> {
    let interface = match kind {
        "bios_interface" => &node.bios_interface,
        "boot_interface" => &node.boot_interface,
        "firmware_interface" => &node.firmware_interface,
        "inspect_interface" => &node.inspect_interface,
        "management_interface" => &node.management_interface,
        "power_interface" => &node.power_interface,
        "raid_interface" => &node.raid_interface,
        "vendor_interface" => &node.vendor_interface,
        _ => &None,
    };
    interface.as_deref()
}

/// Whether an operator of Ironic said by whom the BMC's certificate is signed. Only the word not to look at it is ours
/// to take back.
fn is_authority(key: &str, found: &Node) -> bool {
    key.ends_with("_verify_ca") && found.driver_info.get(key) != Some(&Value::Bool(false))
}

/// What the host asks of its BMC, against what such a BMC can do.
fn check_abilities(
    host: &BareMetalHost,
    controller: &Controller,
    boot_mode: Option<BootMode>,
    settings: &NodeSettings,
) -> Result<(), Refusal> {
    let profile = controller.profile();
    let driver = controller.type_name();
    if host.spec.inspection_mode == Some(InspectionMode::Fast) && !profile.supports_fast_inspection() {
        return Err(Refusal::FastInspection { driver });
    }
    if boot_mode == Some(BootMode::UefiSecureBoot) && !profile.secure_boot {
        return Err(Refusal::SecureBoot { driver });
    }
    if profile.requires_provisioning_network && settings.provisioning_network_disabled {
        return Err(Refusal::ProvisioningNetwork { driver });
    }
    let inspected = !host.inspection_disabled();
    if (profile.needs_mac || !inspected) && ports::boot_address(host)?.is_none() {
        return Err(Refusal::BootMacMissing { driver, inspected });
    }
    Ok(())
}

/// How the machine boots: as is in force, else as the spec says. A host that was registered before there were boot
/// modes and says nothing of its own is left as it is.
fn boot_mode(host: &BareMetalHost) -> Option<BootMode> {
    let status = &host.status.provisioning;
    let is_new = matches!(
        status.state,
        ProvisioningState::None | ProvisioningState::Unmanaged | ProvisioningState::Registering
    );
    // differs: boot-mode-unsaid. The Go manager writes an empty capability for such a host.
    status
        .boot_mode
        .or(host.spec.boot_mode)
        .or_else(|| is_new.then(BootMode::default))
}

fn inspect_interface(host: &BareMetalHost, profile: &Profile) -> &'static str {
    match (host.spec.inspection_mode, profile.interfaces.inspect) {
        (Some(InspectionMode::Fast), Some(out_of_band)) => out_of_band,
        _ => AGENT,
    }
}

/// How a node that is created is deployed: by what runs on its machine already, if anything does.
fn deploy_interface(host: &BareMetalHost, profile: &Profile) -> Option<&'static str> {
    let in_force = &host.status.provisioning;
    if profile.driver == FAKE_DRIVER {
        return profile.interfaces.boot;
    }
    if in_force
        .custom_deploy
        .as_ref()
        .is_some_and(|deploy| !deploy.method.is_empty())
    {
        return Some(CUSTOM_AGENT);
    }
    let takes_spec = matches!(
        in_force.state,
        ProvisioningState::Provisioning | ProvisioningState::ExternallyProvisioned
    );
    let image = match &host.spec.image {
        Some(image) if takes_spec && in_force.image.url.is_empty() => image,
        _ => &in_force.image,
    };
    (image.fields().disk_format == Some("live-iso")).then_some(RAMDISK)
}

fn architecture(host: &BareMetalHost, hardware: Option<&HardwareDetails>, settings: &NodeSettings) -> Architecture {
    let hardware = hardware.or(host.status.hardware.as_ref());
    let inspected = hardware.and_then(|hardware| hardware.cpu.as_ref()?.arch.as_ref());
    let known = host.spec.architecture.as_ref().filter(|text| !text.is_empty());
    match known.or(inspected.filter(|text| !text.is_empty())) {
        Some(known) => Architecture::Known(known.clone()),
        None => Architecture::Guess(settings.own_architecture.clone()),
    }
}
