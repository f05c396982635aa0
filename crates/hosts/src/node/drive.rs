//! The virtual drives of a node, as Ironic reads them from its BMC.
//!
//! Ironic publishes an image that a client attaches on its own web server, so the BMC reports neither the URL of the user nor
//! anything that differs between two images: only that this node has a disc of a client.

use metal3_ironic::model::hardware::VirtualMedia;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState;

/// The deploy interface of nodes that run from a disc.
const LIVE_IMAGE: &str = "ramdisk";
/// In the names of boot interfaces that insert what a machine boots.
const VIRTUAL_MEDIA: &str = "virtual-media";

/// What the drives for discs hold. One that holds a disc decides, then one that does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drive {
    /// No disc.
    Empty,
    /// A disc that a client of Ironic attached to this node.
    Attached,
    /// A disc with another name: of Ironic's agent, of another node, or of a person at the BMC.
    Other,
    /// A disc without a name.
    Unnamed,
    /// A drive reports neither whether it holds a disc nor which one.
    Silent,
}

/// Whether Ironic boots its agent on the machine, or may be about to.
pub(crate) fn may_run_agent(node: &Node) -> bool {
    use ProvisionState::{CleanHold, DeployHold, Rescue, ServiceHold};
    let state = &node.provision_state;
    state.is_transitional() || matches!(state, CleanHold | DeployHold | ServiceHold | Rescue)
}

impl Drive {
    /// Reads the drives of a node.
    #[must_use]
    pub fn of(media: &[VirtualMedia], node: &Node) -> Self {
        let attached = format!("cdrom-{}", node.uuid);
        let mut found = Self::Empty;
        for medium in media.iter().filter(|medium| medium.is_for_discs()) {
            let image = medium.image.as_deref().unwrap_or_default();
            let one = match medium.holds_image() {
                Some(true) if image.contains(&attached) => return Self::Attached,
                Some(true) if image.is_empty() => Self::Unnamed,
                Some(true) => Self::Other,
                Some(false) => Self::Empty,
                None => Self::Silent,
            };
            found = match (found, one) {
                (Self::Other, _) | (_, Self::Other) => Self::Other,
                (Self::Unnamed, _) | (_, Self::Unnamed) => Self::Unnamed,
                (Self::Silent, _) | (_, Self::Silent) => Self::Silent,
                _ => Self::Empty,
            };
        }
        found
    }
}

/// Whether the system of the node runs from a disc that Ironic inserted. Over another boot interface it loads a live image from the
/// network, and the deploy interface stays when the image is removed.
#[must_use]
pub fn runs_from_disc(node: &Node) -> bool {
    let is_inserted = node
        .boot_interface
        .as_deref()
        .is_some_and(|name| name.contains(VIRTUAL_MEDIA));
    is_inserted
        && node.deploy_interface.as_deref() == Some(LIVE_IMAGE)
        && node.provision_state == ProvisionState::Active
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tests::fixture::{NODE, node};

    #[test]
    fn disc_of_a_client_is_known_by_the_name_that_ironic_gives_it() {
        let own = format!("http://192.0.2.1:6180/redfish/cdrom-{NODE}.iso");
        let boot = format!("http://192.0.2.1:6180/redfish/boot-{NODE}.iso");
        let empty = json!({ "media_types": ["CD", "DVD"], "inserted": false, "image": "" });
        let disc = |image: &str| json!({ "media_types": ["CD"], "inserted": true, "image": image });
        let stick = json!({ "media_types": ["USBStick"], "inserted": true, "image": own.as_str() });
        let silent = json!({ "media_types": ["CD"] });
        for (media, expected) in [
            (json!([]), Drive::Empty),
            (json!([empty, stick]), Drive::Empty),
            (json!([empty, disc(&own)]), Drive::Attached),
            (json!([disc(&boot), disc(&own)]), Drive::Attached),
            (
                json!([disc("http://192.0.2.1/cdrom-of-another-node.iso")]),
                Drive::Other,
            ),
            (json!([disc(""), disc(&boot)]), Drive::Other),
            (json!([silent, disc("")]), Drive::Unnamed),
            (json!([empty, silent]), Drive::Silent),
        ] {
            let node: Node = serde_json::from_value(node("active")).unwrap();
            let parsed: Vec<VirtualMedia> = serde_json::from_value(media.clone()).unwrap();
            assert_eq!(Drive::of(&parsed, &node), expected, "{media}");
        }
    }
}
