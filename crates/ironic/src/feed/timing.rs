//! How often and how much is asked. Every figure of the feed that is a choice stands here, with its reason.

use std::time::Duration;

/// While a node of ours moves: a change is seen within a second.
pub(super) const QUICK: Duration = Duration::from_secs(1);
/// Otherwise. Nobody waits then; Ironic itself looks at power every two minutes.
pub(super) const CALM: Duration = Duration::from_secs(10);
/// How long the feed stays quick after something was asked for: Ironic takes a lock and moves within this time.
pub(super) const QUICK_AFTER_REQUEST: Duration = Duration::from_secs(5);
/// Full listings find what the feed cannot see. Half a second of Ironic's time per thousand nodes.
pub(super) const FULL_EVERY: Duration = Duration::from_secs(300);
/// How far stamps may be out of order: commits that come late, conductors whose clocks differ, whole seconds.
pub(super) const OVERLAP: Duration = Duration::from_secs(15);

/// Nodes in a page when few move: one small answer.
pub(super) const SMALL_PAGE: u16 = 20;
/// And when many do, or the last round needed more than a page.
pub(super) const LARGE_PAGE: u16 = 200;
/// From so many moving nodes on.
pub(super) const MANY: usize = 10;
/// Nodes in a page of a full listing: Ironic's own default limit.
pub(super) const FULL_PAGE: u16 = 1000;
/// A round that needs more pages than this is given up for a full listing, which is cheaper by then.
pub(super) const MOST_PAGES: u32 = 10;

/// The first pause after a failure; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause: how late a recovery may be noticed.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// So many failures in a row are an outage, after which everything is looked at again.
pub(super) const OUTAGE: u32 = 2;

/// The pause after this many failures in a row.
pub(super) fn pause(failures: u32) -> Duration {
    let doubled = 2u32.saturating_pow(failures.saturating_sub(1));
    FIRST_PAUSE.saturating_mul(doubled).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute() {
        let seconds: Vec<u64> = (1..9).map(|failures| pause(failures).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(pause(u32::MAX).as_secs(), 60);
    }
}
