//! The reference life: what a user does to one host, and what the host is to become of it.

use metal3_api::metal3::v1alpha1::{BareMetalHost, ProvisioningState};
use serde_json::{Value, json};

use crate::lab::Lab;

/// What the user does, and thereby the phases of the life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Enrol,
    Provision,
    Deprovision,
    Delete,
}

impl Phase {
    pub(crate) const ALL: [Self; 4] = [Self::Enrol, Self::Provision, Self::Deprovision, Self::Delete];

    /// What the user does.
    pub(crate) async fn begin(self, lab: &Lab, number: u32) {
        match self {
            Self::Enrol => lab.host(number, json!({})).await,
            Self::Provision => lab.edit(number, json!({ "spec": { "image": image() } })).await,
            Self::Deprovision => lab.edit(number, json!({ "spec": { "image": null } })).await,
            Self::Delete => lab.delete(number).await,
        }
    }

    /// Waits until the host is as it was asked for.
    pub(crate) async fn end(self, lab: &Lab, number: u32) {
        let what = format!("end of {self:?}");
        lab.until(number, &what, |host| self.is_over(host)).await;
    }

    fn is_over(self, host: Option<&BareMetalHost>) -> bool {
        // A host that is to be online is so before it has an image, too.
        let is = |state: ProvisioningState| {
            host.is_some_and(|host| {
                let status = &host.status;
                status.provisioning.state == state && status.powered_on && status.error_message.is_empty()
            })
        };
        match self {
            Self::Enrol | Self::Deprovision => is(ProvisioningState::Available),
            Self::Provision => is(ProvisioningState::Provisioned),
            Self::Delete => host.is_none(),
        }
    }
}

pub(crate) const SOURCE: &str = "http://images.example/disk.raw";

pub(crate) fn image() -> Value {
    json!({ "url": SOURCE, "checksum": "c".repeat(64), "checksumType": "sha256", "format": "raw" })
}
