//! Performs the writes of a plan. It decides nothing: a result that changes the facts ends the plan.

use std::sync::Arc;

use metal3_api::cluster::IPAddressClaim;
use metal3_api::infrastructure::names::{DERIVED_ENDPOINT_ANNOTATION, ENDPOINT_FIELD_MANAGER};
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3ClusterStatus};
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_runtime::access::{Permission, verb};
use metal3_runtime::cache::{Identity, Key};
use metal3_runtime::plan::PlannedEvent;
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::work::Fault;
use metal3_runtime::write::{MetadataOf, WriteError, WriteErrorKind, Writer, Written};
use serde_json::json;

use super::{Acted, Clusters};
use crate::cluster::sources;
use crate::cluster::{Action, EndpointWrite, Plan, WriteResult};
use crate::data::claims::NewClaim;
use crate::data::reconciler::writes::{Created, create};
use crate::data::release::Release;
use crate::endpoint::held_claims::HeldClaim;
use crate::endpoint::render::SecretWrite;
use crate::endpoint::source::SourceState;
use crate::endpoint::spec_endpoint::Derived;
use crate::needs::Machines as Role;

impl Clusters {
    /// Performs the writes of a plan in their order. `object` becomes the object as written.
    pub(super) async fn act(
        &self,
        key: &Key,
        object: &mut Arc<Metal3Cluster>,
        plan: Plan,
        writer: &Writer<Role>,
    ) -> Result<Acted, Fault> {
        let last = plan.status.map(Action::Status);
        for action in plan.actions.into_iter().chain(last) {
            match self.perform(key, object, (action, &plan.events), writer).await? {
                Acted::Done => {}
                ended => return Ok(ended),
            }
        }
        Ok(Acted::Done)
    }

    async fn perform(
        &self,
        key: &Key,
        object: &mut Arc<Metal3Cluster>,
        (action, events): (Action, &[PlannedEvent]),
        writer: &Writer<Role>,
    ) -> Result<Acted, Fault> {
        let cache = &self.parts.caches.metal3_clusters;
        match action {
            Action::Patch(patch) => return Ok(replace(object, writer.patch(cache, key, patch).await?)),
            Action::Delete => return Ok(replace(object, writer.delete(cache, &**object).await?)),
            Action::Claim(claim) => return self.create_claim(key, &claim, writer).await,
            Action::Derive(derived) => return self.derive(key, object, &derived, writer).await,
            Action::Render(write) => return self.render(key, write, writer).await,
            Action::Status(status) => self.write_status(object, *status, events, writer).await?,
            Action::Touch(control_plane, address) => {
                if let Some(writer) = &self.parts.touch_writer {
                    sources::touch(writer, key, &control_plane, &address).await?;
                }
            }
            Action::Release(claim) => self.release(*claim, writer).await?,
        }
        Ok(Acted::Done)
    }

    /// Writes the status, and records its events.
    async fn write_status(
        &self,
        object: &Metal3Cluster,
        status: Metal3ClusterStatus,
        events: &[PlannedEvent],
        writer: &Writer<Role>,
    ) -> Result<(), Fault> {
        let mut after = object.clone();
        after.status = status;
        writer
            .status(&self.parts.caches.metal3_clusters, object, &after)
            .await?;
        for event in events {
            let message = event.message.clone();
            self.parts
                .events
                .record(&after, event.importance, event.reason, message);
        }
        Ok(())
    }

    /// Applies the endpoint and its marker. Nothing is written when another field manager owns the field.
    async fn derive(
        &self,
        key: &Key,
        object: &mut Arc<Metal3Cluster>,
        derived: &Derived,
        writer: &Writer<Role>,
    ) -> Result<Acted, Fault> {
        let version = object.metadata.resource_version.as_deref().unwrap_or_default();
        let version = ResourceVersion::parse(version).map_err(|error| Fault::bug(format!("{key}: {error}")))?;
        let endpoint = json!({ "host": derived.address.host, "port": derived.address.port });
        let members = json!({
            "metadata": { "annotations": { DERIVED_ENDPOINT_ANNOTATION: derived.marker() } },
            "spec": { "controlPlaneEndpoint": endpoint },
        });
        let fields = (ENDPOINT_FIELD_MANAGER, &members);
        let changed = |write| Acted::Changed(WriteResult::Endpoint(write));
        let home = &self.parts.caches.metal3_clusters;
        match writer.apply(home, key, &version, fields).await {
            Ok(written) => Ok(match replace(object, written) {
                Acted::Done => changed(EndpointWrite::Applied),
                ended => ended,
            }),
            Err(error) if error.kind == WriteErrorKind::Contested => Ok(changed(EndpointWrite::Contested)),
            Err(error) => Err(error.into()),
        }
    }

    async fn create_claim(&self, key: &Key, claim: &NewClaim, writer: &Writer<Role>) -> Result<Acted, Fault> {
        let (created, need) = match claim {
            NewClaim::Metal3(claim) => (
                create(writer, &self.parts.pools.metal3_claims, &**claim).await?,
                Permission::of::<verb::Create, IPClaim>(),
            ),
            NewClaim::General(claim) => (
                create(writer, &self.parts.pools.general_claims, &**claim).await?,
                Permission::of::<verb::Create, IPAddressClaim>(),
            ),
        };
        let state = match created {
            Created::Done | Created::Exists => return Ok(Acted::Requeue),
            Created::Rejected(error) => {
                let why = refusal(key, "spec.controlPlaneEndpointSource.ipPool", error);
                SourceState::Invalid(format!("it cannot be created: {why}; it is retried each minute"))
            }
            Created::Forbidden(error) => {
                // RBAC, quota and admission all return this status; the log contains the message.
                tracing::info!(%key, "{}", Fault::from(error).report());
                SourceState::Forbidden {
                    verb: need.verb,
                    resource: format!("{}.{}", need.resource, need.group),
                }
            }
        };
        Ok(Acted::Changed(WriteResult::ClaimRefused(state)))
    }

    async fn render(&self, key: &Key, write: SecretWrite, writer: &Writer<Role>) -> Result<Acted, Fault> {
        let home = MetadataOf(&self.parts.pools.secrets);
        let written = match write {
            SecretWrite::Create(secret) => writer.create(&home, &*secret).await,
            SecretWrite::Patch(name, patch) => writer.patch(&home, &key.sibling(&name), patch).await,
        };
        let refused = |error: &WriteError| [WriteErrorKind::Invalid, WriteErrorKind::Forbidden].contains(&error.kind);
        match written {
            Ok(_) => Ok(Acted::Done),
            Err(error) if refused(&error) => {
                let field = "spec.controlPlaneEndpointSource.render, or the template that it names";
                let why = refusal(key, field, error);
                Ok(Acted::Changed(WriteResult::SecretRefused(why)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the finalizer of a claim at the observed version.
    pub(super) async fn release(&self, claim: HeldClaim, writer: &Writer<Role>) -> Result<(), Fault> {
        let Release {
            observed: Identity { key, .. },
            patch: Some(patch),
            ..
        } = claim.let_go
        else {
            return Ok(());
        };
        let pools = &self.parts.pools;
        if claim.is_metal3 {
            writer.patch(&pools.metal3_claims, &key, patch).await?;
        } else {
            writer.patch(&pools.general_claims, &key, patch).await?;
        }
        Ok(())
    }
}

/// Replaces the object by what a write returned.
fn replace(object: &mut Arc<Metal3Cluster>, written: Written<Metal3Cluster>) -> Acted {
    match written.object() {
        Some(written) => {
            *object = Arc::new(written);
            Acted::Done
        }
        None => Acted::Requeue,
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
