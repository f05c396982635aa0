//! The documents about Clusters, pools and waits, and about what is read at all.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use metal3_api::cluster::Cluster;
use metal3_api::meta::Time;
use metal3_domain::clock::Monotonic;
use metal3_explain::text::missing;
use metal3_explain::view::{Content, PoolRow, View, Wait, in_order, waits};
use metal3_explain::{Explanation, NotRead, ObjectId, Read, Snapshot, explain};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};

use crate::changes::{Changes, document};
use crate::login::Ended;
use crate::shared::Shared;

/// To explain all objects takes time, of which this part is used at most.
const PART: u32 = 5;
/// They are explained again after this time at the earliest.
const PAUSE: Duration = Duration::from_millis(500);

/// What is read, and what is not.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Scope {
    /// The only namespace that is read.
    namespace: Option<String>,
    /// What may not be read, or cannot, in a line each.
    notices: Vec<String>,
    /// Kinds whose first list is not complete.
    pending: usize,
    /// Whether some of what is shown was read before the login ended, and nothing says why it is not read again.
    old: bool,
    /// The end of the login, if it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    login: Option<Ended>,
    /// The time of the console, by which pages show durations. A document that is kept has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<Time>,
}

impl Scope {
    /// For a document that is kept.
    pub(crate) fn without_time(self) -> Self {
        Self { now: None, ..self }
    }
}

pub(crate) fn scope(changes: &Changes) -> Scope {
    changes.shared.read(|objects| {
        let namespace = objects.only_namespace();
        let lines = lines(&objects.unread(), namespace);
        Scope {
            namespace: namespace.map(ToOwned::to_owned),
            notices: lines.into_iter().collect(),
            pending: objects.pending(),
            old: objects.is_old(),
            login: changes.login.ended(),
            now: Some(changes.clock.now().into()),
        }
    })
}

/// The lines of what was not read, each once.
fn lines(not_read: &[NotRead], namespace: Option<&str>) -> BTreeSet<String> {
    let lines = not_read.iter().map(|one| missing(one, namespace).trim_end().to_owned());
    lines.collect()
}

/// All Clusters, with the result of each. Those of a namespace are explained from one snapshot: the lists of its machines and hosts are
/// the same for all of them.
pub(crate) fn clusters(shared: &Shared) -> Value {
    let kind = ObjectId::of::<Cluster>("");
    let mut names = BTreeMap::<String, Vec<String>>::new();
    for (namespace, name) in shared.read(|objects| objects.keys(&kind).cloned().collect::<Vec<_>>()) {
        names.entry(namespace).or_default().push(name);
    }
    let mut rows = Vec::new();
    for (namespace, names) in &names {
        let mut snapshot = whole(shared, namespace, &shared.read(|objects| objects.explained(namespace)));
        let found = shared.ask_with(&mut snapshot, namespace, |snapshot| explain_all(names, snapshot));
        let found = found.into_iter().flatten();
        rows.extend(found.map(|(name, explanation)| row(namespace, name, &explanation)));
    }
    json!({ "clusters": rows })
}

/// The explanations of Clusters, or all that is still to be read for them.
fn explain_all<'a>(names: &'a [String], snapshot: &Snapshot) -> Result<Vec<(&'a str, Explanation)>, BTreeSet<Read>> {
    let (mut found, mut wanted) = (Vec::new(), BTreeSet::new());
    for name in names {
        match explain(&ObjectId::of::<Cluster>(name), snapshot) {
            Ok(explanation) => found.push((name.as_str(), explanation)),
            Err(reads) => wanted.extend(reads),
        }
    }
    if wanted.is_empty() { Ok(found) } else { Err(wanted) }
}

fn row(namespace: &str, name: &str, explanation: &Explanation) -> Value {
    let last = explanation.chain.last();
    json!({
        "namespace": namespace, "name": name, "result": explanation.state, "text": explanation.state.as_str(),
        "who": last.map(|last| last.who_acts), "why": last.map(|last| &last.title), "since": last.and_then(|last| last.since),
        "cause": last.map(|last| last.object.to_string()),
    })
}

