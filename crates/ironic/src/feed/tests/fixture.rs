//! A simulated list of Ironic with its own clock, and a tracker that the test drives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
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
    /// Ironic's `id`: the newest node has the highest.
    serial: u64,
}

pub(super) struct Fixture {
    pub(super) tracker: ChangeTracker,
    nodes: BTreeMap<usize, Record>,
    serial: u64,
    version: u64,
    elapsed: Duration,
    server: DateTime<Utc>,
    blank: Node,
    /// The nodes as a receiver of events has read them from the store.
    read: BTreeMap<NodeUuid, Node>,
    pub(super) newest_requested: u32,
    pub(super) full_requested: u32,
    pub(super) nodes_sent: usize,
    pub(super) failed: u32,
    pub(super) failing: bool,
    pub(super) whole_seconds: bool,
    /// Ironic's `max_limit` is small: every round has several pages.
    pub(super) small_pages: bool,
    /// Every page has one node.
    pub(super) single_nodes: bool,
    pub(super) deleted: Vec<NodeUuid>,
    pub(super) resyncs: u32,
    pub(super) unreadable: BTreeSet<usize>,
    pub(super) has_unidentified: bool,
    pub(super) reported_unreadable: u32,
}

impl Fixture {
    /// Nodes whose last changes are a minute apart, the newest an hour ago.
    pub(super) fn with_nodes(count: usize) -> Self {
        let blank = json!({"uuid": uuid(0).as_str(), "provision_state": "active"});
        let mut fixture = Self {
            tracker: ChangeTracker::new(),
            nodes: BTreeMap::new(),
            serial: 0,
            version: 0,
            elapsed: Duration::from_secs(1),
            server: DateTime::UNIX_EPOCH + TimeDelta::days(20_000),
            blank: serde_json::from_value(blank).unwrap(),
            read: BTreeMap::new(),
            newest_requested: 0,
            full_requested: 0,
            nodes_sent: 0,
            failed: 0,
            failing: false,
            whole_seconds: false,
            small_pages: false,
            single_nodes: false,
            deleted: Vec::new(),
            resyncs: 0,
            unreadable: BTreeSet::new(),
            has_unidentified: false,
            reported_unreadable: 0,
        };
        for number in 0..count {
            fixture.create(number);
            fixture.change(number, -3_600_000 - 60_000 * i64::try_from(number).unwrap());
        }
        fixture
    }

