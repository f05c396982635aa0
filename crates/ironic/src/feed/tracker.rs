//! What to ask next, and what an answer means. Pure: time and answers are handed in.
//!
//! A round reads the newest changes down to the floor of the [`Watermark`]; a full listing follows when it is due or
//! something is in doubt. The watermark moves at the end of a round only, so a round that breaks off is read again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use metal3_domain::clock::Monotonic;
use metal3_domain::ids::NodeUuid;

use super::listed_node::ListedNode;
use super::round::{Newest, Round};
use super::step::{FeedEvent, PageRequest, Step};
use super::timing::{
    self, CALM, FULL_EVERY, FULL_PAGE, LARGE_PAGE, MANY, MOST_PAGES, OUTAGE, QUICK, QUICK_AFTER_REQUEST, SMALL_PAGE,
};
use super::watermark::Watermark;
use crate::calls::node::Order;
use crate::error::Error;
use crate::model::node::Node;
use crate::model::page::Page;

#[derive(Debug)]
struct Known {
    node: Arc<Node>,
    /// `None` when the record came from elsewhere than a listing.
    fingerprint: Option<u64>,
    /// The full listing during or after which it was seen.
    listing: u64,
    /// When it was asked for: it is at least as new as that.
    as_of: Monotonic,
}

/// The state of a feed.
#[derive(Debug)]
pub struct ChangeTracker {
    known: BTreeMap<NodeUuid, Known>,
    managed: BTreeSet<NodeUuid>,
    /// When the page under way was asked for.
    asked: Monotonic,
    /// When the last round began that was read to its end: what it did not show had not changed.
    round_began: Option<Monotonic>,
    /// Nodes that move, managed or not.
    moving: BTreeSet<NodeUuid>,
    round: Round,
    watermark: Option<Watermark>,
    clock_was_behind: bool,
    listing: u64,
    listed: Option<Monotonic>,
    in_doubt: bool,
    large_pages: bool,
    quick_until: Monotonic,
    failures: u32,
    last_error: Option<Error>,
    unreadable: BTreeSet<NodeUuid>,
    woken: Vec<FeedEvent>,
}

impl Default for ChangeTracker {
    fn default() -> Self {
        Self::new()
    }
}

impl ChangeTracker {
    /// Has seen nothing, so everything is in doubt.
    #[must_use]
    pub const fn new() -> Self {
        let start = Monotonic::new(Duration::ZERO);
        Self {
            known: BTreeMap::new(),
            managed: BTreeSet::new(),
            asked: start,
            round_began: None,
            moving: BTreeSet::new(),
            round: Round::Resting { until: start },
            watermark: None,
            clock_was_behind: false,
            listing: 0,
            listed: None,
            in_doubt: true,
            large_pages: false,
            quick_until: start,
            failures: 0,
            last_error: None,
            unreadable: BTreeSet::new(),
            woken: Vec::new(),
        }
    }

    /// The next step at this time.
    pub fn next(&mut self, now: Monotonic) -> Step {
        if let Round::Resting { until } = self.round {
            if now < until {
                return Step::Wait(until.since(now));
            }
            self.round = Round::Newest(Newest {
                began: now,
                behind: None,
                pages: 0,
                newest: None,
                clock_is_behind: false,
            });
        }
        self.asked = now;
        Step::Fetch(match &self.round {
            Round::Full { behind, .. } => PageRequest {
                order: Order::Created,
                limit: FULL_PAGE,
                behind: behind.clone(),
            },
            Round::Newest(Newest { behind, .. }) => PageRequest {
                order: Order::NewestChange,
                limit: self.page(),
                behind: behind.clone(),
            },
            // Left above.
            Round::Resting { .. } => PageRequest {
                order: Order::NewestChange,
                limit: SMALL_PAGE,
                behind: None,
            },
        })
    }

    /// Takes in the page that was asked for.
    #[must_use = "those who are named must be woken"]
    pub fn answered(
        &mut self,
        now: Monotonic,
        page: Page<ListedNode>,
        server: Option<DateTime<Utc>>,
    ) -> Vec<FeedEvent> {
        if self.failures >= OUTAGE {
            self.woken.push(FeedEvent::Resync);
            self.in_doubt = true;
        }
        (self.failures, self.last_error) = (0, None);
        let resting = Round::Resting { until: now };
        match std::mem::replace(&mut self.round, resting) {
            Round::Newest(round) => self.newest_page(round, page, server),
            Round::Full { began, nameless, .. } => self.full_page(now, began, nameless, page),
            // An answer that nobody asked for.
            Round::Resting { until } => self.round = Round::Resting { until },
        }
        std::mem::take(&mut self.woken)
    }

