//! Doing what was decided about a Metal3Cluster.

use std::time::Duration;

use metal3_api::infrastructure::conditions::{cluster as words, shared};
use metal3_api::infrastructure::names::{DERIVED_ENDPOINT_ANNOTATION, ENDPOINT_FIELD_MANAGER};
use metal3_api::infrastructure::v1beta2::{EndpointOrigin, Metal3Cluster};
use metal3_runtime::cache::Key;
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::work::{Fault, Next};
use metal3_runtime::write::{WriteErrorKind, Writer, Written};
use serde_json::json;

use super::super::events::{EventRule, events_between};
use super::super::sources::wake;
use super::Clusters;
use crate::cluster::{Action, Facts, Plan, plan};
use crate::endpoint::address::Address;
use crate::endpoint::own::Derived;
use crate::endpoint::reading::Wanted;
use crate::needs::Machines as Role;

const KNOWN: &str = "the endpoint of the control plane is known";

/// What is told by Events.
const NEWS: &[EventRule] = &[
    EventRule::normal(
        words::INFRASTRUCTURE_READY,
        shared::REASON_READY,
        "the endpoint of the cluster is known",
    ),
    EventRule::warning(words::INFRASTRUCTURE_READY, words::REASON_INVALID_CONFIGURATION),
    EventRule::warning(words::READY, words::REASON_NO_OWNER_CLUSTER),
    EventRule::normal(words::ATTACHED, "Attached", "belongs to its Cluster"),
    EventRule::warning(words::ATTACHED, "Detached"),
    EventRule::warning(words::ATTACHED, words::REASON_CLUSTER_REF_CONFLICT),
    EventRule::warning(words::ATTACHED, words::REASON_CLUSTER_NOT_FOUND),
    EventRule::warning(words::ATTACHED, words::REASON_OWNED_BY_OTHER),
    EventRule::warning(words::ATTACHED, words::REASON_NOT_ADOPTED),
    EventRule::normal(words::ENDPOINT_READY, "EndpointFromSpec", KNOWN),
    EventRule::normal(words::ENDPOINT_READY, "EndpointFromCluster", KNOWN),
    EventRule::normal(words::ENDPOINT_READY, "EndpointFromInfraCluster", KNOWN),
    EventRule::normal(words::ENDPOINT_READY, "EndpointFromControlPlane", KNOWN),
    EventRule::normal(words::ENDPOINT_READY, "EndpointFromService", KNOWN),
    EventRule::normal(words::ENDPOINT_READY, "EndpointFromIPPool", KNOWN),
    EventRule::warning(words::ENDPOINT_READY, words::REASON_ENDPOINT_CONFLICT),
    EventRule::warning(words::ENDPOINT_READY, words::REASON_ENDPOINT_INVALID),
    EventRule::warning(words::ENDPOINT_READY, words::REASON_SOURCE_FORBIDDEN),
    EventRule::warning(words::ENDPOINT_READY, words::REASON_SOURCE_NOT_FOUND),
    EventRule::normal(
        words::ENDPOINT_RENDERED,
        "Rendered",
        "the Secret with the endpoint is written",
    ),
    EventRule::warning(words::ENDPOINT_RENDERED, words::REASON_TEMPLATE_NOT_FOUND),
    EventRule::warning(words::ENDPOINT_RENDERED, words::REASON_TEMPLATE_FORBIDDEN),
    EventRule::warning(words::ENDPOINT_RENDERED, words::REASON_TEMPLATE_INVALID),
    EventRule::warning(words::ENDPOINT_RENDERED, words::REASON_SECRET_NOT_OURS),
    EventRule::warning(words::ENDPOINT_RENDERED, words::REASON_SECRET_REFUSED),
    EventRule::warning(words::ENDPOINT_DRIFTED, words::REASON_SOURCE_CHANGED),
    EventRule::warning(words::ENDPOINT_DRIFTED, words::REASON_SOURCE_FORBIDDEN),
    EventRule::warning(words::ENDPOINT_DRIFTED, words::REASON_SOURCE_NOT_FOUND),
];

