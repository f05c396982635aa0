//! One poll of the feed: of the newest changes, or of every node.

use chrono::{DateTime, Utc};
use metal3_domain::clock::Monotonic;

use crate::model::page::Marker;

/// The current poll.
#[derive(Debug)]
pub(super) enum Round {
    Waiting {
        until: Monotonic,
    },
    Newest(Newest),
    Full {
        began: Monotonic,
        behind: Option<Marker>,
        has_unidentified: bool,
    },
}

#[derive(Debug)]
pub(super) struct Newest {
    pub(super) began: Monotonic,
    pub(super) behind: Option<Marker>,
    pub(super) pages: u32,
    pub(super) newest: Option<DateTime<Utc>>,
    pub(super) clock_is_behind: bool,
}
