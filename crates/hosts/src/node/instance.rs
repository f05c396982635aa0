//! What a deployment needs in the node's record: who uses it, the image, the disk, how it boots.
//!
//! It is written before a deployment, and before a machine that runs already is adopted anew: Ironic does not adopt a
//! machine that boots a live ISO without being told which.

use std::fmt;

use metal3_api::metal3::v1alpha1::{BareMetalHost, BootMode, Image};
use metal3_domain::ids::NodeUuid;
use metal3_ironic::calls::patch::Patch;
use metal3_ironic::model::node::Node;
use serde_json::{Map, Value};

use super::bmc::FAKE_DRIVER;
use super::changes::{Changes, Comparison, Part, Passwords};
use super::image::Payload;
use super::{NodeSettings, Refusal, capabilities, hints};

/// The deploy interface that boots a live ISO.
pub(super) const RAMDISK: &str = "ramdisk";
/// The deploy interface that runs a step in place of writing an image.
pub(super) const CUSTOM_AGENT: &str = "custom-agent";

/// What is to run on a node.
#[derive(Clone, PartialEq)]
pub struct Instance {
    uid: String,
    payload: Payload,
    root_device: Map<String, Value>,
    boot_mode: BootMode,
    boot_device: String,
}

/// Who uses a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Occupant {
    /// Nobody.
    Nobody,
    /// This host.
    Us,
    /// Another. It may still be this machine's own instance: a host that was moved to another cluster has a new UID
    /// there, while the node keeps the former.
    Another(String),
}

impl Instance {
    /// What the host asks for with this image: that of its spec, or, for a machine that runs already, of its status.
    /// Disk and boot mode are those in force.
    ///
    /// # Errors
    /// When the image is not complete or not supported, a hint has a control character, or the host has no identity.
    pub fn of(host: &BareMetalHost, image: &Image, settings: &NodeSettings) -> Result<Self, Refusal> {
        let uid = NodeUuid::parse(host.metadata.uid.clone().unwrap_or_default()).map_err(|_| Refusal::Uid)?;
        let payload = Payload::of(image)?;
        let in_force = &host.status.provisioning;
        let root_device = in_force.root_device_hints.as_ref().map(hints::to_ironic).transpose()?;
        let boot_device = if payload.is_live_iso() {
            &settings.live_iso_boot_device
        } else {
            &settings.direct_boot_device
        };
        Ok(Self {
            uid: uid.as_str().to_owned(),
            payload,
            root_device: root_device.unwrap_or_default(),
            boot_mode: in_force.boot_mode.unwrap_or_else(|| host.boot_mode()),
            boot_device: boot_device.clone(),
        })
    }

    /// Who uses the node.
    #[must_use]
    pub fn occupies(&self, node: &Node) -> Occupant {
        match &node.instance_uuid {
            None => Occupant::Nobody,
            Some(uuid) if uuid.eq_ignore_ascii_case(&self.uid) => Occupant::Us,
            Some(uuid) => Occupant::Another(uuid.clone()),
        }
    }

    /// What is to be changed of the node before it is deployed or adopted. While another uses it, `instance_uuid`
    /// stays and is named as postponed: Ironic does not give a node from one to the other in one request, see
    /// [`release`].
    #[must_use]
    pub fn changes(&self, node: &Node) -> Changes {
        let mut changes = Comparison::with(node, Passwords::AsSent);
        match self.occupies(node) {
            Occupant::Nobody => changes.field("instance_uuid", None, Some(self.uid.as_str().into())),
            Occupant::Us => {}
            Occupant::Another(_) => changes.postpone("instance_uuid"),
        }
        let root_device = Value::Object(self.root_device.clone());
        let common = [
            ("capabilities", Some(capabilities::of_instance(self.boot_mode))),
            ("root_device", Some(root_device)),
        ];
        for (key, wanted) in common.into_iter().chain(self.payload.instance_info()) {
            changes.entry(Part::InstanceInfo, key, wanted);
        }
        let boot_device = Some(self.boot_device.as_str().into());
        changes.entry(Part::DriverInfo, "force_persistent_boot_device", boot_device);
        let found = node.deploy_interface.as_deref();
        let wanted = match found {
            // Fake hardware deploys in its own way.
            _ if node.driver.as_deref() == Some(FAKE_DRIVER) => found,
            _ if self.payload.is_live_iso() => Some(RAMDISK),
            Some(RAMDISK | CUSTOM_AGENT) => None,
            other => other,
        };
        changes.kind("deploy_interface", found, wanted);
        changes.done()
    }

    /// Whether the node was last told to deploy this image.
    #[must_use]
    pub fn is_written_on(&self, node: &Node) -> bool {
        self.payload.is_on(node)
    }

    /// Whether the machine boots an ISO each time. Such a machine gets no config-drive.
    #[must_use]
    pub const fn is_live_iso(&self) -> bool {
        self.payload.is_live_iso()
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance")
            .field("uid", &self.uid)
            .field("payload", &self.payload)
            .field("root_device", &self.root_device)
            .field("boot_mode", &self.boot_mode)
            .finish_non_exhaustive()
    }
}

/// Takes the node from whoever uses it. Empty: nobody does.
#[must_use]
pub fn release(node: &Node) -> Patch {
    match node.instance_uuid {
        Some(_) => Patch::new().remove(&["instance_uuid"]),
        None => Patch::new(),
    }
}
