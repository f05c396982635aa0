//! `hosts -w`: the table, then each host that changes.

use std::collections::{BTreeMap, BTreeSet};
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

type Shown = BTreeMap<(String, String), HostRow>;

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
    let mut shown = Shown::new();
    let mut is_first = true;
    let line = |row: &HostRow| line(row, output, namespace.is_none(), now());
    loop {
        let listed = reader
            .list(&resource, ListParams::default().labels(&filter.labels))
            .await;
        let read = Read::selected::<BareMetalHost>(&filter.labels);
        let (answer, version) = match listed {
            Ok(listed) => (Ok(listed.objects), listed.version),
            Err(why) if is_first => (Err(why), String::new()),
            Err(why @ Unread::Forbidden { .. }) => {
                print(&refusal(NotRead { what: read, why }, namespace, output)?);
                return Ok(State::Unknown);
            }
            Err(why) => anyhow::bail!("list the hosts again: {why}"),
        };
        let is_refused = answer.is_err();
        let (rows, unread) = rows(answer.as_deref().unwrap_or_default());
        if is_first {
            let mut snapshot = Snapshot::default();
            snapshot.insert(read, answer);
            let report = View::Hosts(filter.clone()).report(&snapshot, now());
            let report = report.map_err(|wanted| anyhow::anyhow!("not read: {wanted:?}"))?;
            print(&match output {
                Output::Text => render(&report, namespace, now()),
                Output::Json | Output::Yaml => document(&report, output)?,
            });
            if is_refused {
                return Ok(report.state);
            }
            shown = selected(rows, filter);
            is_first = false;
        } else {
            for row in changes(&mut shown, rows, &unread, filter) {
                print(&line(&row)?);
            }
        }
        let mut version = version;
        let mut each = |row: &HostRow| line(row).map(|line| print(&line));
        loop {
            match follow(reader, &resource, (filter, &version), &mut shown, &mut each).await? {
                Ended::At(reached) => version = reached,
                Ended::Expired => break,
                Ended::Refused(why) => {
                    let what = Read::selected::<BareMetalHost>(&filter.labels);
                    print(&refusal(NotRead { what, why }, namespace, output)?);
                    return Ok(State::Unknown);
                }
            }
        }
    }
}

/// Why nothing is watched any more.
fn refusal(not_read: NotRead, namespace: Option<&str>, output: Output) -> Result<String> {
    match output {
        Output::Text => Ok(printable_text(&missing(&not_read, namespace))),
        Output::Json | Output::Yaml => document(&serde_json::json!({ "notRead": [not_read] }), output),
    }
}

fn row(object: &serde_json::Value) -> Option<HostRow> {
    let host: BareMetalHost = serde_json::from_value(object.clone()).ok()?;
    Some(HostRow::of(&host))
}

/// The rows of hosts, and namespace and name of those that cannot be decoded.
fn rows(objects: &[serde_json::Value]) -> (Vec<HostRow>, BTreeSet<(String, String)>) {
    let (mut rows, mut unread) = (Vec::new(), BTreeSet::new());
    for object in objects {
        let text = |place| {
            object
                .pointer(place)
                .and_then(serde_json::Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        match row(object) {
            Some(row) => rows.push(row),
            None => drop(unread.insert((text("/metadata/namespace"), text("/metadata/name")))),
        }
    }
    (rows, unread)
}

fn line(row: &HostRow, output: Output, is_wide: bool, now: Time) -> Result<String> {
    match output {
        Output::Text => Ok(host_line(row, is_wide, now)),
        // Each is a document of its own.
        Output::Yaml => document(row, output).map(|text| format!("---\n{text}")),
        Output::Json => document(row, output),
    }
}

fn key(row: &HostRow) -> (String, String) {
    (row.namespace.clone(), row.name.clone())
}

fn selected(rows: Vec<HostRow>, filter: &Filter) -> Shown {
    let rows = rows.into_iter().filter(|row| filter.matches(row));
    rows.map(|row| (key(&row), row)).collect()
}

/// The rows that differ after a new list. A host that cannot be decoded keeps its last row.
fn changes(
    shown: &mut Shown,
    rows: Vec<HostRow>,
    unread: &BTreeSet<(String, String)>,
    filter: &Filter,
) -> Vec<HostRow> {
    let mut listed = selected(rows, filter);
    let kept = shown.iter().filter(|(key, _)| unread.contains(*key));
    listed.extend(kept.map(|(key, row)| (key.clone(), row.clone())));
    let gone = shown
        .iter()
        .filter(|(key, _)| !listed.contains_key(*key))
        .map(|(_, row)| gone(row));
    let changed = listed
        .iter()
        .filter(|(key, row)| shown.get(*key) != Some(row))
        .map(|(_, row)| row.clone());
    let all = gone.chain(changed).collect();
    *shown = listed;
    all
}

/// The row of a host that no longer exists, or that the filter no longer selects.
fn gone(row: &HostRow) -> HostRow {
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
    print: &mut impl FnMut(&HostRow) -> Result<()>,
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
        if let Some(row) = changed(&object, is_left, filter, shown)? {
            print(&row)?;
        }
    }
}

/// Whether a right is missing or the login is not accepted: to repeat the request does not help.
fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if [401, 403].contains(&status.code))
}

/// The row of a host that changed, if it differs from the one that was printed.
fn changed(object: &DynamicObject, is_left: bool, filter: &Filter, shown: &mut Shown) -> Result<Option<HostRow>> {
    let Some(row) = row(&serde_json::to_value(object)?) else {
        return Ok(None);
    };
    if is_left && filter.matches(&row) {
        let before = shown.insert(key(&row), row.clone());
        return Ok((before.as_ref() != Some(&row)).then_some(row));
    }
    Ok(shown.remove(&key(&row)).map(|_| gone(&row)))
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

    /// After a new list, as when the watch was too old.
    #[test]
    fn host_that_cannot_be_decoded_is_not_gone() {
        let all = |names: &[&str]| names.iter().map(|name| host(name, "available")).collect::<Vec<_>>();
        let mut shown = selected(rows(&all(&["a", "b", "c"])).0, &Filter::default());
        let mut now = all(&["a", "b"]);
        now[1]["spec"] = json!(7);
        let (listed, unread) = rows(&now);
        assert_eq!(unread.len(), 1);
        let changed = changes(&mut shown, listed, &unread, &Filter::default());
        let changed: Vec<_> = changed
            .iter()
            .map(|row| (row.name.as_str(), row.state.as_str()))
            .collect();
        assert_eq!(changed, [("c", "gone")]);
        assert_eq!(
            shown.keys().map(|(_, name)| name.as_str()).collect::<Vec<_>>(),
            ["a", "b"]
        );
    }

    #[test]
    fn each_change_is_a_yaml_document() {
        let (rows, _) = rows(&[host("a", "available")]);
        let now = Time::new(chrono::DateTime::UNIX_EPOCH);
        assert!(line(&rows[0], Output::Yaml, false, now).unwrap().starts_with("---\n"));
    }
}
