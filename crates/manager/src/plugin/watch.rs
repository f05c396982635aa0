//! `hosts -w`: the table, then each host that changes.

use std::collections::BTreeMap;
use std::pin::pin;

use anyhow::{Context as _, Result};
use futures::TryStreamExt as _;
use kube::api::{ApiResource, DynamicObject, ListParams, WatchEvent, WatchParams};
use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_explain::text::{missing, printable_text};
use metal3_explain::view::{Filter, HostRow, View, host_line, render};
use metal3_explain::{NotRead, ObjectId, Read, Snapshot, State, Unread};
use metal3_runtime::work::{Class, classify};

use super::document;
use crate::output::Output;
use crate::reader::{Reader, unread};

/// Namespace and name.
type Key = (String, String);
/// The hosts of a list. One that cannot be decoded is there with the reason.
type Listed = Vec<(Key, Result<HostRow, Unread>)>;
/// The hosts that were printed.
type Shown = BTreeMap<Key, Printed>;

/// What was printed last about a host.
#[derive(Default)]
struct Printed {
    row: Option<HostRow>,
    /// Whether it was named because it cannot be decoded.
    is_named: bool,
}

/// What is printed about a host.
enum Change {
    Row(HostRow),
    /// It cannot be decoded, so that its state is not known.
    NotRead(NotRead),
}

/// How a watch ended.
enum Ended {
    /// The server ended it, as it does after minutes.
    At(String),
    /// The version is too old: list again.
    Expired,
    /// The viewer may not watch, or the server refuses it.
    Refused(Unread),
}

/// Prints the table and changes until the process ends.
pub(super) async fn hosts(
    reader: &mut Reader,
    filter: &Filter,
    (namespace, output): (Option<&str>, Output),
    now: impl Fn() -> Time,
    print: &mut impl FnMut(&str),
) -> Result<State> {
    let kind = ObjectId::of::<BareMetalHost>("");
    let resource = reader.resource(&kind).await.map_err(|why| anyhow::anyhow!("{why}"))?;
    let what = || Read::selected::<BareMetalHost>(&filter.labels);
    let (mut shown, mut is_first) = (Shown::new(), true);
    let line = |change: &Change| match change {
        Change::Row(row) => line(row, output, namespace.is_none(), now()),
        Change::NotRead(not_read) => refusal(not_read, namespace, output),
    };
    loop {
        let listed = reader
            .list(&resource, ListParams::default().labels(&filter.labels))
            .await;
        let (answer, mut version) = match listed {
            Ok(listed) => (Ok(listed.objects), listed.version),
            Err(why) if is_first => (Err(why), String::new()),
            Err(why @ Unread::Forbidden { .. }) => {
                print(&refusal(&NotRead { what: what(), why }, namespace, output)?);
                return Ok(State::Unknown);
            }
            Err(why) => anyhow::bail!("list the hosts again: {why}"),
        };
        let is_refused = answer.is_err();
        let changes = changes(&mut shown, rows(answer.as_deref().unwrap_or_default()), filter);
        if is_first {
            let mut snapshot = Snapshot::default();
            snapshot.insert(what(), answer);
            let report = View::Hosts(filter.clone()).report(&snapshot, now());
            let report = report.map_err(|wanted| anyhow::anyhow!("not read: {wanted:?}"))?;
            print(&match output {
                Output::Text => render(&report, namespace, now()),
                Output::Json | Output::Yaml => document(&report, output)?,
            });
            if is_refused {
                return Ok(report.state);
            }
            // The table has all of them, and names those that cannot be decoded.
            is_first = false;
        } else {
            for change in changes {
                print(&line(&change)?);
            }
        }
        let mut each = |change: &Change| line(change).map(|line| print(&line));
        loop {
            match follow(reader, &resource, (filter, &version), &mut shown, &mut each).await? {
                Ended::At(reached) => version = reached,
                Ended::Expired => break,
                Ended::Refused(why) => {
                    print(&refusal(&NotRead { what: what(), why }, namespace, output)?);
                    return Ok(State::Unknown);
                }
            }
        }
    }
}

/// What is not known any more: a host, or all.
fn refusal(not_read: &NotRead, namespace: Option<&str>, output: Output) -> Result<String> {
    match output {
        Output::Text => Ok(printable_text(&missing(not_read, namespace))),
        Output::Json | Output::Yaml => document(&serde_json::json!({ "notRead": [not_read] }), output),
    }
}