    /// Takes in that no page came.
    pub fn failed(&mut self, now: Monotonic, error: Error) {
        let marker_is_gone = matches!(error, Error::NotFound(_));
        let began_in_the_middle = match &self.round {
            Round::Newest(Newest { behind, .. }) | Round::Full { behind, .. } => behind.is_some(),
            Round::Resting { .. } => false,
        };
        // The node that marked the place was deleted: begin again at once.
        if marker_is_gone && began_in_the_middle && self.failures == 0 {
            self.in_doubt = true;
            self.failures = 1;
            self.round = Round::Resting { until: now };
            return;
        }
        self.failures = self.failures.saturating_add(1);
        self.last_error = Some(error);
        self.round = Round::Resting {
            until: now.after(timing::pause(self.failures)),
        };
    }

    /// The node as last seen.
    #[must_use]
    pub fn node(&self, uuid: &NodeUuid) -> Option<Arc<Node>> {
        self.known.get(uuid).map(|known| Arc::clone(&known.node))
    }

    /// Since when the node is known to be as [`ChangeTracker::node`] shows it. A record that cannot be read has not been seen,
    /// however often the feed comes by.
    #[must_use]
    pub fn as_of(&self, uuid: &NodeUuid) -> Option<Monotonic> {
        let known = self.known.get(uuid)?;
        let round_began = self.round_began.filter(|_| !self.unreadable.contains(uuid));
        Some(known.as_of).max(round_began)
    }

    /// Whether every node was listed once.
    #[must_use]
    pub const fn has_listed(&self) -> bool {
        self.listed.is_some()
    }

