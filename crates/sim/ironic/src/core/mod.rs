//! The core of the simulator: nodes, ports and timers. Pure: callers pass the time.
//!
//! Before a request is handled, all due timers run in order, with their own timestamps. So the same seed, requests and
//! times produce the same answers, without background tasks.

mod deploy;
mod firmware;
mod hardware;
mod images;
mod machines;
mod media;
mod nodes;
mod perform;
mod ports;
mod power;
mod provision;
mod restore;
mod route;
mod sync;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use http::StatusCode;
use metal3_domain::clock::Monotonic;
use metal3_ironic::version::{Microversion, Range};
use metal3_sim_bmc::profile::Profile;
use metal3_sim_faults::Random;
use serde_json::Value;

use crate::bmc::Bmc;
use crate::machine::{Machine, Pace};
use crate::node::{Entry, Node, Slot, patch, present};
use crate::refusal::Refusal;
use crate::request::ApiRequest;
use crate::work::{self, Job, Kind, Script, steps};
use images::ImageSources;

pub(crate) use ports::Port;

/// The host name of the only conductor.
pub(crate) const HOST: &str = "localhost";

/// The error for a node without a BMC address in `driver_info`.
const NO_BMC: &str = "some parameters were missing in node's driver_info: the address of the BMC";

/// The current time: wall time for timestamps, monotonic time for timers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    pub(crate) wall: DateTime<Utc>,
    pub(crate) monotonic: Monotonic,
}

impl Now {
    /// The wall time of an earlier monotonic time.
    fn earlier(self, earlier: Monotonic) -> Self {
        let passed = TimeDelta::from_std(self.monotonic.since(earlier)).unwrap_or_default();
        Self {
            wall: self.wall.checked_sub_signed(passed).unwrap_or(self.wall),
            monotonic: earlier,
        }
    }
}

/// A successful answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// The text of the document.
    pub(crate) body: Option<Arc<str>>,
    pub(crate) location: Option<String>,
    /// The additional delay of a slow BMC.
    pub(crate) delay: Duration,
}

impl Answer {
    pub(crate) fn ok(body: Value) -> Self {
        Self {
            status: StatusCode::OK,
            body: Some(body.to_string().into()),
            location: None,
            delay: Duration::ZERO,
        }
    }

    pub(crate) const fn empty(status: StatusCode) -> Self {
        Self {
            status,
            body: None,
            location: None,
            delay: Duration::ZERO,
        }
    }

    /// Sets the `Location` header.
    fn with_location(mut self, location: String) -> Self {
        self.location = Some(location);
        self
    }

    fn delayed(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

/// A failed or postponed request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Failure {
    Refused(Refusal),
    /// The node is locked: retry, then fail with this error.
    Locked(Refusal),
    /// A synchronous BMC call failed after this time.
    Bmc(Duration, Refusal),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// The next action of this work.
    Work { node: u64, slot: Slot, epoch: u64 },
    /// The power sync of all nodes.
    PowerSync,
    /// Ironic looks after the updates of the firmware that a failure left.
    DiscardUpdates { node: u64 },
}

/// The whole state.
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
    timers: BTreeMap<(Monotonic, u64), Timer>,
    /// The number of nodes ever created.
    created: u64,
    /// The sequence number of ports, work and timers.
    order: u64,
    /// How often a node was changed.
    touched: u64,
    random: Random,
    images: ImageSources,
    /// The base URL of links.
    pub(crate) base: String,
}

