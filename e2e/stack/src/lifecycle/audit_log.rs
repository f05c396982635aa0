//! Requests in the audit log of an API server. Pure.

use serde::Deserialize;

/// A request as an event of the log has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::lifecycle) struct Request {
    pub(in crate::lifecycle) user: String,
    pub(in crate::lifecycle) agent: String,
    pub(in crate::lifecycle) verb: String,
    /// Without its subresource.
    pub(in crate::lifecycle) kind: String,
    /// With its subresource.
    pub(in crate::lifecycle) resource: String,
    pub(in crate::lifecycle) namespace: String,
    pub(in crate::lifecycle) name: String,
    /// The code of the response; 0 without one.
    pub(in crate::lifecycle) code: u16,
    /// `ResponseComplete`, or `ResponseStarted` of a watch.
    pub(in crate::lifecycle) stage: String,
    /// When it came, in UTC and of one width, so that texts have the order of times.
    pub(in crate::lifecycle) received: String,
    /// When it reached the stage.
    pub(in crate::lifecycle) at: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    verb: String,
    user: User,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: Reference,
    #[serde(default)]
    response_status: Status,
    stage: String,
    #[serde(default)]
    request_received_timestamp: String,
    #[serde(default)]
    stage_timestamp: String,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Reference {
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    code: u16,
}

impl Request {
    /// Reads a line. `None`: it is no event, such as the last line of a log that is still written.
    pub(in crate::lifecycle) fn read(line: &str) -> Option<Self> {
        let event: Event = serde_json::from_str(line).ok()?;
        let object = event.object_ref;
        let resource = match object.subresource.as_str() {
            "" => object.resource.clone(),
            sub => format!("{}/{sub}", object.resource),
        };
        Some(Self {
            user: event.user.username,
            agent: event.user_agent,
            verb: event.verb,
            kind: object.resource,
            resource,
            namespace: object.namespace,
            name: object.name,
            code: event.response_status.code,
            stage: event.stage,
            received: event.request_received_timestamp,
            at: event.stage_timestamp,
        })
    }

    pub(in crate::lifecycle) fn is_read(&self) -> bool {
        ["get", "list", "watch"].contains(&self.verb.as_str())
    }

    pub(in crate::lifecycle) fn has_succeeded(&self) -> bool {
        (1..300).contains(&self.code)
    }

    /// Whether this program sent it: the name at the beginning of its user agent.
    pub(in crate::lifecycle) fn is_ours(&self) -> bool {
        is_ours(&self.agent)
    }
}

/// Whether a user agent is that of this program.
pub(in crate::lifecycle) fn is_ours(agent: &str) -> bool {
    agent.starts_with("capm3/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_has_its_object_and_the_code_of_its_response() {
        let line = r#"{"verb":"patch","user":{"username":"u"},"userAgent":"capm3/v1","objectRef":{"resource":"hosts","subresource":"status","namespace":"n","name":"o"},"responseStatus":{"code":409},"stage":"ResponseComplete","requestReceivedTimestamp":"2026-11-26T00:00:01.000001Z","stageTimestamp":"2026-11-26T00:00:01.000002Z"}"#;
        let found = Request::read(line).unwrap();
        assert_eq!(
            (found.kind.as_str(), found.resource.as_str()),
            ("hosts", "hosts/status")
        );
        assert_eq!(
            (found.namespace.as_str(), found.name.as_str(), found.code),
            ("n", "o", 409)
        );
        assert!(found.is_ours() && !found.is_read() && !found.has_succeeded());
        assert!(found.received < found.at);
        assert_eq!(Request::read(line.trim_end_matches('}')), None);
    }

    #[test]
    fn request_without_object_and_response_has_not_succeeded() {
        let line = r#"{"verb":"get","user":{},"stage":"ResponseStarted"}"#;
        let found = Request::read(line).unwrap();
        assert!(found.is_read() && !found.has_succeeded() && !found.is_ours());
    }
}
