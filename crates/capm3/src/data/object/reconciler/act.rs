//! Performs a plan for one Metal3Data.

use std::collections::BTreeSet;

use metal3_api::infrastructure::v1beta2::Metal3Data;
use metal3_runtime::cache::Key;
use metal3_runtime::work::{Fault, Next};
use metal3_runtime::write::{MetadataOf, WriteError, WriteErrorKind, Writer};

use super::Objects;
use crate::data::claims::NewClaim;
use crate::data::object::action::{Action, Plan, Read};
use crate::data::object::facts::{Rejection, Responses};
use crate::data::reconciler::writes::{Created, create, release_object};
use crate::needs::Data;

/// The result of a write, or the rejection of a new object.
type Accepted<T> = Result<T, Rejection>;

impl Objects {
    pub(super) async fn read(
        &self,
        key: &Key,
        reads: Vec<Read>,
        responses: &mut Responses,
        writer: &Writer<Data>,
    ) -> Result<(), Fault> {
        for read in reads {
            match read {
                Read::Claim(claim) => {
                    let found = writer.find(&self.caches.claims, &claim).await?;
                    responses.claim = found.map(|claim| claim.metadata).into();
                }
                Read::Data => {
                    let found = writer.read(&self.caches.data, key).await?;
                    responses.data = found.map(|data| data.metadata).into();
                }
                Read::Host(host) => {
                    drop(writer.find(&self.caches.hosts, &host).await?);
                    responses.host = Some(host);
                }
            }
        }
        Ok(())
    }

    /// Performs a plan in its order, up to the rejection of a new object.
    pub(super) async fn act(
        &self,
        key: &Key,
        data: Option<&Metal3Data>,
        plan: Plan,
        writer: &Writer<Data>,
    ) -> Result<Accepted<Next>, Fault> {
        for action in plan.actions {
            if let Err(rejection) = self.perform(key, action, writer).await? {
                return Ok(Err(rejection));
            }
        }
        if let Some(status) = plan.status {
            writer.patch_status(&self.caches.data, key, status).await?;
        }
        for event in plan.events {
            if let Some(data) = data {
                self.events.record(data, event.importance, event.reason, event.message);
            }
        }
        Ok(Ok(plan.next))
    }

    async fn perform(&self, key: &Key, action: Action, writer: &Writer<Data>) -> Result<Accepted<()>, Fault> {
        match action {
            Action::Patch(patch) => drop(writer.patch(&self.caches.data, key, patch).await?),
            Action::Claim(claim) => {
                let created = match claim {
                    NewClaim::Metal3(claim) => create(writer, &self.caches.metal3_claims, &*claim).await?,
                    NewClaim::General(claim) => create(writer, &self.caches.general_claims, &*claim).await?,
                };
                match created {
                    Created::Done | Created::Exists => {}
                    Created::Rejected(error) => return Ok(Err(rejection(&error))),
                    Created::Forbidden(error) => return Err(error.into()),
                }
            }
            Action::CreateSecret(secret) => {
                match writer
                    .create(&MetadataOf(&self.caches.secrets), &secret.to_object())
                    .await
                {
                    Ok(_) => {}
                    Err(error) if error.kind == WriteErrorKind::Invalid => return Ok(Err(rejection(&error))),
                    Err(error) => return Err(error.into()),
                }
            }
            Action::Release { is_metal3, release } => {
                if is_metal3 {
                    release_object(writer, &self.caches.metal3_claims, release).await?;
                } else {
                    release_object(writer, &self.caches.general_claims, release).await?;
                }
            }
            Action::StopAwaitingClaims => self.related.lock().await_claims(key, BTreeSet::new()),
        }
        Ok(Ok(()))
    }
}

/// The message without the object's content.
fn rejection(error: &WriteError) -> Rejection {
    let is_unserved = error.kind == WriteErrorKind::NotFound;
    let why = match is_unserved {
        true => "the API server does not serve the kind; install the provider of the pool",
        false => "the API server rejects it as invalid; correct the template, or the labels of the machine",
    };
    Rejection {
        message: format!("{error}: {why}"),
        is_unserved,
    }
}
