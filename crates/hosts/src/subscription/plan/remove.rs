//! A subscription that is deleted.
//!
//! Nothing is deleted from the BMC of a host that is moved, or that is absent while its node exists: another cluster may
//! serve it. differs (`subscription-removal`): the Go manager keeps the finalizer of a subscription whose host is absent, and
//! takes each failure for a deletion to come.

use metal3_domain::names::ObjectName;

use super::found::{Match, created, is_of_sibling, is_wanted, list};
use super::wait::{
    DELETE, RETRIED, barred, failed, locked, passing, quiet, refused, require_go_manager_absent, require_no_delay,
    unread,
};
use super::{Decision, HOST_GRACE, Step};
use crate::live::Reading;
use crate::names::subscription_reason::{
    CREATION_UNCONFIRMED, HOST_ABSENT, MOVING, NODE_ABSENT, PAUSED, STATE_UNKNOWN, STILL_IN_BMC,
};
use crate::subscription::facts::{Bar, Facts, HostView, List, NodeView, Read, Wanted};

const BY_HAND: &str =
    "delete the subscription at the BMC, then remove the finalizer bmceventsubscription.metal3.io by hand";
const RETRIED_OR_BY_HAND: &str = "it is tried again within an hour; if that lasts, delete the subscription at the BMC, then remove the \
                                  finalizer bmceventsubscription.metal3.io by hand";

pub(super) fn plan(facts: &Facts) -> Decision {
    let object = &facts.object;
    if !object.has_finalizer {
        return Ok(Step::Done);
    }
    require_no_delay(facts)?;
    if !object.is_live {
        return Err(Step::Read(Read::Object));
    }
    require_go_manager_absent(facts, DELETE)?;
    if object.is_moving {
        let message = "clusterctl moves it to another cluster and then removes its finalizers; if that move was \
                       interrupted, repeat it, or remove the finalizer by hand";
        return Err(passing(facts, MOVING, message.to_owned()));
    }
    if object.is_paused {
        let message = "it is paused; remove the annotation that pauses it";
        return Err(passing(facts, PAUSED, message.to_owned()));
    }
    // Nothing was created: neither the host nor Ironic matters.
    if object.id.is_none() && object.record.is_none() {
        return Ok(Step::Release { is_left: false });
    }
    let wanted = &object.wanted;
    if ObjectName::parse(wanted.host.as_str()).is_err() {
        let message = format!("{DELETE}: spec.hostName names no host; {BY_HAND}");
        return Err(failed(facts, STATE_UNKNOWN, message));
    }
    require_host(facts)?;
    let found = require_node(facts)?;
    // The host may have another name and the same node.
    let is_elsewhere = object
        .record
        .as_ref()
        .is_some_and(|record| found != Some(record.node.as_str()));
    if let Some(former) = object.former_host().filter(|_| is_elsewhere) {
        let message = format!(
            "{DELETE}: it was created for the host {former}, and spec.hostName names another one; name that host again, or {BY_HAND}"
        );
        return Err(failed(facts, STATE_UNKNOWN, message));
    }
    let Some(node) = found else {
        return Ok(Step::Release { is_left: false });
    };
    let list = list(facts, DELETE, |why| {
        let message = format!("{DELETE}: the driver of the node cannot list event subscriptions ({why}); {BY_HAND}");
        failed(facts, STATE_UNKNOWN, message)
    })?;
    match &object.id {
        Some(id) => recorded(facts, list, (id, node, wanted)),
        None => unconfirmed(facts, list, wanted),
    }
}

/// The host does not forbid to go on.
fn require_host(facts: &Facts) -> Decision<()> {
    match &facts.host {
        Reading::NotRead => Err(Step::Read(Read::Host)),
        Reading::Failed(why) => {
            let message = format!("{DELETE}: its host cannot be read ({why}); {RETRIED}");
            Err(failed(facts, STATE_UNKNOWN, message))
        }
        // As during a move: the node may be served from another cluster.
        Reading::Known(HostView::Present {
            bar: Some(bar @ (Bar::Paused | Bar::Moving)),
            ..
        }) => Err(barred(facts, *bar)),
        Reading::Known(HostView::Absent) if facts.attempts.host_absent_for < HOST_GRACE => {
            let left = HOST_GRACE.saturating_sub(facts.attempts.host_absent_for);
            let message = "its host does not exist in this cluster, and may be created again".to_owned();
            Err(quiet(HOST_ABSENT, message, Some(left)))
        }
        Reading::Known(HostView::Absent | HostView::Present { .. }) => Ok(()),
    }
}

