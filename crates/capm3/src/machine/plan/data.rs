//! The machine's data: claimed once it has a host, and complete before the host is provisioned.

use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim, Metal3ObjectRef};
use metal3_api::meta::SecretReference;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::owner::is_owned_by;
use metal3_runtime::plan::Observed;

use super::cleanup::{is_inactive, remove_claim_finalizer};
use super::{Decision, Planner, host_changes};
use crate::diff::version;
use crate::machine::action::{Action, Reads};
use crate::machine::conditions::Data;
use crate::machine::facts;

pub(super) enum DataState {
    Missing,
    /// Rendering is in progress, or the data belong to an earlier machine.
    Waiting(String),
    Refused(String),
    Rendered,
    /// The user supplies them, or there are none.
    External,
}

impl DataState {
    /// Whether the host can be provisioned with them.
    pub(super) const fn is_complete(&self) -> bool {
        matches!(self, Self::Rendered | Self::External)
    }

    pub(super) fn to_condition(&self) -> Data {
        match self {
            Self::Missing => Data::Waiting("waiting for Metal3DataTemplate to be available".to_owned()),
            Self::Waiting(message) | Self::Refused(message) => Data::Waiting(message.clone()),
            Self::Rendered => Data::Rendered,
            Self::External => Data::External,
        }
    }
}

impl<'a> Planner<'a> {
    /// The state of the data. Also sets the names of the Secrets in the machine's status.
    pub(super) fn data_state(&mut self, host: &BareMetalHost) -> DataState {
        let spec = &self.before.spec;
        let own = |secret: &Option<SecretReference>| {
            let name = secret.as_ref().and_then(|secret| secret.name.as_deref());
            name.filter(|name| !name.is_empty())
                .map(|name| host_changes::secret_reference(name, self.namespace()))
        };
        let (meta_data, network_data) = (own(&spec.meta_data), own(&spec.network_data));
        if meta_data.is_some() {
            self.machine.status.meta_data.clone_from(&meta_data);
        }
        if network_data.is_some() {
            self.machine.status.network_data.clone_from(&network_data);
        }
        if let Some(why) = self.lack_of_data(host).or_else(|| self.left_domain(host)) {
            return DataState::Refused(why);
        }
        if spec.data_template.is_none() && self.zone_template(host).is_none() {
            return DataState::External;
        }
        if facts::is_provisioned(host) && self.machine.status.rendered_data.is_some() {
            // The data of a provisioned host are fixed.
            return DataState::Rendered;
        }
        if let Some(error) = self.validation_error() {
            return DataState::Refused(error);
        }
        match self.rendered() {
            Ok(data) => {
                let status = &mut self.machine.status;
                let namespace = self.before.metadata.namespace.clone();
                let name = data.metadata.name.clone();
                status.rendered_data = Some(Metal3ObjectRef { name, namespace });
                if meta_data.is_none() {
                    status.meta_data.clone_from(&data.spec.meta_data);
                }
                if network_data.is_none() {
                    status.network_data.clone_from(&data.spec.network_data);
                }
                DataState::Rendered
            }
            Err(data_state) => data_state,
        }
    }

