//! The address claim and the rendered Secret: their state and their writes.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use metal3_api::cluster::IPAddressClaim;
use metal3_api::infrastructure::v1beta2::Metal3Cluster;
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_runtime::access::{Permission, verb};
use metal3_runtime::cache::Key;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::{Fault, Next};
use metal3_runtime::write::{MetadataOf, WriteError, WriteErrorKind, Writer};

use super::{Clusters, UNREADABLE};
use crate::data::claims::NewClaim;
use crate::data::reconciler::grants;
use crate::data::reconciler::writes::{Created, create};
use crate::endpoint::existing_claim::{ExistingClaim, ExistingClaims};
use crate::endpoint::pool::{claim_name, source_value};
use crate::endpoint::render::{SecretWrite, is_owned_and_live};
use crate::endpoint::source::{SourceState, SourceValue, WantedSources};
use crate::needs::Machines as Role;

impl Clusters {
    /// The value of the claim of an object, if one is requested.
    pub(super) fn claimed(
        &self,
        key: &Key,
        object: &Metal3Cluster,
        wanted: &WantedSources,
        is_held: bool,
    ) -> Result<Option<SourceValue>, Next> {
        let Some(wanted) = &wanted.pool else { return Ok(None) };
        Ok(Some(source_value(object, wanted, &self.claims(key, object)?, is_held)))
    }

    fn claims(&self, key: &Key, object: &Metal3Cluster) -> Result<ExistingClaims, Next> {
        let (pools, owner) = (&self.pools, &object.metadata);
        let name = key.sibling(&claim_name(&key.name));
        let metal3 = grants::find(&pools.metal3_claims, &name)?;
        let metal3 = metal3.map(|claim| Ok(ExistingClaim::metal3(&claim, grants::of_metal3(pools, owner, &claim)?)));
        let general = grants::find(&pools.general_claims, &name)?;
        let general = general.map(|claim| {
            Ok(ExistingClaim::general(
                &claim,
                grants::of_general(pools, owner, &claim)?,
            ))
        });
        Ok(ExistingClaims {
            metal3: metal3.transpose()?,
            general: general.transpose()?,
        })
    }

    /// The Secret of the rendered endpoint, if one is requested. Each version is read once; the content of a Secret of
    /// another owner is not read.
    pub(super) async fn rendered(
        &self,
        key: &Key,
        object: &Metal3Cluster,
        wanted: &WantedSources,
    ) -> Result<Result<Option<Arc<Secret>>, Next>, Fault> {
        let Some(asked) = &wanted.template else {
            return Ok(Ok(None));
        };
        let name = key.sibling(&asked.secret_name);
        if let Observed::Present(cached) = self.pools.secrets.find(&name)
            && !is_owned_and_live(object, &cached.metadata)
        {
            let metadata = cached.metadata.clone();
            return Ok(Ok(Some(Arc::new(Secret {
                metadata,
                ..Secret::default()
            }))));
        }
        Ok(match self.secrets.get(&name).await? {
            Observed::Present(secret) => Ok(Some(secret)),
            Observed::Absent => Ok(None),
            Observed::Unknown(UnknownReason::Unreadable(why)) => {
                Err(Next::waiting(UNREADABLE, format!("Secret {name}: {why}")))
            }
            Observed::Unknown(UnknownReason::NotListed | UnknownReason::NotRead) => {
                return Err(Fault::bug("a reconcile before the first list of Secrets"));
            }
        })
    }

    /// Creates the claim. Returns the state to use when the API server rejects it.
    pub(super) async fn claim(
        &self,
        key: &Key,
        claim: &NewClaim,
        writer: &Writer<Role>,
    ) -> Result<Option<SourceState>, Fault> {
        let (created, need) = match claim {
            NewClaim::Metal3(claim) => (
                create(writer, &self.pools.metal3_claims, &**claim).await?,
                Permission::of::<verb::Create, IPClaim>(),
            ),
            NewClaim::General(claim) => (
                create(writer, &self.pools.general_claims, &**claim).await?,
                Permission::of::<verb::Create, IPAddressClaim>(),
            ),
        };
        Ok(match created {
            Created::Done | Created::Exists => None,
            Created::Rejected(error) => {
                let why = refusal(key, "spec.controlPlaneEndpointSource.ipPool", error);
                Some(SourceState::Invalid(format!(
                    "it cannot be created: {why}; it is retried each minute"
                )))
            }
            Created::Forbidden(error) => {
                // RBAC, quota and admission all return this status; the log contains the message.
                tracing::info!(%key, "{}", Fault::from(error).report());
                Some(SourceState::Forbidden {
                    verb: need.verb,
                    resource: format!("{}.{}", need.resource, need.group),
                })
            }
        })
    }

    /// Writes the Secret. Returns the error when the API server rejects it.
    pub(super) async fn render(
        &self,
        key: &Key,
        write: &SecretWrite,
        writer: &Writer<Role>,
    ) -> Result<Option<String>, Fault> {
        let home = MetadataOf(&self.pools.secrets);
        let written = match write {
            SecretWrite::Create(secret) => writer.create(&home, &**secret).await,
            SecretWrite::Patch(name, patch) => writer.patch(&home, &key.sibling(name), patch.clone()).await,
        };
        let refused = |error: &WriteError| [WriteErrorKind::Invalid, WriteErrorKind::Forbidden].contains(&error.kind);
        match written {
            Ok(_) => Ok(None),
            Err(error) if refused(&error) => {
                let field = "spec.controlPlaneEndpointSource.render, or the template that it names";
                Ok(Some(refusal(key, field, error)))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// A rejected write with its remedy. Conditions use fixed texts; the log contains the message of the API server.
fn refusal(key: &Key, field: &str, error: WriteError) -> String {
    let remedy = match error.kind {
        WriteErrorKind::Forbidden => {
            "the API server forbids it: grant it to the service account of this manager, and check quotas and \
             admission policies"
                .to_owned()
        }
        _ => format!("the API server rejects it as invalid: correct {field}"),
    };
    let message = format!("{error}: {remedy}");
    tracing::info!(%key, "{}", Fault::from(error).report());
    message
}
