//! The reference life cycle: the phases of one host and their final states.

use metal3_api::metal3::v1alpha1::{BareMetalHost, ProvisioningState};
use serde_json::{Value, json};

use crate::env::TestEnv;

/// The phases, each begun by a change of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Enrol,
    Provision,
    Deprovision,
    Delete,
}

impl Phase {
    pub(crate) const ALL: [Self; 4] = [Self::Enrol, Self::Provision, Self::Deprovision, Self::Delete];

    pub(crate) async fn begin(self, env: &TestEnv, number: u32) {
        match self {
            Self::Enrol => env.host(number, json!({})).await,
            Self::Provision => env.edit(number, json!({ "spec": { "image": image() } })).await,
            Self::Deprovision => env.edit(number, json!({ "spec": { "image": null } })).await,
            Self::Delete => env.delete(number).await,
        }
    }

    pub(crate) async fn end(self, env: &TestEnv, number: u32) {
        let what = format!("end of {self:?}");
        env.until(number, &what, |host| self.is_over(host)).await;
    }

    fn is_over(self, host: Option<&BareMetalHost>) -> bool {
        // An online host is on before it has an image, too.
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

/// Whether the host is provisioned and on.
pub(crate) fn runs(host: Option<&BareMetalHost>) -> bool {
    host.is_some_and(|host| host.status.provisioning.state == ProvisioningState::Provisioned && host.status.powered_on)
}

pub(crate) const SOURCE: &str = "http://images.example/disk.raw";

pub(crate) fn image() -> Value {
    json!({ "url": SOURCE, "checksum": "c".repeat(64), "checksumType": "sha256", "format": "raw" })
}
