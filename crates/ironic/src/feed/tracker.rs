//! What to request next, and what a response means. Pure: time and responses are arguments.
//!
//! A round reads the newest changes down to the floor of the [`Watermark`]; a complete list follows when it is due or
//! the feed may have missed a change. The watermark moves at the end of a round only, so an interrupted round is read
//! again.

mod records;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use metal3_domain::clock::Monotonic;
use metal3_domain::ids::NodeUuid;

use super::keys::NodesByKey;
use super::listed_node::ListedNode;
use super::round::{Newest, Round};
use super::step::{FeedEvent, PageRequest, Step};
use super::timing::{
    self, FULL_EVERY, FULL_PAGE, LARGE_PAGE, MANY, MOST_PAGES, OUTAGE, QUICK_AFTER_REQUEST, SLOW, SMALL_PAGE,
};
use super::watermark::Watermark;
use crate::calls::node::Order;
use crate::endpoint::QUICK_POLL;
use crate::error::Error;
use crate::model::node::Node;
use crate::model::page::Page;
use records::CachedNode;

/// The state of a feed.
#[derive(Debug)]
pub struct ChangeTracker {
    known: BTreeMap<NodeUuid, CachedNode>,
    by_key: Option<NodesByKey>,
    managed: BTreeSet<NodeUuid>,
    /// When the current page was requested.
    asked: Monotonic,
    /// When the last completed round began: nodes that it did not contain had not changed.
    round_began: Option<Monotonic>,
    /// When the last poll began that read all it had to: a round, or a complete list that replaced one.
    polled: Option<Monotonic>,
    /// Nodes in a transition, managed or not.
    in_transition: BTreeSet<NodeUuid>,
    round: Round,
    watermark: Option<Watermark>,
    clock_was_behind: bool,
    listing: u64,
    listed: Option<Monotonic>,
    needs_full_list: bool,
    large_pages: bool,
    /// The pause while a managed node changes state.
    quick: Duration,
    quick_until: Monotonic,
    failures: u32,
    /// The last ones of them that were refusals of this program.
    refusals: u32,
    last_error: Option<Error>,
    unreadable: BTreeSet<NodeUuid>,
    /// Nodes that were deleted, and when: a page that was requested before may still have them.
    gone: BTreeMap<NodeUuid, Monotonic>,
    events: Vec<FeedEvent>,
}

impl Default for ChangeTracker {
    fn default() -> Self {
        Self::new()
    }
}

impl ChangeTracker {
    /// A tracker without nodes, which begins with a complete list.
    #[must_use]
    pub const fn new() -> Self {
        Self::polling_within(QUICK_POLL)
    }

    /// The same, with this pause while a managed node changes state.
    #[must_use]
    pub const fn polling_within(quick: Duration) -> Self {
        let start = Monotonic::new(Duration::ZERO);
        Self {
            known: BTreeMap::new(),
            by_key: None,
            managed: BTreeSet::new(),
            asked: start,
            round_began: None,
            polled: None,
            in_transition: BTreeSet::new(),
            round: Round::Waiting { until: start },
            watermark: None,
            clock_was_behind: false,
            listing: 0,
            listed: None,
            needs_full_list: true,
            large_pages: false,
            quick,
            quick_until: start,
            failures: 0,
            refusals: 0,
            last_error: None,
            unreadable: BTreeSet::new(),
            gone: BTreeMap::new(),
            events: Vec::new(),
        }
    }

