//! Which updates a record is about: a short digest of component and file for each. A URL may contain credentials, and a component may
//! have several updates.

use std::collections::BTreeSet;

use metal3_api::metal3::v1alpha1::FirmwareUpdate;
use metal3_ironic::calls::provision::Step;
use metal3_ironic::model::node::Node;
use ring::digest;
use serde_json::Value;

use super::{INTERFACE, UPDATE};

/// The digests of updates.
pub type Files = BTreeSet<String>;

const ORDERED: &str = "; ordered files: ";
const MADE: &str = "; made files: ";
/// The length of a digest, in bytes.
const LENGTH: usize = 4;

/// Parts of the names whose values Ironic shows as [`MASK`] in a query, with all that follows.
const SECRET: [&str; 9] = [
    "pass",
    "pswd",
    "secret",
    "token",
    "key",
    "auth",
    "credential",
    "sign",
    "configdrive",
];
const MASK: &str = "******";

fn is_masked(parameter: &str) -> bool {
    let name = parameter.split('=').next().unwrap_or_default().to_ascii_lowercase();
    parameter.contains(MASK) || SECRET.iter().any(|part| name.contains(part))
}

/// Without user, and without the query from a secret on: the same for a URL and for what Ironic shows of it.
fn file(component: &str, url: &str) -> String {
    let url = url.split('#').next().unwrap_or_default();
    let (url, query) = url.split_once('?').unwrap_or((url, ""));
    let query: Vec<_> = query.split('&').take_while(|one| !is_masked(one)).collect();
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = authority.rsplit('@').next().unwrap_or_default();
    let digest = digest::digest(
        &digest::SHA256,
        format!("{component}\0{scheme}://{host}/{path}?{}", query.join("&")).as_bytes(),
    );
    let short = digest.as_ref().iter().take(LENGTH);
    short.map(|byte| format!("{byte:02x}")).collect()
}

/// The digest of one update.
pub(super) fn of(update: &FirmwareUpdate) -> String {
    file(&update.component, &update.url)
}

/// The digests of these updates.
pub fn of_all<'a>(updates: impl IntoIterator<Item = &'a FirmwareUpdate>) -> Files {
    updates.into_iter().map(of).collect()
}

/// The updates that these steps make.
#[must_use]
pub fn in_steps(steps: &[Step]) -> Files {
    let steps = steps
        .iter()
        .filter(|step| step.interface == INTERFACE && step.step == UPDATE);
    let settings = steps.filter_map(|step| step.args.get("settings")?.as_array()).flatten();
    let text = |update: &Value, name: &str| update.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    settings
        .map(|update| file(&text(update, "component"), &text(update, "url")))
        .collect()
}

/// The updates that have not ended, of the step that updates the firmware now. `None`: Ironic does not wait for it.
#[must_use]
pub fn step_left(node: &Node) -> Option<Files> {
    use metal3_ironic::model::state::ProvisionState as S;
    let step = match node.provision_state {
        S::CleanWait => &node.clean_step,
        S::ServiceWait => &node.service_step,
        _ => return None,
    };
    let is_waited_for = step.get("interface").and_then(Value::as_str) == Some(INTERFACE);
    let left = left(node);
    (is_waited_for && !left.is_empty()).then_some(left)
}

/// The names of the components whose updates have not ended, as far as Ironic shows them.
#[must_use]
pub fn left_text(node: &Node) -> String {
    super::listed(node.firmware_left(), ", ", |left| super::shown(&left.component))
}

/// The updates that have not ended, as far as Ironic shows them.
#[must_use]
pub fn left(node: &Node) -> Files {
    let left = node.firmware_left().iter();
    left.map(|left| file(&left.component, &left.url)).collect()
}

/// What a record is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Covered {
    /// The updates of the open order.
    pub(super) ordered: Files,
    /// The updates that were made.
    pub(super) made: Files,
}

impl Covered {
    /// The message of a record without its lists, and the lists.
    pub(super) fn split(message: &str) -> (&str, Self) {
        let (message, made) = message.rsplit_once(MADE).unwrap_or((message, ""));
        let (message, ordered) = message.rsplit_once(ORDERED).unwrap_or((message, ""));
        let files = |text: &str| {
            text.split(' ')
                .filter(|file| !file.is_empty())
                .map(str::to_owned)
                .collect()
        };
        let (ordered, made) = (files(ordered), files(made));
        (message, Self { ordered, made })
    }

    /// The message with the lists.
    pub(super) fn append(&self, message: &str) -> String {
        let list = |title: &str, files: &Files| match files.is_empty() {
            true => String::new(),
            false => format!(
                "{title}{}",
                files.iter().map(String::as_str).collect::<Vec<_>>().join(" ")
            ),
        };
        format!("{message}{}{}", list(ORDERED, &self.ordered), list(MADE, &self.made))
    }
}
