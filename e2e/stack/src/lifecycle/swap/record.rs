//! What is recorded of a switch: places in the logs, machines, and each version of each object.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use serde_json::Value;

use crate::claims::stack::Stack;
use crate::lifecycle::fleet::Fleet;
use crate::lifecycle::install::HOSTS;
use crate::lifecycle::script::kinds::Kinds;
use crate::pki::{ADMIN, AUTHORITY};
use crate::products::load::list;
use crate::products::machines::NAMESPACE;

/// A moment: the lengths of the logs, the version of the server, and what was there.
#[derive(Debug, Clone, Default)]
pub(in crate::lifecycle) struct Mark {
    pub(in crate::lifecycle) audit: usize,
    pub(in crate::lifecycle) ironic: usize,
    pub(in crate::lifecycle) revision: u64,
    /// What each machine does and has.
    pub(in crate::lifecycle) machines: BTreeMap<u64, MachineState>,
    /// The host of each node of Ironic.
    pub(in crate::lifecycle) nodes: BTreeMap<String, String>,
    pub(in crate::lifecycle) secrets: BTreeMap<String, Secret>,
    /// The addresses of the managers of hosts.
    pub(in crate::lifecycle) managers: BTreeSet<String>,
}

#[derive(Debug, Clone, Default)]
pub(in crate::lifecycle) struct Secret {
    pub(super) uid: String,
    pub(super) content: String,
    pub(super) owners: Vec<Owner>,
}

/// An owner reference.
#[derive(Debug, Clone, Default)]
pub(in crate::lifecycle) struct Owner {
    pub(super) uid: String,
    /// The group and the version of its kind.
    pub(super) api_version: String,
}

impl Owner {
    pub(super) fn all_of(object: &Value) -> Vec<Self> {
        let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        let owner = |owner: &Value| Self {
            uid: text(&owner["uid"]),
            api_version: text(&owner["apiVersion"]),
        };
        owners.map(owner).collect()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::lifecycle) struct MachineState {
    pub(in crate::lifecycle) power: String,
    pub(in crate::lifecycle) boots: u64,
    pub(in crate::lifecycle) writes: u64,
    /// The drives and what is in them.
    pub(in crate::lifecycle) media: String,
    pub(in crate::lifecycle) subscriptions: String,
    /// Of its BIOS.
    pub(in crate::lifecycle) settings: String,
    /// Its versions, and the number of updates.
    pub(in crate::lifecycle) firmware: String,
}

impl Mark {
    pub(in crate::lifecycle) fn now(stack: &Stack, fleet: &Fleet) -> anyhow::Result<Self> {
        let secrets: Value = read(stack, "secrets")?;
        let length = fs::metadata(stack.places.log("audit"))?.len();
        let mut mark = Self {
            audit: usize::try_from(length)?,
            ironic: fleet.mark()?,
            revision: secrets["metadata"]["resourceVersion"]
                .as_str()
                .and_then(|version| version.parse().ok())
                .context("a list without a version")?,
            ..Self::default()
        };
        for secret in secrets["items"].as_array().into_iter().flatten() {
            let recorded = Secret {
                uid: text(&secret["metadata"]["uid"]),
                content: secret["data"].to_string(),
                owners: Owner::all_of(secret),
            };
            mark.secrets.insert(text(&secret["metadata"]["name"]), recorded);
        }
        for machine in fleet.machine_states(stack)? {
            let number = |member: &str| machine[member].as_u64().unwrap_or_default();
            let state = MachineState {
                power: text(&machine["power"]),
                boots: number("boots"),
                writes: number("writes"),
                media: machine["media"].to_string(),
                subscriptions: machine["subscriptions"].to_string(),
                settings: machine["settings"].to_string(),
                firmware: machine["firmware"].to_string(),
            };
            mark.machines.insert(number("number"), state);
        }
        let pods = list(stack, HOSTS, "pods")?;
        mark.managers = pods.iter().map(|pod| text(&pod["status"]["podIP"])).collect();
        let own = format!("{NAMESPACE}~");
        for node in fleet.nodes(stack)? {
            if let Some(host) = node["name"].as_str().and_then(|name| name.strip_prefix(&own)) {
                mark.nodes.insert(text(&node["uuid"]), host.to_owned());
            }
        }
        Ok(mark)
    }
}

fn read(stack: &Stack, kind: &str) -> anyhow::Result<Value> {
    let text = stack.kubectl(&["get", "--raw", &format!("/api/v1/namespaces/{NAMESPACE}/{kind}")])?;
    Ok(serde_json::from_str(&text)?)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A version of an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Version {
    pub(super) revision: u64,
    pub(super) is_deleted: bool,
    pub(super) object: Value,
}

/// The versions of each object, by kind and name.
pub(super) type Versions = BTreeMap<(String, String), Vec<Version>>;

/// Watches of all kinds. A change of its definition ends a watch, which is then started again.
pub(super) struct History<'a> {
    stack: &'a Stack,
    /// The resource, the watch, and the file of its events.
    watches: Vec<(String, Child, PathBuf)>,
}

impl<'a> History<'a> {
    pub(super) fn begin(stack: &'a Stack) -> anyhow::Result<Self> {
        let folder = stack.places.state_file("history");
        fs::create_dir_all(&folder)?;
        let server = format!("https://{}:6443", stack.places.node_address());
        let mut watches = Vec::new();
        for place in Kinds::discover(stack)?.all() {
            let url = format!(
                "{server}{}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
                place.path(NAMESPACE)
            );
            let file = folder.join(place.resource());
            watches.push((url.clone(), watch(stack, &url, &file)?, file));
        }
        Ok(Self { stack, watches })
    }

