//! Splits a timeline at changes of host states.
//!
//! Snapshots and timeline were recorded without a common clock. Host states connect them: the timeline contains each
//! change, and a snapshot the result. Within an interval the order of requests and snapshots is unknown.

use anyhow::{Result, bail};
use metal3_api::metal3::v1alpha1::ProvisioningState;
use serde_json::Value;

use super::snapshot::{HostState, HostStates, Snapshot};
use super::timeline::{Change, Entry, EntryKind, Kind, RecordedValue, Request};

/// Resource whose changes split the timeline.
const HOSTS: &str = "baremetalhosts";

/// An interval of constant host states.
#[derive(Debug, Clone, Default)]
pub(in crate::golden) struct Interval {
    /// Host states.
    pub(in crate::golden) hosts: HostStates,
    /// Snapshots in order.
    pub(in crate::golden) snapshots: Vec<Snapshot>,
    /// Requests of upstream to Ironic in order, without plain reads.
    pub(in crate::golden) requests: Vec<Request>,
    /// User actions in order.
    pub(in crate::golden) user_actions: Vec<String>,
    /// Events of upstream in order.
    pub(in crate::golden) events: Vec<String>,
    /// Number of plain reads.
    pub(in crate::golden) reads: u32,
}

/// Splits a timeline and assigns the snapshots.
///
/// # Errors
/// When a snapshot matches no later interval.
pub(in crate::golden) fn split(snapshots: Vec<Snapshot>, entries: Vec<Entry>) -> Result<Vec<Interval>> {
    let before = match snapshots.first() {
        // A recording of a running installation starts with its first snapshot.
        Some(first) if !starts_empty(&entries) => first.host_states()?,
        _ => HostStates::new(),
    };
    let mut intervals = vec![Interval {
        hosts: before,
        ..Interval::default()
    }];
    for Entry { what, .. } in entries {
        let Some(current) = intervals.last_mut() else { break };
        match what {
            EntryKind::Request(request) => current.requests.push(request),
            EntryKind::User(text) => current.user_actions.push(text),
            EntryKind::Event(text) => current.events.push(text),
            EntryKind::Reads(reads) => current.reads += reads.iter().map(|(_, count)| count).sum::<u32>(),
            EntryKind::Change(change) if change.plural == HOSTS => {
                let mut hosts = current.hosts.clone();
                apply(&mut hosts, &change);
                if hosts != current.hosts {
                    intervals.push(Interval {
                        hosts,
                        ..Interval::default()
                    });
                }
            }
            EntryKind::Change(_) => {}
        }
    }
    place(snapshots, &mut intervals)?;
    Ok(intervals)
}

/// Whether the first entry about a host is its creation.
fn starts_empty(entries: &[Entry]) -> bool {
    let mut hosts = entries.iter().filter_map(|entry| match &entry.what {
        EntryKind::Change(change) if change.plural == HOSTS => Some(&change.kind),
        _ => None,
    });
    hosts.next().is_none_or(|first| *first == Kind::Created)
}

fn apply(hosts: &mut HostStates, change: &Change) {
    match &change.kind {
        Kind::Created => {
            hosts.insert(change.name.clone(), HostState::default());
        }
        Kind::Removed => {
            hosts.remove(&change.name);
        }
        Kind::Members(members) => {
            let host = hosts.entry(change.name.clone()).or_default();
            for member in members {
                match (member.path.as_str(), &member.after) {
                    ("status.provisioning.state", RecordedValue::Whole(state)) => host.state = read_state(state),
                    ("status.provisioning.state", RecordedValue::Absent | RecordedValue::Cut) => {
                        host.state = ProvisioningState::default()
                    }
                    ("status.poweredOn", after) => host.powered_on = *after == RecordedValue::Whole(Value::Bool(true)),
                    _ => {}
                }
            }
        }
        Kind::Invisible => {}
    }
}

fn read_state(state: &Value) -> ProvisioningState {
    serde_json::from_value(state.clone()).unwrap_or_default()
}

