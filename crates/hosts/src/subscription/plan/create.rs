//! A subscription that is to exist.

use super::found::{Match, created, is_of_sibling, is_wanted, list, others};
use super::wait::{
    CREATE, HEADERS, RETRIED, barred, failed, locked, quiet, refused, reported, require_go_manager_absent,
    require_no_delay, unread,
};
use super::{Decision, Step};
use crate::live::Reading;
use crate::names::subscription_reason::{
    CREATION_FAILED, CREATION_UNCONFIRMED, HEADERS_UNUSABLE, HOST_ABSENT, HOST_NOT_REGISTERED, INVALID, MOVING,
    NODE_ABSENT, PAUSED, STATE_UNKNOWN, UNSUPPORTED,
};
use crate::subscription::facts::{
    Bar, Facts, Failure, FailureClass, Headers, HostView, List, NodeView, Read, Record, Wanted,
};

pub(super) fn plan(facts: &Facts) -> Decision {
    let object = &facts.object;
    if object.is_moving {
        let message = "clusterctl moves it to another cluster".to_owned();
        return Err(quiet(MOVING, message, None));
    }
    if object.is_paused {
        return Err(quiet(PAUSED, "it is paused".to_owned(), None));
    }
    if object.id.is_some()
        && let Reading::Known(HostView::Present { node, bar }) = &facts.cached_host
    {
        match node.as_ref().is_some_and(|node| is_recorded(facts, node)) {
            true => return Ok(settled(facts)),
            // It exists in the BMC, and is looked at again when the host permits that.
            false if bar.is_some() || node.is_none() => return Ok(Step::Done),
            false => {}
        }
    }
    // A wait is written to the status, which a Go manager writes too.
    require_go_manager_absent(facts, CREATE)?;
    if let Some(former) = object.former_host() {
        let message = format!(
            "{CREATE}: it was created for the host {former}, and spec.hostName names another one; name that host again, or \
             delete the subscription"
        );
        return Err(reported(INVALID, message));
    }
    require_valid(facts)?;
    require_host(facts, &facts.cached_host)?;
    require_no_delay(facts)?;
    if !object.is_live {
        return Err(Step::Read(Read::Object));
    }
    let node = match &facts.host {
        Reading::NotRead => return Err(Step::Read(Read::Host)),
        host => require_host(facts, host)?,
    };
    match &object.record {
        // The Go manager created it. What it is on is not recorded; that is assumed to be the present node.
        None if object.id.is_some() => Ok(Step::Record(Record {
            node,
            host: object.wanted.host.clone(),
            others: Vec::new(),
        })),
        record => {
            let wanted = &object.wanted;
            if record.is_none() {
                require_headers(facts, wanted)?;
            }
            require_node(facts, &node)?;
            let list = list(facts, CREATE, |why| {
                let message = format!(
                    "{CREATE}: the driver of the node has no event subscriptions ({why}); use a \
                     host whose BMC has them, or delete the subscription"
                );
                failed(facts, UNSUPPORTED, message)
            })?;
            on_node(facts, list, (node, wanted))
        }
    }
}

/// The spec can be created. One that the Go manager created is kept, whatever its spec.
fn require_valid(facts: &Facts) -> Decision<()> {
    let object = &facts.object;
    match &object.problem {
        Some(problem) if object.id.is_none() || object.record.is_some() => {
            let remedy = "delete the subscription and create it again: its spec cannot be changed";
            Err(reported(INVALID, format!("{CREATE}: {problem}; {remedy}")))
        }
        _ => Ok(()),
    }
}

/// Nothing is requested: the status has the identifier, and the node is the same.
const fn settled(facts: &Facts) -> Step {
    match facts.object.has_error {
        true => Step::ClearError,
        false => Step::Done,
    }
}

/// Whether the subscription was created on this node.
fn is_recorded(facts: &Facts, node: &str) -> bool {
    facts.object.record.as_ref().is_some_and(|record| record.node == node)
}

/// The UUID of the node of a host that permits requests.
fn require_host(facts: &Facts, host: &Reading<HostView>) -> Decision<String> {
    match host {
        Reading::NotRead => Err(quiet(STATE_UNKNOWN, "its host was not listed yet".to_owned(), None)),
        Reading::Failed(why) => {
            let message = format!("{CREATE}: its host cannot be read ({why}); {RETRIED}");
            Err(failed(facts, STATE_UNKNOWN, message))
        }
        Reading::Known(HostView::Absent) => {
            let message = "its host does not exist in this namespace; create it, or delete the subscription".to_owned();
            Err(reported(HOST_ABSENT, message))
        }
        Reading::Known(HostView::Present { bar: Some(bar), .. }) => Err(barred(facts, *bar)),
        Reading::Known(HostView::Present { bar: None, node: None }) => Err(barred(facts, Bar::Unregistered)),
        Reading::Known(HostView::Present {
            bar: None,
            node: Some(node),
        }) => Ok(node.clone()),
    }
}

