//! The writes to a Metal3Cluster, and to the control plane of another provider.

use metal3_api::infrastructure::conditions::{cluster as condition, shared};
use metal3_api::infrastructure::names::{DERIVED_ENDPOINT_ANNOTATION, ENDPOINT_FIELD_MANAGER};
use metal3_api::infrastructure::v1beta2::{EndpointOrigin, Metal3Cluster, Metal3ClusterStatus};
use metal3_runtime::cache::Key;
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::work::Fault;
use metal3_runtime::write::{WriteErrorKind, Writer, Written};
use serde_json::json;

use super::Clusters;
use crate::cluster::Action;
use crate::controller::events::{EventRule, events_between};
use crate::controller::sources;
use crate::endpoint::address::Address;
use crate::endpoint::source::WantedSources;
use crate::endpoint::spec_endpoint::Derived;
use crate::needs::Machines as Role;

const KNOWN: &str = "the endpoint of the control plane is known";

/// The condition changes that produce Events.
const EVENT_RULES: &[EventRule] = &[
    EventRule::normal(
        condition::INFRASTRUCTURE_READY,
        shared::REASON_READY,
        "the endpoint of the cluster is known",
    ),
    EventRule::warning(condition::INFRASTRUCTURE_READY, condition::REASON_INVALID_CONFIGURATION),
    EventRule::warning(condition::READY, condition::REASON_NO_OWNER_CLUSTER),
    EventRule::normal(condition::ATTACHED, "Attached", "belongs to its Cluster"),
    EventRule::warning(condition::ATTACHED, "Detached"),
    EventRule::warning(condition::ATTACHED, condition::REASON_CLUSTER_REF_CONFLICT),
    EventRule::warning(condition::ATTACHED, condition::REASON_CLUSTER_NOT_FOUND),
    EventRule::warning(condition::ATTACHED, condition::REASON_OWNED_BY_OTHER),
    EventRule::warning(condition::ATTACHED, condition::REASON_NOT_ADOPTED),
    EventRule::normal(condition::ENDPOINT_READY, "EndpointFromSpec", KNOWN),
    EventRule::normal(condition::ENDPOINT_READY, "EndpointFromCluster", KNOWN),
    EventRule::normal(condition::ENDPOINT_READY, "EndpointFromInfraCluster", KNOWN),
    EventRule::normal(condition::ENDPOINT_READY, "EndpointFromControlPlane", KNOWN),
    EventRule::normal(condition::ENDPOINT_READY, "EndpointFromService", KNOWN),
    EventRule::normal(condition::ENDPOINT_READY, "EndpointFromIPPool", KNOWN),
    EventRule::warning(condition::ENDPOINT_READY, condition::REASON_ENDPOINT_CONFLICT),
    EventRule::warning(condition::ENDPOINT_READY, condition::REASON_ENDPOINT_INVALID),
    EventRule::warning(condition::ENDPOINT_READY, condition::REASON_SOURCE_FORBIDDEN),
    EventRule::warning(condition::ENDPOINT_READY, condition::REASON_SOURCE_NOT_FOUND),
    EventRule::normal(
        condition::ENDPOINT_RENDERED,
        "Rendered",
        "the Secret with the endpoint is written",
    ),
    EventRule::warning(condition::ENDPOINT_RENDERED, condition::REASON_TEMPLATE_NOT_FOUND),
    EventRule::warning(condition::ENDPOINT_RENDERED, condition::REASON_TEMPLATE_FORBIDDEN),
    EventRule::warning(condition::ENDPOINT_RENDERED, condition::REASON_TEMPLATE_INVALID),
    EventRule::warning(condition::ENDPOINT_RENDERED, condition::REASON_SECRET_NOT_OURS),
    EventRule::warning(condition::ENDPOINT_RENDERED, condition::REASON_SECRET_REFUSED),
    EventRule::warning(condition::ENDPOINT_DRIFTED, condition::REASON_SOURCE_CHANGED),
    EventRule::warning(condition::ENDPOINT_DRIFTED, condition::REASON_SOURCE_FORBIDDEN),
    EventRule::warning(condition::ENDPOINT_DRIFTED, condition::REASON_SOURCE_NOT_FOUND),
];

impl Clusters {
    /// Patches or deletes the object. Returns the object as written; `None` when it does not exist any more.
    pub(super) async fn write_object(
        &self,
        key: &Key,
        object: &Metal3Cluster,
        action: Option<Action>,
        writer: &Writer<Role>,
    ) -> Result<Option<Metal3Cluster>, Fault> {
        let cache = &self.caches.metal3_clusters;
        Ok(match action {
            None => Some(object.clone()),
            Some(Action::Patch(patch)) => writer.patch(cache, key, patch).await?.object(),
            Some(Action::Delete) => writer.delete(cache, object).await?.object(),
        })
    }

    /// Writes the status, and records the Events of its changes.
    pub(super) async fn write_status(
        &self,
        object: &Metal3Cluster,
        status: Metal3ClusterStatus,
        writer: &Writer<Role>,
    ) -> Result<(), Fault> {
        let mut after = object.clone();
        after.status = status;
        writer.status(&self.caches.metal3_clusters, object, &after).await?;
        for (importance, reason, note) in
            events_between(EVENT_RULES, &object.status.conditions, &after.status.conditions)
        {
            self.events.record(&after, importance, reason, note);
        }
        Ok(())
    }

    /// Applies the endpoint and its marker. Nothing is written when another field manager owns the field.
    pub(super) async fn derive(
        &self,
        key: &Key,
        before: &Metal3Cluster,
        derived: &Derived,
        writer: &Writer<Role>,
    ) -> Result<Option<Written<Metal3Cluster>>, Fault> {
        let version = before.metadata.resource_version.as_deref().unwrap_or_default();
        let version = ResourceVersion::parse(version).map_err(|error| Fault::bug(format!("{key}: {error}")))?;
        let endpoint = json!({ "host": derived.address.host, "port": derived.address.port });
        let members = json!({
            "metadata": { "annotations": { DERIVED_ENDPOINT_ANNOTATION: derived.marker() } },
            "spec": { "controlPlaneEndpoint": endpoint },
        });
        let home = &self.caches.metal3_clusters;
        match writer
            .apply(home, key, &version, (ENDPOINT_FIELD_MANAGER, &members))
            .await
        {
            Ok(written) => Ok(Some(written)),
            Err(error) if error.kind == WriteErrorKind::Contested => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Touches an idle control plane, if enabled.
    pub(super) async fn touch(
        &self,
        key: &Key,
        touch: Option<(EndpointOrigin, Address)>,
        wanted: &WantedSources,
    ) -> Result<(), Fault> {
        match (&self.touch_writer, touch, &wanted.control_plane) {
            (Some(writer), Some((EndpointOrigin::ControlPlane, address)), Some(object)) => {
                sources::touch(writer, key, object, &address).await
            }
            _ => Ok(()),
        }
    }
}
