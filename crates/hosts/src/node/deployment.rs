//! What is deployed on a machine: an image, a deploy step of the agent, or an image by such a step.

use std::fmt;

use metal3_api::metal3::v1alpha1::{
    BareMetalHost, BareMetalHostStatus, CustomDeploy, Image, ProvisioningState as State,
};
use metal3_ironic::calls::provision::Step;
use metal3_ironic::model::node::Node;
use ring::digest;
use serde_json::{Map, Value};

use super::bmc::FAKE_DRIVER;
use super::image::{Key, Payload};
use super::instance::CUSTOM_AGENT;
use super::invalid_host::InvalidHost;

/// What was ordered, as a digest: Ironic replaces the source by the target of a redirect, and with
/// `image_download_source=local` also digest and format.
// differs: `host-image-ordered`. The Go manager does not compare what was deployed.
const ORDERED: &str = "metal3_image";
/// The deploy step that was ordered: no field of the host records it before it has ended.
const STEP: &str = "metal3_deploy_step";
/// The priority of the step: that of Ironic's own step that writes an image.
const PRIORITY: u16 = 80;
/// No agent names a step like this.
const LONGEST: usize = 255;
/// Steps of Ironic itself: one of these names replaces it or means something else, and nothing is installed.
const OWN: [&str; 10] = [
    "boot_instance",
    "deploy",
    "hold",
    "power_off",
    "power_on",
    "prepare_instance_boot",
    "reboot",
    "switch_to_tenant_network",
    "tear_down_agent",
    "wait",
];

/// What is deployed on a machine, as the host names it. Nothing by default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Deployment {
    /// The image; its URL is not empty.
    pub image: Option<Image>,
    /// The name of the deploy step; not empty.
    pub method: Option<String>,
}

impl Deployment {
    /// What the spec asks for.
    #[must_use]
    pub fn asked(host: &BareMetalHost) -> Self {
        let spec = &host.spec;
        Self::new(spec.image.as_ref(), method(spec.custom_deploy.as_ref()))
    }

    /// What the status records as deployed.
    #[must_use]
    pub fn recorded(host: &BareMetalHost) -> Self {
        Self::of_status(&host.status)
    }

    /// The same of a status.
    #[must_use]
    pub fn of_status(status: &BareMetalHostStatus) -> Self {
        let status = &status.provisioning;
        Self::new(Some(&status.image), method(status.custom_deploy.as_ref()))
    }

    /// What the machine runs: what is recorded, and for an externally provisioned host without a record what its spec names.
    #[must_use]
    pub fn running(host: &BareMetalHost) -> Self {
        let recorded = Self::recorded(host);
        let is_external = host.status.provisioning.state == State::ExternallyProvisioned;
        if recorded.is_none() && is_external {
            return Self::asked(host);
        }
        recorded
    }

    /// An image and a deploy step; an empty URL or name counts as none.
    #[must_use]
    pub fn new(image: Option<&Image>, method: Option<&str>) -> Self {
        Self {
            image: image.filter(|image| !image.url.is_empty()).cloned(),
            method: method.filter(|method| !method.is_empty()).map(str::to_owned),
        }
    }

    /// Whether nothing is deployed.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.image.is_none() && self.method.is_none()
    }

    /// What a user removes and sets again to have it deployed once more.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match (&self.image, &self.method) {
            (Some(_), Some(_)) => "remove spec.image and spec.customDeploy and set them again",
            (None, Some(_)) => "remove spec.customDeploy and set it again",
            (_, None) => "remove spec.image and set it again",
        }
    }

    /// Whether the same runs: of an image only the URL counts.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let url = |of: &Self| of.image.as_ref().map(|image| image.url.clone());
        self.method == other.method && url(self) == url(other)
    }

    /// The deploy step as the API has it.
    #[must_use]
    pub fn custom_deploy(&self) -> Option<CustomDeploy> {
        let method = self.method.clone()?;
        Some(CustomDeploy { method })
    }
}

impl From<Image> for Deployment {
    fn from(image: Image) -> Self {
        Self {
            image: Some(image),
            method: None,
        }
    }
}

/// The name of the deploy step. An empty one counts as none.
#[must_use]
pub fn method(deploy: Option<&CustomDeploy>) -> Option<&str> {
    let method = deploy.map(|deploy| deploy.method.as_str());
    method.filter(|method| !method.is_empty())
}

/// The deploy step that a node was last configured with, if this program configured it.
#[must_use]
pub fn ordered_method(node: &Node) -> Option<&str> {
    node.instance_info.text(STEP)
}

/// The same translated for Ironic. `Debug` shows no URL, since it may contain credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Order {
    image: Option<Payload>,
    method: Option<String>,
}

impl Order {
    /// Translates what is deployed.
    ///
    /// # Errors
    /// When the image is incomplete, or a field has a control character or is too long.
    pub fn of(deployment: &Deployment) -> Result<Self, InvalidHost> {
        if let Some(method) = &deployment.method {
            check_method(method)?;
        }
        Ok(Self {
            image: deployment.image.as_ref().map(Payload::of).transpose()?,
            method: deployment.method.clone(),
        })
    }

    /// Every key of `instance_info` that depends on it, for an instance.
    pub(super) fn keys(&self, instance: &str) -> Vec<Key> {
        let mut keys = self.image_keys();
        keys.push((ORDERED, Some(self.digest(instance).into())));
        keys.push((STEP, self.method.as_deref().map(Value::from)));
        keys
    }