/// Before the BMC is read: a Secret that is missing would leave a record without a request.
fn require_headers(facts: &Facts, wanted: &Wanted) -> Decision<()> {
    let Some(secret) = &wanted.headers else { return Ok(()) };
    let problem = match &facts.headers {
        Reading::NotRead => return Err(Step::Read(Read::Headers)),
        Reading::Failed(why) => {
            let message = format!("{HEADERS}: Secret {secret} cannot be read ({why}); {RETRIED}");
            return Err(failed(facts, STATE_UNKNOWN, message));
        }
        Reading::Known(Headers::Usable) => return Ok(()),
        Reading::Known(Headers::Absent) => format!("Secret {secret} does not exist; create it"),
        Reading::Known(Headers::Unlabelled) => format!(
            "Secret {secret} is not labelled for use by hosts, so it is not read; if it is the right one, set its label \
             environment.metal3.io=baremetal"
        ),
        // The other host that names it is not watched for this object.
        Reading::Known(Headers::OtherUse) => {
            let message = format!(
                "{HEADERS}: Secret {secret} is a login or the data of a machine (a host or a switch names it, it is written \
                 for Ironic, or its type is not Opaque), and is not sent to a destination of events; put the headers into a \
                 Secret of their own"
            );
            return Err(failed(facts, HEADERS_UNUSABLE, message));
        }
        Reading::Known(Headers::NoText) => format!(
            "a name or a value in Secret {secret} is no text of one line; correct it: often the line break at the end of \
             a file is part of the value"
        ),
    };
    Err(reported(HEADERS_UNUSABLE, format!("{HEADERS}: {problem}")))
}

/// The host records the node that Ironic has, and no task uses it.
fn require_node(facts: &Facts, recorded: &str) -> Decision<()> {
    match &facts.node {
        Reading::NotRead => Err(Step::Read(Read::Node)),
        Reading::Failed(failure) => Err(unread(facts, CREATE, failure)),
        Reading::Known(NodeView::Absent) => {
            let message = format!(
                "{CREATE}: Ironic has no node of its host; the host is registered again by itself; if that lasts, see \
                 its conditions"
            );
            Err(failed(facts, NODE_ABSENT, message))
        }
        Reading::Known(NodeView::Present { is_locked: true, .. }) => Err(locked(facts, CREATE)),
        Reading::Known(NodeView::Present { uuid, .. }) if uuid != recorded => {
            let message = "its host does not record its node yet".to_owned();
            Err(quiet(HOST_NOT_REGISTERED, message, None))
        }
        Reading::Known(NodeView::Present { .. }) => Ok(()),
    }
}

/// With a live view of the host, its node and the BMC.
fn on_node(facts: &Facts, list: &List, (node, wanted): (String, &Wanted)) -> Decision {
    let host = || wanted.host.clone();
    let Some(record) = &facts.object.record else {
        let others = others(facts, CREATE, list, wanted)?;
        let host = host();
        return Ok(Step::Record(Record { node, host, others }));
    };
    if let Some(id) = &facts.object.id {
        if is_recorded(facts, &node) {
            return Ok(settled(facts));
        }
        return of_former_node(facts, list, (id, node, wanted), record);
    }
    // What had no effect is not searched for.
    if let Some(failure) = facts
        .refused
        .as_ref()
        .filter(|failure| failure.class != FailureClass::Unconfirmed)
    {
        return Err(creation_failed(facts, failure));
    }
    if let Some(id) = created(facts, CREATE, list, (record, wanted))? {
        return Ok(Step::Adopt(id));
    }
    if let Some(failure) = &facts.refused {
        return Err(creation_failed(facts, failure));
    }
    let left = facts.attempts.creation_may_come_for;
    if !left.is_zero() {
        let message = "Ironic may still perform an earlier request for it".to_owned();
        return Err(quiet(CREATION_UNCONFIRMED, message, Some(left)));
    }
    require_headers(facts, wanted)?;
    if record.node != node {
        let others = others(facts, CREATE, list, wanted)?;
        let host = host();
        return Ok(Step::Record(Record { node, host, others }));
    }
    Ok(Step::Create)
}

/// Ironic has another node of the host: it lost its database, or the host is another machine.
/// differs (`subscription-of-new-node`): the Go manager looks at neither.
fn of_former_node(
    facts: &Facts,
    list: &List,
    (id, node, wanted): (&str, String, &Wanted),
    record: &Record,
) -> Decision {
    let is_listed = list.ids.iter().any(|listed| listed == id) && !is_of_sibling(facts, id);
    if !is_listed && !list.is_complete {
        let message = format!(
            "{CREATE}: its host has another node now, and the BMC lists a part of its subscriptions; delete those \
             at the BMC that nothing uses"
        );
        return Err(failed(facts, STATE_UNKNOWN, message));
    }
    if is_listed && is_wanted(facts, CREATE, id, wanted)? != Match::Different {
        return Ok(Step::Record(Record { node, ..record.clone() }));
    }
    // What this BMC has is another's: nothing was requested from it. Without the identifier it would look like a creation whose
    // response is lost.
    let mut others = record.others.clone();
    others.extend(
        self::others(facts, CREATE, list, wanted)?
            .into_iter()
            .filter(|id| !record.others.contains(id)),
    );
    if others.len() > record.others.len() {
        return Ok(Step::Record(Record {
            others,
            ..record.clone()
        }));
    }
    Ok(Step::Forget(id.to_owned()))
}

fn creation_failed(facts: &Facts, failure: &Failure) -> Step {
    let remedy =
        "correct what the message names, or see the log of Ironic and of the BMC; it is tried again within an hour";
    refused(facts, CREATE, failure, (CREATION_FAILED, remedy))
}