/// Assigns each snapshot to the first matching interval at or after the previous one.
fn place(snapshots: Vec<Snapshot>, intervals: &mut [Interval]) -> Result<()> {
    let mut from = 0;
    for snapshot in snapshots {
        let hosts = snapshot.host_states()?;
        let fits = intervals.iter().skip(from).position(|interval| interval.hosts == hosts);
        let found = fits.and_then(|ahead| Some((from + ahead, intervals.get_mut(from + ahead)?)));
        let Some((number, interval)) = found else {
            bail!(
                "{}: no interval from {from} on has these host states: {hosts:?}",
                snapshot.label
            );
        };
        from = number;
        interval.snapshots.push(snapshot);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::super::timeline;
    use super::*;
    use metal3_files::documents::Document;

    fn snapshot(label: &str, state: &str, powered_on: bool) -> Snapshot {
        let host = json!({
            "apiVersion": "metal3.io/v1alpha1",
            "kind": "BareMetalHost",
            "metadata": { "name": "h" },
            "spec": { "online": true },
            "status": {
                "operationalStatus": "OK", "errorMessage": "", "poweredOn": powered_on,
                "provisioning": { "state": state, "ID": "" },
            },
        });
        let document = Document {
            file: "h.yaml".into(),
            value: host,
        };
        Snapshot {
            label: label.to_owned(),
            objects: Arc::new(vec![document]),
            nodes: None,
        }
    }

    const TIMELINE: &str = "0.1s  baremetalhosts/h gen 1: created\n\
        0.2s  ironic POST /v1/nodes 201 {}\n\
        0.3s  baremetalhosts/h gen 1: status.provisioning.state: - -> \"inspecting\"\n\
        0.4s  ironic GET node x2, ports x1\n\
        0.5s  ironic PUT /v1/nodes/n/states/provision 202 {\"target\":\"inspect\"}\n\
        0.6s  baremetalhosts/h gen 1: status.poweredOn: false -> true; spec.online: - -> true\n\
        0.7s  #### user: delete\n";

    fn cut_at(snapshots: Vec<Snapshot>, text: &str) -> Result<Vec<Interval>> {
        split(snapshots, timeline::read(text)?)
    }

    #[test]
    fn requests_stand_with_the_moments_that_they_followed() {
        let snapshots = vec![
            snapshot("00", "", false),
            snapshot("01", "inspecting", false),
            snapshot("02", "inspecting", false),
            snapshot("03", "inspecting", true),
        ];
        let intervals = cut_at(snapshots, TIMELINE).unwrap();
        let shown = |interval: &Interval| {
            let labels: Vec<&str> = interval
                .snapshots
                .iter()
                .map(|snapshot| snapshot.label.as_str())
                .collect();
            let paths: Vec<&str> = interval.requests.iter().map(|request| request.path.as_str()).collect();
            (
                labels.join(" "),
                paths.join(" "),
                interval.reads,
                interval.user_actions.len(),
            )
        };
        let expected = [
            ("", "", 0, 0),
            ("00", "/v1/nodes", 0, 0),
            ("01 02", "/v1/nodes/n/states/provision", 3, 0),
            ("03", "", 0, 1),
        ];
        let expected = expected
            .map(|(labels, paths, reads, user_actions)| (labels.to_owned(), paths.to_owned(), reads, user_actions));
        assert_eq!(intervals.iter().map(shown).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_snapshot_without_an_interval_is_an_error() {
        let late = vec![snapshot("00", "inspecting", true), snapshot("01", "inspecting", false)];
        let error = cut_at(late, TIMELINE).unwrap_err().to_string();
        assert!(error.starts_with("01:"), "{error}");
        assert!(cut_at(vec![snapshot("00", "provisioned", true)], TIMELINE).is_err());
    }

    #[test]
    fn a_running_installation_starts_with_its_first_snapshot() {
        let text = "0.6s  baremetalhosts/h gen 1: status.poweredOn: false -> true\n";
        let snapshots = vec![
            snapshot("00", "provisioned", false),
            snapshot("01", "provisioned", true),
        ];
        let intervals = cut_at(snapshots, text).unwrap();
        assert_eq!(
            intervals
                .iter()
                .map(|interval| interval.snapshots.len())
                .collect::<Vec<_>>(),
            [1, 1]
        );
    }
}
