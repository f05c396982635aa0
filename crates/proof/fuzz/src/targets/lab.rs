//! What simulated machines read: Redfish requests and profiles; and YAML of files.

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use metal3_files::documents;
use metal3_sim_bmc::identity::Number;
use metal3_sim_bmc::machine::Machine;
use metal3_sim_bmc::profile::{self, Profile};
use metal3_sim_bmc::redfish::{Bmc, Credentials, Reply, Request, Sessions, Verb};
use serde_json::Value;

use crate::target::{Answer, Parse, Target, answers_alike, text};

static TARGETS: [Target; 3] = [
    Target::json(
        "redfish",
        REDFISH,
        redfish,
        redfish_answers_the_client,
        &["201", "EventService", "location: Some"],
    ),
    Target::text(
        "machine-profiles",
        PROFILE,
        profiles,
        answers_alike,
        &["Aarch64", "rotational: true", "carrier: false"],
    ),
    Target::text(
        "yaml-documents",
        &[
            "---\n", "a: b\n", "- c\n", "&x ", "*x", "|\n", "{", "}", "? ", "!!str ", "...\n", "# c\n", "<<: *x\n",
        ],
        yaml,
        answers_alike,
        &["} {", "null", "\\n"],
    ),
];

pub(super) fn targets() -> Vec<Target> {
    TARGETS.to_vec()
}

const REDFISH: &[&str] = &[
    "verb",
    "path",
    "body",
    "GET",
    "POST",
    "PATCH",
    "DELETE",
    "/redfish/v1",
    "/redfish/v1/Systems/1",
    "ResetType",
    "ForceOff",
    "On",
    "ForceRestart",
    "Boot",
    "BootSourceOverrideTarget",
    "BootSourceOverrideEnabled",
    "BootSourceOverrideMode",
    "Pxe",
    "Cd",
    "Once",
    "Continuous",
    "UEFI",
    "Image",
    "Inserted",
    "http://192.0.2.9/x.iso",
    "UserName",
    "Password",
    "user",
    "password",
    "Destination",
    "EventTypes",
    "Context",
    "Protocol",
    "Redfish",
    "IndicatorLED",
    "Lit",
    "/redfish/v1/SessionService/Sessions",
    "/redfish/v1/EventService/Subscriptions",
    "/redfish/v1/Managers/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia",
    "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset",
    "/redfish/v1/Systems/1/Storage",
    "/redfish/v1/Chassis/1",
];

static PROFILE_OF_ALL: LazyLock<Option<(String, Arc<Profile>)>> = LazyLock::new(|| {
    let profiles = profile::parse(profile::BUILT_IN).ok()?;
    profiles
        .into_iter()
        .next()
        .map(|(name, profile)| (name, Arc::new(profile)))
});

/// One request, or a list of them, to one machine.
fn redfish(input: &[u8]) -> Answer {
    let value: Value = match serde_json::from_slice(input) {
        Ok(value) => value,
        Err(error) => return Answer::Rejected(error.to_string()),
    };
    let Some((name, profile)) = PROFILE_OF_ALL.as_ref() else {
        return Answer::Rejected("no profile".to_owned());
    };
    let mut machine = Machine::new(Number(1), name, Arc::clone(profile));
    let (credentials, mut sessions) = (
        Credentials {
            username: "user".into(),
            password: "password".into(),
        },
        Sessions::default(),
    );
    let requests = match value {
        Value::Array(requests) => requests,
        one => vec![one],
    };
    let mut shown = Vec::new();
    for request in requests.iter().take(16) {
        let verb = match request.get("verb").and_then(Value::as_str) {
            Some("GET") | None => Verb::Get,
            Some("POST") => Verb::Post,
            Some("PATCH") => Verb::Patch,
            Some("DELETE") => Verb::Delete,
            Some(_) => Verb::Other,
        };
        let path = request.get("path").and_then(Value::as_str).unwrap_or("/redfish/v1");
        let request = Request {
            verb,
            path,
            authorization: Some("Basic dXNlcjpwYXNzd29yZA=="),
            token: None,
            body: request.get("body").unwrap_or(&Value::Null),
        };
        let mut bmc = Bmc {
            credentials: &credentials,
            sessions: &mut sessions,
            machine: &mut machine,
            power_delay: Duration::ZERO,
        };
        match bmc.reply(&request, Duration::ZERO) {
            Reply::HangUp => shown.push("hang up".to_owned()),
            // Tokens and the ids of sessions are random.
            Reply::Answer(_, answer) if answer.token.is_some() => shown.push(format!("{} session", answer.status)),
            Reply::Answer(_, answer) => shown.push(format!("{} {path} location: {:?}", answer.status, answer.location)),
        }
    }
    Answer::Accepted(shown.join("\n"))
}

/// No request makes the BMC fail.
fn redfish_answers_the_client(input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    let lines = answer.accepted().unwrap_or_default().lines();
    if let Some(line) = lines
        .into_iter()
        .find(|line| line.starts_with("500") || line.starts_with("hang up"))
    {
        return Err(line.to_owned());
    }
    answers_alike(input, answer, parse)
}

const PROFILE: &[&str] = &[
    "aarch64",
    "x86_64",
    "true",
    "false",
    "0",
    "10",
    "rotational",
    "carrier",
    "count",
    "nics",
    "disks",
    "- ",
    ": ",
    "\n",
    "  ",
];

fn profiles(input: &[u8]) -> Answer {
    Answer::of(profile::parse(&text(input)), |profiles| format!("{profiles:?}"))
}

fn yaml(input: &[u8]) -> Answer {
    match documents::parse(&text(input), Path::new("fuzz.yaml")) {
        Ok(documents) => Answer::Accepted(
            documents
                .iter()
                .map(|one| one.value.to_string())
                .collect::<Vec<_>>()
                .join(" "),
        ),
        Err(error) => Answer::Rejected(format!("{error:#}")),
    }
}
