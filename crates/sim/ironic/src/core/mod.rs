//! The whole simulated Ironic: nodes, ports, and what is due when. Time is handed in; nothing here waits or sends.
//!
//! Whatever is due by the time of a request has happened before the request is looked at, in its order and with its
//! own time stamps. So the same seed, requests and times give the same answers, and no task runs in the background.

mod hardware;
mod metal;
mod nodes;
mod perform;
mod ports;
mod power;
mod provision;
mod recorded;
mod route;
mod sync;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use http::StatusCode;
use metal3_domain::clock::Monotonic;
use metal3_sim_faults::Random;
use metal3_ironic::version::{Microversion, Range};
use metal3_sim_bmc::profile::Profile;
use serde_json::Value;

use crate::bmc::Bmc;
use crate::machine::{Machine, Pace};
use crate::node::{Entry, Node, Slot, patch, present};
use crate::refusal::Refusal;
use crate::work::{self, Job, Kind, Script, steps};

pub(crate) use ports::Port;

/// The name of the only conductor.
pub(crate) const HOST: &str = "localhost";

/// What is said of a node whose `driver_info` does not say where its machine is.
const NO_BMC: &str = "some parameters were missing in node's driver_info: the address of the BMC";

/// When something is read: both scales, for stamps and for what is due.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    pub(crate) wall: DateTime<Utc>,
    pub(crate) monotonic: Monotonic,
}

impl Now {
    /// The same moment's wall time at an earlier point.
    fn at(self, earlier: Monotonic) -> Self {
        let passed = TimeDelta::from_std(self.monotonic.since(earlier)).unwrap_or_default();
        Self {
            wall: self.wall.checked_sub_signed(passed).unwrap_or(self.wall),
            monotonic: earlier,
        }
    }
}

/// An answer that says yes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Option<Value>,
    pub(crate) location: Option<String>,
    /// What a slow BMC adds to the time that it takes.
    pub(crate) late: Duration,
}

impl Answer {
    pub(crate) const fn ok(body: Value) -> Self {
        Self {
            status: StatusCode::OK,
            body: Some(body),
            location: None,
            late: Duration::ZERO,
        }
    }

    pub(crate) const fn empty(status: StatusCode) -> Self {
        Self {
            status,
            body: None,
            location: None,
            late: Duration::ZERO,
        }
    }

    /// With the address of what was made or is under way.
    fn at(mut self, location: String) -> Self {
        self.location = Some(location);
        self
    }

    fn later(mut self, late: Duration) -> Self {
        self.late = late;
        self
    }
}

/// Why there is no such answer, or not yet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Stop {
    Refused(Refusal),
    /// The node is at work: try again, then give up with this refusal.
    Locked(Refusal),
    /// The BMC was asked while the client waits, and it took this long to fail.
    BmcError(Duration, Refusal),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Agenda {
    /// The next act of this work.
    Work { node: u64, slot: Slot, epoch: u64 },
    /// Ironic looks at the power of all nodes.
    PowerSync,
}

/// Everything.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) pace: Pace,
    profiles: Vec<Profile>,
    versions: Range,
    machines: BTreeMap<Bmc, Machine>,
    nodes: BTreeMap<u64, Node>,
    uuids: BTreeMap<String, u64>,
    names: BTreeMap<String, u64>,
    /// Nodes by their last change, oldest first.
    changes: BTreeSet<(Option<DateTime<Utc>>, u64)>,
    ports: BTreeMap<u64, Port>,
    agenda: BTreeMap<(Monotonic, u64), Agenda>,
    /// How many nodes there ever were.
    created: u64,
    /// What ports, work and the agenda are numbered with.
    order: u64,
    random: Random,
    /// The address that links are made of.
    pub(crate) base: String,
}

/// What every handler of a request gets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    pub(crate) now: Now,
    pub(crate) speaks: Microversion,
    /// Whether the request was looked at before and found the node locked.
    pub(crate) again: bool,
}

impl Core {
    pub(crate) fn new(seed: u64, pace: Pace, versions: Range, profiles: Vec<Profile>, now: Now) -> Self {
        let first_sync = now.monotonic.after(pace.power_sync);
        Self {
            pace,
            profiles,
            versions,
            machines: BTreeMap::new(),
            nodes: BTreeMap::new(),
            uuids: BTreeMap::new(),
            names: BTreeMap::new(),
            changes: BTreeSet::new(),
            ports: BTreeMap::new(),
            agenda: BTreeMap::from([((first_sync, 0), Agenda::PowerSync)]),
            created: 0,
            order: 0,
            random: Random::seeded(seed),
            base: "http://ironicsim".to_owned(),
        }
    }

