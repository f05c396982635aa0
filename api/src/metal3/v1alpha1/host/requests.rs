//! Requests in the annotations of a host: a reboot, or detaching it from Ironic.
//!
//! The text is JSON as Go decodes it: member names ignore case, unknown members are ignored, and null is
//! the value a member has when it is absent.

use std::fmt;

use serde_json::Value;

use super::BareMetalHost;
use crate::metal3::names::{DETACHED_ANNOTATION, REBOOT_ANNOTATION, REBOOT_ANNOTATION_PREFIX};

/// How a machine is powered off for a reboot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RebootMode {
    /// Its operating system shuts down.
    #[default]
    Soft,
    /// The power is cut.
    Hard,
}

/// A reboot requested by an annotation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RebootRequest {
    /// How to power off.
    pub mode: RebootMode,
    /// Whether it also applies in states in which reboots otherwise wait.
    pub force: bool,
}

/// Why a text is no reboot request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RebootRequestError {
    /// It is not JSON, or JSON of another shape.
    Unreadable(String),
    /// It names a mode that does not exist.
    Mode(String),
}

impl fmt::Display for RebootRequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(problem) => write!(f, "the annotation cannot be read: {problem}"),
            Self::Mode(mode) => write!(f, "the reboot mode {mode:?} does not exist"),
        }
    }
}

impl std::error::Error for RebootRequestError {}

impl RebootRequest {
    /// Reads the value of an annotation. Empty text requests a soft reboot.
    ///
    /// # Errors
    /// When the text is neither empty nor such JSON.
    pub fn parse(text: &str) -> Result<Self, RebootRequestError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let value = serde_json::from_str(text).map_err(|error| RebootRequestError::Unreadable(error.to_string()))?;
        let members = Members::of(&value).map_err(RebootRequestError::Unreadable)?;
        let force = members.bool("force").map_err(RebootRequestError::Unreadable)?;
        let mode = match members.text("mode").map_err(RebootRequestError::Unreadable)? {
            "" | "soft" => RebootMode::Soft,
            "hard" => RebootMode::Hard,
            other => return Err(RebootRequestError::Mode(other.to_owned())),
        };
        Ok(Self { mode, force })
    }
}

/// Action when a detached host is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DetachedDelete {
    /// It waits until it is attached again.
    Delay,
    /// It is deleted.
    #[default]
    Delete,
}

/// Content of the annotation that detaches a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DetachRequest {
    /// Action on deletion.
    pub delete: DetachedDelete,
    /// Whether the host is detached in any state.
    pub force: bool,
}

impl DetachRequest {
    /// Reads the value of the annotation. Other text detaches the host with the defaults.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let read = |value: Value| {
            let members = Members::of(&value)?;
            let delete = match members.text("deleteAction")? {
                "delay" => DetachedDelete::Delay,
                _ => DetachedDelete::Delete,
            };
            Ok::<_, String>(Self {
                delete,
                force: members.bool("force")?,
            })
        };
        serde_json::from_str(text)
            .ok()
            .and_then(|value| read(value).ok())
            .unwrap_or_default()
    }
}

impl BareMetalHost {
    /// The requested reboots, by the name of their annotation.
    pub fn reboot_requests(&self) -> impl Iterator<Item = (&str, Result<RebootRequest, RebootRequestError>)> {
        reboot_annotations(&self.metadata).map(|(name, text)| (name, RebootRequest::parse(text)))
    }

    /// Content of the annotation that detaches the host, if present.
    #[must_use]
    pub fn detach_request(&self) -> Option<DetachRequest> {
        self.annotation(DETACHED_ANNOTATION).map(DetachRequest::parse)
    }
}

/// Reboot annotations, with their values.
pub(crate) fn reboot_annotations(
    metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
) -> impl Iterator<Item = (&str, &str)> {
    let asks = |name: &str| name == REBOOT_ANNOTATION || name.starts_with(REBOOT_ANNOTATION_PREFIX);
    let annotations = metadata.annotations.iter().flatten();
    annotations
        .filter(move |(name, _)| asks(name))
        .map(|(name, text)| (name.as_str(), text.as_str()))
}

/// Members of an object, parsed leniently.
struct Members<'a>(Vec<(&'a String, &'a Value)>);

