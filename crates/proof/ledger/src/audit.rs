//! Audit log of an API server: one event per line, at most two per request.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// Annotation with the RBAC decision.
const DECISION: &str = "authorization.k8s.io/decision";

/// Target of a request, in the terms of RBAC.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// API group; empty for the core group.
    pub group: String,
    /// Resource, with its subresource: `ippools`, `ippools/status`.
    pub resource: String,
    /// Verb.
    pub verb: String,
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if self.group.is_empty() {
            Ok(())
        } else {
            write!(f, ".{}", self.group)
        }
    }
}

/// One request to a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// User.
    pub user: String,
    /// Target.
    pub target: Target,
    /// Namespace; empty for cluster-scoped resources.
    pub namespace: String,
    /// Whether RBAC denied it. Other rejections, as in a terminating namespace, do not count.
    pub forbidden: bool,
    /// Status code of the answer; 0 if the event has none.
    pub code: u16,
    /// Audit ID: two events of one request share it.
    pub request: String,
}

/// A line that is not an audit event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an audit event: {0}")]
pub struct NotAnEvent(String);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    #[serde(rename = "auditID")]
    audit_id: String,
    verb: String,
    user: User,
    object_ref: Option<ObjectRef>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    #[serde(default)]
    response_status: ResponseStatus,
}

#[derive(Default, Deserialize)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

/// Empty when authentication failed: the server then names no user.
#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ObjectRef {
    #[serde(default)]
    api_group: String,
    #[serde(default)]
    resource: String,
    #[serde(default)]
    subresource: String,
    #[serde(default)]
    namespace: String,
}

impl Call {
    /// Parses one line. Returns `None` for a request to a non-resource path, and for one that
    /// failed authentication (401): no user is known and nothing was reached.
    ///
    /// # Errors
    /// When the line is not an event.
    pub fn read(line: &str) -> Result<Option<Self>, NotAnEvent> {
        let event: Event = serde_json::from_str(line).map_err(|error| NotAnEvent(error.to_string()))?;
        let forbidden = event
            .annotations
            .get(DECISION)
            .is_some_and(|decision| decision == "forbid");
        Ok(event
            .object_ref
            .filter(|object| !object.resource.is_empty() && !event.user.username.is_empty())
            .map(|object| Self {
                user: event.user.username,
                namespace: object.namespace,
                target: Target {
                    group: object.api_group,
                    resource: if object.subresource.is_empty() {
                        object.resource
                    } else {
                        format!("{}/{}", object.resource, object.subresource)
                    },
                    verb: event.verb,
                },
                forbidden,
                code: event.response_status.code,
                request: event.audit_id,
            }))
    }
}

/// The calls of a log. The server may be writing the log: an incomplete last line is ignored.
#[derive(Debug, Clone, Default)]
pub struct Log {
    calls: Vec<Call>,
}

impl Log {
    /// Parses a whole log.
    ///
    /// # Errors
    /// When a complete line is not an event.
    pub fn read(text: &str) -> Result<Self, NotAnEvent> {
        let mut positions: BTreeMap<String, usize> = BTreeMap::new();
        let mut calls: Vec<Call> = Vec::new();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let call = match Call::read(line) {
                Ok(call) => call,
                Err(_) if lines.peek().is_none() && !text.ends_with('\n') => None,
                Err(error) => return Err(error),
            };
            let Some(call) = call else { continue };
            // A watch has an event at its start and one at its end; the last one is kept.
            match positions.get(&call.request).and_then(|at| calls.get_mut(*at)) {
                Some(known) => *known = call,
                None => {
                    positions.insert(call.request.clone(), calls.len());
                    calls.push(call);
                }
            }
        }
        Ok(Self { calls })
    }

    /// The calls in one namespace.
    #[must_use]
    pub fn within(&self, namespace: &str) -> Self {
        let calls = self.calls.iter().filter(|call| call.namespace == namespace);
        Self {
            calls: calls.cloned().collect(),
        }
    }

    /// Counts of one user.
    #[must_use]
    pub fn counts_of(&self, user: &str) -> UserCounts {
        let mut counts = UserCounts::default();
        for call in self.calls.iter().filter(|call| call.user == user) {
            let count = counts.requests.entry(call.target.clone()).or_default();
            *count = count.saturating_add(1);
            if call.forbidden {
                counts.forbidden.insert(call.target.clone());
            }
            let refused = match call.code {
                404 => &mut counts.not_found,
                409 => &mut counts.conflicts,
                _ => continue,
            };
            let count = refused.entry(call.target.clone()).or_default();
            *count = count.saturating_add(1);
        }
        counts
    }

    /// All users, sorted.
    #[must_use]
    pub fn users(&self) -> BTreeSet<&str> {
        self.calls.iter().map(|call| call.user.as_str()).collect()
    }
}