    fn image_keys(&self) -> Vec<Key> {
        match (&self.image, &self.method) {
            (Some(image), None) => image.instance_info().to_vec(),
            (Some(image), Some(_)) => image.instance_info_for_step().to_vec(),
            (None, _) => Payload::KEYS.map(|key| (key, None)).to_vec(),
        }
    }

    /// Identifies what is deployed and the instance that it was ordered for.
    #[must_use]
    pub fn digest(&self, instance: &str) -> String {
        let mut context = digest::Context::new(&digest::SHA256);
        let [url, checksum, algorithm] = self.image.as_ref().map_or([""; 3], Payload::identity);
        let instance = instance.to_ascii_lowercase();
        let parts = [&instance, url, checksum, algorithm].into_iter();
        // An order without a step has the digest of one before there were steps.
        for part in parts.chain(self.method.as_deref()) {
            context.update(part.as_bytes());
            // No part contains it.
            context.update(b"\n");
        }
        let digest = context.finish();
        digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether the node records that this was sent for the instance: what Ironic masks is then the present one.
    pub(super) fn is_recorded_on(&self, node: &Node, instance: &str) -> bool {
        node.instance_info.text(ORDERED) == Some(&self.digest(instance))
    }

    /// Whether the node was last configured with this. An order recorded for the node's instance decides; a node without one
    /// was configured by another manager, which records no name of a step.
    #[must_use]
    pub fn is_written_on(&self, node: &Node) -> bool {
        if let (Some(Value::String(ordered)), Some(instance)) = (node.instance_info.get(ORDERED), &node.instance_uuid) {
            return *ordered == self.digest(instance);
        }
        // Ironic writes no image with that interface.
        let is_by_step = node.deploy_interface.as_deref() == Some(CUSTOM_AGENT);
        match (&self.image, &self.method) {
            (Some(image), None) => !is_by_step && image.is_shown_on(node),
            (image, Some(_)) => {
                is_by_step
                    && image
                        .as_ref()
                        .map_or(has_no_image(node), |image| image.is_shown_for_step_on(node))
            }
            (None, None) => false,
        }
    }

    /// Whether another manager wrote this image on the node, as far as Ironic left its record.
    #[must_use]
    pub fn is_left_on(&self, node: &Node) -> bool {
        let is_of_another = node.instance_info.get(ORDERED).is_none() && self.method.is_none();
        let is_by_step = node.deploy_interface.as_deref() == Some(CUSTOM_AGENT);
        is_of_another && !is_by_step && self.image.as_ref().is_some_and(|image| image.is_left_on(node))
    }

    /// Whether the node shows this and nothing else: another manager records no name of a step.
    #[must_use]
    pub fn is_identified_on(&self, node: &Node) -> bool {
        (self.image.is_some() || node.instance_info.get(ORDERED).is_some()) && self.is_written_on(node)
    }

    /// The deploy steps of the request, besides Ironic's own.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        let step = self.method.as_ref().map(|method| Step {
            interface: "deploy".to_owned(),
            step: method.clone(),
            args: Map::new(),
            priority: Some(PRIORITY),
        });
        step.into_iter().collect()
    }

    /// Whether a deploy step installs the system.
    pub(super) const fn has_step(&self) -> bool {
        self.method.is_some()
    }

    /// Whether the machine boots the image each time. A deploy step takes precedence.
    pub(super) fn boots_live_iso(&self) -> bool {
        self.method.is_none() && self.is_of_live_iso()
    }

    /// Whether the image is a live ISO, also when a deploy step uses it. It gets no config drive.
    pub(super) fn is_of_live_iso(&self) -> bool {
        self.image.as_ref().is_some_and(Payload::is_live_iso)
    }

    /// Whether the image comes from a registry.
    pub(super) fn is_of_registry(&self) -> bool {
        self.image.as_ref().is_some_and(Payload::is_of_registry)
    }
}

/// Whether the node has no image.
fn has_no_image(node: &Node) -> bool {
    Payload::KEYS.iter().all(|key| node.instance_info.text(key).is_none())
}

fn check_method(method: &str) -> Result<(), InvalidHost> {
    if method.chars().any(char::is_control) {
        return Err(InvalidHost::ControlCharacter {
            field: "spec.customDeploy.method".to_owned(),
        });
    }
    if OWN.contains(&method) {
        return Err(InvalidHost::OwnStep {
            method: method.to_owned(),
        });
    }
    match method.chars().count() {
        ..=LONGEST => Ok(()),
        length => Err(InvalidHost::MethodLength { length }),
    }
}

/// The deploy interface of a node for what its host deploys; `found` is that of the node, `None` Ironic's default.
pub(super) fn interface<'a>(order: &Order, node: &'a Node, ramdisk: &'a str) -> Option<&'a str> {
    let found = node.deploy_interface.as_deref();
    match found {
        // Fake hardware has its own deploy interface.
        _ if node.driver.as_deref() == Some(FAKE_DRIVER) => found,
        _ if order.has_step() => Some(CUSTOM_AGENT),
        _ if order.boots_live_iso() => Some(ramdisk),
        Some(other) if other == ramdisk || other == CUSTOM_AGENT => None,
        other => other,
    }
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Order")
            .field("image", &self.image)
            .field("method", &self.method)
            .finish()
    }
}
