//! Everything that waits, by its cause: who has to act, and since when.
//!
//! Objects whose chains end at one cause are one wait: to cure the cause serves all of them.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use metal3_api::meta::Time;
use serde::Serialize;

use crate::chain::{Explanation, Link, State};
use crate::object::ObjectId;
use crate::order;
use crate::read::Read;
use crate::snapshot::Snapshot;
use crate::table::Actor;
use crate::walk::explain;

/// A cause, and the objects that wait for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// The namespace.
    pub namespace: String,
    /// The result for the objects that wait: of several, that of the first.
    pub state: State,
    /// The last link of their chains, with who has to act and what to do.
    pub cause: Link,
    /// The objects whose chains end there, by kind and name; the object of the cause is not among them.
    pub waiting: Vec<ObjectId>,
}

/// The waits of these objects of a namespace, or what is to be read first.
///
/// # Errors
/// The reads whose results the snapshot lacks.
pub fn waits(objects: &[ObjectId], namespace: &str, snapshot: &Snapshot) -> Result<Vec<Wait>, BTreeSet<Read>> {
    let (mut wanted, mut found) = (BTreeSet::new(), Vec::new());
    for object in objects {
        match explain(object, snapshot) {
            Ok(explanation) if explanation.state == State::Ready => {}
            Ok(explanation) => found.push(explanation),
            Err(reads) => wanted.extend(reads),
        }
    }
    if wanted.is_empty() {
        Ok(by_cause(found, namespace))
    } else {
        Err(wanted)
    }
}

/// What makes two last links one cause.
type Key = (ObjectId, Option<String>, String);

fn by_cause(explanations: Vec<Explanation>, namespace: &str) -> Vec<Wait> {
    let mut causes: BTreeMap<Key, Wait> = BTreeMap::new();
    for mut explanation in explanations {
        let Some(cause) = explanation.chain.pop() else {
            continue;
        };
        let key = (cause.object.clone(), cause.reason.clone(), cause.title.clone());
        let wait = causes.entry(key).or_insert_with(|| Wait {
            namespace: namespace.to_owned(),
            state: explanation.state,
            cause,
            waiting: Vec::new(),
        });
        if explanation.object != wait.cause.object {
            wait.waiting.push(explanation.object);
        }
    }
    let mut waits: Vec<Wait> = Vec::new();
    waits.extend(causes.into_values());
    for wait in &mut waits {
        order::sort(&mut wait.waiting);
    }
    in_order(&mut waits);
    waits
}

/// Sorts waits: those of users first, then those of people at the machine, then those that continue without help; of each the
/// oldest first.
pub fn in_order(waits: &mut [Wait]) {
    order::sort_by(waits, compare);
}

fn compare(a: &Wait, b: &Wait) -> Ordering {
    let age = |wait: &Wait| wait.cause.since.map_or((true, Time::default()), |since| (false, since));
    (rank(a), age(a), &a.namespace, &a.cause.object).cmp(&(rank(b), age(b), &b.namespace, &b.cause.object))
}

const fn rank(wait: &Wait) -> u8 {
    match (wait.state, wait.cause.who_acts) {
        (_, Actor::User) => 0,
        (_, Actor::Hardware) => 1,
        // A cause may be hidden.
        (State::Unknown, _) => 2,
        (_, Actor::System) => 3,
        (_, Actor::Nothing) => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Option<Time> {
        Some(Time::new(chrono::DateTime::from_timestamp(seconds, 0).unwrap()))
    }

    fn explained(names: &[&str], who: Actor, since: Option<Time>) -> Explanation {
        let object = |name: &&str| ObjectId::foreign("metal3.io", "BareMetalHost", name);
        let link = |name: &&str| Link {
            since,
            ..Link::plain(&object(name), "waits", who, "wait")
        };
        Explanation {
            object: object(&names[0]),
            state: if who == Actor::System {
                State::Waiting
            } else {
                State::Blocked
            },
            chain: names.iter().map(link).collect(),
            events: Vec::new(),
            not_read: Vec::new(),
        }
    }

    #[test]
    fn objects_that_wait_for_one_cause_are_one_wait() {
        let waits = by_cause(
            vec![
                explained(&["b", "cause"], Actor::User, at(5)),
                explained(&["cause"], Actor::User, at(5)),
                explained(&["a", "b", "cause"], Actor::User, at(5)),
            ],
            "lab",
        );
        let names = |wait: &Wait| wait.waiting.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
        assert_eq!(waits.len(), 1);
        assert_eq!(
            (waits[0].cause.object.name.as_str(), names(&waits[0])),
            ("cause", vec!["a".to_owned(), "b".to_owned()])
        );
    }

    #[test]
    fn waits_are_sorted_by_who_acts_and_the_oldest_first() {
        let waits = by_cause(
            vec![
                explained(&["system-old"], Actor::System, at(1)),
                explained(&["hardware"], Actor::Hardware, at(2)),
                explained(&["user-without-time"], Actor::User, None),
                explained(&["user-young"], Actor::User, at(9)),
                explained(&["user-old"], Actor::User, at(3)),
            ],
            "lab",
        );
        let names: Vec<&str> = waits.iter().map(|wait| wait.cause.object.name.as_str()).collect();
        assert_eq!(
            names,
            ["user-old", "user-young", "user-without-time", "hardware", "system-old"]
        );
    }

    #[test]
    fn what_is_to_be_read_is_returned_until_it_is_known() {
        let host = ObjectId::foreign("metal3.io", "BareMetalHost", "h0");
        let mut snapshot = Snapshot::default();
        let wanted = waits(std::slice::from_ref(&host), "lab", &snapshot).unwrap_err();
        assert!(wanted.contains(&Read::Object(host.clone())));
        snapshot.insert(Read::Object(host.clone()), Ok(Vec::new()));
        let found = waits(&[host], "lab", &snapshot).unwrap();
        assert_eq!(found[0].state, State::Absent);
    }
}