/// How often is tried what the server refused. Nothing tells when it no longer does.
const REFUSED: Duration = Duration::from_mins(1);

/// When to look again after writes: at once, unless all that follows was decided from what was written.
fn after(decided: Option<Option<Duration>>) -> Next {
    decided.map_or(Next::Requeue, |again| again.map_or(Next::Done, Next::RequeueAfter))
}

impl Clusters {
    pub(super) async fn act(
        &self,
        key: &Key,
        (facts, wanted): (Facts<'_>, &Wanted),
        writer: &Writer<Role>,
    ) -> Result<Next, Fault> {
        let mut plan = plan(&facts);
        if plan.is_idle() {
            self.nudge(key, plan.nudge, wanted).await?;
            return Ok(plan.again.map_or(Next::Done, Next::RequeueAfter));
        }
        let home = &self.caches.metal3_clusters;
        let object = match plan.action.take() {
            None => Some(facts.object.clone()),
            Some(Action::Patch(patch)) => writer.patch(home, key, patch).await?.object(),
            Some(Action::Delete) => writer.delete(home, facts.object).await?.object(),
        };
        let Some(object) = object else {
            return Ok(after(None));
        };
        let facts = Facts {
            object: &object,
            ..facts
        };
        self.serve(key, (&facts, wanted), plan, writer).await
    }

    /// What follows for an object that is as it should be: the claim, the endpoint, the Secret with it, the status, and
    /// claims that are given back. What is said is said of the object as it stands then.
    async fn serve(
        &self,
        key: &Key,
        (facts, wanted): (&Facts<'_>, &Wanted),
        mut decided: Plan,
        writer: &Writer<Role>,
    ) -> Result<Next, Fault> {
        let (mut facts, mut is_refused) = (facts.clone(), false);
        let without;
        if let Some(claim) = &decided.claim {
            let Some(heard) = self.claim(key, claim, writer).await? else {
                return Ok(Next::Requeue);
            };
            without = facts.readings.without_claim(&heard);
            facts.readings = &without;
            (decided, is_refused) = (plan(&facts), true);
        }
        let has_derived = decided.derive.is_some();
        let with_endpoint;
        if let Some(derived) = &decided.derive {
            match self.derive(key, facts.object, derived, writer).await? {
                None => facts.refused.endpoint = true,
                Some(written) => {
                    let Some(written) = written.object() else {
                        return Ok(after(None));
                    };
                    with_endpoint = written;
                    facts.object = &with_endpoint;
                }
            }
            decided = plan(&facts);
        }
        let refused_secret;
        if let Some(writing) = &decided.render
            && let Some(why) = self.render(key, writing, writer).await?
        {
            refused_secret = why;
            facts.refused.secret = Some(&refused_secret);
            (decided, is_refused) = (plan(&facts), true);
        }
        if let Some(status) = decided.status {
            let mut told = facts.object.clone();
            told.status = *status;
            writer.status(&self.caches.metal3_clusters, facts.object, &told).await?;
            self.tell(facts.object, &told);
        }
        // No idle pass follows one that wrote the endpoint, or that tries each time what is refused.
        let is_last = has_derived || is_refused;
        if is_last {
            self.nudge(key, decided.nudge, wanted).await?;
        }
        if !decided.release.is_empty() {
            self.give_back(decided.release, writer).await?;
            return Ok(after(None));
        }
        let again = if is_refused {
            Some(decided.again.map_or(REFUSED, |again| again.min(REFUSED)))
        } else {
            decided.again
        };
        Ok(after(is_last.then_some(again)))
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
        for (importance, reason, note) in events_between(NEWS, &before.status.conditions, &after.status.conditions) {
            self.events.record(after, importance, reason, note);
        }
    }
}