    /// The Metal3Data of the machine's claim, once it is ready.
    fn rendered(&self) -> Result<&'a Metal3Data, DataState> {
        let waiting = |text: String| Err(DataState::Waiting(text));
        let claim = match self.facts.claim.as_deref() {
            Observed::Present(claim) => claim,
            Observed::Absent => return Err(DataState::Missing),
            Observed::Unknown(why) => return waiting(format!("Metal3DataClaim {} cannot be read: {why}", self.name())),
        };
        if self.rules.own_data() && !self.owns_claim(claim) {
            let used = self.facts.hosts.claimed().find(|host| !is_inactive(host));
            let remedy = used.and_then(|host| host.metadata.name.as_deref()).map(|host| {
                format!("; BareMetalHost {host} runs with its data, so delete the Machine to have the host cleared")
            });
            let whose = match self.is_owner_of(claim) {
                true => "",
                false => " of an earlier machine",
            };
            return waiting(format!(
                "waiting for Metal3DataClaim {}{whose} to be deleted{}",
                self.name(),
                remedy.unwrap_or_default()
            ));
        }
        let answer = claim
            .status
            .rendered_data
            .as_ref()
            .and_then(|data| data.name.as_deref());
        if answer.is_none_or(str::is_empty) {
            return waiting(match claim.status.error_message.as_deref() {
                Some(error) if !error.is_empty() => format!("the Metal3DataClaim has no Metal3Data: {error}"),
                _ => "waiting for Metal3DataTemplate to be available".to_owned(),
            });
        }
        let Some(data) = self.facts.data.as_deref().into_present() else {
            return waiting("waiting for Metal3Data to become ready".to_owned());
        };
        let is_own =
            is_owned_by(&data.metadata, claim.metadata.uid.as_deref()) && data.metadata.deletion_timestamp.is_none();
        if self.rules.own_data() && !is_own {
            return waiting("waiting for Metal3Data of an earlier machine to be deleted".to_owned());
        }
        if data.status.ready != Some(true) {
            return waiting(match data.status.error_message.as_deref() {
                Some(error) if !error.is_empty() => format!("Metal3Data is not rendered: {error}"),
                _ => "waiting for Metal3Data to become ready".to_owned(),
            });
        }
        Ok(data)
    }

    /// Ends a claim whose data no host can use, so that another is made: removes the finalizer from one in deletion,
    /// which nothing else removes, and deletes the machine's own when its Metal3Data is being deleted. The claim of an earlier
    /// machine of the same name is ended in the same way.
    // differs (`data-made-again`): the Go manager waits until the machine is deleted.
    pub(super) fn end_lost_claim(&mut self) -> Option<Decision> {
        let claim = self.facts.claim.present()?;
        let action = remove_claim_finalizer(claim).or_else(|| self.deletion_without_data(claim))?;
        let hosts = &self.facts.hosts;
        // The recorded host may have lost its consumer while nothing ran here: it is claimed again, with its data.
        let unclaimed = hosts.named.present().filter(|host| host.spec.consumer_ref.is_none());
        let may_run = hosts.unreadable.is_some()
            || hosts.named.unknown().is_some()
            || unclaimed.is_some_and(|host| !is_inactive(host));
        if self.rules.host_before_data() && (may_run || !hosts.claimed().all(is_inactive)) {
            return None;
        }
        // The cached host may be older than its image.
        if let Some(reads) = self.unconfirmed_host().filter(|_| self.is_owner_of(claim)) {
            return Some(Decision::Read(reads));
        }
        if !self.facts.confirmed {
            return Some(Decision::Read(Reads::Machine));
        }
        self.actions.push(action);
        None
    }

    /// The deletion of the machine's claim, when a user deletes the Metal3Data that it names: the claim would hold that
    /// for ever, and get no other.
    fn deletion_without_data(&self, claim: &Metal3DataClaim) -> Option<Action> {
        let data = &self.facts.data.present()?.metadata;
        let is_lost = data.deletion_timestamp.is_some() && is_owned_by(data, claim.metadata.uid.as_deref());
        (is_lost && self.owns_claim(claim)).then_some(Action::DeleteClaim {
            claim: claim.metadata.name.clone()?,
            uid: claim.metadata.uid.clone()?,
            version: version(&claim.metadata)?,
        })
    }

    /// Whether the claim belongs to this machine and not to an earlier one of the same name.
    pub(super) fn owns_claim(&self, claim: &Metal3DataClaim) -> bool {
        claim.metadata.deletion_timestamp.is_none() && self.is_owner_of(claim)
    }

    fn is_owner_of(&self, claim: &Metal3DataClaim) -> bool {
        is_owned_by(&claim.metadata, self.before.metadata.uid.as_deref())
    }
}