    /// The next step at this time.
    pub fn next(&mut self, now: Monotonic) -> Step {
        if let Round::Waiting { until } = self.round {
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
            // Returned above.
            Round::Waiting { .. } => PageRequest {
                order: Order::NewestChange,
                limit: SMALL_PAGE,
                behind: None,
            },
        })
    }

    /// Processes the requested page.
    #[must_use = "the events must be sent"]
    pub fn answered(
        &mut self,
        now: Monotonic,
        page: Page<ListedNode>,
        server: Option<DateTime<Utc>>,
    ) -> Vec<FeedEvent> {
        if self.failures >= OUTAGE {
            self.events.push(FeedEvent::Resync);
            self.needs_full_list = true;
        }
        (self.failures, self.refusals, self.last_error) = (0, 0, None);
        let waiting = Round::Waiting { until: now };
        match std::mem::replace(&mut self.round, waiting) {
            Round::Newest(round) => self.newest_page(round, page, server),
            Round::Full {
                began,
                has_unidentified,
                ..
            } => self.full_page(now, began, has_unidentified, page),
            // A response without a request.
            Round::Waiting { until } => self.round = Round::Waiting { until },
        }
        std::mem::take(&mut self.events)
    }

    /// Processes a failed request.
    pub fn failed(&mut self, now: Monotonic, error: Error) {
        let is_marker_deleted = matches!(error, Error::NotFound(_));
        let has_marker = match &self.round {
            Round::Newest(Newest { behind, .. }) | Round::Full { behind, .. } => behind.is_some(),
            Round::Waiting { .. } => false,
        };
        // The marker's node was deleted: begin again at once.
        if is_marker_deleted && has_marker && self.failures == 0 {
            self.needs_full_list = true;
            self.failures = 1;
            self.round = Round::Waiting { until: now };
            return;
        }
        self.failures = self.failures.saturating_add(1);
        // An Ironic that comes up may refuse a request or two.
        self.refusals = match error.is_of_every_request() {
            true => self.refusals.saturating_add(1),
            false => 0,
        };
        let pause = timing::pause(self.failures, self.refusals);
        self.last_error = Some(error);
        self.round = Round::Waiting {
            until: now.after(pause),
        };
    }

    /// The cached node.
    #[must_use]
    pub fn node(&self, uuid: &NodeUuid) -> Option<Arc<Node>> {
        self.known.get(uuid).map(|known| Arc::clone(&known.node))
    }

    /// Since when the node is known to be as [`ChangeTracker::node`] returns it. A round does not confirm a record that
    /// cannot be decoded.
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

    /// All cached nodes.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.known.values().map(|known| &known.node)
    }

    /// Marks a node as managed: the feed polls quickly while it changes state.
    pub fn manage(&mut self, uuid: NodeUuid) {
        self.managed.insert(uuid);
    }

    /// Ironic received a request: wait no longer than the quick interval.
    pub fn poll_soon(&mut self, now: Monotonic) {
        self.quick_until = now.after(QUICK_AFTER_REQUEST);
        if let Round::Waiting { until } = &mut self.round
            && self.failures == 0
        {
            *until = (*until).min(now.after(self.quick));
        }
    }

    /// Requests have another destination from now on: a pause after failures is over.
    pub fn destination_changed(&mut self, now: Monotonic) {
        if let Round::Waiting { until } = &mut self.round {
            *until = now;
        }
    }

    /// Requests go to another endpoint from now on: nothing is listed there yet.
    pub fn endpoint_changed(&mut self, now: Monotonic) {
        self.round = Round::Waiting { until: now };
        (self.needs_full_list, self.listed) = (true, None);
    }

    /// When the last completed poll began.
    #[must_use]
    pub const fn polled(&self) -> Option<Monotonic> {
        self.polled
    }

    /// The error of the last attempt.
    #[must_use]
    pub const fn last_error(&self) -> Option<&Error> {
        self.last_error.as_ref()
    }

    fn newest_page(&mut self, mut round: Newest, page: Page<ListedNode>, server: Option<DateTime<Utc>>) {
        round.pages = round.pages.saturating_add(1);
        let floor = self.watermark.map(|watermark| watermark.floor(server));
        // Newest first, so the last node shows how far down this page goes; nodes that never changed come after all.
        let last = page.items.last().map(|listed_node| listed_node.node.updated_at);
        round.newest = round
            .newest
            .max(page.items.iter().filter_map(|seen| seen.node.updated_at).max());
        round.clock_is_behind |= self.watermark.is_some_and(|watermark| watermark.is_ahead_of(server));
        let next = page.next.clone();
        self.process_page(page);
        let is_complete = match (floor, last) {
            // The first page sets the watermark only; the complete list reads the rest. If no node had changed before,
            // every changed node is new.
            (None, Some(Some(_))) => self.listed.is_none(),
            (None, _) => true,
            (Some(floor), Some(Some(last))) => last < floor,
            (Some(_), Some(None)) => true,
            // Without a readable node this is unknown.
            (Some(_), None) => false,
        };
        match next {
            Some(behind) if !is_complete && round.pages < MOST_PAGES => {
                round.behind = Some(behind);
                self.large_pages = true;
                self.round = Round::Newest(round);
            }
            next => {
                self.needs_full_list |= next.is_some() && !is_complete;
                self.end_newest(&round);
            }
        }
    }

    fn end_newest(&mut self, round: &Newest) {
        self.large_pages = round.pages > 1;
        let is_lower = match self.watermark {
            Some(watermark) => watermark.is_lower(round.newest),
            // Without changed nodes there is no watermark to lose.
            None => false,
        };
        // A clock that stays behind causes one complete list, not one for each round.
        self.needs_full_list |= is_lower || (round.clock_is_behind && !self.clock_was_behind);
        self.clock_was_behind = round.clock_is_behind;
        if !self.needs_full_list {
            (self.round_began, self.polled) = (Some(round.began), Some(round.began));
        }
        self.watermark = round.newest.map(|newest| match self.watermark {
            Some(watermark) => watermark.after_round(newest, round.began),
            None => Watermark::new(newest, round.began),
        });
        let due = self.listed.is_none_or(|listed| round.began.since(listed) >= FULL_EVERY);
        if self.needs_full_list || due {
            self.listing = self.listing.saturating_add(1);
            self.round = Round::Full {
                began: round.began,
                behind: None,
                has_unidentified: false,
            };
        } else {
            self.wait(round.began);
        }
    }

    fn full_page(&mut self, now: Monotonic, began: Monotonic, has_unidentified: bool, page: Page<ListedNode>) {
        let has_unidentified = has_unidentified
            || page
                .unreadable
                .iter()
                .any(|unreadable| unreadable.node_uuid().is_none());
        let next = page.next.clone();
        self.process_page(page);
        if let Some(behind) = next {
            let behind = Some(behind);
            self.round = Round::Full {
                began,
                behind,
                has_unidentified,
            };
            return;
        }
        // A record without a readable UUID may be any of the missing nodes.
        if !has_unidentified {
            let gone: Vec<NodeUuid> = self
                .known
                .iter()
                .filter(|(_, known)| known.listing < self.listing)
                .map(|(uuid, _)| uuid.clone())
                .collect();
            for uuid in gone {
                self.remove(&uuid);
                self.in_transition.remove(&uuid);
                self.events.push(FeedEvent::Deleted(uuid));
            }
        }
        self.gone.retain(|_, at| *at >= began);
        (self.needs_full_list, self.listed, self.polled) = (false, Some(now), Some(began));
        self.wait(began);
    }

    fn wait(&mut self, began: Monotonic) {
        let quick = began < self.quick_until || self.managed_in_transition().next().is_some();
        self.round = Round::Waiting {
            until: began.after(if quick { self.quick } else { SLOW }),
        };
    }

    fn managed_in_transition(&self) -> impl Iterator<Item = &NodeUuid> {
        self.in_transition.iter().filter(|uuid| self.managed.contains(uuid))
    }

    fn page(&self) -> u16 {
        if self.large_pages || self.managed_in_transition().nth(MANY).is_some() {
            LARGE_PAGE
        } else {
            SMALL_PAGE
        }
    }
}