    /// Lets everything happen that is due.
    pub(crate) fn advance(&mut self, now: Now) {
        while let Some(entry) = self.agenda.first_entry() {
            let (due, _) = *entry.key();
            if due > now.monotonic {
                return;
            }
            let agenda = entry.remove();
            let then = now.at(due);
            match agenda {
                Agenda::Work { node, slot, epoch } => self.perform(node, slot, epoch, then),
                Agenda::PowerSync => {
                    self.sync_power(then);
                    let next = due.after(self.pace.power_sync.max(Duration::from_secs(1)));
                    let order = self.next_order();
                    self.agenda.insert((next, order), Agenda::PowerSync);
                }
            }
        }
    }

    /// When something happens next without being asked for.
    pub(crate) fn next_due(&self) -> Option<Monotonic> {
        self.agenda.keys().next().map(|(due, _)| *due)
    }

    fn next_order(&mut self) -> u64 {
        self.order = self.order.saturating_add(1);
        self.order
    }

    pub(crate) fn new_uuid(&mut self) -> String {
        let (high, low) = (self.random.number(), self.random.number());
        format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            low >> 52,
            low & 0xffff_ffff_ffff
        )
    }

    /// A node by its identity or name.
    fn find(&self, ident: &str) -> Result<u64, Refusal> {
        let found = self.uuids.get(ident).or_else(|| self.names.get(ident));
        found.copied().ok_or_else(|| Refusal::not_found("Node", ident))
    }

    fn node(&self, ident: &str) -> Result<&Node, Refusal> {
        let serial = self.find(ident)?;
        self.nodes.get(&serial).ok_or_else(|| Refusal::not_found("Node", ident))
    }

    /// Marks a record as changed now.
    fn touch(&mut self, serial: u64, now: Now) {
        if let Some(node) = self.nodes.get_mut(&serial) {
            self.changes.remove(&(node.times.updated, serial));
            node.times.updated = Some(now.wall);
            self.changes.insert((node.times.updated, serial));
        }
    }

    /// Works on a node while holding its lock, as Ironic does for every change: taking and leaving the lock changes the
    /// record, whatever comes of the work.
    fn locked<T>(
        &mut self,
        ident: &str,
        now: Now,
        work: impl FnOnce(&mut Self, u64) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let serial = self.find(ident)?;
        if let Some(node) = self.nodes.get(&serial).filter(|node| node.lock.is_some()) {
            return Err(Stop::Locked(Refusal::locked(&node.uuid, HOST)));
        }
        self.touch(serial, now);
        work(self, serial)
    }

    fn node_mut(&mut self, serial: u64) -> Result<&mut Node, Refusal> {
        let gone = || Refusal::not_found("Node", &serial.to_string());
        self.nodes.get_mut(&serial).ok_or_else(gone)
    }

    /// Begins work, which holds the node's lock until it lets go.
    fn begin(&mut self, serial: u64, slot: Slot, kind: Kind, script: Script, now: Now) {
        let epoch = self.next_order();
        if let Some(node) = self.nodes.get_mut(&serial) {
            node.lock = Some(slot);
            let script = script.finish();
            node.jobs.insert(slot, Job { kind, epoch, script });
        }
        self.schedule(serial, slot, now);
    }

    /// Puts the next act of a job on the agenda, or ends it.
    fn schedule(&mut self, serial: u64, slot: Slot, now: Now) {
        let order = self.next_order();
        let Some((node, machine)) = self.both(serial) else {
            return;
        };
        let Some(job) = node.jobs.get(&slot) else { return };
        match job.script.front() {
            Some(due) => {
                let at = now
                    .monotonic
                    .after(due.after.saturating_add(work::extra(machine.as_deref(), &due.act)));
                let (node, epoch) = (serial, job.epoch);
                self.agenda.insert((at, order), Agenda::Work { node, slot, epoch });
            }
            None => {
                node.jobs.remove(&slot);
                if node.lock == Some(slot) {
                    node.lock = None;
                }
                self.touch(serial, now);
            }
        }
    }

    /// Notes something in a node's history.
    fn note(&mut self, serial: u64, severity: &'static str, event: String, now: Now) {
        let uuid = self.new_uuid();
        if let Some(node) = self.nodes.get_mut(&serial) {
            let at = now.wall;
            node.history.push(Entry {
                uuid,
                at,
                severity,
                event,
            });
        }
    }

    /// Forgets every record, as an Ironic does whose database is gone. The machines stay as they are, unknown.
    pub(crate) fn lose_database(&mut self) {
        self.nodes.clear();
        self.uuids.clear();
        self.names.clear();
        self.changes.clear();
        self.ports.clear();
        self.agenda.retain(|_, agenda| *agenda == Agenda::PowerSync);
    }
}
