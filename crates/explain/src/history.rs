//! The history of a node in Ironic, from a file that a user got with a login of their own.
//!
//! Nothing here speaks to Ironic. Messages are masked as in a support bundle: they repeat what BMCs and agents answered.

use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde_json::Value;

use crate::bundle::masked_text;
use crate::chain::Explanation;
use crate::events::{self, EventLine};
use crate::order;

/// The component that reported an entry without a conductor.
const IRONIC: &str = "Ironic";

/// The entries of the answer to `GET /v1/nodes/NODE/history`, or of the output of `baremetal node history list -f json`: the oldest
/// first.
///
/// # Errors
/// What is wrong with the text.
pub fn parse(text: &str) -> Result<Vec<EventLine>, String> {
    let document: Value = serde_json::from_str(text).map_err(|why| format!("it is not JSON: {why}"))?;
    let entries = document.get("history").unwrap_or(&document).as_array();
    let entries = entries.ok_or("it is neither a list of entries nor an answer with the member \"history\"")?;
    let mut lines: Vec<EventLine> = entries
        .iter()
        .enumerate()
        .map(|(at, entry)| line(entry).map_err(|why| format!("entry {at}: {why}")))
        .collect::<Result<_, _>>()?;
    events::sort(&mut lines);
    Ok(lines)
}

/// The explanation with the history of the host at its end. Of another object it is no part.
#[must_use]
pub fn with_history(mut explanation: Explanation, history: &[EventLine]) -> Explanation {
    let last = explanation.chain.last();
    if last.is_some_and(|last| last.object.is::<BareMetalHost>()) {
        explanation.events.extend(history.iter().cloned());
        order::sort_by(&mut explanation.events, |a, b| a.time.cmp(&b.time));
    }
    explanation
}

fn line(entry: &Value) -> Result<EventLine, String> {
    let members = entry.as_object().ok_or("it is not an object")?;
    // The API and the command write the same names in other ways: `created_at`, `Created At`.
    let plain = |name: &str| {
        let name = name.chars().filter(char::is_ascii_alphanumeric);
        name.map(|one| one.to_ascii_lowercase()).collect::<String>()
    };
    let text = |name: &str| {
        let mut members = members.iter();
        let member = members.find_map(|(other, value)| value.as_str().filter(|_| plain(other) == name));
        member.unwrap_or_default()
    };
    let created = text("createdat");
    let time = time(created).ok_or_else(|| format!("created_at {created:?} is not a time"))?;
    let (kind, severity, conductor) = (text("eventtype"), text("severity"), text("conductor"));
    let reason = [kind, severity, "history"].into_iter().find(|text| !text.is_empty());
    Ok(EventLine {
        time: Some(time),
        warning: ["error", "warning"].contains(&severity.to_ascii_lowercase().as_str()),
        reason: masked_text(reason.unwrap_or_default()),
        message: masked_text(text("event")),
        source: match conductor {
            "" => IRONIC.to_owned(),
            conductor => format!("{IRONIC}, {conductor}"),
        },
        count: 1,
    })
}

/// Ironic's times are of UTC, with or without saying so.
fn time(text: &str) -> Option<Time> {
    let parsed = |text: String| serde_json::from_value(Value::from(text)).ok();
    parsed(text.to_owned()).or_else(|| parsed(format!("{}Z", text.replacen(' ', "T", 1))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::ObjectId;
    use crate::offline::explain_with_background;

    const OF_API: &str = r#"{"history": [
        {"uuid": "b", "created_at": "2026-11-26T07:10:00+00:00", "severity": "ERROR", "event_type": "provisioning",
         "event": "Deploy failed: https://u:canary@192.0.2.1/x?sig=canary password=canary", "conductor": "c1", "user": null, "links": []},
        {"uuid": "a", "created_at": "2026-11-26T07:00:00+00:00", "severity": "INFO", "event_type": "verifying", "event": "done"}]}"#;
    const OF_COMMAND: &str =
        r#"[{"UUID": "a", "Created At": "2026-11-26T07:00:00", "Severity": "ERROR", "Event": "no lease"}]"#;

    #[test]
    fn answer_of_the_api_and_output_of_the_command_are_read_and_masked() {
        let lines = parse(OF_API).unwrap();
        let reasons: Vec<(&str, bool)> = lines.iter().map(|line| (line.reason.as_str(), line.warning)).collect();
        assert_eq!(reasons, [("verifying", false), ("provisioning", true)]);
        assert_eq!(lines[1].source, "Ironic, c1");
        let shown = serde_json::to_string(&lines).unwrap();
        assert!(!shown.contains("canary") && shown.contains("Deploy failed"), "{shown}");
        let lines = parse(OF_COMMAND).unwrap();
        assert_eq!(
            (
                lines[0].message.as_str(),
                lines[0].reason.as_str(),
                lines[0].time.is_some()
            ),
            ("no lease", "ERROR", true)
        );
    }

    #[test]
    fn file_with_something_else_is_named_as_such() {
        for (text, part) in [
            ("<html>", "not JSON"),
            (r#"{"error": "x"}"#, "\"history\""),
            (r#"[{"event": "x"}]"#, "entry 0: created_at"),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }

    #[test]
    fn history_is_among_the_events_of_a_host_by_time() {
        let host = json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": { "name": "h0" },
            "spec": { "online": true }, "status": { "operationalStatus": "error", "errorType": "provisioning error", "errorCount": 1,
                "errorMessage": "x", "poweredOn": false, "provisioning": { "state": "provisioning", "ID": "", "image": { "url": "" } } } });
        let event = json!({ "apiVersion": "v1", "kind": "Event", "reason": "ProvisioningError", "message": "x",
            "lastTimestamp": "2026-11-26T07:05:00Z", "involvedObject": { "kind": "BareMetalHost", "name": "h0" } });
        let explained = explain_with_background(&ObjectId::of::<BareMetalHost>("h0"), &[host, event]);
        let explained = with_history(explained, &parse(OF_API).unwrap());
        let reasons: Vec<&str> = explained.events.iter().map(|event| event.reason.as_str()).collect();
        assert_eq!(reasons, ["verifying", "ProvisioningError", "provisioning"]);
    }
}
