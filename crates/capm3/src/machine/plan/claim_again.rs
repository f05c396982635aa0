//! The recorded host of a machine that lost its consumer: it is claimed again, unless it serves something else by now.

use metal3_api::infrastructure::names::NODE_REUSE_LABEL;
use metal3_api::meta::SecretReference;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::owner::{label, node_reuse_owner};

use super::{Decision, Planner, Prerequisites};
use crate::machine::action::Reads;
use crate::machine::conditions::Stage;
use crate::machine::facts;

impl<'a> Planner<'a> {
    /// Claims the machine's recorded host again after it lost its consumer, unless it serves something else by now.
    pub(super) fn claim_again(&mut self, host: &'a BareMetalHost, prerequisites: Prerequisites<'a>) -> Decision {
        // differs (`host-given-away`): the Go manager claims it.
        if let Some(why) = self.given_away(host, prerequisites) {
            let name = host.metadata.name.as_deref().unwrap_or_default();
            return Decision::UpdateStatus(Stage::WithoutHost {
                is_rechecked: false,
                message: format!("BareMetalHost {name}, which the machine had, {why}; delete the Machine"),
            });
        }
        if self.rules.confirm_claim() && !self.facts.confirmed {
            return Decision::Read(Reads::Machine);
        }
        self.claim(host, false, prerequisites)
    }

    /// What a host without consumer serves, other than the machine that recorded it: a machine that is restored from a
    /// backup may have lost its host long ago. The release of a claimed host would clear its disk.
    fn given_away(&self, host: &BareMetalHost, prerequisites: Prerequisites<'a>) -> Option<String> {
        let name = |secret: &Option<SecretReference>| secret.as_ref().and_then(|secret| secret.name.clone());
        let (user_data, spec) = (name(&host.spec.user_data), &host.spec);
        if user_data.is_some() && user_data == name(&self.machine.status.user_data) {
            return None;
        }
        let url = |image: &str| {
            self.before
                .spec
                .image
                .as_ref()
                .is_some_and(|wanted| wanted.url == image)
        };
        let is_own_image = user_data.is_none() && spec.image.as_ref().is_some_and(|image| url(&image.url));
        if facts::is_provisioned(host) && !is_own_image {
            return Some("has an image that is not of the machine".to_owned());
        }
        if spec.externally_provisioned == Some(true) {
            return Some("is externally provisioned".to_owned());
        }
        let kept = label(&host.metadata, NODE_REUSE_LABEL);
        let kept = kept.filter(|kept| Some(*kept) != node_reuse_owner(prerequisites.owner).as_deref());
        kept.map(|owner| format!("is kept for {owner}"))
    }
}