const fn is_host_absent(facts: &Facts) -> bool {
    matches!(facts.host, Reading::Known(HostView::Absent))
}

/// The UUID of the node; `None` when neither it nor the host exists any more.
fn require_node(facts: &Facts) -> Decision<Option<&str>> {
    match &facts.node {
        Reading::NotRead => Err(Step::Read(Read::Node)),
        Reading::Failed(failure) => Err(unread(facts, DELETE, failure)),
        Reading::Known(NodeView::Absent) if is_host_absent(facts) => Ok(None),
        // It is detached, or Ironic has lost its database: the node comes back.
        Reading::Known(NodeView::Absent) => {
            let message = format!(
                "{DELETE}: Ironic has no node of its host, and the BMC may still have the subscription; let the host be \
                 registered again, or {BY_HAND}"
            );
            Err(failed(facts, NODE_ABSENT, message))
        }
        Reading::Known(NodeView::Present { is_locked: true, .. }) => Err(locked(facts, DELETE)),
        Reading::Known(NodeView::Present { uuid, .. }) => Ok(Some(uuid)),
    }
}

/// The status has an identifier.
fn recorded(facts: &Facts, list: &List, (id, node, wanted): (&str, &str, &Wanted)) -> Decision {
    let is_listed = list.ids.iter().any(|listed| listed == id);
    if !is_listed && !list.is_complete {
        let message = format!("{DELETE}: the BMC lists a part of its subscriptions; {BY_HAND}");
        return Err(failed(facts, STILL_IN_BMC, message));
    }
    // A BMC that was reset, or another one, may have given the identifier to another subscription.
    if !is_listed || is_of_sibling(facts, id) {
        return Ok(Step::Release { is_left: false });
    }
    let is_same_node = facts.object.record.as_ref().is_none_or(|record| record.node == node);
    match is_wanted(facts, DELETE, id, wanted)? {
        Match::Different => Ok(Step::Release { is_left: true }),
        Match::Unclear if !is_same_node => {
            let message = format!(
                "{DELETE}: its host has another node now, and the BMC does not report the destination of the \
                 subscription {id}; {BY_HAND}"
            );
            Err(failed(facts, STILL_IN_BMC, message))
        }
        // Some BMCs report a context of their own.
        Match::Equal | Match::OtherContext | Match::Unclear => delete(facts, id),
    }
}

/// The response to a creation is lost.
fn unconfirmed(facts: &Facts, list: &List, wanted: &Wanted) -> Decision {
    let record = facts.object.record.clone().unwrap_or_default();
    if let Some(id) = created(facts, DELETE, list, (&record, wanted))? {
        return delete(facts, &id);
    }
    let left = facts.attempts.creation_may_come_for;
    if left.is_zero() {
        return Ok(Step::Release { is_left: false });
    }
    let message = "Ironic may still perform an earlier request for it".to_owned();
    Err(quiet(CREATION_UNCONFIRMED, message, Some(left)))
}

fn delete(facts: &Facts, id: &str) -> Decision {
    if is_host_absent(facts) {
        let message = format!(
            "{DELETE}: its host does not exist in this cluster, Ironic has its node, and the BMC lists the subscription; \
             delete it in the cluster that has the host, or at the BMC, or remove the finalizer by hand to keep it"
        );
        return Err(failed(facts, STILL_IN_BMC, message));
    }
    match &facts.deletion {
        None => Ok(Step::Delete(id.to_owned())),
        Some(Ok(())) => {
            let message =
                format!("{DELETE}: the BMC lists the subscription after Ironic was asked to delete it; {BY_HAND}");
            Err(failed(facts, STILL_IN_BMC, message))
        }
        Some(Err(failure)) => Err(refused(facts, DELETE, failure, (STILL_IN_BMC, RETRIED_OR_BY_HAND))),
    }
}
