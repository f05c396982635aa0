//! The audit log of an API server: one event a line, at most two a request.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// Where the server writes down what its roles said.
const DECISION: &str = "authorization.k8s.io/decision";

/// What a request was for, as roles name it.
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
    /// Who asked.
    pub user: String,
    /// For what.
    pub target: Target,
    /// In which namespace; empty for what is in none.
    pub namespace: String,
    /// Whether no role allowed it. A refusal for another reason, as of a namespace that goes away, is none.
    pub forbidden: bool,
    /// Which request: two events of one request share it.
    pub request: String,
}

/// A line that is no event.
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
}

#[derive(Deserialize)]
struct User {
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
    /// Reads one line. Nothing when the request was for a path that is no resource.
    ///
    /// # Errors
    /// When the line is no event.
    pub fn read(line: &str) -> Result<Option<Self>, NotAnEvent> {
        let event: Event = serde_json::from_str(line).map_err(|error| NotAnEvent(error.to_string()))?;
        let forbidden = event
            .annotations
            .get(DECISION)
            .is_some_and(|decision| decision == "forbid");
        Ok(event
            .object_ref
            .filter(|object| !object.resource.is_empty())
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
                request: event.audit_id,
            }))
    }
}

/// The calls of a log. A server appends to it while we read, so its last line may be half written: that one, and only
/// that one, may be unreadable.
#[derive(Debug, Clone, Default)]
pub struct Log {
    calls: Vec<Call>,
}

impl Log {
    /// Reads a whole log.
    ///
    /// # Errors
    /// When a line before the last is no event.
    pub fn read(text: &str) -> Result<Self, NotAnEvent> {
        let mut requests: BTreeMap<String, usize> = BTreeMap::new();
        let mut calls: Vec<Call> = Vec::new();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let call = match Call::read(line) {
                Ok(call) => call,
                Err(_) if lines.peek().is_none() && !text.ends_with('\n') => None,
                Err(error) => return Err(error),
            };
            let Some(call) = call else { continue };
            // A watch is written down when it opens and when it ends; what came last knows more.
            match requests.get(&call.request).and_then(|at| calls.get_mut(*at)) {
                Some(known) => *known = call,
                None => {
                    requests.insert(call.request.clone(), calls.len());
                    calls.push(call);
                }
            }
        }
        Ok(Self { calls })
    }

    /// What was asked in one namespace.
    #[must_use]
    pub fn within(&self, namespace: &str) -> Self {
        let calls = self.calls.iter().filter(|call| call.namespace == namespace);
        Self {
            calls: calls.cloned().collect(),
        }
    }

    /// What one user asked for.
    #[must_use]
    pub fn of(&self, user: &str) -> Tally {
        let mut tally = Tally::default();
        for call in self.calls.iter().filter(|call| call.user == user) {
            let count = tally.asked.entry(call.target.clone()).or_default();
            *count = count.saturating_add(1);
            if call.forbidden {
                tally.forbidden.insert(call.target.clone());
            }
        }
        tally
    }

    /// All users, in order.
    #[must_use]
    pub fn users(&self) -> BTreeSet<&str> {
        self.calls.iter().map(|call| call.user.as_str()).collect()
    }
}

/// What one user asked for, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests, refused ones included.
    pub asked: BTreeMap<Target, u64>,
    /// What the server forbade at least once.
    pub forbidden: BTreeSet<Target>,
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
    fn a_request_that_is_written_down_twice_counts_once() {
        let text = [
            event("1", "us", "watch", "ippools", "allow"),
            event("1", "us", "watch", "ippools", "allow"),
            event("2", "us", "patch", "ippools", "allow"),
            event("3", "them", "patch", "ippools", "allow"),
        ]
        .join("\n");
        let log = Log::read(&text).unwrap();
        let tally = log.of("us");
        assert_eq!(
            tally.asked,
            BTreeMap::from([(target("watch", "ippools"), 1), (target("patch", "ippools"), 1)])
        );
        assert_eq!(log.users(), BTreeSet::from(["them", "us"]));
    }

    #[test]
    fn what_was_asked_elsewhere_is_not_within_a_namespace() {
        let at_home = event("1", "us", "patch", "ippools", "allow");
        let here = at_home.replace(r#""name":"p""#, r#""name":"p","namespace":"here""#);
        let there = here.replace("here", "there").replace(r#""1""#, r#""2""#);
        let log = Log::read(&format!("{at_home}\n{}\n{there}\n", here.replace(r#""1""#, r#""3""#))).unwrap();
        assert_eq!(log.of("us").asked, BTreeMap::from([(target("patch", "ippools"), 3)]));
        let within = log.within("here").of("us");
        assert_eq!(within.asked, BTreeMap::from([(target("patch", "ippools"), 1)]));
    }

    #[test]
    fn what_was_forbidden_is_listed_even_when_it_was_allowed_later() {
        let text = [
            event("1", "us", "list", "ippools", "forbid"),
            event("2", "us", "list", "ippools", "allow"),
        ]
        .join("\n");
        let tally = Log::read(&text).unwrap().of("us");
        assert_eq!(tally.forbidden, BTreeSet::from([target("list", "ippools")]));
    }

    #[test]
    fn subresources_are_named_as_roles_name_them() {
        let line = r#"{"auditID":"1","verb":"patch","user":{"username":"u"},"objectRef":{"resource":"ippools","subresource":"status","apiGroup":"ipam.metal3.io"}}"#;
        let call = Call::read(line).unwrap().unwrap();
        assert_eq!(call.target.to_string(), "patch ippools/status.ipam.metal3.io");
        assert!(!call.forbidden);
    }

    #[test]
    fn paths_that_are_no_resource_are_left_out() {
        let line = r#"{"auditID":"1","verb":"get","user":{"username":"u"},"requestURI":"/healthz"}"#;
        assert_eq!(Call::read(line), Ok(None));
    }

    #[test]
    fn only_the_last_line_may_be_half_written() {
        let whole = event("1", "us", "get", "ippools", "allow");
        assert_eq!(Log::read(&format!("{whole}\n{{\"aud")).unwrap().of("us").asked.len(), 1);
        assert!(Log::read(&format!("{{\"aud\n{whole}\n")).is_err());
        assert!(Log::read("{\"aud\n").is_err(), "a line that ended is not half written");
    }
}
