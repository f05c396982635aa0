//! The rows of the fleet, each with why its host waits. A row is computed when its host changes, or an object that its explanation read.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use metal3_api::kind::Kind as _;
use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_explain::table::{Actor, Severity};
use metal3_explain::view::HostRow;
use metal3_explain::{ObjectId, Read, State, explain};
use serde::Serialize;
use serde_json::Value;

use crate::objects::{Changed, Key, text};
use crate::shared::Shared;

/// A host, and what it waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    #[serde(flatten)]
    host: HostRow,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    vendor: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    model: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    serial: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    mac: String,
    /// The result: `ready`, `waiting`, `blocked` or `unknown`.
    result: State,
    /// Who has to act at the end of the chain.
    who: Actor,
    severity: Severity,
    /// What the last link waits for.
    #[serde(skip_serializing_if = "String::is_empty")]
    why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Since when the last link waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_since: Option<Time>,
}

/// What a batch of changes does to the fleet.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Delta {
    /// Rows that are new or differ.
    pub(crate) rows: Vec<Arc<Row>>,
    /// Namespace and name of hosts that are gone.
    pub(crate) gone: Vec<Key>,
}

/// All rows.
#[derive(Debug, Default)]
pub(crate) struct Fleet {
    rows: BTreeMap<Key, Arc<Row>>,
    /// The other objects that the explanation of each host read.
    chains: BTreeMap<Key, BTreeSet<Changed>>,
    /// The hosts whose explanation read an object.
    dependents: BTreeMap<Changed, BTreeSet<Key>>,
}

impl Fleet {
    /// Computes the rows that these changes concern.
    pub(crate) fn apply(&mut self, shared: &Shared, changes: &BTreeSet<Changed>) -> Delta {
        let kind = ObjectId::of::<BareMetalHost>("");
        let mut concerned: BTreeSet<Key> = BTreeSet::new();
        for change in changes {
            if change.object.kind == kind.kind || self.is_named_like_a_host(change) {
                concerned.insert((change.namespace.clone(), change.object.name.clone()));
            }
            concerned.extend(self.dependents.get(change).into_iter().flatten().cloned());
        }
        let mut delta = Delta::default();
        for place in concerned {
            let host = shared.read(|objects| objects.get(&kind, &place.0, &place.1));
            self.unlink(&place);
            let Some(host) = host else {
                if self.rows.remove(&place).is_some() {
                    delta.gone.push(place);
                }
                continue;
            };
            let (row, chain) = row(shared, &place, &host);
            self.link(&place, chain);
            if self.rows.get(&place).is_none_or(|known| **known != row) {
                let row = Arc::new(row);
                self.rows.insert(place, Arc::clone(&row));
                delta.rows.push(row);
            }
        }
        delta
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &Arc<Row>> {
        self.rows.values()
    }

    /// Settings, components and images of a host have its name.
    fn is_named_like_a_host(&self, change: &Changed) -> bool {
        let place = (change.namespace.clone(), change.object.name.clone());
        change.object.group == BareMetalHost::GROUP && self.rows.contains_key(&place)
    }

    fn unlink(&mut self, place: &Key) {
        for object in self.chains.remove(place).unwrap_or_default() {
            if let Some(hosts) = self.dependents.get_mut(&object) {
                hosts.remove(place);
                if hosts.is_empty() {
                    self.dependents.remove(&object);
                }
            }
        }
    }

    fn link(&mut self, place: &Key, chain: BTreeSet<Changed>) {
        for object in &chain {
            self.dependents.entry(object.clone()).or_default().insert(place.clone());
        }
        if !chain.is_empty() {
            self.chains.insert(place.clone(), chain);
        }
    }
}

/// The row of a host, and the other objects that its explanation read.
fn row(shared: &Shared, place: &Key, host: &Value) -> (Row, BTreeSet<Changed>) {
    let id = ObjectId::of::<BareMetalHost>(&place.1);
    let part = |pointer: &str| text(host, pointer).to_owned();
    let mut row = Row {
        host: HostRow::read(host).unwrap_or_else(|_| undecodable(place)),
        labels: labels(host),
        vendor: part("/status/hardware/systemVendor/manufacturer"),
        model: part("/status/hardware/systemVendor/productName"),
        serial: part("/status/hardware/systemVendor/serialNumber"),
        mac: part("/spec/bootMACAddress"),
        result: State::Unknown,
        who: Actor::Nothing,
        severity: Severity::Normal,
        why: String::new(),
        reason: None,
        waits_since: None,
    };
    let read = RefCell::new(BTreeSet::new());
    let explained = shared.ask(&place.0, |snapshot| {
        explain(&id, snapshot).inspect_err(|wanted| read.borrow_mut().extend(wanted.iter().cloned()))
    });
    let others = others(read.into_inner(), &place.0, &id);
    let Some(explanation) = explained else {
        return (row, others);
    };
    row.result = explanation.state;
    if let Some(last) = explanation.chain.last() {
        row.who = last.who_acts;
        row.severity = last.severity;
        row.why.clone_from(&last.title);
        row.reason.clone_from(&last.reason);
        row.waits_since = last.since;
    } else if let Some(not_read) = explanation.not_read.first() {
        row.why = format!("Not read: {}, because {}", not_read.what, not_read.why);
    }
    (row, others)
}

/// The objects that an explanation read, without the host itself.
fn others(read: BTreeSet<Read>, namespace: &str, host: &ObjectId) -> BTreeSet<Changed> {
    let objects = read.into_iter().filter_map(|read| match read {
        Read::Object(object) if object != *host => Some(object),
        Read::Object(_) | Read::List { .. } | Read::Events(_) => None,
    });
    let changed = objects.map(|object| Changed {
        namespace: namespace.to_owned(),
        object,
    });
    changed.collect()
}

fn labels(host: &Value) -> BTreeMap<String, String> {
    let labels = host.pointer("/metadata/labels").and_then(Value::as_object);
    let labels = labels.into_iter().flatten();
    labels
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// A host whose state is not known.
fn undecodable((namespace, name): &Key) -> HostRow {
    HostRow {
        namespace: namespace.clone(),
        name: name.clone(),
        state: "not known".to_owned(),
        status: String::new(),
        paused: false,
        online: false,
        powered_on: false,
        consumer: None,
        cluster: None,
        image: None,
        bmc: None,
        error: None,
        message: String::new(),
        since: None,
    }
}

#[cfg(test)]
#[path = "fleet_tests.rs"]
mod tests;
