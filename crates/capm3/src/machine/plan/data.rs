//! The machine's data: asked for once it has a host, and complete before the host is told anything.

use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim, Metal3ObjectRef};
use metal3_api::meta::SecretReference;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::Sight;
use metal3_capi::owner::is_owned_by;

use super::{Pass, Verdict, documents};
use crate::machine::conditions::Data;
use crate::machine::gone::{let_go, rests};

/// What has become of the machine's data.
pub(super) enum Held {
    /// They have to be asked for.
    Missing,
    /// They are being rendered, or what is there is not the machine's.
    Waiting(String),
    /// They cannot be asked for.
    Refused(String),
    /// They are there.
    Rendered,
    /// The user supplies them, or there are none.
    External,
}

impl Held {
    /// Whether nothing is missing any more.
    pub(super) const fn is_complete(&self) -> bool {
        matches!(self, Self::Rendered | Self::External)
    }

    /// The same as it is said.
    pub(super) fn said(&self) -> Data {
        match self {
            Self::Missing => Data::Waiting("waiting for Metal3DataTemplate to be available".to_owned()),
            Self::Waiting(message) | Self::Refused(message) => Data::Waiting(message.clone()),
            Self::Rendered => Data::Rendered,
            Self::External => Data::External,
        }
    }
}

impl<'a> Pass<'a> {
    /// What has become of the data. The machine's status names the Secrets from the moment they count.
    pub(super) fn data(&mut self, host: &BareMetalHost) -> Held {
        let spec = &self.facts.machine.spec;
        let own = |secret: &Option<SecretReference>| {
            let name = secret.as_ref().and_then(|secret| secret.name.as_deref());
            name.filter(|name| !name.is_empty())
                .map(|name| documents::secret(name, self.namespace()))
        };
        let (meta_data, network_data) = (own(&spec.meta_data), own(&spec.network_data));
        if meta_data.is_some() {
            self.machine.status.meta_data.clone_from(&meta_data);
        }
        if network_data.is_some() {
            self.machine.status.network_data.clone_from(&network_data);
        }
        if spec.data_template.is_none() {
            return Held::External;
        }
        if documents::runs(host) && self.machine.status.rendered_data.is_some() {
            // What the host booted with does not change any more.
            return Held::Rendered;
        }
        if let Some(flaw) = self.unfit() {
            return Held::Refused(flaw);
        }
        match self.rendered() {
            Ok(data) => {
                let status = &mut self.machine.status;
                let namespace = self.facts.machine.metadata.namespace.clone();
                let name = data.metadata.name.clone();
                status.rendered_data = Some(Metal3ObjectRef { name, namespace });
                if meta_data.is_none() {
                    status.meta_data.clone_from(&data.spec.meta_data);
                }
                if network_data.is_none() {
                    status.network_data.clone_from(&data.spec.network_data);
                }
                Held::Rendered
            }
            Err(held) => held,
        }
    }

    /// The Metal3Data that answers the machine's claim, once it is complete.
    fn rendered(&self) -> Result<&'a Metal3Data, Held> {
        let waiting = |text: String| Err(Held::Waiting(text));
        let claim = match self.facts.claim {
            Sight::Seen(claim) => claim,
            Sight::Absent => return Err(Held::Missing),
            Sight::Unknown(why) => return waiting(format!("Metal3DataClaim {} cannot be read: {why}", self.name())),
        };
        if self.rules.own_data && !self.is_my_claim(claim) {
            let used = self.facts.hosts.claimed.iter().find(|host| !rests(host));
            let cure = used.and_then(|host| host.metadata.name.as_deref()).map(|host| {
                format!("; BareMetalHost {host} runs with its data, so delete the Machine to have the host cleared")
            });
            return waiting(format!(
                "waiting for Metal3DataClaim {} of an earlier machine to go away{}",
                self.name(),
                cure.unwrap_or_default()
            ));
        }
        let answer = claim
            .status
            .rendered_data
            .as_ref()
            .and_then(|data| data.name.as_deref());
        if answer.is_none_or(str::is_empty) {
            return waiting(match claim.status.error_message.as_deref() {
                Some(error) if !error.is_empty() => format!("the Metal3DataClaim is not answered: {error}"),
                _ => "waiting for Metal3DataTemplate to be available".to_owned(),
            });
        }
        let Some(data) = self.facts.data.seen() else {
            return waiting("waiting for Metal3Data to become ready".to_owned());
        };
        let is_mine =
            is_owned_by(&data.metadata, claim.metadata.uid.as_deref()) && data.metadata.deletion_timestamp.is_none();
        if self.rules.own_data && !is_mine {
            return waiting("waiting for Metal3Data of an earlier machine to go away".to_owned());
        }
        if data.status.ready != Some(true) {
            return waiting(match data.status.error_message.as_deref() {
                Some(error) if !error.is_empty() => format!("Metal3Data is not rendered: {error}"),
                _ => "waiting for Metal3Data to become ready".to_owned(),
            });
        }
        Ok(data)
    }

    /// Lets go of the claim of an earlier machine of the name, which only our finalizer keeps: nobody else would. It is
    /// kept while a host may run with those data.
    pub(super) fn forget_earlier_claim(&mut self) -> Option<Verdict> {
        let claim = self.facts.claim.seen()?;
        if is_owned_by(&claim.metadata, self.facts.machine.metadata.uid.as_deref()) {
            return None;
        }
        let patch = let_go(claim)?;
        let hosts = &self.facts.hosts;
        let may_run = hosts.unreadable.is_some() || hosts.named.unknown().is_some();
        if self.rules.host_before_data && (may_run || !hosts.claimed.iter().all(|host| rests(host))) {
            return None;
        }
        if !self.facts.confirmed {
            return Some(Verdict::Confirm);
        }
        self.actions.push(patch);
        None
    }

    /// Whether the claim of the machine's name is the machine's, and not that of an earlier one.
    pub(super) fn is_my_claim(&self, claim: &Metal3DataClaim) -> bool {
        claim.metadata.deletion_timestamp.is_none()
            && is_owned_by(&claim.metadata, self.facts.machine.metadata.uid.as_deref())
    }
}