/// A snapshot with the whole lists of the kinds of these objects, so that none of them is read by itself.
fn whole(shared: &Shared, namespace: &str, ids: &[ObjectId]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let lists: BTreeSet<Read> = ids.iter().map(list_of).collect();
    let prepared = |snapshot: &Snapshot| {
        if snapshot.has_all(&lists) {
            Ok(())
        } else {
            Err(lists.clone())
        }
    };
    let _ = shared.ask_with(&mut snapshot, namespace, prepared);
    snapshot
}

/// The tree of a Cluster.
pub(crate) fn cluster(changes: &Changes, namespace: &str, name: &str) -> Value {
    let now: Time = changes.clock.now().into();
    let view = View::Tree(name.to_owned());
    let Some(report) = changes.shared.ask(namespace, |snapshot| view.report(snapshot, now)) else {
        return Value::Null;
    };
    json!({
        "namespace": namespace, "name": name, "result": report.state, "text": report.state.as_str(),
        "tree": match report.content { Content::Tree(tree) => tree, _ => None },
        "notices": lines(&report.not_read, Some(namespace)), "now": now,
    })
}

/// The pools of all namespaces.
pub(crate) fn pools(changes: &Changes) -> Value {
    let (mut rows, mut notices): (Vec<PoolRow>, BTreeSet<String>) = (Vec::new(), BTreeSet::new());
    let (now, view) = (changes.clock.now().into(), View::Pools(None));
    for namespace in changes.shared.read(crate::objects::Objects::namespaces) {
        let Some(report) = changes.shared.ask(&namespace, |snapshot| view.report(snapshot, now)) else {
            continue;
        };
        if let Content::Pools(pools) = report.content {
            rows.extend(pools);
        }
        notices.extend(lines(&report.not_read, Some(&namespace)));
    }
    json!({ "pools": rows, "notices": notices })
}

/// Everything that waits, as it was computed last.
#[derive(Debug, Default)]
pub(crate) struct Waits(Mutex<Option<Computed>>);

#[derive(Debug)]
struct Computed {
    document: Bytes,
    version: u64,
    /// When it may be computed again.
    again: Monotonic,
}

/// The waits of a page.
#[derive(Serialize)]
struct Page<'a> {
    waits: &'a [Wait],
    /// Objects that were explained.
    looked: usize,
}

/// Everything that waits, and whether more has changed since: pages ask again then.
pub(crate) fn all_waits(changes: &Changes) -> (Bytes, bool) {
    let mut computed = changes.waits.0.lock();
    let (version, began) = (
        changes.shared.read(crate::objects::Objects::version),
        changes.clock.monotonic(),
    );
    if let Some(known) = &*computed {
        let is_current = known.version == version;
        if is_current || began < known.again {
            return (known.document.clone(), !is_current);
        }
    }
    let (mut found, mut looked) = (Vec::new(), 0);
    for namespace in changes.shared.read(crate::objects::Objects::namespaces) {
        let ids = changes.shared.read(|objects| objects.explained(&namespace));
        looked += ids.len();
        let mut snapshot = whole(&changes.shared, &namespace, &ids);
        let own = changes
            .shared
            .ask_with(&mut snapshot, &namespace, |snapshot| waits(&ids, &namespace, snapshot));
        found.extend(own.unwrap_or_default());
    }
    in_order(&mut found);
    let fresh = document(&Page { waits: &found, looked });
    let took = changes.clock.monotonic().since(began);
    *computed = Some(Computed {
        document: fresh.clone(),
        version,
        again: changes.clock.monotonic().after(PAUSE.max(took * PART)),
    });
    (fresh, false)
}

fn list_of(object: &ObjectId) -> Read {
    Read::List {
        kind: ObjectId::foreign(&object.group, &object.kind, ""),
        labels: String::new(),
    }
}

#[cfg(test)]
#[path = "about_tests.rs"]
mod tests;