    /// Every node that is known.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.known.values().map(|known| &known.node)
    }

    /// This node is ours: the feed is quick while it moves.
    pub fn manage(&mut self, uuid: NodeUuid) {
        self.managed.insert(uuid);
    }

    /// It is no longer ours.
    pub fn release(&mut self, uuid: &NodeUuid) {
        self.managed.remove(uuid);
    }

    /// Takes in a node from another answer, which was asked for at `asked`.
    pub fn observed(&mut self, node: Node, asked: Monotonic) {
        self.keep(node, None, asked);
    }

    /// Something was just asked for: rest no longer than when quick.
    pub fn poll_soon(&mut self, now: Monotonic) {
        self.quick_until = now.after(QUICK_AFTER_REQUEST);
        if let Round::Resting { until } = &mut self.round
            && self.failures == 0
        {
            *until = (*until).min(now.after(QUICK));
        }
    }

    /// What went wrong at the last try.
    #[must_use]
    pub const fn last_error(&self) -> Option<&Error> {
        self.last_error.as_ref()
    }

    fn newest_page(&mut self, mut round: Newest, page: Page<ListedNode>, server: Option<DateTime<Utc>>) {
        round.pages = round.pages.saturating_add(1);
        let floor = self.watermark.map(|watermark| watermark.floor(server));
        // Newest first, so the last one tells how far down this page goes; nodes that never changed come after all.
        let last = page.items.last().map(|listed_node| listed_node.node.updated_at);
        round.newest = round
            .newest
            .max(page.items.iter().filter_map(|seen| seen.node.updated_at).max());
        round.clock_is_behind |= self.watermark.is_some_and(|watermark| watermark.is_ahead_of(server));
        let next = page.next.clone();
        self.take_in(page);
        let deep_enough = match (floor, last) {
            // The first page ever sets the watermark only; the full listing reads the rest. Where nothing had changed
            // before, everything that has is new.
            (None, Some(Some(_))) => self.listed.is_none(),
            (None, _) => true,
            (Some(floor), Some(Some(last))) => last < floor,
            (Some(_), Some(None)) => true,
            // Nothing readable in it: no way to tell.
            (Some(_), None) => false,
        };
        match next {
            Some(behind) if !deep_enough && round.pages < MOST_PAGES => {
                round.behind = Some(behind);
                self.large_pages = true;
                self.round = Round::Newest(round);
            }
            next => {
                self.in_doubt |= next.is_some() && !deep_enough;
                self.end_newest(&round);
            }
        }
    }

    fn end_newest(&mut self, round: &Newest) {
        self.large_pages = round.pages > 1;
        let sunk = match self.watermark {
            Some(watermark) => watermark.has_sunk(round.newest),
            // An empty or untouched Ironic has no watermark to lose.
            None => false,
        };
        // A clock that stays behind is one doubt, not one a round.
        self.in_doubt |= sunk || (round.clock_is_behind && !self.clock_was_behind);
        self.clock_was_behind = round.clock_is_behind;
        if !self.in_doubt {
            self.round_began = Some(round.began);
        }
        self.watermark = round.newest.map(|newest| match self.watermark {
            Some(watermark) => watermark.after_round(newest, round.began),
            None => Watermark::new(newest, round.began),
        });
        let due = self.listed.is_none_or(|listed| round.began.since(listed) >= FULL_EVERY);
        if self.in_doubt || due {
            self.listing = self.listing.saturating_add(1);
            self.round = Round::Full {
                began: round.began,
                behind: None,
                nameless: false,
            };
        } else {
            self.rest(round.began);
        }
    }

    fn full_page(&mut self, now: Monotonic, began: Monotonic, nameless: bool, page: Page<ListedNode>) {
        let nameless = nameless
            || page
                .unreadable
                .iter()
                .any(|unreadable| identity(unreadable.uuid.as_ref()).is_none());
        let next = page.next.clone();
        self.take_in(page);
        if let Some(behind) = next {
            let behind = Some(behind);
            self.round = Round::Full {
                began,
                behind,
                nameless,
            };
            return;
        }
        // A record without a readable identity may be any of those that were not seen.
        if !nameless {
            let gone: Vec<NodeUuid> = self
                .known
                .iter()
                .filter(|(_, known)| known.listing < self.listing)
                .map(|(uuid, _)| uuid.clone())
                .collect();
            for uuid in gone {
                self.known.remove(&uuid);
                self.moving.remove(&uuid);
                self.woken.push(FeedEvent::Deleted(uuid));
            }
        }
        (self.in_doubt, self.listed) = (false, Some(now));
        self.rest(began);
    }

    fn take_in(&mut self, page: Page<ListedNode>) {
        for ListedNode { node, fingerprint } in page.items {
            let uuid = node.uuid.clone();
            let before = self.known.get(&uuid).and_then(|known| known.fingerprint);
            if before != Some(fingerprint) {
                self.woken.push(FeedEvent::Changed(uuid));
            }
            self.keep(node, Some(fingerprint), self.asked);
        }
        for uuid in page
            .unreadable
            .iter()
            .filter_map(|unreadable| identity(unreadable.uuid.as_ref()))
        {
            if let Some(known) = self.known.get_mut(&uuid) {
                known.listing = self.listing;
                // When it can be read again, that is a change.
                known.fingerprint = None;
            }
            if self.unreadable.insert(uuid.clone()) {
                self.woken.push(FeedEvent::Unreadable(uuid));
            }
        }
    }

    fn keep(&mut self, node: Node, fingerprint: Option<u64>, as_of: Monotonic) {
        let uuid = node.uuid.clone();
        if let Some(known) = self.known.get_mut(&uuid).filter(|known| known.as_of > as_of) {
            // A page that was under way when a newer answer came. When the listing shows what that answer did, its
            // fingerprint is another.
            known.fingerprint = fingerprint;
            known.listing = self.listing;
            return;
        }
        if moves(&node) {
            self.moving.insert(uuid.clone());
        } else {
            self.moving.remove(&uuid);
        }
        self.unreadable.remove(&uuid);
        let known = Known {
            node: Arc::new(node),
            fingerprint,
            listing: self.listing,
            as_of,
        };
        self.known.insert(uuid, known);
    }

    fn rest(&mut self, began: Monotonic) {
        let quick = began < self.quick_until || self.ours_move().next().is_some();
        self.round = Round::Resting {
            until: began.after(if quick { QUICK } else { CALM }),
        };
    }

    fn ours_move(&self) -> impl Iterator<Item = &NodeUuid> {
        self.moving.iter().filter(|uuid| self.managed.contains(uuid))
    }

    fn page(&self) -> u16 {
        if self.large_pages || self.ours_move().nth(MANY).is_some() {
            LARGE_PAGE
        } else {
            SMALL_PAGE
        }
    }
}

/// Whether Ironic is at work on the node, so that it changes without being asked again.
fn moves(node: &Node) -> bool {
    node.provision_state.is_transitional() || node.target_power_state.is_some() || node.reservation.is_some()
}

fn identity(uuid: Option<&String>) -> Option<NodeUuid> {
    NodeUuid::parse(uuid?.as_str()).ok()
}
