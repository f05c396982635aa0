//! An explanation as text.

use metal3_api::meta::Time;

use crate::chain::{Explanation, Link, State};
use crate::events::EventLine;
use crate::read::{NotRead, Unread};
use crate::table::Actor;

/// Events that are shown.
const MOST_EVENTS: usize = 5;

/// The lines for a person who looks at `now`. Messages are texts of others: they get no control of the terminal.
#[must_use]
pub fn render(explanation: &Explanation, namespace: &str, now: Time) -> String {
    let state = explanation.state.as_str();
    let mut text = format!("{} in namespace {namespace}: {state}\n", one_line(&explanation.object));
    for (depth, link) in explanation.chain.iter().enumerate() {
        text.push_str(&line(depth, link, now));
    }
    let is_answered = matches!(explanation.state, State::Waiting | State::Blocked | State::Unknown);
    if let Some(last) = explanation.chain.last().filter(|_| is_answered) {
        text.push_str(&remedy(last));
        text.push_str(&events(last, &explanation.events, now));
    }
    for not_read in &explanation.not_read {
        text.push_str(&missing(not_read, Some(namespace)));
    }
    printable_text(&text)
}

/// The Events of the last object, the newest ones.
fn events(last: &Link, events: &[EventLine], now: Time) -> String {
    let newest = events.iter().skip(events.len().saturating_sub(MOST_EVENTS));
    let lines = newest.map(|event| {
        let ago = event.time.map(|time| format!("{} ago: ", duration(time, now)));
        let times = if event.count > 1 {
            format!(" ({} times)", event.count)
        } else {
            String::new()
        };
        let (reason, message) = (one_line(&event.reason), one_line(&bounded(&event.message)));
        format!("  {}{reason}{times}: {message}\n", ago.unwrap_or_default())
    });
    let lines: String = lines.collect();
    if lines.is_empty() {
        lines
    } else {
        format!("Events of {}:\n{lines}", one_line(&last.object))
    }
}

/// A text of another program in one line: names and reasons may contain line breaks, and would forge lines.
pub(crate) fn one_line(text: &impl ToString) -> String {
    text.to_string().replace(['\n', '\r'], " ")
}

