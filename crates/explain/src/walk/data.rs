//! Metal3DataClaim and Metal3Data.

use metal3_api::cluster::{Cluster, IPAddressClaim};
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim, Metal3DataTemplate, Metal3ObjectRef};
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_api::kind::Kind as _;

use super::conditions::reason_link;
use super::{End, Next, Walk, is_deleting};
use crate::chain::Link;
use crate::object::ObjectId;
use crate::table::{Actor, Area, Severity};
use crate::values::name;

impl Walk<'_> {
    pub(crate) fn data_claim(&mut self, at: &ObjectId) -> Result<Next, End> {
        let claim: Metal3DataClaim = self.required(at)?;
        let cluster = self.labelled_cluster(&claim.metadata)?;
        if self.is_paused(at, &claim.metadata, cluster.as_ref()) {
            return Ok(None);
        }
        if is_deleting(&claim.metadata) {
            self.push_deleting(at, &claim.metadata);
            return Ok(None);
        }
        let data = referred(claim.status.rendered_data.as_ref());
        if let Some(data) = data {
            let found = self.find::<Metal3Data>(data)?;
            if found.is_some_and(|data| data.status.ready == Some(true)) {
                return Ok(None);
            }
            self.push(Link::plain(at, "waits for its Metal3Data", Actor::System, ""));
            return Ok(Some(ObjectId::of::<Metal3Data>(data)));
        }
        if let Some(message) = stated(claim.status.error_message.as_ref()) {
            self.push(error(at, message));
            return Ok(None);
        }
        let Some(template) = referred(claim.spec.template.as_ref()) else {
            let cure = "Name a template in spec.template.";
            self.push(Link::plain(at, "names no template", Actor::User, cure));
            return Ok(None);
        };
        self.push(reason_link(
            at,
            Area::Data,
            "WaitingForInput",
            "no Metal3Data serves the claim yet",
            None,
        ));
        let exists = self.find::<Metal3DataTemplate>(template)?.is_some();
        if !exists {
            return Err(self.absent(&ObjectId::of::<Metal3DataTemplate>(template)));
        }
        Ok(None)
    }

    pub(crate) fn data(&mut self, at: &ObjectId) -> Result<Next, End> {
        let data: Metal3Data = self.required(at)?;
        let cluster = self.labelled_cluster(&data.metadata)?;
        if self.is_paused(at, &data.metadata, cluster.as_ref()) {
            return Ok(None);
        }
        if is_deleting(&data.metadata) {
            return self.data_in_deletion(at, &data);
        }
        if data.status.ready == Some(true) {
            return Ok(None);
        }
        let message = stated(data.status.error_message.as_ref());
        let waiting = self.owned_claim(
            &data,
            |claim| claim.status.address.is_none(),
            |claim| claim.status.address_ref.is_none(),
        );
        // An error is shown also when the claims cannot be read.
        match (message, &waiting) {
            (Some(message), Ok(None) | Err(_)) => self.push(error(at, message)),
            (message, _) => {
                let message = message.unwrap_or_default();
                self.push(reason_link(at, Area::Data, "WaitingForInput", message, None));
            }
        }
        let waiting = waiting?;
        let template = referred(data.spec.template.as_ref());
        if let (None, Some(template)) = (&waiting, template)
            && self.find::<Metal3DataTemplate>(template)?.is_none()
        {
            return Err(self.absent(&ObjectId::of::<Metal3DataTemplate>(template)));
        }
        Ok(waiting)
    }

    /// The addresses are kept while the claim that the Metal3Data was created for exists; then the claims on pools follow.
    fn data_in_deletion(&mut self, at: &ObjectId, data: &Metal3Data) -> Result<Next, End> {
        let claim = match referred(data.spec.claim.as_ref()).map(|claim| self.find::<Metal3DataClaim>(claim)) {
            Some(Ok(Some(claim))) if is_made_for(data, &claim) => claim,
            Some(Err(end)) => {
                self.push_deleting(at, &data.metadata);
                return Err(end);
            }
            Some(Ok(_)) | None => {
                self.push_deleting(at, &data.metadata);
                return self.owned_claim(
                    data,
                    |claim| is_deleting(&claim.metadata),
                    |claim| is_deleting(&claim.metadata),
                );
            }
        };
        let message = "its addresses are released after its claim is deleted";
        self.push(reason_link(at, Area::Data, "ClaimLives", message, None));
        let next = ObjectId::of::<Metal3DataClaim>(name(&claim.metadata));
        Ok(is_deleting(&claim.metadata).then_some(next))
    }

    /// A template has no conditions: it waits only in deletion.
    pub(crate) fn data_template(&mut self, at: &ObjectId) -> Result<Next, End> {
        let template: Metal3DataTemplate = self.required(at)?;
        if !self.is_paused(at, &template.metadata, None) && is_deleting(&template.metadata) {
            self.push_deleting(at, &template.metadata);
        }
        Ok(None)
    }

    /// A claim on a pool that the Metal3Data owns and that is the one sought.
    fn owned_claim(
        &mut self,
        data: &Metal3Data,
        is_sought: impl Fn(&IPClaim) -> bool,
        is_general_sought: impl Fn(&IPAddressClaim) -> bool,
    ) -> Result<Next, End> {
        let uid = data.metadata.uid.as_deref();
        let claims = self.list::<IPClaim>(None)?;
        if let Some(claim) = claims.owned_by(uid).find(|claim| is_sought(claim)) {
            return Ok(Some(ObjectId::of::<IPClaim>(name(&claim.metadata))));
        }
        let general = self.list::<IPAddressClaim>(None)?;
        let found = general.owned_by(uid).find(|claim| is_general_sought(claim));
        let found = found.map(|claim| ObjectId::of::<IPAddressClaim>(name(&claim.metadata)));
        general.sought(found).and_then(|found| claims.sought(found))
    }

    /// The Cluster that the label names.
    pub(crate) fn labelled_cluster(
        &mut self,
        meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    ) -> Result<Option<Cluster>, End> {
        let label = meta
            .labels
            .as_ref()
            .and_then(|labels| labels.get("cluster.x-k8s.io/cluster-name"));
        match label {
            Some(name) => self.find(name),
            None => Ok(None),
        }
    }
}

/// Whether the claim is the one that the Metal3Data was created for; another one may have its name.
fn is_made_for(data: &Metal3Data, claim: &Metal3DataClaim) -> bool {
    let owners = data.metadata.owner_references.as_deref().unwrap_or_default();
    let made_for = owners.iter().find(|owner| owner.kind == Metal3DataClaim::KIND);
    made_for.is_none_or(|owner| Some(owner.uid.as_str()) == claim.metadata.uid.as_deref())
}

/// The name in a reference.
fn referred(reference: Option<&Metal3ObjectRef>) -> Option<&str> {
    reference
        .and_then(|reference| reference.name.as_deref())
        .filter(|name| !name.is_empty())
}

/// A message that is not empty.
fn stated(message: Option<&String>) -> Option<&str> {
    message.map(String::as_str).filter(|message| !message.is_empty())
}

/// An error in the status: the message says what to do, and a user does it.
fn error(at: &ObjectId, message: &str) -> Link {
    Link {
        who_acts: Actor::User,
        severity: Severity::Error,
        ..reason_link(at, Area::Data, "RenderingFailed", message, None)
    }
}