    /// Starts ended watches again.
    pub(super) fn keep(&mut self) -> anyhow::Result<()> {
        for (url, child, file) in &mut self.watches {
            if child.try_wait()?.is_some() {
                *child = watch(self.stack, url, file)?;
            }
        }
        Ok(())
    }

    /// All versions so far, in the order of the server.
    pub(super) fn versions(&self) -> anyhow::Result<Versions> {
        let mut versions = Versions::new();
        for (_, _, file) in &self.watches {
            add(&mut versions, &fs::read_to_string(file)?);
        }
        for all in versions.values_mut() {
            all.sort_by_key(|version| (version.revision, version.is_deleted));
            // One revision has more than one content when a definition hides, or shows again, a part of what is stored.
            all.dedup();
        }
        Ok(versions)
    }
}

impl Drop for History<'_> {
    fn drop(&mut self) {
        for (_, child, _) in &mut self.watches {
            child.kill().unwrap_or_default();
            child.wait().map(drop).unwrap_or_default();
        }
    }
}

/// A watch with its initial objects, appended to the file.
fn watch(stack: &Stack, url: &str, file: &Path) -> anyhow::Result<Child> {
    let mut output = OpenOptions::new().create(true).append(true).open(file)?;
    // The former watch may have ended within a line.
    output.write_all(b"\n")?;
    let places = &stack.places;
    let child = Command::new("curl")
        .args(["--silent", "--fail", "--no-buffer", "--cacert"])
        .arg(places.certificate(AUTHORITY))
        .arg("--cert")
        .arg(places.certificate(ADMIN))
        .arg("--key")
        .arg(places.key(ADMIN))
        .arg(url)
        .stdin(Stdio::null())
        .stdout(output)
        .spawn();
    child.context("running curl")
}

/// Adds the events of a watch. A line that a broken connection left is skipped: the next watch has its object again.
fn add(versions: &mut Versions, events: &str) {
    for line in events.lines() {
        let Ok(mut event) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let object = event["object"].take();
        let revision = object["metadata"]["resourceVersion"].as_str();
        let Some(revision) = revision.and_then(|revision| revision.parse().ok()) else {
            continue;
        };
        if event["type"] == "BOOKMARK" || event["type"] == "ERROR" {
            continue;
        }
        let key = (text(&object["kind"]), text(&object["metadata"]["name"]));
        versions.entry(key).or_default().push(Version {
            revision,
            is_deleted: event["type"] == "DELETED",
            object,
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn versions_are_those_of_complete_lines_without_bookmarks() {
        let event = |kind: &str, version: &str| {
            let metadata = json!({"name": "a", "resourceVersion": version});
            json!({"type": kind, "object": {"kind": "Host", "metadata": metadata}}).to_string()
        };
        let text = [
            event("ADDED", "5"),
            event("BOOKMARK", "6"),
            event("DELETED", "7"),
            "{\"ty".to_owned(),
        ]
        .join("\n");
        let mut versions = Versions::new();
        add(&mut versions, &text);
        let found = &versions[&("Host".to_owned(), "a".to_owned())];
        let found: Vec<(u64, bool)> = found.iter().map(|one| (one.revision, one.is_deleted)).collect();
        assert_eq!(found, [(5, false), (7, true)]);
    }
}