/// Reads a log in parts, each of complete lines.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    /// The audit IDs of watches that may have an event in a later part.
    watches: BTreeSet<String>,
}

impl Parts {
    /// The calls of the next part. A watch is in the part with its first event only.
    ///
    /// # Errors
    /// When a complete line is not an event.
    pub fn read(&mut self, part: &str) -> Result<Log, NotAnEvent> {
        let mut log = Log::read(part)?;
        // A request has two events at most, so that the second sight of a watch is the last.
        log.calls
            .retain(|call| call.target.verb != "watch" || !self.watches.remove(&call.request));
        let watches = log.calls.iter().filter(|call| call.target.verb == "watch");
        self.watches.extend(watches.map(|call| call.request.clone()));
        Ok(log)
    }
}

/// Request counts of one user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserCounts {
    /// Number of requests, including rejected ones.
    pub requests: BTreeMap<Target, u64>,
    /// Targets that RBAC denied at least once.
    pub forbidden: BTreeSet<Target>,
    /// Number of requests for an object or kind that does not exist.
    pub not_found: BTreeMap<Target, u64>,
    /// Number of writes that conflicted with another writer.
    pub conflicts: BTreeMap<Target, u64>,
}

impl UserCounts {
    /// Adds the counts of a later part of the log; see [`Parts`].
    pub fn add(&mut self, later: Self) {
        self.forbidden.extend(later.forbidden);
        for (counts, more) in [
            (&mut self.requests, later.requests),
            (&mut self.not_found, later.not_found),
            (&mut self.conflicts, later.conflicts),
        ] {
            for (target, number) in more {
                let count = counts.entry(target).or_default();
                *count = count.saturating_add(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: &str, user: &str, verb: &str, resource: &str, decision: &str) -> String {
        format!(
            r#"{{"kind":"Event","auditID":"{id}","verb":"{verb}","user":{{"username":"{user}"}},"objectRef":{{"resource":"{resource}","apiGroup":"ipam.metal3.io","name":"p"}},"annotations":{{"authorization.k8s.io/decision":"{decision}"}},"stage":"ResponseComplete"}}"#
        )
    }

    fn target(verb: &str, resource: &str) -> Target {
        Target {
            group: "ipam.metal3.io".into(),
            resource: resource.into(),
            verb: verb.into(),
        }
    }

    #[test]
    fn two_events_of_one_request_count_once() {
        let text = [
            event("1", "us", "watch", "ippools", "allow"),
            event("1", "us", "watch", "ippools", "allow"),
            event("2", "us", "patch", "ippools", "allow"),
            event("3", "them", "patch", "ippools", "allow"),
        ]
        .join("\n");
        let log = Log::read(&text).unwrap();
        let counts = log.counts_of("us");
        assert_eq!(
            counts.requests,
            BTreeMap::from([(target("watch", "ippools"), 1), (target("patch", "ippools"), 1)])
        );
        assert_eq!(log.users(), BTreeSet::from(["them", "us"]));
    }

    #[test]
    fn request_that_failed_authentication_is_of_no_user() {
        let known = event("1", "us", "get", "ippools", "allow");
        let unknown = event("2", "us", "get", "ippools", "allow").replace(r#"{"username":"us"}"#, "{}");
        let log = Log::read(&format!("{known}\n{unknown}\n")).unwrap();
        assert_eq!(log.users(), BTreeSet::from(["us"]));
    }

    #[test]
    fn calls_are_filtered_by_namespace() {
        let at_home = event("1", "us", "patch", "ippools", "allow");
        let here = at_home.replace(r#""name":"p""#, r#""name":"p","namespace":"here""#);
        let there = here.replace("here", "there").replace(r#""1""#, r#""2""#);
        let log = Log::read(&format!("{at_home}\n{}\n{there}\n", here.replace(r#""1""#, r#""3""#))).unwrap();
        assert_eq!(
            log.counts_of("us").requests,
            BTreeMap::from([(target("patch", "ippools"), 3)])
        );
        let within = log.within("here").counts_of("us");
        assert_eq!(within.requests, BTreeMap::from([(target("patch", "ippools"), 1)]));
    }

    #[test]
    fn a_denied_target_is_listed_even_if_allowed_later() {
        let text = [
            event("1", "us", "list", "ippools", "forbid"),
            event("2", "us", "list", "ippools", "allow"),
        ]
        .join("\n");
        let counts = Log::read(&text).unwrap().counts_of("us");
        assert_eq!(counts.forbidden, BTreeSet::from([target("list", "ippools")]));
    }

    #[test]
    fn requests_for_what_is_not_there_and_conflicts_are_counted() {
        let answered = |id: &str, verb: &str, code: u16| {
            let status = format!(r#""responseStatus":{{"code":{code}}},"stage""#);
            event(id, "us", verb, "ippools", "allow").replace(r#""stage""#, &status)
        };
        let lines = [
            answered("1", "get", 404),
            answered("2", "get", 404),
            answered("3", "patch", 409),
            answered("4", "get", 200),
        ];
        let counts = Log::read(&lines.join("\n")).unwrap().counts_of("us");
        assert_eq!(counts.not_found, BTreeMap::from([(target("get", "ippools"), 2)]));
        assert_eq!(counts.conflicts, BTreeMap::from([(target("patch", "ippools"), 1)]));
    }

    #[test]
    fn counts_of_two_parts_are_those_of_the_whole() {
        let watch = |id: &str| event(id, "us", "watch", "ippools", "allow");
        let lines = [
            watch("1"),
            event("2", "us", "patch", "ippools", "allow"),
            event("3", "us", "patch", "ippools", "forbid"),
            watch("4"),
            watch("1"),
            watch("4"),
        ];
        let whole = Log::read(&lines.join("\n")).unwrap().counts_of("us");
        assert_eq!(whole.requests.get(&target("watch", "ippools")), Some(&2));
        for size in 1..=lines.len() {
            let (mut parts, mut sum) = (Parts::default(), UserCounts::default());
            for part in lines.chunks(size) {
                sum.add(parts.read(&part.join("\n")).unwrap().counts_of("us"));
            }
            assert_eq!(sum, whole, "parts of {size} lines");
        }
    }

    #[test]
    fn subresources_are_named_as_roles_name_them() {
        let line = r#"{"auditID":"1","verb":"patch","user":{"username":"u"},"objectRef":{"resource":"ippools","subresource":"status","apiGroup":"ipam.metal3.io"}}"#;
        let call = Call::read(line).unwrap().unwrap();
        assert_eq!(call.target.to_string(), "patch ippools/status.ipam.metal3.io");
        assert!(!call.forbidden);
    }

    #[test]
    fn non_resource_paths_are_left_out() {
        let line = r#"{"auditID":"1","verb":"get","user":{"username":"u"},"requestURI":"/healthz"}"#;
        assert_eq!(Call::read(line), Ok(None));
    }

    #[test]
    fn only_the_last_line_may_be_incomplete() {
        let whole = event("1", "us", "get", "ippools", "allow");
        assert_eq!(
            Log::read(&format!("{whole}\n{{\"aud"))
                .unwrap()
                .counts_of("us")
                .requests
                .len(),
            1
        );
        assert!(Log::read(&format!("{{\"aud\n{whole}\n")).is_err());
        assert!(Log::read("{\"aud\n").is_err(), "a terminated line is complete");
    }
}
