//! The hosts as an independent watcher sees them, and how long the manager takes to react.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use futures::StreamExt as _;
use http::Request;
use kube::core::WatchEvent;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use crate::outcome::{Counts, Quantiles, Reaction};
use crate::server::{Server, hosts};

const PAUSE: Duration = Duration::from_millis(200);

/// The members of a host that are read.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Slim {
    metadata: Metadata,
    status: Status,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: String,
    resource_version: String,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    provisioning: Provisioning,
    powered_on: bool,
    error_message: String,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct Provisioning {
    state: String,
}

/// Where a phase ends for a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// Available and on.
    Available,
    /// Provisioned and on.
    Provisioned,
    Gone,
}

/// What is waited for at a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pending {
    /// The driver's own change, the next event.
    Change { calm: bool },
    /// The manager's answer to it, the event after that.
    Answer { calm: bool, since: Instant },
}

#[derive(Default)]
struct Host {
    status: Status,
    exists: bool,
    pending: Option<Pending>,
    /// When the last awaited answer came.
    answered: Option<Instant>,
}

#[derive(Default)]
struct State {
    hosts: BTreeMap<String, Host>,
    calm: Vec<f64>,
    burst: Vec<f64>,
    version: String,
}

/// Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Fleet(Arc<Mutex<State>>);

impl Fleet {
    /// Watches until it is dropped.
    pub(crate) async fn watch(self, server: Server) -> anyhow::Result<()> {
        loop {
            let version = self.0.lock().version.clone();
            let path = format!("{}?watch=1&allowWatchBookmarks=true&resourceVersion={version}", hosts());
            let request = Request::get(path).body(Vec::new())?;
            let events = server.client.request_events::<Slim>(request).await?;
            let mut events = std::pin::pin!(events);
            while let Some(event) = events.next().await {
                match event {
                    Ok(event) => self.0.lock().observe(event, Instant::now())?,
                    // A watch ends after its time; the next one continues.
                    Err(_) => break,
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// The next event of this host is a change by the driver, and the one after that the manager's answer.
    pub(crate) fn expect(&self, name: &str, calm: bool) {
        let mut state = self.0.lock();
        let host = state.hosts.entry(name.to_owned()).or_default();
        host.pending = Some(Pending::Change { calm });
        host.answered = None;
    }

    /// The next event of this host is an answer to something that happened now.
    pub(crate) fn expect_answer(&self, name: &str) {
        let mut state = self.0.lock();
        let host = state.hosts.entry(name.to_owned()).or_default();
        host.pending = Some(Pending::Answer {
            calm: false,
            since: Instant::now(),
        });
        host.answered = None;
    }

    /// When the awaited answer of this host came.
    pub(crate) fn answered(&self, name: &str) -> Option<Instant> {
        self.0.lock().hosts.get(name).and_then(|host| host.answered)
    }

    /// The reactions since the last call.
    pub(crate) fn take_reactions(&self) -> Reaction {
        let mut state = self.0.lock();
        Reaction {
            calm: Quantiles::of(std::mem::take(&mut state.calm)),
            burst: Quantiles::of(std::mem::take(&mut state.burst)),
        }
    }

    /// Whether the host is at the target.
    pub(crate) fn is_at(&self, name: &str, target: Target) -> bool {
        is_at(self.0.lock().hosts.get(name), target)
    }

    /// How many of these hosts are at the target.
    pub(crate) fn count<'a>(&self, names: impl IntoIterator<Item = &'a String>, target: Target) -> usize {
        let state = self.0.lock();
        let at = names.into_iter().filter(|name| is_at(state.hosts.get(*name), target));
        at.count()
    }

    /// Hosts by state; those with an error apart.
    pub(crate) fn states(&self) -> Counts {
        let mut counts = Counts::new();
        for host in self.0.lock().hosts.values().filter(|host| host.exists) {
            let state = match host.status.provisioning.state.as_str() {
                _ if !host.status.error_message.is_empty() => "error",
                "" => "new",
                state => state,
            };
            *counts.entry(state.to_owned()).or_default() += 1;
        }
        counts
    }

    /// The error of a host, if any host has one.
    pub(crate) fn an_error(&self) -> Option<String> {
        let state = self.0.lock();
        let mut failed = state.hosts.iter().filter(|(_, host)| host.exists);
        failed.find_map(|(name, host)| {
            let error = &host.status.error_message;
            (!error.is_empty()).then(|| format!("{name}: {error}"))
        })
    }
}

fn is_at(host: Option<&Host>, target: Target) -> bool {
    let exists = host.filter(|host| host.exists);
    let is = |state: &str| {
        exists.is_some_and(|host| {
            let status = &host.status;
            status.provisioning.state == state && status.powered_on && status.error_message.is_empty()
        })
    };
    match target {
        Target::Available => is("available"),
        Target::Provisioned => is("provisioned"),
        // Known, and no longer there.
        Target::Gone => host.is_some() && exists.is_none(),
    }
}

impl State {
    fn observe(&mut self, event: WatchEvent<Slim>, now: Instant) -> anyhow::Result<()> {
        let (object, exists) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, true),
            WatchEvent::Deleted(object) => (object, false),
            WatchEvent::Bookmark(bookmark) => {
                self.version = bookmark.metadata.resource_version;
                return Ok(());
            }
            WatchEvent::Error(status) => bail!("the watch of hosts: {status:?}"),
        };
        let Slim { metadata, status } = object;
        self.version = metadata.resource_version;
        let host = self.hosts.entry(metadata.name).or_default();
        (host.status, host.exists) = (status, exists);
        host.pending = match host.pending {
            Some(Pending::Change { calm }) => Some(Pending::Answer { calm, since: now }),
            Some(Pending::Answer { calm, since }) => {
                let times = if calm { &mut self.calm } else { &mut self.burst };
                times.push(now.duration_since(since).as_secs_f64() * 1000.0);
                host.answered = Some(now);
                None
            }
            None => None,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(kind: &str, state: &str) -> WatchEvent<Slim> {
        let object = json!({ "metadata": { "name": "a", "resourceVersion": "7" },
            "status": { "provisioning": { "state": state }, "poweredOn": true } });
        serde_json::from_value(json!({ "type": kind, "object": object })).unwrap()
    }

    #[test]
    fn reaction_is_from_the_change_to_the_next_event() {
        let fleet = Fleet::default();
        fleet.expect("a", true);
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        for (event, time) in [
            (event("ADDED", ""), 100),
            (event("MODIFIED", ""), 130),
            (event("MODIFIED", "available"), 900),
        ] {
            fleet.0.lock().observe(event, at(time)).unwrap();
        }
        assert_eq!(fleet.answered("a"), Some(at(130)));
        let reaction = fleet.take_reactions();
        assert_eq!((reaction.calm.number, reaction.calm.max.round()), (1, 30.0));
        assert_eq!(reaction.burst.number, 0);
        assert_eq!(fleet.count(&["a".to_owned()], Target::Available), 1);
    }

    #[test]
    fn host_is_gone_after_it_was_there() {
        let fleet = Fleet::default();
        assert!(!fleet.is_at("a", Target::Gone));
        for kind in ["ADDED", "DELETED"] {
            fleet
                .0
                .lock()
                .observe(event(kind, "available"), Instant::now())
                .unwrap();
        }
        assert!(fleet.is_at("a", Target::Gone) && !fleet.is_at("a", Target::Available));
        assert_eq!(fleet.states(), Counts::new());
    }
}