impl<'a> Members<'a> {
    fn of(value: &'a Value) -> Result<Self, String> {
        match value {
            Value::Null => Ok(Self(Vec::new())),
            Value::Object(members) => Ok(Self(members.iter().collect())),
            _ => Err("expected an object in braces".to_owned()),
        }
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        let exact = self.0.iter().find(|(found, _)| *found == name);
        let any_case = || self.0.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
        let (_, value) = exact.or_else(any_case)?;
        Some(*value).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str) -> Result<&'a str, String> {
        match self.get(name) {
            None => Ok(""),
            Some(value) => value.as_str().ok_or_else(|| format!("expected text for {name}")),
        }
    }

    fn bool(&self, name: &str) -> Result<bool, String> {
        match self.get(name) {
            None => Ok(false),
            Some(value) => value
                .as_bool()
                .ok_or_else(|| format!("expected true or false for {name}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reboot_is_soft_unless_the_mode_is_hard() {
        let soft = RebootRequest::default();
        for text in [
            "",
            "{}",
            "null",
            r#"{"mode":""}"#,
            r#"{"mode":"soft","why":"x"}"#,
            r#"{"mode":null}"#,
        ] {
            assert_eq!(RebootRequest::parse(text), Ok(soft), "{text}");
        }
        let hard = RebootRequest {
            mode: RebootMode::Hard,
            force: true,
        };
        for text in [r#"{"mode":"hard","force":true}"#, r#"{"Mode":"hard","FORCE":true}"#] {
            assert_eq!(RebootRequest::parse(text), Ok(hard), "{text}");
        }
    }

    #[test]
    fn text_that_is_no_reboot_request_is_rejected_with_a_reason() {
        assert_eq!(
            RebootRequest::parse(r#"{"mode":"warm"}"#),
            Err(RebootRequestError::Mode("warm".to_owned()))
        );
        for text in [
            "hard",
            "[]",
            r#"{"mode":1}"#,
            r#"{"force":"yes"}"#,
            r#"{"mode":"hard"} {}"#,
        ] {
            assert!(
                matches!(RebootRequest::parse(text), Err(RebootRequestError::Unreadable(_))),
                "{text}"
            );
        }
    }

    #[test]
    fn any_text_detaches_and_only_json_sets_options() {
        for text in [
            "",
            "please",
            "{}",
            "[]",
            r#"{"deleteAction":"burn"}"#,
            r#"{"force":"yes"}"#,
        ] {
            assert_eq!(DetachRequest::parse(text), DetachRequest::default(), "{text}");
        }
        for (text, delete) in [
            (r#"{"deleteAction":"delete","force":true}"#, DetachedDelete::Delete),
            (r#"{"deleteAction":"delay","force":true}"#, DetachedDelete::Delay),
        ] {
            assert_eq!(DetachRequest::parse(text), DetachRequest { delete, force: true });
        }
    }

    #[test]
    fn only_a_requested_delay_delays_the_deletion_of_a_detached_host() {
        for text in [
            "",
            "please",
            "{}",
            r#"{"deleteAction":"delete"}"#,
            r#"{"deleteAction":"burn"}"#,
            r#"{"deleteAction":"delay","force":"yes"}"#,
        ] {
            assert_eq!(DetachRequest::parse(text).delete, DetachedDelete::Delete, "{text}");
        }
        let delay = DetachRequest::parse(r#"{"deleteAction":"delay"}"#);
        assert_eq!(delay.delete, DetachedDelete::Delay);
    }

    #[test]
    fn reboot_is_requested_with_and_without_a_key() {
        let annotations = json!({
            "reboot.metal3.io": "", "reboot.metal3.io/me": "hard", "reboot.metal3.ioX": "", "other": "",
            "baremetalhost.metal3.io/detached": r#"{"force":true}"#,
        });
        let host: BareMetalHost =
            serde_json::from_value(json!({ "metadata": { "annotations": annotations } })).unwrap();
        let asked: Vec<_> = host
            .reboot_requests()
            .map(|(name, request)| (name, request.is_ok()))
            .collect();
        assert_eq!(asked, [("reboot.metal3.io", true), ("reboot.metal3.io/me", false)]);
        assert!(host.detach_request().unwrap().force);
    }
}
