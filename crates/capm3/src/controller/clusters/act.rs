//! Executes the plan of a Metal3Cluster.

use std::time::Duration;

use metal3_api::infrastructure::conditions::{cluster as condition, shared};
use metal3_api::infrastructure::names::{DERIVED_ENDPOINT_ANNOTATION, ENDPOINT_FIELD_MANAGER};
use metal3_api::infrastructure::v1beta2::{EndpointOrigin, Metal3Cluster};
use metal3_runtime::cache::Key;
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::work::{Fault, Next};
use metal3_runtime::write::{WriteErrorKind, Writer, Written};
use serde_json::json;

use super::super::events::{EventRule, events_between};
use super::super::sources;
use super::Clusters;
use crate::cluster::{Action, Facts, Plan, plan};
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

/// Retry interval after a rejected write. No event reports when it is accepted.
const REFUSED: Duration = Duration::from_mins(1);

/// The next reconcile after writes: at once, unless the rest was planned from their results.
fn after(current: Option<Option<Duration>>) -> Next {
    current.map_or(Next::Requeue, |requeue_after| {
        requeue_after.map_or(Next::Done, Next::RequeueAfter)
    })
}

impl Clusters {
    pub(super) async fn act(
        &self,
        key: &Key,
        (facts, wanted): (Facts<'_>, &WantedSources),
        writer: &Writer<Role>,
    ) -> Result<Next, Fault> {
        let mut plan = plan(&facts);
        if plan.is_idle() {
            self.touch(key, plan.touch, wanted).await?;
            return Ok(plan.requeue_after.map_or(Next::Done, Next::RequeueAfter));
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

    /// Continues after the write to the object: claim, endpoint, Secret, status, and the release of claims. The status
    /// describes the object as written.
    async fn serve(
        &self,
        key: &Key,
        (facts, wanted): (&Facts<'_>, &WantedSources),
        mut current: Plan,
        writer: &Writer<Role>,
    ) -> Result<Next, Fault> {
        let (mut facts, mut is_refused) = (facts.clone(), false);
        let without;
        if let Some(claim) = &current.claim {
            let Some(state) = self.claim(key, claim, writer).await? else {
                return Ok(Next::Requeue);
            };
            without = facts.source_values.with_claim_state(&state);
            facts.source_values = &without;
            (current, is_refused) = (plan(&facts), true);
        }
        let has_derived = current.derive.is_some();
        let with_endpoint;
        if let Some(derived) = &current.derive {
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
            current = plan(&facts);
        }
        let refused_secret;
        if let Some(write) = &current.render
            && let Some(why) = self.render(key, write, writer).await?
        {
            refused_secret = why;
            facts.refused.secret = Some(&refused_secret);
            (current, is_refused) = (plan(&facts), true);
        }
        if let Some(status) = current.status {
            let mut after_status = facts.object.clone();
            after_status.status = *status;
            writer
                .status(&self.caches.metal3_clusters, facts.object, &after_status)
                .await?;
            self.record_events(facts.object, &after_status);
        }
        // No idle reconcile follows a write of the endpoint, or a rejected write that is retried.
        let is_last = has_derived || is_refused;
        if is_last {
            self.touch(key, current.touch, wanted).await?;
        }
        if !current.release.is_empty() {
            self.release_claims(current.release, writer).await?;
            return Ok(after(None));
        }
        let requeue_after = if is_refused {
            Some(
                current
                    .requeue_after
                    .map_or(REFUSED, |requeue_after| requeue_after.min(REFUSED)),
            )
        } else {
            current.requeue_after
        };
        Ok(after(is_last.then_some(requeue_after)))
    }

    /// Applies the endpoint and its marker. Nothing is written when another field manager owns the field.
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

    /// Touches an idle control plane, if enabled.
    async fn touch(
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

    fn record_events(&self, before: &Metal3Cluster, after: &Metal3Cluster) {
        for (importance, reason, note) in
            events_between(EVENT_RULES, &before.status.conditions, &after.status.conditions)
        {
            self.events.record(after, importance, reason, note);
        }
    }
}
