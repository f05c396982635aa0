//! The writes of a provider, as a timeline tells them.

use anyhow::{Result, bail};

use super::Write;
use super::stories::Story;

/// What a timeline tells of a story.
#[derive(Debug)]
pub(super) struct Recorded {
    /// The writes, in order.
    pub(super) writes: Vec<Write>,
    /// How many states were recorded meanwhile.
    pub(super) states: usize,
}

/// Members that the real provider fills in with nothing, or from what the stand-ins do not have.
const NOT_STOOD_IN: [&str; 6] = [
    "spec.apiServer",
    "spec.controllerManager",
    "spec.deployment",
    "spec.kine",
    "spec.scheduler",
    "spec.networkProfile",
];

/// Reads a timeline up to the state that ends the story.
///
/// # Errors
/// When that state never comes.
pub(super) fn read(text: &str, story: &Story) -> Result<Recorded> {
    let (mut writes, mut states) = (Vec::new(), 0);
    for line in text.lines() {
        let Some((_, rest)) = line.trim_start().split_once("s  ") else {
            continue;
        };
        if let Some(state) = rest.strip_prefix("==== ") {
            states += 1;
            if state.starts_with(story.until) {
                return Ok(Recorded { writes, states });
            }
        }
        let Some(rest) = rest
            .strip_prefix("by ")
            .and_then(|rest| rest.strip_prefix(story.writer))
        else {
            continue;
        };
        let write = rest
            .strip_prefix(": ")
            .map(|rest| write(rest, story.name))
            .unwrap_or_default();
        if !write.is_empty() {
            writes.push(write);
        }
    }
    bail!("the state {} is not in it", story.until)
}

/// What a line says: `plural/name gen N: member: old -> new; ...`, or that something was made.
fn write(line: &str, name: &str) -> Write {
    let Some((object, rest)) = line.split_once([' ', ':']) else {
        return Write::new();
    };
    let Some((plural, found)) = object.split_once('/') else {
        return Write::new();
    };
    let kind = match plural {
        "kamajicontrolplanes" => "KamajiControlPlane",
        "tenantcontrolplanes" => "TenantControlPlane",
        "byoclusters" => "ByoCluster",
        "secrets" if found == format!("{name}-kubeconfig") => return made("Secret", rest),
        _ => return Write::new(),
    };
    if found != name {
        return Write::new();
    }
    let Some((_, members)) = rest.split_once(": ") else {
        return made(kind, rest);
    };
    if kind == "TenantControlPlane" {
        return Write::new();
    }
    members.split("; ").filter_map(|change| member(kind, change)).collect()
}

fn made(kind: &str, rest: &str) -> Write {
    let is_made = rest.split(';').next().is_some_and(|first| first.ends_with("created"));
    is_made.then(|| format!("{kind} made")).into_iter().collect()
}

/// A member and its new value. Of addresses only that they are there: a story has its own.
fn member(kind: &str, change: &str) -> Option<String> {
    let (path, values) = change.split_once(": ")?;
    if NOT_STOOD_IN.iter().any(|one| path.starts_with(one)) || path.starts_with("metadata.annotations") {
        return None;
    }
    let (_, new) = values.split_once(" -> ").unwrap_or((values, ""));
    // A condition may say what it says with an arrow.
    let new = values.rsplit_once(") -> ").map_or(new, |(_, new)| new);
    let new = new.split(" (").next().unwrap_or_default();
    let is_place = path.starts_with("spec.controlPlaneEndpoint") || path == "metadata.finalizers";
    match new {
        "" => None,
        _ if is_place => Some(format!("{kind} {path}")),
        new => Some(format!("{kind} {path}={new}")),
    }
}
