//! The instance in the node's record: owner, image or deploy step, root device, boot mode.
//!
//! It is written before a deployment, and before the adoption of a running machine: Ironic does not adopt a machine
//! that boots a live ISO without knowing the ISO.

use std::fmt;

use metal3_api::metal3::v1alpha1::{BareMetalHost, BootMode};
use metal3_domain::ids::NodeUuid;
use metal3_ironic::calls::patch::Patch;
use metal3_ironic::calls::provision::Step;
use metal3_ironic::model::node::Node;
use serde_json::{Map, Value};

use super::changes::{Changes, Comparison, Passwords, RecordMap};
use super::deployment::{self, Deployment, Order};
use super::invalid_host::InvalidHost;
use super::pull_secret::PullSecret;
use super::settings::NodeSettings;
use super::{capabilities, hints};

/// The deploy interface that boots a live ISO.
pub(super) const RAMDISK: &str = "ramdisk";
/// The deploy interface that runs a custom step instead of writing an image.
pub(super) const CUSTOM_AGENT: &str = "custom-agent";
/// The login to the registry of the image. Ironic does not show it.
const LOGIN: &str = "image_pull_secret";
/// Which login it is: a digest of the version of the Secret and of the key in it.
// differs: `oci-login-identity`. The Go manager sends the login with each deployment.
const LOGIN_IDENTITY: &str = "metal3_image_login";

/// What is known of the login to the registry of the image.
#[derive(Clone, Copy)]
enum Login<'a> {
    /// It is not read: that of the node stays.
    Unread,
    /// The login; `None`: the registry needs none.
    Read(Option<&'a PullSecret>),
}

/// The desired instance of a node.
#[derive(Clone, PartialEq)]
pub struct Instance {
    uid: String,
    order: Order,
    root_device: Map<String, Value>,
    boot_mode: BootMode,
    /// `None`: a deploy step decides on it.
    boot_device: Option<String>,
}

/// The owner of the instance on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstanceOwner {
    /// The node has no instance.
    None,
    /// This host.
    ThisHost,
    /// Another instance. It may still be this machine's own: a moved host has a new UID while the node keeps the
    /// former.
    Other(String),
}

impl Instance {
    /// The instance of the host with this deployment: of its spec, or for a running machine of its status. Root device and
    /// boot mode are those in the status.
    ///
    /// # Errors
    /// When the image is incomplete or not supported, a hint or the deploy step has a control character, or the host has no valid UID.
    pub fn of(host: &BareMetalHost, deployment: &Deployment, settings: &NodeSettings) -> Result<Self, InvalidHost> {
        let uid = NodeUuid::parse(host.metadata.uid.clone().unwrap_or_default()).map_err(|_| InvalidHost::Uid)?;
        let order = Order::of(deployment)?;
        let in_force = &host.status.provisioning;
        let root_device = in_force.root_device_hints.as_ref().map(hints::to_ironic).transpose()?;
        let boot_device = match &order {
            order if order.has_step() => None,
            order if order.boots_live_iso() => Some(settings.live_iso_boot_device.clone()),
            _ => Some(settings.direct_boot_device.clone()),
        };
        Ok(Self {
            uid: uid.as_str().to_owned(),
            order,
            root_device: root_device.unwrap_or_default(),
            boot_mode: in_force.boot_mode.unwrap_or_else(|| host.boot_mode()),
            boot_device,
        })
    }

    /// The owner of the instance on the node.
    #[must_use]
    pub fn owner_of(&self, node: &Node) -> InstanceOwner {
        match &node.instance_uuid {
            None => InstanceOwner::None,
            Some(uuid) if uuid.eq_ignore_ascii_case(&self.uid) => InstanceOwner::ThisHost,
            Some(uuid) => InstanceOwner::Other(uuid.clone()),
        }
    }

    /// The changes before a deployment, with the login to the registry of the image.
    #[must_use]
    pub fn deployed_from(&self, login: Option<&PullSecret>, node: &Node) -> Changes {
        self.compare(node, Login::Read(login))
    }