/// The rows of hosts.
fn rows(objects: &[serde_json::Value]) -> Listed {
    let row = |object: &serde_json::Value| {
        let text = |place| object.pointer(place).and_then(serde_json::Value::as_str);
        let text = |place| text(place).unwrap_or_default().to_owned();
        (
            (text("/metadata/namespace"), text("/metadata/name")),
            HostRow::read(object),
        )
    };
    objects.iter().map(row).collect()
}

/// What names a host that cannot be decoded.
fn not_read((_, name): &Key, why: Unread) -> Change {
    Change::NotRead(NotRead {
        what: Read::Object(ObjectId::of::<BareMetalHost>(name)),
        why,
    })
}

fn line(row: &HostRow, output: Output, is_wide: bool, now: Time) -> Result<String> {
    match output {
        Output::Text => Ok(host_line(row, is_wide, now)),
        // Each is a document of its own.
        Output::Yaml => document(row, output).map(|text| format!("---\n{text}")),
        Output::Json => document(row, output),
    }
}

/// What differs after a new list. A host that cannot be decoded keeps its last row, and is named once.
fn changes(shown: &mut Shown, listed: Listed, filter: &Filter) -> Vec<Change> {
    let (mut left, mut changed, mut unknown) = (std::mem::take(shown), Vec::new(), Vec::new());
    let mut others = Vec::new();
    for (key, read) in listed {
        let mut printed = left.remove(&key).unwrap_or_default();
        match read {
            Ok(row) if filter.matches(&row) => {
                if printed.row.as_ref() != Some(&row) {
                    changed.push(Change::Row(row.clone()));
                }
                let row = Some(row);
                shown.insert(key, Printed { row, is_named: false });
            }
            Ok(_) => others.push((key, printed)),
            Err(why) => {
                if !printed.is_named {
                    unknown.push(not_read(&key, why));
                }
                printed.is_named = true;
                shown.insert(key, printed);
            }
        }
    }
    left.extend(others);
    let gone = left.values().filter_map(|printed| printed.row.as_ref());
    let mut all: Vec<Change> = gone.map(|row| Change::Row(gone_row(row))).collect();
    all.append(&mut changed);
    all.append(&mut unknown);
    all
}

/// The row of a host that no longer exists, or that the filter no longer selects.
fn gone_row(row: &HostRow) -> HostRow {
    HostRow {
        state: "gone".to_owned(),
        ..row.clone()
    }
}

/// Prints changes until the watch ends.
async fn follow(
    reader: &Reader,
    resource: &ApiResource,
    (filter, version): (&Filter, &str),
    shown: &mut Shown,
    print: &mut impl FnMut(&Change) -> Result<()>,
) -> Result<Ended> {
    let api = reader.api(resource);
    let wanted = WatchParams::default().labels(&filter.labels);
    let stream = match api.watch(&wanted, version).await {
        Ok(stream) => stream,
        Err(error) if classify(&error) == Class::Expired => return Ok(Ended::Expired),
        Err(error) if is_refusal(&error) => return Ok(Ended::Refused(unread(&error, "watch", resource))),
        Err(error) => return Err(error).context("watch the hosts"),
    };
    let mut stream = pin!(stream);
    let mut reached = version.to_owned();
    loop {
        let event = match stream.try_next().await {
            Ok(Some(event)) => event,
            Ok(None) => return Ok(Ended::At(reached)),
            Err(error) if classify(&error) == Class::Expired => return Ok(Ended::Expired),
            Err(error) if is_refusal(&error) => return Ok(Ended::Refused(unread(&error, "watch", resource))),
            Err(error) => return Err(error).context("watch the hosts"),
        };
        let (object, is_left) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, true),
            WatchEvent::Deleted(object) => (object, false),
            WatchEvent::Bookmark(bookmark) => {
                reached = bookmark.metadata.resource_version;
                continue;
            }
            WatchEvent::Error(status) if status.code == 410 => return Ok(Ended::Expired),
            WatchEvent::Error(status) if [401, 403].contains(&status.code) => {
                let error = kube::Error::Api(status);
                return Ok(Ended::Refused(unread(&error, "watch", resource)));
            }
            WatchEvent::Error(status) => anyhow::bail!("watch the hosts: {}", status.message),
        };
        reached = object.metadata.resource_version.clone().unwrap_or(reached);
        if let Some(change) = changed(&object, is_left, filter, shown)? {
            print(&change)?;
        }
    }
}