/// The begin of a text, which may be as long as an object.
pub(crate) fn bounded(text: &str) -> String {
    /// Longer than any message of a controller; Ironic cuts its own at 4,000.
    const LONGEST: usize = 8_000;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// A text that does not control the terminal.
#[must_use]
pub fn printable_text(text: &str) -> String {
    text.chars().map(printable).collect()
}

fn printable(character: char) -> char {
    match character {
        '\n' => '\n',
        other if other.is_control() => char::REPLACEMENT_CHARACTER,
        // They turn the direction of what follows.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => char::REPLACEMENT_CHARACTER,
        other => other,
    }
}

fn line(depth: usize, link: &Link, now: Time) -> String {
    let indent = "  ".repeat(depth);
    let parts = [
        link.reason.as_ref().map(one_line),
        link.since.map(|since| lasting(since, link.at_most, now)),
        link.usual_seconds
            .map(|seconds| format!("usually {}", seconds_text(seconds))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let parts = match parts.as_slice() {
        [] => String::new(),
        parts => format!(" ({})", parts.join(", ")),
    };
    let head = format!(
        "{indent}- {}: {}{parts}\n",
        one_line(&link.object),
        one_line(&link.title)
    );
    let message = bounded(&link.message);
    let message = message.lines().map(|message| format!("{indent}    {message}\n"));
    message.fold(head, |text, line| text + &line)
}

/// For how long something lasts.
pub(crate) fn lasting(since: Time, at_most: bool, now: Time) -> String {
    let bound = if at_most { "up to " } else { "" };
    format!("for {bound}{}", duration(since, now))
}

fn remedy(last: &Link) -> String {
    let mut text = format!("Who acts: {}\n", last.who_acts.as_str());
    if !last.cure.is_empty() {
        text.push_str(&format!("What to do: {}\n", one_line(&last.cure)));
    }
    if let Some(runbook) = last.runbook.as_ref().filter(|_| last.who_acts != Actor::Nothing) {
        text.push_str(&format!("Runbook: {runbook}\n"));
    }
    text
}

/// What could not be read, in a namespace or in all, with the right that is missing.
#[must_use]
pub fn missing(not_read: &NotRead, namespace: Option<&str>) -> String {
    match &not_read.why {
        Unread::Forbidden { verb, resource } => {
            let (place, option) = match namespace {
                Some(namespace) => (format!("in the namespace {namespace}"), format!("-n {namespace}")),
                None => ("in all namespaces".to_owned(), "-A".to_owned()),
            };
            format!(
                "Not read: {}, because you may not {verb} {resource} {place}. Ask for the right to {verb} them; check it \
                 with: kubectl auth can-i {verb} {resource} {option}\n",
                one_line(&not_read.what)
            )
        }
        why => format!("Not read: {}, because {}\n", one_line(&not_read.what), one_line(why)),
    }
}

/// The time between two moments, in its two largest units.
pub(crate) fn duration(since: Time, now: Time) -> String {
    seconds_text((now.get() - since.get()).num_seconds())
}

/// A number of seconds in its two largest units.
pub(crate) fn seconds_text(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, minutes) => format!("{minutes}m{}s", seconds % 60),
        (0, hours, _) => format!("{hours}h{}m", minutes % 60),
        (days, ..) => format!("{days}d{}h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::ObjectId;
    use crate::read::Read;
    use crate::table::Area;

    fn at(seconds: i64) -> Time {
        Time::new(chrono::DateTime::from_timestamp(seconds, 0).unwrap())
    }

    #[test]
    fn durations_have_two_units() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (61, "1m1s"),
            (3_700, "1h1m"),
            (90_000, "1d1h"),
            (-5, "0s"),
        ] {
            assert_eq!(duration(at(1_000_000), at(1_000_000 + seconds)), text);
        }
    }

    #[test]
    fn link_says_since_when_and_how_long_it_usually_takes() {
        let host = ObjectId::foreign("metal3.io", "BareMetalHost", "h0");
        let entry = Area::Hosts.find("Provisioning").unwrap();
        let link = Link {
            usual_seconds: Some(578),
            ..Link::explained(&host, entry, "", Some(at(100)))
        };
        let shown = line(0, &link, at(290));
        assert!(shown.ends_with("(Provisioning, for 3m10s, usually 9m38s)\n"), "{shown}");
        let shown = line(0, &link.at_most(Some(at(100))), at(290));
        assert!(
            shown.ends_with("(Provisioning, for up to 3m10s, usually 9m38s)\n"),
            "{shown}"
        );
    }

    #[test]
    fn link_without_a_reason_says_since_when() {
        let host = ObjectId::foreign("metal3.io", "BareMetalHost", "h0");
        let link = Link {
            since: Some(at(100)),
            ..Link::plain(&host, "waits", Actor::System, "")
        };
        assert_eq!(line(0, &link, at(290)), "- BareMetalHost/h0: waits (for 3m10s)\n");
    }

    /// Names in references have no pattern, and reasons of other providers none that this program knows.
    #[test]
    fn names_and_reasons_forge_no_line() {
        let forged = "x\nWho acts: user\nWhat to do: kubectl delete bmh --all";
        let object = ObjectId::foreign("", "Secret", forged);
        let link = Link {
            reason: Some(forged.to_owned()),
            ..Link::plain(&object, forged, Actor::User, format!("Create {object}."))
        };
        let explanation = Explanation {
            object: object.clone(),
            state: State::Blocked,
            chain: vec![link],
            events: Vec::new(),
            not_read: vec![NotRead {
                what: Read::Object(object),
                why: Unread::Failed(forged.to_owned()),
            }],
        };
        let text = render(&explanation, "lab", at(0));
        let cures = text.lines().filter(|line| line.starts_with("What to do:"));
        assert_eq!(cures.count(), 1, "{text}");
        assert_eq!(text.lines().count(), 5, "{text}");
    }

    #[test]
    fn long_message_is_cut() {
        let host = ObjectId::foreign("metal3.io", "BareMetalHost", "h0");
        let link = Link {
            message: "é".repeat(1 << 20),
            ..Link::plain(&host, "waits", Actor::System, "")
        };
        assert!(line(0, &link, at(0)).chars().count() < 9_000);
    }

    #[test]
    fn message_does_not_control_the_terminal() {
        let host = ObjectId::foreign("metal3.io", "BareMetalHost", "h0");
        let entry = Area::Hosts.find("RegistrationError").unwrap();
        let link = Link::explained(
            &host,
            entry,
            "login\u{1b}[2J\u{9b}31m\r\u{202e}refused\nby the BMC",
            None,
        );
        let explanation = Explanation {
            object: host,
            state: State::Blocked,
            chain: vec![link],
            events: Vec::new(),
            not_read: Vec::new(),
        };
        let text = render(&explanation, "lab", at(0));
        let is_steering = |one: char| (one.is_control() && one != '\n') || one == '\u{202e}';
        assert!(!text.chars().any(is_steering), "{text:?}");
        assert!(text.contains("refused\n") && text.contains("by the BMC\n"), "{text:?}");
    }

    #[test]
    fn chain_ends_with_who_acts_what_to_do_and_the_missing_right() {
        let pool = ObjectId::foreign("ipam.metal3.io", "IPPool", "lan");
        let entry = Area::Addresses.find("NoFreeAddress").unwrap();
        let explanation = Explanation {
            object: pool.clone(),
            state: State::Blocked,
            chain: vec![Link::explained(
                &pool,
                entry,
                "add a range\nor delete claims",
                Some(at(100)),
            )],
            events: vec![EventLine {
                time: Some(at(130)),
                warning: true,
                reason: "NoFreeAddress".to_owned(),
                message: "claim c9\nwaits".to_owned(),
                source: "ipam".to_owned(),
                count: 3,
            }],
            not_read: vec![NotRead {
                what: Read::list::<metal3_api::ipam::v1alpha1::IPClaim>(None),
                why: Unread::Forbidden {
                    verb: "list".to_owned(),
                    resource: "ipclaims.ipam.metal3.io".to_owned(),
                },
            }],
        };
        let text = render(&explanation, "lab", at(160));
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            [
                "IPPool/lan in namespace lab: someone has to act",
                "- IPPool/lan: The pool has no free address (NoFreeAddress, for 1m0s)",
                "    add a range",
                "    or delete claims",
                "Who acts: user",
                "What to do: Add a range to `spec.pools`, or delete claims that are not needed.",
                "Runbook: docs/runbooks/addresses.md#nofreeaddress",
                "Events of IPPool/lan:",
                "  30s ago: NoFreeAddress (3 times): claim c9 waits",
                "Not read: the objects of the kind IPClaim, because you may not list ipclaims.ipam.metal3.io in the namespace \
                 lab. Ask for the right to list them; check it with: kubectl auth can-i list ipclaims.ipam.metal3.io -n lab",
            ]
        );
    }
}
