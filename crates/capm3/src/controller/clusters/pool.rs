//! An address from a pool, and the Secret that tells it: what is known of them, and writing them.

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
use crate::controller::data::grants;
use crate::controller::data::writes::{Created, create};
use crate::data::claims::NewClaim;
use crate::endpoint::claimed::{Claims, Existing};
use crate::endpoint::pool::{claim_name, reading};
use crate::endpoint::reading::{Heard, Reading, Wanted};
use crate::endpoint::render::{Writing, is_kept};
use crate::needs::Machines as Role;

impl Clusters {
    /// What the claim of an object says, where it asks for one.
    pub(super) fn claimed(
        &self,
        key: &Key,
        object: &Metal3Cluster,
        wanted: &Wanted,
        is_held: bool,
    ) -> Result<Option<Reading>, Next> {
        let Some(wanted) = &wanted.pool else { return Ok(None) };
        Ok(Some(reading(object, wanted, &self.claims(key, object)?, is_held)))
    }

    /// The claims by the name of an object's.
    fn claims(&self, key: &Key, object: &Metal3Cluster) -> Result<Claims, Next> {
        let (pools, owner) = (&self.pools, &object.metadata);
        let name = key.sibling(&claim_name(&key.name));
        let metal3 = grants::find(&pools.metal3_claims, &name)?;
        let metal3 = metal3.map(|claim| Ok(Existing::metal3(&claim, grants::of_metal3(pools, owner, &claim)?)));
        let general = grants::find(&pools.general_claims, &name)?;
        let general = general.map(|claim| Ok(Existing::general(&claim, grants::of_general(pools, owner, &claim)?)));
        Ok(Claims {
            metal3: metal3.transpose()?,
            general: general.transpose()?,
        })
    }

    /// The Secret that the endpoint is filled into, where that is asked for. Each version of it is read once; what one of
    /// somebody else's holds is nobody's business.
    pub(super) async fn rendered(
        &self,
        key: &Key,
        object: &Metal3Cluster,
        wanted: &Wanted,
    ) -> Result<Result<Option<Arc<Secret>>, Next>, Fault> {
        let Some(asked) = &wanted.template else {
            return Ok(Ok(None));
        };
        let name = key.sibling(&asked.secret_name);
        if let Observed::Present(shown) = self.pools.secrets.find(&name)
            && !is_kept(object, &shown.metadata)
        {
            let metadata = shown.metadata.clone();
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
                return Err(Fault::bug("a pass before the first list of Secrets"));
            }
        })
    }

    /// Makes the claim. What is heard instead of it, if the server does not let us.
    pub(super) async fn claim(
        &self,
        key: &Key,
        claim: &NewClaim,
        writer: &Writer<Role>,
    ) -> Result<Option<Heard>, Fault> {
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
                Some(Heard::Invalid(format!(
                    "it cannot be made: {why}; it is tried again each minute"
                )))
            }
            Created::Forbidden(error) => {
                // A right that is missing, a quota and admission look alike to a program: the words are for people.
                tracing::info!(%key, "{}", Fault::from(error).report());
                Some(Heard::Forbidden {
                    verb: need.verb,
                    resource: format!("{}.{}", need.resource, need.group),
                })
            }
        })
    }

    /// Writes the Secret. What the server says, if it does not take it.
    pub(super) async fn render(
        &self,
        key: &Key,
        writing: &Writing,
        writer: &Writer<Role>,
    ) -> Result<Option<String>, Fault> {
        let home = MetadataOf(&self.pools.secrets);
        let written = match writing {
            Writing::Create(secret) => writer.create(&home, &**secret).await,
            Writing::Change(name, patch) => writer.patch(&home, &key.sibling(name), patch.clone()).await,
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

/// What cannot be done, and the cure. Conditions say it in fixed words; the server's are in the log.
fn refusal(key: &Key, field: &str, error: WriteError) -> String {
    let cure = match error.kind {
        WriteErrorKind::Forbidden => {
            "the API server forbids it: grant it to the service account of this manager, and look at quotas \
                               and admission policies"
                .to_owned()
        }
        _ => format!("the API server refuses it as invalid: correct {field}"),
    };
    let said = format!("{error}: {cure}");
    tracing::info!(%key, "{}", Fault::from(error).report());
    said
}