    /// The changes before an adoption, which fetches no image. With another owner, `instance_uuid` is postponed: Ironic does
    /// not replace it in one request, see [`release`].
    #[must_use]
    pub fn changes(&self, node: &Node) -> Changes {
        self.compare(node, Login::Unread)
    }

    fn compare(&self, node: &Node, login: Login<'_>) -> Changes {
        let owner = self.owner_of(node);
        let instance = match &owner {
            InstanceOwner::Other(uuid) => uuid,
            InstanceOwner::None | InstanceOwner::ThisHost => &self.uid,
        };
        // differs: `host-image-sent`. The Go manager compares the masked URL.
        let passwords = match self.order.is_recorded_on(node, instance) {
            true => Passwords::AsSent,
            false => Passwords::Changed,
        };
        let mut changes = Comparison::with(node, passwords);
        match &owner {
            InstanceOwner::None => changes.field("instance_uuid", None, Some(self.uid.as_str().into())),
            InstanceOwner::ThisHost => {}
            InstanceOwner::Other(_) => changes.postpone("instance_uuid"),
        }
        let root_device = Value::Object(self.root_device.clone());
        let common = [
            ("capabilities", Some(capabilities::of_instance(self.boot_mode))),
            ("root_device", Some(root_device)),
        ];
        for (key, wanted) in common.into_iter().chain(self.order.keys(instance)) {
            changes.entry(RecordMap::InstanceInfo, key, wanted);
        }
        self.compare_login(node, login, &mut changes);
        if let Some(device) = &self.boot_device {
            let device = Some(device.as_str().into());
            changes.entry(RecordMap::DriverInfo, "force_persistent_boot_device", device);
        }
        let wanted = deployment::interface(&self.order, node, RAMDISK);
        changes.interface("deploy_interface", node.deploy_interface.as_deref(), wanted);
        changes.done()
    }

    /// Compares the login with that of the node, of which Ironic shows the identity only.
    fn compare_login(&self, node: &Node, login: Login<'_>, changes: &mut Comparison<'_>) {
        let login = match login {
            Login::Read(login) => login.filter(|_| self.order.is_of_registry()),
            Login::Unread if self.order.is_of_registry() => return,
            Login::Unread => None,
        };
        let identity = login.map(|login| Value::from(login.identity()));
        let is_sent = identity.is_some() && node.instance_info.get(LOGIN_IDENTITY) == identity.as_ref();
        let passwords = if is_sent { Passwords::AsSent } else { Passwords::Changed };
        changes.secret(RecordMap::InstanceInfo, LOGIN, login.map(PullSecret::expose), passwords);
        changes.entry(RecordMap::InstanceInfo, LOGIN_IDENTITY, identity);
    }

    /// Whether the node was last configured with this deployment.
    #[must_use]
    pub fn is_written_on(&self, node: &Node) -> bool {
        self.order.is_written_on(node)
    }

    /// Whether another manager ordered this deployment, as far as Ironic left its record.
    #[must_use]
    pub fn is_left_on(&self, node: &Node) -> bool {
        self.order.is_left_on(node)
    }

    /// Whether the node shows this deployment and no other one.
    #[must_use]
    pub fn is_identified_on(&self, node: &Node) -> bool {
        self.order.is_identified_on(node)
    }

    /// Whether the image is a live ISO, which gets no config drive.
    #[must_use]
    pub fn is_live_iso(&self) -> bool {
        self.order.is_of_live_iso()
    }

    /// The deploy steps of the request, besides Ironic's own.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        self.order.steps()
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance")
            .field("uid", &self.uid)
            .field("order", &self.order)
            .field("root_device", &self.root_device)
            .field("boot_mode", &self.boot_mode)
            .finish_non_exhaustive()
    }
}

/// The patch that removes the instance and what it was configured with. Empty: there is none.
#[must_use]
pub fn clear(node: &Node) -> Patch {
    let keys = node.instance_info.0.keys();
    keys.fold(release(node), |patch, key| patch.remove(&["instance_info", key]))
}

/// The patch that removes the instance. Empty: there is none.
#[must_use]
pub fn release(node: &Node) -> Patch {
    match node.instance_uuid {
        Some(_) => Patch::new().remove(&["instance_uuid"]),
        None => Patch::new(),
    }
}
