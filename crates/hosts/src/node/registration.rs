//! The desired node of a host, and the changes of an existing one.
//!
//! A node is created complete. On an existing node only differences are changed, and in its maps only managed keys:
//! keys of an Ironic operator are kept.

use std::fmt;

use metal3_api::metal3::v1alpha1::{BareMetalHost, BootMode, HardwareDetails, InspectionMode, ProvisioningState};
use metal3_domain::bmc::Profile;
use metal3_ironic::calls::node::NewNode;
use metal3_ironic::model::node::Node;
use metal3_ironic::text;
use serde_json::{Map, Value};

use super::agent::Agent;
use super::bmc::{BmcEndpoint, FAKE_DRIVER};
use super::changes::{Changes, Comparison, Passwords, RecordMap};
use super::cleaning::is_cleaned;
use super::credentials::Credentials;
use super::deployment::Deployment;
use super::instance::{CUSTOM_AGENT, RAMDISK};
use super::invalid_host::InvalidHost;
use super::ramdisk::{AgentNetwork, Ramdisks};
use super::settings::NodeSettings;
use super::{capabilities, kept, name, ports};

const AGENT: &str = "agent";

/// The desired node of a host. `Debug` shows no credentials.
#[derive(Clone, PartialEq)]
pub struct NodeRecord {
    name: String,
    profile: Profile,
    inspect_interface: &'static str,
    deploy_interface: Option<&'static str>,
    /// The managed keys; `None`: the key must not exist.
    driver_info: Vec<(&'static str, Option<Value>)>,
    ramdisks: Ramdisks,
    agent: Agent,
    /// `None`: the boot mode is unknown and not changed.
    boot_mode: Option<BootMode>,
    architecture: Architecture,
    automated_clean: bool,
    /// The hints of the disks that are kept.
    kept: Vec<Value>,
    disable_power_off: bool,
    network: AgentNetwork,
    has_login: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Architecture {
    Known(String),
    /// Used only when the node has none.
    Guess(String),
}

impl Architecture {
    fn name(&self) -> &str {
        let (Self::Known(name) | Self::Guess(name)) = self;
        name
    }
}

impl NodeRecord {
    /// The desired node. `hardware` is the content of the HardwareData, if it exists. Without credentials these are not
    /// compared, and the node cannot be created.
    ///
    /// # Errors
    /// When a field of the host is invalid, or the BMC does not support it.
    pub fn of(
        host: &BareMetalHost,
        credentials: Option<&Credentials>,
        hardware: Option<&HardwareDetails>,
        network: &AgentNetwork,
        settings: &NodeSettings,
    ) -> Result<Self, InvalidHost> {
        let bmc = host.spec.bmc.clone().unwrap_or_default();
        let endpoint = BmcEndpoint::of(&bmc.address, settings)?;
        let profile = endpoint.profile();
        let boot_mode = boot_mode(host);
        check_abilities(host, &endpoint, boot_mode, settings)?;
        let driver_info = endpoint.driver_info(&bmc, credentials, settings);
        let architecture = architecture(host, hardware, settings);
        let ramdisk = settings.ramdisks.driver_info(architecture.name(), &profile, None);
        for (key, value) in driver_info.iter().chain(&ramdisk) {
            text::check(&format!("driver_info/{key}"), value.as_ref().unwrap_or(&Value::Null))?;
        }
        Ok(Self {
            name: name::of(host)?,
            profile,
            inspect_interface: inspect_interface(host, &profile),
            deploy_interface: deploy_interface(host, &profile),
            driver_info,
            boot_mode,
            architecture,
            ramdisks: settings.ramdisks.clone(),
            agent: Agent::Configured,
            automated_clean: is_cleaned(host),
            kept: kept::hints(host),
            disable_power_off: host.spec.disable_power_off == Some(true),
            network: network.clone(),
            has_login: credentials.is_some(),
        })
    }

    /// The same with this agent.
    ///
    /// # Errors
    /// When a URL or a kernel parameter has a control character.
    pub fn with_agent(mut self, agent: Agent) -> Result<Self, InvalidHost> {
        self.agent = agent;
        for (key, value) in self.agent_keys(self.architecture.name(), None) {
            text::check(&format!("driver_info/{key}"), &value.unwrap_or(Value::Null))?;
        }
        Ok(self)
    }

    /// The name of the node.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The request body that creates the node.
    #[must_use]
    pub fn creation(&self) -> NewNode {
        let architecture = self.architecture.name();
        let mode = self.boot_mode.unwrap_or_default();
        let mut properties = Map::from_iter([("cpu_arch".to_owned(), architecture.into())]);
        if let Some(capabilities) = capabilities::with_boot_mode(None, mode) {
            properties.insert("capabilities".to_owned(), capabilities.into());
        }
        // differs: node-created-whole. The Go manager creates a part of it and patches the rest at once.
        let mut more = Map::from_iter([("automated_clean".to_owned(), self.automated_clean.into())]);
        if let Some([(skipped, hints), (record, own)]) = kept::of_new(&self.kept) {
            properties.insert(skipped.to_owned(), hints);
            more.insert(
                "extra".to_owned(),
                Value::Object(Map::from_iter([(record.to_owned(), own)])),
            );
        }
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
            driver_info: self.driver_info(architecture).iter().filter_map(present).collect(),
            properties,
            more,
            disable_power_off: self.disable_power_off.then_some(true),
        }
    }

    /// The changes that the observed node needs. The credentials are sent with each change of where Ironic logs in: a
    /// stored password must not reach another address.
    ///
    /// # Errors
    /// When `disablePowerOff` is set and Ironic does not support it.
    pub fn changes(&self, found: &Node, passwords: Passwords) -> Result<Changes, InvalidHost> {
        // differs: `host-login-with-address`. The Go manager sends the address alone.
        let changes = self.compare(found, passwords)?;
        if changes.needs_login && self.has_login {
            let changes = self.compare(found, Passwords::Changed)?;
            return Ok(Changes {
                needs_login: false,
                ..changes
            });
        }
        Ok(changes)
    }

    fn compare(&self, found: &Node, passwords: Passwords) -> Result<Changes, InvalidHost> {
        let mut changes = Comparison::with(found, passwords);
        let name = found.name.as_deref().map(Value::from);
        changes.field("name", name, Some(self.name.as_str().into()));
        self.compare_interfaces(found, &mut changes);
        // differs: driver-info-keys. The Go manager replaces the whole map.
        for (key, wanted) in self.driver_info.iter().cloned() {
            if !(wanted.is_none() && is_authority(key, found)) {
                changes.entry(RecordMap::DriverInfo, key, wanted);
            }
        }
        let agent = self.agent_keys(self.architecture_of(found), Some(found));
        changes.entries(
            RecordMap::DriverInfo,
            &agent,
            match self.agent {
                Agent::Configured if !Agent::is_identified(&agent) => passwords,
                Agent::Configured | Agent::Kept | Agent::Built(_) => Agent::passwords(&agent, found),
            },
        );
        if found.disable_power_off.is_none() && self.disable_power_off {
            return Err(InvalidHost::DisablePowerOff);
        }
        changes.restrictions(self.automated_clean, self.disable_power_off);
        kept::compare(&self.kept, found, &mut changes);
        self.compare_properties(found, &mut changes);
        if let Some(wanted) = self.network.wanted() {
            // differs: agent-network-cleared. The Go manager keeps the network data when the reference is removed.
            let shown = Value::Object(found.network_data.0.clone());
            changes.field("network_data", Some(shown), Some(Value::Object(wanted)));
        }
        Ok(changes.done())
    }

    /// The keys of `driver_info` of a new node of this architecture.
    fn driver_info(&self, architecture: &str) -> Vec<(&'static str, Option<Value>)> {
        let agent = self.agent_keys(architecture, None);
        self.driver_info.iter().cloned().chain(agent).collect()
    }

    /// Those of the agent. Empty: they are kept as they are.
    fn agent_keys(&self, architecture: &str, found: Option<&Node>) -> Vec<(&'static str, Option<Value>)> {
        let has_network = self.network != AgentNetwork::None;
        self.agent
            .driver_info(&self.ramdisks, architecture, &self.profile, has_network, found)
    }

    /// The architecture of an observed node: a guess does not replace what the node has.
    fn architecture_of<'a>(&'a self, found: &'a Node) -> &'a str {
        match (&self.architecture, found.properties.text("cpu_arch")) {
            (Architecture::Guess(_), Some(shown)) => shown,
            (architecture, _) => architecture.name(),
        }
    }

    /// Interfaces are updated only when the BMC type changes: otherwise an operator selected them, or an older manager
    /// created fewer.
    fn compare_interfaces(&self, found: &Node, changes: &mut Comparison<'_>) {
        // differs: bmc-type-change. The Go manager keeps driver and interfaces of the former type.
        let is_retyped = found.driver.as_deref() != Some(self.profile.driver)
            || found.boot_interface.as_deref() != self.profile.interfaces.boot;
        changes.driver(self.profile.driver);
        for (kind, wanted) in self.interfaces() {
            if is_retyped || kind == "inspect_interface" {
                changes.interface(kind, shown(found, kind), wanted);
            }
        }
    }

    fn compare_properties(&self, found: &Node, changes: &mut Comparison<'_>) {
        let shown = |key: &str| found.properties.text(key);
        let capabilities = self
            .boot_mode
            .and_then(|mode| capabilities::with_boot_mode(shown("capabilities"), mode));
        if let Some(capabilities) = capabilities {
            changes.entry(RecordMap::Properties, "capabilities", Some(capabilities.into()));
        }
        let architecture = match &self.architecture {
            Architecture::Known(known) => Some(known),
            Architecture::Guess(guess) => shown("cpu_arch").is_none().then_some(guess),
        };
        if let Some(architecture) = architecture {
            changes.entry(RecordMap::Properties, "cpu_arch", Some(architecture.as_str().into()));
        }
    }

    /// Every interface that the BMC type determines. `None`: Ironic selects it.
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

/// Whether an Ironic operator configured a CA for the BMC. Only a disabled verification is managed and removed.
fn is_authority(key: &str, found: &Node) -> bool {
    key.ends_with("_verify_ca") && found.driver_info.get(key) != Some(&Value::Bool(false))
}

/// Checks that the BMC supports what the host requests.
fn check_abilities(
    host: &BareMetalHost,
    endpoint: &BmcEndpoint,
    boot_mode: Option<BootMode>,
    settings: &NodeSettings,
) -> Result<(), InvalidHost> {
    let profile = endpoint.profile();
    let driver = endpoint.type_name();
    if host.spec.inspection_mode == Some(InspectionMode::Fast) && !profile.supports_fast_inspection() {
        return Err(InvalidHost::FastInspection { driver });
    }
    if boot_mode == Some(BootMode::UefiSecureBoot) && !profile.secure_boot {
        return Err(InvalidHost::SecureBoot { driver });
    }
    if profile.requires_provisioning_network && settings.provisioning_network_disabled {
        return Err(InvalidHost::ProvisioningNetwork { driver });
    }
    let inspected = !host.inspection_disabled();
    let has_address = match ports::boot_address(host) {
        Err(_) if ports::is_boot_past(host) => true,
        address => address?.is_some(),
    };
    if (profile.needs_mac || !inspected) && !has_address {
        return Err(InvalidHost::BootMacMissing { driver, inspected });
    }
    Ok(())
}

/// The boot mode: from the status, else from the spec. A host registered before boot modes existed, without one in its
/// spec, is not changed.
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

/// The deploy interface of a new node: by what the machine already runs, or is being deployed.
fn deploy_interface(host: &BareMetalHost, profile: &Profile) -> Option<&'static str> {
    let state = &host.status.provisioning.state;
    if profile.driver == FAKE_DRIVER {
        return profile.interfaces.boot;
    }
    let recorded = Deployment::recorded(host);
    let takes_spec = matches!(
        state,
        ProvisioningState::Provisioning | ProvisioningState::ExternallyProvisioned
    );
    let asked = if takes_spec {
        Deployment::asked(host)
    } else {
        Deployment::default()
    };
    if recorded.method.or(asked.method).is_some() {
        return Some(CUSTOM_AGENT);
    }
    let image = recorded.image.or(asked.image)?;
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