    pub(super) fn now(&self) -> Monotonic {
        Monotonic::new(self.elapsed)
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

    /// Changes a node, with the timestamp of a clock that differs by `skew_millis`.
    pub(super) fn change(&mut self, number: usize, skew_millis: i64) {
        let timestamp = self.server + TimeDelta::milliseconds(skew_millis);
        let timestamp = if self.whole_seconds {
            timestamp.trunc_subsecs(0)
        } else {
            timestamp
        };
        self.version += 1;
        if let Some(record) = self.nodes.get_mut(&number) {
            record.version = self.version;
            record.node.updated_at = Some(timestamp);
            record.node.name = Some(format!("version {}", self.version));
        }
    }

    pub(super) fn set_state(&mut self, number: usize, state: ProvisionState) {
        self.update(number, |node| node.provision_state = state);
    }

    pub(super) fn update(&mut self, number: usize, change: impl FnOnce(&mut Node)) {
        change(&mut self.nodes.get_mut(&number).unwrap().node);
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

    pub(super) fn reset_counts(&mut self) {
        (self.newest_requested, self.full_requested, self.nodes_sent) = (0, 0, 0);
    }

    pub(super) fn count(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn has_changed(&self, number: usize) -> bool {
        self.nodes[&number].node.updated_at.is_some()
    }

    /// The present record of a node.
    pub(super) fn record(&self, number: usize) -> Node {
        self.nodes[&number].node.clone()
    }

    /// Answers a read: the receiver has the record, and the tracker records it.
    pub(super) fn answer_read(&mut self, record: Node, asked: Monotonic) {
        self.read.insert(record.uuid.clone(), record.clone());
        self.tracker.observed(record, asked);
    }

    /// The `Date` header, which has whole seconds.
    pub(super) fn server_time(&self) -> DateTime<Utc> {
        self.server.trunc_subsecs(0)
    }

    /// Nodes whose current record the receiver of events has not read.
    pub(super) fn differences(&self) -> Vec<usize> {
        let differs = |(_, record): &(&usize, &Record)| self.read.get(&record.node.uuid) != Some(&record.node);
        self.nodes.iter().filter(differs).map(|(number, _)| *number).collect()
    }

    pub(super) fn run(&mut self, time: Duration) {
        self.run_with(time, |_| {});
    }

    /// Advances the time. Calls `after_wait` at the end of each wait of the tracker.
    pub(super) fn run_with(&mut self, time: Duration, mut after_wait: impl FnMut(&mut Self)) {
        let end = self.elapsed + time;
        loop {
            let Some(wait) = self.step() else { continue };
            if self.elapsed + wait > end {
                self.advance(end - self.elapsed);
                return;
            }
            self.advance(wait);
            after_wait(self);
        }
    }

    pub(super) fn advance(&mut self, time: Duration) {
        self.elapsed += time;
        self.server += TimeDelta::from_std(time).unwrap();
    }

    /// Handles one page request, or returns how long the tracker waits.
    pub(super) fn step(&mut self) -> Option<Duration> {
        let request = match self.tracker.next(self.now()) {
            Step::Wait(pause) => return Some(pause),
            Step::Fetch(request) => request,
        };
        if self.failing {
            self.failed += 1;
            self.tracker.failed(self.now(), super::timeout());
            return None;
        }
        match request.order {
            Order::NewestChange => self.newest_requested += 1,
            Order::Created => self.full_requested += 1,
        }
        match self.page(&request) {
            Some(page) => {
                let events = self.tracker.answered(self.now(), page, Some(self.server_time()));
                self.receive(events);
            }
            None => self.tracker.failed(self.now(), super::not_found()),
        }
        None
    }

    pub(super) fn receive(&mut self, events: Vec<FeedEvent>) {
        for event in events {
            match event {
                FeedEvent::Changed(uuid) => {
                    let node = self.tracker.node(&uuid).unwrap();
                    self.read.insert(uuid, (*node).clone());
                }
                FeedEvent::Deleted(uuid) => {
                    self.read.remove(&uuid);
                    self.deleted.push(uuid);
                }
                FeedEvent::Unreadable(_) => self.reported_unreadable += 1,
                FeedEvent::Failed => self.failed += 1,
                FeedEvent::Resync => self.resyncs += 1,
            }
        }
    }

    pub(super) fn page(&mut self, request: &PageRequest) -> Option<Page<ListedNode>> {
        let mut sorted: Vec<&Record> = self.nodes.values().collect();
        match request.order {
            Order::Created => sorted.sort_by_key(|record| record.serial),
            // Null is smallest; equal keys are ordered by `id`, also descending.
            Order::NewestChange => sorted.sort_by_key(|record| (record.node.updated_at, record.serial)),
        }
        if request.order == Order::NewestChange {
            sorted.reverse();
        }
        let most = match (self.single_nodes, self.small_pages) {
            (true, _) => 1,
            (false, true) => 7,
            (false, false) => u16::MAX,
        };
        let limit = usize::from(request.limit.min(most));
        let start = match &request.behind {
            None => 0,
            Some(Marker(marker)) => 1 + sorted.iter().position(|record| record.node.uuid.as_str() == marker)?,
        };
        let selected: Vec<&Record> = sorted[start..].iter().take(limit).copied().collect();
        let full = selected.len() == limit;
        let mut page = Page {
            items: Vec::new(),
            unreadable: Vec::new(),
            next: selected
                .last()
                .filter(|_| full)
                .map(|record| Marker::behind(record.node.uuid.as_str())),
        };
        for record in selected {
            let node = record.node.clone();
            let number = usize::from_str_radix(node.uuid.as_str().split('-').next().unwrap(), 16).unwrap();
            if self.unreadable.contains(&number) {
                let uuid = (!self.has_unidentified).then(|| node.uuid.as_str().to_owned());
                let reason = String::new();
                page.unreadable.push(Unreadable { uuid, reason });
            } else {
                let fingerprint = record.version;
                page.items.push(ListedNode {
                    node: Arc::new(node),
                    fingerprint,
                });
            }
        }
        self.nodes_sent += page.items.len();
        Some(page)
    }
}
