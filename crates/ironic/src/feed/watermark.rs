//! How far back the newest changes must be read so that none is missed.
//!
//! This depends on one assumption: a change that becomes visible has a timestamp at most [`OVERLAP`] older than any
//! visible one. A violation (a clock that was set back) causes a complete list.
//!
//! Reading down to `top - OVERLAP` is then always enough. Once the newest timestamp is unchanged for longer than the
//! overlap, no older one can appear, and reading down to it is enough: so idle nodes cost one page, however many
//! changed shortly before.

use chrono::{DateTime, TimeDelta, Utc};
use metal3_domain::clock::Monotonic;

use super::timing::OVERLAP;

/// The newest timestamp, and since when it is the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Watermark {
    top: DateTime<Utc>,
    /// When the first round that contained it began.
    since: Monotonic,
    /// Whether a whole round began after the overlap had passed.
    settled: bool,
}

impl Watermark {
    pub(super) const fn new(top: DateTime<Utc>, round_began: Monotonic) -> Self {
        Self {
            top,
            since: round_began,
            settled: false,
        }
    }

    /// Everything with this timestamp or a newer one must be read.
    pub(super) fn floor(self, server_time: Option<DateTime<Utc>>) -> DateTime<Utc> {
        let floor = if self.settled { self.top } else { earlier(self.top) };
        match server_time {
            // Ironic's clock is behind the newest timestamp, and new changes get the time of that clock.
            Some(server) => floor.min(earlier(server)),
            None => floor,
        }
    }

    /// Whether Ironic's clock was set back behind the newest timestamp.
    pub(super) fn is_ahead_of(self, server_time: Option<DateTime<Utc>>) -> bool {
        server_time.is_some_and(|server| server < earlier(self.top))
    }

    /// Whether the newest timestamp is older than before: its node was deleted, the database was replaced, or the clock
    /// was set back.
    pub(super) fn is_lower(self, newest: Option<DateTime<Utc>>) -> bool {
        newest.is_none_or(|newest| newest < self.top)
    }

    /// The watermark after a whole round with `newest` as its newest timestamp.
    pub(super) fn after_round(self, newest: DateTime<Utc>, round_began: Monotonic) -> Self {
        if newest != self.top {
            return Self::new(newest, round_began);
        }
        Self {
            settled: self.settled || round_began.since(self.since) > OVERLAP,
            ..self
        }
    }
}

fn earlier(time: DateTime<Utc>) -> DateTime<Utc> {
    let overlap = TimeDelta::from_std(OVERLAP).unwrap_or(TimeDelta::MAX);
    time.checked_sub_signed(overlap).unwrap_or(DateTime::<Utc>::MIN_UTC)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const TOP: DateTime<Utc> = DateTime::<Utc>::UNIX_EPOCH;

    fn at(seconds: u64) -> Monotonic {
        Monotonic::new(Duration::from_secs(seconds))
    }

    #[test]
    fn the_overlap_is_read_again_until_a_round_began_after_it_had_passed() {
        let mut mark = Watermark::new(TOP, at(0));
        for began in [1, 14, 15] {
            mark = mark.after_round(TOP, at(began));
            assert_eq!(mark.floor(None), TOP - TimeDelta::seconds(15), "round at {began}");
        }
        mark = mark.after_round(TOP, at(16));
        assert_eq!(mark.floor(None), TOP);
        let newer = TOP + TimeDelta::seconds(1);
        assert_eq!(
            mark.after_round(newer, at(17)).floor(None),
            TOP - TimeDelta::seconds(14)
        );
    }

    #[test]
    fn a_clock_behind_the_newest_timestamp_lowers_the_floor_to_its_current_time() {
        let mark = Watermark::new(TOP, at(0)).after_round(TOP, at(16));
        let hour_back = Some(TOP - TimeDelta::hours(1));
        assert!(mark.is_ahead_of(hour_back));
        assert_eq!(
            mark.floor(hour_back),
            TOP - TimeDelta::hours(1) - TimeDelta::seconds(15)
        );
        assert!(!mark.is_ahead_of(Some(TOP - TimeDelta::seconds(15))));
        assert!(!mark.is_ahead_of(None));
    }

    #[test]
    fn a_newest_timestamp_that_is_lower_or_missing_is_detected() {
        let mark = Watermark::new(TOP, at(0));
        assert!(mark.is_lower(None) && mark.is_lower(Some(TOP - TimeDelta::milliseconds(1))));
        assert!(!mark.is_lower(Some(TOP)));
    }
}