/// The context of a request handler.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) request: &'a ApiRequest,
    pub(crate) now: Now,
    pub(crate) microversion: Microversion,
    /// Whether an earlier attempt found the node locked.
    pub(crate) is_retry: bool,
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
            timers: BTreeMap::from([((first_sync, 0), Timer::PowerSync)]),
            created: 0,
            order: 0,
            touched: 0,
            random: Random::seeded(seed),
            images: ImageSources::default(),
            base: "http://ironicsim".to_owned(),
        }
    }

    pub(crate) fn redirect_image(&mut self, url: String, target: String) {
        self.images.redirects.insert(url, target);
    }

    pub(crate) fn download_images(&mut self) {
        self.images.is_local = true;
    }

    pub(crate) fn require_login(&mut self, registry: String, login: String) {
        self.images.logins.insert(registry, login);
    }

    /// Finds the image of a deployment.
    ///
    /// # Errors
    /// Why the deployment fails.
    fn resolve_image(&mut self, serial: u64) -> Result<(), String> {
        let real = self
            .nodes
            .get_mut(&serial)
            .filter(|node| !node.is_fake() && node.text("deploy_interface") == Some("direct"));
        if let Some(node) = real
            && let Some(Value::Object(info)) = node.fields.get_mut("instance_info")
        {
            self.images.resolve(info)
        } else {
            Ok(())
        }
    }

    /// Runs all due timers. Returns whether a node may have changed: not while work waits for its turn.
    pub(crate) fn advance(&mut self, now: Now) -> bool {
        let mut may_have_changed = false;
        while let Some(entry) = self.timers.first_entry() {
            let (due, _) = *entry.key();
            if due > now.monotonic {
                break;
            }
            let timer = entry.remove();
            let then = now.earlier(due);
            may_have_changed |= match timer {
                Timer::Work { node, slot, epoch } => self.perform(node, slot, epoch, then),
                Timer::DiscardUpdates { node } => {
                    self.discard_updates(node, then);
                    true
                }
                Timer::PowerSync => {
                    self.sync_power(then);
                    let next = due.after(self.pace.power_sync.max(Duration::from_secs(1)));
                    let order = self.next_order();
                    self.timers.insert((next, order), Timer::PowerSync);
                    true
                }
            };
        }
        may_have_changed
    }

    /// When the next timer fires.
    pub(crate) fn next_due(&self) -> Option<Monotonic> {
        self.timers.keys().next().map(|(due, _)| *due)
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

    /// Finds a node by UUID or name.
    fn find(&self, ident: &str) -> Result<u64, Refusal> {
        let found = self.uuids.get(ident).or_else(|| self.names.get(ident));
        found.copied().ok_or_else(|| Refusal::not_found("Node", ident))
    }

    pub(crate) fn node(&self, ident: &str) -> Result<&Node, Refusal> {
        let serial = self.find(ident)?;
        self.nodes.get(&serial).ok_or_else(|| Refusal::not_found("Node", ident))
    }

    /// Updates the `updated_at` time of a node.
    fn touch(&mut self, serial: u64, now: Now) {
        self.touched = self.touched.saturating_add(1);
        if let Some(node) = self.nodes.get_mut(&serial) {
            self.changes.remove(&(node.times.updated, serial));
            node.times.updated = Some(now.wall);
            self.changes.insert((node.times.updated, serial));
        }
    }

    /// Runs `work` with the node's lock. As in Ironic, locking updates the record even when `work` fails.
    fn locked<T>(
        &mut self,
        ident: &str,
        now: Now,
        work: impl FnOnce(&mut Self, u64) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let serial = self.find(ident)?;
        if let Some(node) = self.nodes.get(&serial).filter(|node| node.lock.is_some()) {
            return Err(Failure::Locked(Refusal::locked(&node.uuid, HOST)));
        }
        self.touch(serial, now);
        work(self, serial)
    }

    fn node_mut(&mut self, serial: u64) -> Result<&mut Node, Refusal> {
        let gone = || Refusal::not_found("Node", &serial.to_string());
        self.nodes.get_mut(&serial).ok_or_else(gone)
    }

    /// Begins work, which holds the node's lock.
    fn begin(&mut self, serial: u64, slot: Slot, kind: Kind, script: Script, now: Now) {
        let epoch = self.next_order();
        if let Some(node) = self.nodes.get_mut(&serial) {
            node.lock = Some(slot);
            let script = script.finish();
            let job = Job {
                kind,
                epoch,
                script,
                looks_since: None,
            };
            node.jobs.insert(slot, job);
        }
        self.schedule(serial, slot, now);
    }

    /// Schedules the next action of a job, or ends the job.
    fn schedule(&mut self, serial: u64, slot: Slot, now: Now) {
        let order = self.next_order();
        let Some((node, machine)) = self.node_and_machine(serial) else {
            return;
        };
        let Some(job) = node.jobs.get(&slot) else { return };
        match job.script.front() {
            Some(due) => {
                let at = now
                    .monotonic
                    .after(due.after.saturating_add(work::extra(machine.as_deref(), &due.action)));
                let (node, epoch) = (serial, job.epoch);
                self.timers.insert((at, order), Timer::Work { node, slot, epoch });
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

    /// Adds an entry to a node's history.
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

    /// Removes all records, as with a lost database. The machines keep their state.
    pub(crate) fn lose_database(&mut self) {
        self.nodes.clear();
        self.uuids.clear();
        self.names.clear();
        self.changes.clear();
        self.ports.clear();
        self.timers.retain(|_, timer| *timer == Timer::PowerSync);
    }
}
