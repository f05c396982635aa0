//! An Ironic as far as its listings go, with a clock of its own, and a feed that is driven by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use metal3_domain::clock::Monotonic;
use metal3_domain::ids::NodeUuid;
use serde_json::json;

use crate::calls::node::Order;
use crate::feed::{ChangeTracker, FeedEvent, ListedNode, PageRequest, Step};
use crate::model::node::Node;
use crate::model::page::{Marker, Page, Unreadable};
use crate::model::state::ProvisionState;

pub(super) fn uuid(number: usize) -> NodeUuid {
    NodeUuid::parse(format!("{number:08x}-0000-0000-0000-000000000000")).unwrap()
}

struct Record {
    node: Node,
    version: u64,
    /// Ironic's `id`: a node that is created anew comes last.
    serial: u64,
}

pub(super) struct World {
    pub(super) tracker: ChangeTracker,
    nodes: BTreeMap<usize, Record>,
    serial: u64,
    version: u64,
    passed: Duration,
    server: DateTime<Utc>,
    blank: Node,
    /// What whoever is events has read from the store.
    read: BTreeMap<NodeUuid, Node>,
    pub(super) newest_asked: u32,
    pub(super) full_asked: u32,
    pub(super) nodes_sent: usize,
    pub(super) failed: u32,
    pub(super) failing: bool,
    pub(super) whole_seconds: bool,
    /// Ironic's `max_limit` is small: every round has several pages.
    pub(super) small_pages: bool,
    pub(super) gone: Vec<NodeUuid>,
    pub(super) everything: u32,
    pub(super) unreadable: BTreeSet<usize>,
    pub(super) has_unidentified: bool,
    pub(super) told_unreadable: u32,
}

impl World {
    /// Nodes that last changed an hour ago and before, a minute apart.
    pub(super) fn with_nodes(count: usize) -> Self {
        let blank = json!({"uuid": uuid(0).as_str(), "provision_state": "active"});
        let mut world = Self {
            tracker: ChangeTracker::new(),
            nodes: BTreeMap::new(),
            serial: 0,
            version: 0,
            passed: Duration::from_secs(1),
            server: DateTime::UNIX_EPOCH + TimeDelta::days(20_000),
            blank: serde_json::from_value(blank).unwrap(),
            read: BTreeMap::new(),
            newest_asked: 0,
            full_asked: 0,
            nodes_sent: 0,
            failed: 0,
            failing: false,
            whole_seconds: false,
            small_pages: false,
            gone: Vec::new(),
            everything: 0,
            unreadable: BTreeSet::new(),
            has_unidentified: false,
            told_unreadable: 0,
        };
        for number in 0..count {
            world.create(number);
            world.change(number, -3_600_000 - 60_000 * i64::try_from(number).unwrap());
        }
        world
    }

    pub(super) fn now(&self) -> Monotonic {
        Monotonic::new(self.passed)
    }

    pub(super) fn create(&mut self, number: usize) {
        if self.nodes.contains_key(&number) {
            return;
        }
        let mut node = self.blank.clone();
        node.uuid = uuid(number);
        (self.serial, self.version) = (self.serial + 1, self.version + 1);
        let (version, serial) = (self.version, self.serial);
        self.nodes.insert(number, Record { node, version, serial });
    }

    /// A change that becomes visible now, stamped by a clock that differs.
    pub(super) fn change(&mut self, number: usize, skew_millis: i64) {
        let stamp = self.server + TimeDelta::milliseconds(skew_millis);
        let stamp = if self.whole_seconds {
            stamp.trunc_subsecs(0)
        } else {
            stamp
        };
        self.version += 1;
        if let Some(record) = self.nodes.get_mut(&number) {
            record.version = self.version;
            record.node.updated_at = Some(stamp);
            record.node.name = Some(format!("version {}", self.version));
        }
    }

    pub(super) fn set_state(&mut self, number: usize, state: ProvisionState) {
        self.nodes.get_mut(&number).unwrap().node.provision_state = state;
        self.change(number, 0);
    }

    pub(super) fn delete(&mut self, number: usize) {
        self.nodes.remove(&number);
    }

    pub(super) fn set_clock_back(&mut self, by: Duration) {
        self.server -= TimeDelta::from_std(by).unwrap();
    }

    pub(super) fn restart(&mut self) {
        self.tracker = ChangeTracker::new();
        self.read.clear();
    }