/// Whether a right is missing or the login is not accepted: to repeat the request does not help.
fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if [401, 403].contains(&status.code))
}

/// What a change of a host adds to what was printed of it.
fn changed(object: &DynamicObject, is_left: bool, filter: &Filter, shown: &mut Shown) -> Result<Option<Change>> {
    let meta = &object.metadata;
    let key = (
        meta.namespace.clone().unwrap_or_default(),
        meta.name.clone().unwrap_or_default(),
    );
    let row = match HostRow::read(&serde_json::to_value(object)?) {
        // It keeps its last row, because its state is not known.
        Err(why) if is_left => {
            let printed = shown.entry(key.clone()).or_default();
            let is_named = std::mem::replace(&mut printed.is_named, true);
            return Ok((!is_named).then(|| not_read(&key, why)));
        }
        row => row.ok().filter(|row| is_left && filter.matches(row)),
    };
    let before = shown.remove(&key).and_then(|printed| printed.row);
    let Some(row) = row else {
        return Ok(before.map(|row| Change::Row(gone_row(&row))));
    };
    let is_changed = before.as_ref() != Some(&row);
    let printed = Printed {
        row: Some(row.clone()),
        is_named: false,
    };
    shown.insert(key, printed);
    Ok(is_changed.then_some(Change::Row(row)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn host(name: &str, state: &str) -> serde_json::Value {
        json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": { "namespace": "lab", "name": name },
            "spec": { "online": true }, "status": { "operationalStatus": "OK", "errorMessage": "", "errorCount": 0, "poweredOn": true,
                "provisioning": { "state": state, "ID": "", "image": { "url": "" } } } })
    }

    fn shown_of(objects: &[serde_json::Value]) -> Shown {
        let mut shown = Shown::new();
        changes(&mut shown, rows(objects), &Filter::default());
        shown
    }

    fn text(change: &Change) -> String {
        match change {
            Change::Row(row) => format!("{} {}", row.name, row.state),
            Change::NotRead(not_read) => {
                let text = missing(not_read, Some("lab"));
                text.split(": ").take(2).collect::<Vec<_>>().join(": ")
            }
        }
    }

    const UNKNOWN: &str = "Not read: BareMetalHost/a, because it cannot be decoded";

    /// After a new list, as when the watch was too old.
    #[test]
    fn host_that_cannot_be_decoded_is_named_once_and_not_gone() {
        let all = |names: &[&str]| names.iter().map(|name| host(name, "available")).collect::<Vec<_>>();
        let mut shown = shown_of(&all(&["a", "b", "c"]));
        let mut now = all(&["a", "b"]);
        now[0]["spec"] = json!(7);
        for expected in [&["c gone", UNKNOWN][..], &[]] {
            let changed = changes(&mut shown, rows(&now), &Filter::default());
            assert_eq!(changed.iter().map(text).collect::<Vec<_>>(), expected);
        }
        let names = shown.keys().map(|(_, name)| name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn host_that_cannot_be_decoded_is_named_once_and_gone_when_it_is_deleted() {
        let mut shown = shown_of(&[host("a", "available")]);
        let mut broken = host("a", "available");
        broken["spec"] = json!(7);
        let object = |value: &serde_json::Value| serde_json::from_value::<DynamicObject>(value.clone()).unwrap();
        let mut see = |value: &serde_json::Value, is_left| {
            let change = changed(&object(value), is_left, &Filter::default(), &mut shown).unwrap();
            change.as_ref().map(text).unwrap_or_default()
        };
        assert_eq!(see(&broken, true), UNKNOWN);
        assert_eq!(see(&broken, true), "");
        assert_eq!(see(&host("a", "provisioning"), true), "a provisioning");
        assert_eq!(see(&broken, true), UNKNOWN);
        assert_eq!(see(&broken, false), "a gone");
        assert!(shown.is_empty());
    }

    #[test]
    fn each_change_is_a_yaml_document() {
        let row = HostRow::read(&host("a", "available")).unwrap();
        let now = Time::new(chrono::DateTime::UNIX_EPOCH);
        assert!(line(&row, Output::Yaml, false, now).unwrap().starts_with("---\n"));
    }
}
