//! What the kinds with finalizers differ in: the host they belong to, what their status records, and where it reports.

use metal3_api::kind::Kind;
use metal3_api::meta::{Condition, ConditionStatus, Time};
use metal3_api::metal3::v1alpha1::{BareMetalHost, PreprovisioningImage};
use metal3_ironic::model::node::Node;
use metal3_runtime::access::{Permits, verb};
use metal3_runtime::condition::set_condition;
use metal3_runtime::reason::Reason;

use super::facts::Server;
use crate::needs::UnservedKinds;
use crate::node::may_be;
use crate::plan::agent_image::{is_of_former_host, is_own};
use crate::plan::agent_state::ERROR;

/// A kind with finalizers of the Go manager.
pub(super) trait Finalized: Kind {
    /// The name of the controller in metrics, as in the Go manager.
    const CONTROLLER: &'static str;

    /// Who serves the object, by whether images of agents are built.
    fn server(&self, builds_agent_images: bool) -> Server;

    /// The name of the host, in the namespace of the object.
    fn host(&self) -> Option<&str>;

    /// Whether the object is of an earlier host of that name.
    fn is_of_former(&self, _: &BareMetalHost) -> bool {
        false
    }

    /// Whether the record of the node names what the object provides.
    fn is_named_by(&self, _: &Node) -> bool {
        false
    }

    /// The object with a report in its status; equal if it has the report already.
    fn reporting(&self, reason: Reason, message: &str, now: Time) -> Self;
}

/// The permissions that the controller of such a kind needs.
pub(super) trait Permitted<K>:
    Permits<verb::Get, K>
    + Permits<verb::List, K>
    + Permits<verb::Watch, K>
    + Permits<verb::Patch, K>
    + Permits<verb::PatchStatus, K>
{
}

impl Permitted<PreprovisioningImage> for UnservedKinds {}

impl Finalized for PreprovisioningImage {
    const CONTROLLER: &'static str = "preprovisioningimage";

    fn server(&self, builds_agent_images: bool) -> Server {
        match builds_agent_images {
            false => Server::None,
            true if is_own(self) => Server::This,
            true => Server::OtherBuilder,
        }
    }

    fn host(&self) -> Option<&str> {
        self.metadata.name.as_deref()
    }

    fn is_of_former(&self, host: &BareMetalHost) -> bool {
        is_of_former_host(self, host.metadata.uid.as_deref().unwrap_or_default())
    }

    fn is_named_by(&self, node: &Node) -> bool {
        let urls = [&self.status.image_url, &self.status.kernel_url];
        let mut urls = urls.into_iter().flatten().filter(|url| !url.is_empty());
        let names = |url: &String| node.driver_info.0.values().any(|value| may_be(value, url));
        urls.any(names)
    }

    fn reporting(&self, reason: Reason, message: &str, now: Time) -> Self {
        let mut reporting = self.clone();
        let error = Condition {
            type_: ERROR.to_owned(),
            status: ConditionStatus::True,
            observed_generation: self.metadata.generation,
            last_transition_time: now,
            reason: reason.to_string(),
            message: message.to_owned(),
        };
        set_condition(&mut reporting.status.conditions, error);
        reporting
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn image_whose_url_ironic_masks_is_in_use() {
        let image = |url: &str| -> PreprovisioningImage {
            let status = json!({ "imageUrl": url });
            serde_json::from_value(json!({ "metadata": { "name": "h" }, "spec": {}, "status": status })).unwrap()
        };
        let driver_info = json!({ "deploy_iso": "http://images.example/?token=******", "redfish_password": "******" });
        let node: Node = serde_json::from_value(json!({
            "uuid": "11111111-2222-4333-8444-555555555555", "provision_state": "available", "driver_info": driver_info,
        }))
        .unwrap();
        assert!(image("http://images.example/?token=t").is_named_by(&node));
        assert!(!image("http://images.example/other").is_named_by(&node));
    }
}
