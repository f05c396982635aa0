//! What a user does to a host, and what the host is to become of it.

use metal3_api::metal3::v1alpha1::{BareMetalHost, ProvisioningState};
use metal3_sim_bmc::identity::Number;
use serde_json::json;

use crate::drive;
use crate::level::{credentials, image, order};
use crate::world::World;

/// The phases of a life.
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
    pub(crate) async fn begin(self, world: &World, number: Number) -> anyhow::Result<()> {
        match self {
            Self::Enrol => {
                for (name, key, value) in drive::secrets(number) {
                    world.make_secret(&name, json!({ key: value })).await?;
                }
                world.make_host(number).await
            }
            Self::Provision => {
                let order = order(world.level, image(&world.images, number)?, number);
                world.edit(number, order).await
            }
            Self::Deprovision => world.edit(number, json!({ "spec": { "image": null } })).await,
            Self::Delete => world.delete(number).await,
        }
    }

    /// Waits until the host is as it was asked for.
    pub(crate) async fn end(self, world: &World, number: Number) -> anyhow::Result<()> {
        world
            .until(number, &format!("through {self:?}"), |host| self.is_over(host))
            .await?;
        if self == Self::Delete {
            let given = drive::secrets(number).map(|(name, ..)| name);
            world
                .delete_secrets(given.into_iter().chain([credentials(number)]))
                .await?;
        }
        Ok(())
    }

    pub(crate) fn is_over(self, host: Option<&BareMetalHost>) -> bool {
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