    pub(super) fn forget_counts(&mut self) {
        (self.newest_asked, self.full_asked, self.nodes_sent) = (0, 0, 0);
    }

    pub(super) fn count(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn has_changed(&self, number: usize) -> bool {
        self.nodes[&number].node.updated_at.is_some()
    }

    /// Nodes of which a events reader has not read the present record.
    pub(super) fn differences(&self) -> Vec<usize> {
        let differs = |(_, record): &(&usize, &Record)| self.read.get(&record.node.uuid) != Some(&record.node);
        self.nodes.iter().filter(differs).map(|(number, _)| *number).collect()
    }

    pub(super) fn run(&mut self, time: Duration) {
        self.run_with(time, |_| {});
    }

    /// Lets time pass. `after_rest` is called whenever a rest ends.
    pub(super) fn run_with(&mut self, time: Duration, mut after_rest: impl FnMut(&mut Self)) {
        let end = self.passed + time;
        loop {
            let Some(rest) = self.step() else { continue };
            if self.passed + rest > end {
                self.pass(end - self.passed);
                return;
            }
            self.pass(rest);
            after_rest(self);
        }
    }

    fn pass(&mut self, time: Duration) {
        self.passed += time;
        self.server += TimeDelta::from_std(time).unwrap();
    }

    /// Requests one page, or returns how long to wait.
    pub(super) fn step(&mut self) -> Option<Duration> {
        let request = match self.tracker.next(self.now()) {
            Step::Wait(pause) => return Some(pause),
            Step::Fetch(request) => request,
        };
        if self.failing {
            self.failed += 1;
            self.tracker.failed(self.now(), super::lost());
            return None;
        }
        match request.order {
            Order::NewestChange => self.newest_asked += 1,
            Order::Created => self.full_asked += 1,
        }
        match self.page(&request) {
            Some(page) => {
                // The header has whole seconds.
                let events = self
                    .tracker
                    .answered(self.now(), page, Some(self.server.trunc_subsecs(0)));
                self.wake(events);
            }
            None => self.tracker.failed(self.now(), super::not_found()),
        }
        None
    }

    fn wake(&mut self, events: Vec<FeedEvent>) {
        for event in events {
            match event {
                FeedEvent::Changed(uuid) => {
                    let node = self.tracker.node(&uuid).unwrap();
                    self.read.insert(uuid, (*node).clone());
                }
                FeedEvent::Deleted(uuid) => {
                    self.read.remove(&uuid);
                    self.gone.push(uuid);
                }
                FeedEvent::Unreadable(_) => self.told_unreadable += 1,
                FeedEvent::Resync => self.everything += 1,
            }
        }
    }

    fn page(&mut self, ask: &PageRequest) -> Option<Page<ListedNode>> {
        let mut sorted: Vec<&Record> = self.nodes.values().collect();
        match ask.order {
            Order::Created => sorted.sort_by_key(|record| record.serial),
            // Null is smallest; equal keys go by `id`, downwards too.
            Order::NewestChange => sorted.sort_by_key(|record| (record.node.updated_at, record.serial)),
        }
        if ask.order == Order::NewestChange {
            sorted.reverse();
        }
        let limit = usize::from(if self.small_pages { ask.limit.min(7) } else { ask.limit });
        let start = match &ask.behind {
            None => 0,
            Some(Marker(marker)) => 1 + sorted.iter().position(|record| record.node.uuid.as_str() == marker)?,
        };
        let shown: Vec<&Record> = sorted[start..].iter().take(limit).copied().collect();
        let full = shown.len() == limit;
        let mut page = Page {
            items: Vec::new(),
            unreadable: Vec::new(),
            next: shown
                .last()
                .filter(|_| full)
                .map(|record| Marker::behind(record.node.uuid.as_str())),
        };
        for record in shown {
            let node = record.node.clone();
            let number = usize::from_str_radix(node.uuid.as_str().split('-').next().unwrap(), 16).unwrap();
            if self.unreadable.contains(&number) {
                let uuid = (!self.has_unidentified).then(|| node.uuid.as_str().to_owned());
                let reason = String::new();
                page.unreadable.push(Unreadable { uuid, reason });
            } else {
                let fingerprint = record.version;
                page.items.push(ListedNode { node, fingerprint });
            }
        }
        self.nodes_sent += page.items.len();
        Some(page)
    }
}
