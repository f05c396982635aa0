//! Doing what was decided about a Metal3Cluster.

use metal3_api::infrastructure::conditions::{cluster as words, shared};
use metal3_api::infrastructure::names::{DERIVED_ENDPOINT_ANNOTATION, ENDPOINT_FIELD_MANAGER};
use metal3_api::infrastructure::v1beta2::{EndpointOrigin, Metal3Cluster};
use metal3_runtime::hub::Key;
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::work::{Fault, Next};
use metal3_runtime::write::{Mode, Trouble, Writer, Written};
use serde_json::json;

use super::super::news::{Row, between};
use super::super::sources::wake;
use super::Clusters;
use crate::cluster::{Action, Facts, Plan, plan};
use crate::endpoint::address::Address;
use crate::endpoint::own::Derived;
use crate::endpoint::reading::Wanted;
use crate::needs::Machines as Role;

const KNOWN: &str = "the endpoint of the control plane is known";

/// What is told by Events.
const NEWS: &[Row] = &[
    Row::good(
        words::INFRASTRUCTURE_READY,
        shared::REASON_READY,
        "the endpoint of the cluster is known",
    ),
    Row::bad(words::INFRASTRUCTURE_READY, words::REASON_INVALID_CONFIGURATION),
    Row::bad(words::READY, words::REASON_NO_OWNER_CLUSTER),
    Row::good(words::ATTACHED, "Attached", "belongs to its Cluster"),
    Row::bad(words::ATTACHED, "Detached"),
    Row::bad(words::ATTACHED, words::REASON_CLUSTER_REF_CONFLICT),
    Row::bad(words::ATTACHED, words::REASON_CLUSTER_NOT_FOUND),
    Row::bad(words::ATTACHED, words::REASON_OWNED_BY_OTHER),
    Row::bad(words::ATTACHED, words::REASON_NOT_ADOPTED),
    Row::good(words::ENDPOINT_READY, "EndpointFromSpec", KNOWN),
    Row::good(words::ENDPOINT_READY, "EndpointFromCluster", KNOWN),
    Row::good(words::ENDPOINT_READY, "EndpointFromInfraCluster", KNOWN),
    Row::good(words::ENDPOINT_READY, "EndpointFromControlPlane", KNOWN),
    Row::good(words::ENDPOINT_READY, "EndpointFromService", KNOWN),
    Row::good(words::ENDPOINT_READY, "EndpointFromIPPool", KNOWN),
    Row::bad(words::ENDPOINT_READY, words::REASON_ENDPOINT_CONFLICT),
    Row::bad(words::ENDPOINT_READY, words::REASON_ENDPOINT_INVALID),
    Row::bad(words::ENDPOINT_READY, words::REASON_SOURCE_FORBIDDEN),
    Row::bad(words::ENDPOINT_READY, words::REASON_SOURCE_NOT_FOUND),
    Row::bad(words::ENDPOINT_DRIFTED, words::REASON_SOURCE_CHANGED),
    Row::bad(words::ENDPOINT_DRIFTED, words::REASON_SOURCE_FORBIDDEN),
    Row::bad(words::ENDPOINT_DRIFTED, words::REASON_SOURCE_NOT_FOUND),
];

impl Clusters {
    pub(super) async fn act(
        &self,
        key: &Key,
        (facts, wanted): (Facts<'_>, &Wanted),
        writer: &Writer<Role>,
    ) -> Result<Next, Fault> {
        let Plan {
            action,
            derive,
            mut nudge,
            mut status,
            mut again,
        } = plan(&facts);
        if action.is_none() && derive.is_none() && status.is_none() {
            self.nudge(key, nudge, wanted).await?;
            return Ok(again.map_or(Next::Settled, Next::Recheck));
        }
        let home = &self.hubs.metal3_clusters;
        let mut object = match action {
            None => Some(facts.object.clone()),
            Some(Action::Patch(patch)) => writer.patch(home, key, patch).await?.object(),
            Some(Action::Delete) => writer.delete(home, facts.object).await?.object(),
        };
        if let (Some(before), Some(derived)) = (&object, &derive) {
            let written = self.derive(key, before, derived, writer).await?;
            let is_refused = written.is_none();
            if let Some(written) = written {
                object = written.object();
            }
            // What is said is said of the object as it stands now, in its new generation.
            if let Some(object) = &object {
                Plan {
                    nudge,
                    status,
                    again,
                    ..
                } = plan(&Facts {
                    object,
                    is_refused,
                    ..facts
                });
            }
        }
        if let (Some(before), Some(status)) = (object, status) {
            let mut after = before.clone();
            after.status = *status;
            writer.status(home, &before, &after).await?;
            self.tell(facts.object, &after);
        }
        if derive.is_some() {
            self.nudge(key, nudge, wanted).await?;
        }
        // Where nothing is performed, another look would show the same again. Where the endpoint was written, all that
        // follows was decided from the object with it.
        Ok(match writer.mode() {
            Mode::Perform if derive.is_none() => Next::Again,
            Mode::Perform => again.map_or(Next::Settled, Next::Recheck),
            Mode::ObserveOnly => Next::Settled,
        })
    }

    /// Writes the endpoint, and that it was derived. Nothing is written where somebody else looks after the field.
    async fn derive(
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
        let home = &self.hubs.metal3_clusters;
        match writer
            .apply(home, key, &version, (ENDPOINT_FIELD_MANAGER, &members))
            .await
        {
            Ok(written) => Ok(Some(written)),
            Err(error) if error.trouble == Trouble::Contested => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Wakes a control plane, where that is wanted.
    async fn nudge(&self, key: &Key, nudge: Option<(EndpointOrigin, Address)>, wanted: &Wanted) -> Result<(), Fault> {
        match (&self.nudges, nudge, &wanted.control_plane) {
            (Some(writer), Some((EndpointOrigin::ControlPlane, address)), Some(object)) => {
                wake(writer, key, object, &address).await
            }
            _ => Ok(()),
        }
    }

    fn tell(&self, before: &Metal3Cluster, after: &Metal3Cluster) {
        for (importance, reason, note) in between(NEWS, &before.status.conditions, &after.status.conditions) {
            self.events.tell(after, importance, reason, note);
        }
    }
}
