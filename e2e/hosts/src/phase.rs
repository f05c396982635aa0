//! The changes a user makes to a host, and the resulting states.

use metal3_api::metal3::v1alpha1::{BareMetalHost, ProvisioningState};
use metal3_sim_bmc::identity::Number;
use serde_json::json;

use crate::drive;
use crate::env::TestEnv;
use crate::level::{credentials, order};

/// The phases of a life cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Enrol,
    Provision,
    Deprovision,
    Delete,
}

impl Phase {
    pub(crate) const ALL: [Self; 4] = [Self::Enrol, Self::Provision, Self::Deprovision, Self::Delete];

    pub(crate) async fn start(self, env: &TestEnv, number: Number) -> anyhow::Result<()> {
        match self {
            Self::Enrol => {
                for (name, key, value) in drive::secrets(number) {
                    env.create_secret(&name, json!({ key: value })).await?;
                }
                env.create_host(number).await
            }
            Self::Provision => {
                let order = order(env.level, env.image(number)?, number);
                env.edit(number, order).await
            }
            Self::Deprovision => env.edit(number, json!({ "spec": { "image": null } })).await,
            Self::Delete => env.delete(number).await,
        }
    }

    pub(crate) async fn wait(self, env: &TestEnv, number: Number) -> anyhow::Result<()> {
        env.until(number, &format!("through {self:?}"), |host| self.is_reached(host))
            .await?;
        if self == Self::Delete {
            let drive_secrets = drive::secrets(number).map(|(name, ..)| name);
            env.delete_secrets(drive_secrets.into_iter().chain([credentials(number)]))
                .await?;
        }
        Ok(())
    }

    pub(crate) fn is_reached(self, host: Option<&BareMetalHost>) -> bool {
        // An online host is powered on also without an image.
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
