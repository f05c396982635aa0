//! The file with the switches, as Ironic reads it: a section of lines for each. Pure.
//!
//! Ironic reads the file as a whole: one value that it cannot read is an error of every switch. So a switch with such a value
//! is left out, and says so itself.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use metal3_api::metal3::v1alpha1::{BareMetalSwitch, SwitchDriver};
use metal3_runtime::reason::Reason;
use secrecy::zeroize::Zeroizing;

use crate::names::switch_reason::{CREDENTIAL_ERROR, INVALID};

/// The begin of the file, as the Go manager writes it.
pub(super) const HEADER: &str = "# This file is managed by the Baremetal Operator\n\n";
const BEGIN: &str = "[switch:";
const KEY_FILE: &str = "key_file=";
/// The end of the name of a file with a private key.
const KEY_END: &str = ".key";
/// Letters of a MAC address.
const MAC: usize = 17;
/// The longest value of a line, in bytes.
const LONGEST: usize = 1024;
/// The longest private key, in bytes.
const LONGEST_KEY: usize = 16 * 1024;

/// The part of one switch.
pub(super) struct Section {
    /// Its lines.
    pub(super) text: Zeroizing<String>,
    /// The name and the content of the file with the private key.
    pub(super) key: Option<(String, ByteString)>,
}

/// Why a switch is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) reason: Reason,
    pub(super) message: String,
}

impl Problem {
    pub(super) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}

/// The section of a switch with the values of its Secret.
pub(super) fn section(
    switch: &BareMetalSwitch,
    secret: &str,
    values: &BTreeMap<String, ByteString>,
    folder: &str,
) -> Result<Section, Problem> {
    let spec = &switch.spec;
    let name = switch.metadata.name.as_deref().unwrap_or_default();
    let member =
        |field: &str, value| checked(value).map_err(|why| Problem::new(INVALID, format!("spec.{field} {why}")));
    let (address, device) = (
        member("address", &spec.address)?,
        member("deviceType", &spec.device_type)?,
    );
    let mac = mac(&spec.mac_address)?;
    let username = required(values, secret, "username")?;
    let (login, key) = match (values.get("ssh-privatekey"), values.get("password")) {
        (Some(key), _) => {
            let file = format!("{}{KEY_END}", mac.replace(':', "-"));
            if key.0.is_empty() || key.0.len() > LONGEST_KEY {
                let why = format!(
                    "credentials secret {secret}: ssh-privatekey is empty or longer than {LONGEST_KEY} bytes; replace it"
                );
                return Err(Problem::new(CREDENTIAL_ERROR, why));
            }
            let line = Zeroizing::new(format!("{KEY_FILE}{}/{file}\n", folder.trim_end_matches('/')));
            (line, Some((file, key.clone())))
        }
        (None, Some(_)) => {
            let password = required(values, secret, "password")?;
            (Zeroizing::new(format!("password={}\n", *password)), None)
        }
        (None, None) => {
            let why =
                format!("credentials secret {secret} missing 'password' or 'ssh-privatekey' key; add one of them");
            return Err(Problem::new(CREDENTIAL_ERROR, why));
        }
    };
    let driver = driver(spec.driver.unwrap_or_default());
    let port = spec.port.map(|port| format!("port={port}\n")).unwrap_or_default();
    let insecure = match spec.disable_certificate_verification {
        Some(true) => "insecure=true\n",
        Some(false) | None => "",
    };
    // parity: an empty one is none, as from a chart for switches that need none.
    let admin = match values.get("admin-password").is_some_and(|value| !value.0.is_empty()) {
        true => Zeroizing::new(format!(
            "enable_secret={}\n",
            *required(values, secret, "admin-password")?
        )),
        false => Zeroizing::default(),
    };
    let text = Zeroizing::new(format!(
        "{BEGIN}{name}]\naddress={address}\nmac_address={mac}\n{port}driver_type={driver}\ndevice_type={device}\n\
         {insecure}username={}\n{}{}\n",
        *username, *login, *admin
    ));
    Ok(Section { text, key })
}

/// The driver as Ironic names it.
const fn driver(driver: SwitchDriver) -> &'static str {
    match driver {
        SwitchDriver::GenericSwitch => "generic-switch",
    }
}

/// It is a part of the name of a file.
fn mac(text: &str) -> Result<&str, Problem> {
    let is_mac = text.len() == MAC && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':');
    match is_mac {
        true => Ok(text),
        false => Err(Problem::new(
            INVALID,
            "spec.macAddress is no MAC address; write one such as 00:00:5e:00:53:01",
        )),
    }
}

fn required(values: &BTreeMap<String, ByteString>, secret: &str, key: &str) -> Result<Zeroizing<String>, Problem> {
    let problem = |why: &str| Problem::new(CREDENTIAL_ERROR, format!("credentials secret {secret}: {key} {why}"));
    let Some(value) = values.get(key) else {
        let why = format!("credentials secret {secret} missing '{key}' key; add it");
        return Err(Problem::new(CREDENTIAL_ERROR, why));
    };
    let text = str::from_utf8(&value.0).map_err(|_| problem("is no text; write it again"))?;
    // A file that `kubectl create secret --from-file` read ends with a new line.
    let line = text.strip_suffix('\n').unwrap_or(text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    checked(line).map_err(|why| problem(&why))?;
    Ok(Zeroizing::new(line.to_owned()))
}

/// A value that Ironic reads as it is written. It takes white space and equal quotes from the ends of a value, and writes it
/// to a file of its own, in which `%` begins a reference.
///
/// differs (`switch-values`): the Go manager writes every value.
fn checked(value: &str) -> Result<&str, String> {
    let (first, last) = (value.chars().next(), value.chars().next_back());
    let is_quoted = first == last && matches!(first, Some('"' | '\''));
    let wrong = if value.is_empty() {
        "is empty; set it".to_owned()
    } else if value.len() > LONGEST {
        format!("is longer than {LONGEST} bytes; shorten it")
    } else if value.chars().any(char::is_control) {
        "has a line break or another control character; remove it".to_owned()
    } else if value.trim() != value || is_quoted {
        "has white space at an end, or quotes at both, which Ironic removes; change it".to_owned()
    } else if value.contains('%') {
        "has the character %, with which Ironic rejects the file of all switches; change it".to_owned()
    } else {
        return Ok(value);
    };
    Err(wrong)
}

/// The sections of a stored file by the name of their switch; `None` for a file of another program.
pub(super) fn stored(file: &str) -> Option<BTreeMap<String, Zeroizing<String>>> {
    let mut sections: BTreeMap<String, Zeroizing<String>> = BTreeMap::new();
    let mut current = None;
    // No value has a line break.
    for line in file.strip_prefix(HEADER)?.split_inclusive('\n') {
        let begun = line.strip_prefix(BEGIN).and_then(|rest| rest.split_once(']'));
        current = begun.map(|(name, _)| name.to_owned()).or(current);
        if let Some(name) = &current {
            sections.entry(name.clone()).or_default().push_str(line);
        }
    }
    Some(sections)
}

/// The name of the file with the private key of a stored section.
pub(super) fn key_file(section: &str) -> Option<&str> {
    let path = section.lines().find_map(|line| line.strip_prefix(KEY_FILE))?;
    path.rsplit_once('/').map(|(_, name)| name)
}

/// Whether a switch may have this file with a private key. Other content of the Secret is left alone.
pub(super) fn is_key_file(name: &str) -> bool {
    let stem = name.strip_suffix(KEY_END).unwrap_or_default();
    stem.len() == MAC && stem.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}
