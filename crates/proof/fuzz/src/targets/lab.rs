//! What simulated machines read: Redfish requests and profiles; and YAML of files.

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use metal3_files::documents;
use metal3_sim_bmc::agent::{Algorithm, Checksum, ImageOrder, parameters};
use metal3_sim_bmc::identity::Number;
use metal3_sim_bmc::machine::Machine;
use metal3_sim_bmc::profile::{self, Profile};
use metal3_sim_bmc::redfish::{Bmc, Credentials, Reply, Request, Sessions, Verb};
use serde_json::Value;

use crate::target::{Answer, Parse, Target, answers_alike, text};

static TARGETS: [Target; 5] = [
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
        &["architecture: Arm", "rotational: true", "carrier: false"],
    )
    .yaml(),
    Target::text(
        "yaml-documents",
        &[
            "---\n", "a: b\n", "- c\n", "&x ", "*x", "|\n", "{", "}", "? ", "!!str ", "...\n", "# c\n", "<<: *x\n",
        ],
        yaml,
        answers_alike,
        &["} {", "null", "\\n"],
    )
    .yaml(),
    Target::json(
        "deploy-order",
        ORDER,
        deploy_order,
        digest_has_its_length,
        &["Sha512", "config_drive: Some", "format: Some"],
    ),
    Target::text(
        "kernel-parameters",
        KERNEL,
        |input| Answer::some(parameters(&text(input)), |found| format!("{found:?}")),
        answers_alike,
        &["inspection_url: Some", "api_url: Some"],
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

const ORDER: &[&str] = &[
    "image_info",
    "id",
    "urls",
    "http://192.0.2.1/a",
    "disk_format",
    "qcow2",
    "os_hash_value",
    "checksum",
    "node_uuid",
    "configdrive",
    "H4sIAA==",
    "d41d8cd98f00b204e9800998ecf8427e",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce\
     47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e",
];

/// The arguments of the deploy step `write_image`.
fn deploy_order(input: &[u8]) -> Answer {
    match serde_json::from_slice::<Value>(input) {
        Ok(arguments) => Answer::of(ImageOrder::parse(&arguments), |order| format!("{order:?}")),
        Err(error) => Answer::Rejected(error.to_string()),
    }
}

/// An accepted digest has the length of its algorithm, and small digits.
fn digest_has_its_length(input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    let arguments: Value = serde_json::from_slice(input).unwrap_or_default();
    if let Ok(order) = ImageOrder::parse(&arguments)
        && let Checksum::Digest(algorithm, digits) = &order.checksum
    {
        let length = match algorithm {
            Algorithm::Md5 => 32,
            Algorithm::Sha256 => 64,
            Algorithm::Sha512 => 128,
        };
        let small = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
        if digits.len() != length || !digits.bytes().all(small) {
            return Err(format!("{algorithm:?} {digits:?}"));
        }
    }
    answers_alike(input, answer, parse)
}

const KERNEL: &[&str] = &[
    "linux",
    "linuxefi /vmlinuz",
    "ipa-api-url=",
    "ipa-inspection-callback-url=",
    "ipa-agent-token=",
    "http://192.0.2.1:6385",
    "/v1/continue_inspection",
    ",",
    " ",
    "\n",
];
