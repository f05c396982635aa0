//! Which subscription of the BMC is that of the object.

use super::wait::{failed, unread};
use super::{Decision, Step};
use crate::live::Reading;
use crate::names::subscription_reason::STATE_UNKNOWN;
use crate::subscription::facts::{Details, Facts, List, NodeView, Read, Record, Sibling, Wanted};

/// Whether a subscription of the BMC is the wanted one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    Equal,
    /// It has the destination, and another context.
    OtherContext,
    Different,
    /// The BMC does not report its destination.
    Unclear,
}

impl Match {
    fn of(details: &Details, wanted: &Wanted) -> Self {
        let context = details.context.as_deref().unwrap_or_default();
        match &details.destination {
            None => Self::Unclear,
            Some(destination) if *destination != wanted.destination => Self::Different,
            Some(_) if context == wanted.context => Self::Equal,
            Some(_) => Self::OtherContext,
        }
    }
}

/// The subscriptions of the BMC.
pub(super) fn list<'a>(facts: &'a Facts, verb: &str, unsupported: impl FnOnce(&str) -> Step) -> Decision<&'a List> {
    use crate::subscription::facts::FailureClass;
    match &facts.list {
        Reading::NotRead => Err(Step::Read(Read::List)),
        Reading::Failed(failure) if failure.class == FailureClass::Invalid => Err(unsupported(&failure.text)),
        Reading::Failed(failure) => Err(unread(facts, verb, failure)),
        Reading::Known(list) => Ok(list),
    }
}

/// Whether the subscription with this identifier is the wanted one.
pub(super) fn is_wanted(facts: &Facts, verb: &str, id: &str, wanted: &Wanted) -> Decision<Match> {
    match facts.details.get(id) {
        None | Some(Reading::NotRead) => Err(Step::Read(Read::Details(id.to_owned()))),
        Some(Reading::Failed(failure)) => Err(unread(facts, verb, failure)),
        Some(Reading::Known(details)) => Ok(Match::of(details, wanted)),
    }
}

/// Whether another object records this identifier for the present node. One of a former node says nothing about this BMC.
pub(super) fn is_of_sibling(facts: &Facts, id: &str) -> bool {
    let present = match &facts.node {
        Reading::Known(NodeView::Present { uuid, .. }) => Some(uuid.as_str()),
        _ => None,
    };
    let is_here = |sibling: &Sibling| {
        let recorded = sibling.record.as_ref().map(|record| record.node.as_str());
        recorded.is_none_or(|recorded| recorded.is_empty() || present.is_none_or(|present| present == recorded))
    };
    let mut siblings = facts.siblings.iter().filter(|sibling| is_here(sibling));
    siblings.any(|sibling| sibling.id.as_deref() == Some(id))
}

/// The subscriptions with the wanted destination, before the first request. What cannot be read counts as such: it is
/// another's in any case.
pub(super) fn others(facts: &Facts, verb: &str, list: &List, wanted: &Wanted) -> Decision<Vec<String>> {
    if !list.is_complete {
        // One that is not listed could be taken for the own one later.
        let message =
            format!("{verb}: the BMC lists a part of its subscriptions; delete those at the BMC that nothing uses");
        return Err(failed(facts, STATE_UNKNOWN, message));
    }
    let mut others = Vec::new();
    for id in list.ids.iter().filter(|id| !is_of_sibling(facts, id)) {
        match facts.details.get(id) {
            None | Some(Reading::NotRead) => return Err(Step::Read(Read::Details(id.clone()))),
            Some(Reading::Known(details)) => match Match::of(details, wanted) {
                Match::Different => {}
                Match::Equal | Match::OtherContext | Match::Unclear => others.push(id.clone()),
            },
            Some(Reading::Failed(_)) => others.push(id.clone()),
        }
    }
    Ok(others)
}

/// The subscription that a request with a lost response created, if the BMC has one.
pub(super) fn created(
    facts: &Facts,
    verb: &str,
    list: &List,
    (record, wanted): (&Record, &Wanted),
) -> Decision<Option<String>> {
    let mut candidates = Vec::new();
    let is_free = |id: &&String| !record.others.contains(*id) && !is_of_sibling(facts, id);
    for id in list.ids.iter().filter(is_free) {
        match is_wanted(facts, verb, id, wanted)? {
            Match::Equal => candidates.push(id),
            Match::Different => {}
            // A BMC may have a context of its own.
            found @ (Match::OtherContext | Match::Unclear) => {
                let what = match found {
                    Match::OtherContext => "has its destination and another context",
                    _ => "may be it: the BMC does not report its destination",
                };
                let message = format!(
                    "{verb}: the response to its creation is lost, and the subscription {id} of the BMC {what}; delete \
                     that at the BMC if nothing else uses it"
                );
                return Err(failed(facts, STATE_UNKNOWN, message));
            }
        }
    }
    // Equal ones are interchangeable; the one that the fewest other objects may have created leaves each of them one.
    let takers = |id: &&String| {
        facts
            .siblings
            .iter()
            .filter(|sibling| may_have_created(sibling, id))
            .count()
    };
    if let Some(id) = candidates.into_iter().min_by_key(takers) {
        return Ok(Some(id.clone()));
    }
    if list.is_complete {
        return Ok(None);
    }
    let message = format!(
        "{verb}: the response to its creation is lost, and the BMC lists a part of its subscriptions; delete those at \
         the BMC that nothing uses"
    );
    Err(failed(facts, STATE_UNKNOWN, message))
}

fn may_have_created(sibling: &Sibling, id: &str) -> bool {
    let is_open = sibling.is_equal && sibling.id.is_none();
    let record = sibling.record.as_ref().filter(|_| is_open);
    record.is_some_and(|record| !record.others.iter().any(|other| other == id))
}
