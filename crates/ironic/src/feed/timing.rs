//! Intervals and page sizes of the feed, with their reasons.

use std::time::Duration;

/// While no managed node changes state. No controller waits then; Ironic itself checks power every two minutes.
pub(super) const SLOW: Duration = Duration::from_secs(10);
/// How long the feed polls quickly after a request: Ironic locks and changes the node within this time.
pub(super) const QUICK_AFTER_REQUEST: Duration = Duration::from_secs(5);
/// Complete lists find what the feed cannot see. They take half a second of Ironic's time per thousand nodes.
pub(super) const FULL_EVERY: Duration = Duration::from_secs(300);
/// How far timestamps may be out of order: late commits, conductors with different clocks, whole seconds.
pub(super) const OVERLAP: Duration = Duration::from_secs(15);

/// Nodes in a page when few change: one small response.
pub(super) const SMALL_PAGE: u16 = 20;
/// Nodes in a page when many change, or when the last round needed more than one page.
pub(super) const LARGE_PAGE: u16 = 200;
/// The number of changing nodes that counts as many.
pub(super) const MANY: usize = 10;
/// Nodes in a page of a complete list: Ironic's default limit.
pub(super) const FULL_PAGE: u16 = 1000;
/// A round with more pages is replaced by a complete list, which is cheaper then.
pub(super) const MOST_PAGES: u32 = 10;

/// The first pause after a failure; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause: how late a recovery is noticed. Each attempt is one small request.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// The longest pause while Ironic refuses this program, which a person ends: each attempt is a failed login, which may lock an account.
const LONGEST_PAUSE_OF_REFUSED: Duration = Duration::from_secs(60);
/// This many failures in a row are an outage, after which everything is reconciled.
pub(super) const OUTAGE: u32 = 2;

/// The pause after this many failures in a row, the last ones of which are refusals of this program.
pub(super) fn pause(failures: u32, refusals: u32) -> Duration {
    let (count, longest) = match refusals {
        0 => (failures, LONGEST_PAUSE),
        refusals => (refusals, LONGEST_PAUSE_OF_REFUSED),
    };
    let doubled = 2u32.saturating_pow(count.saturating_sub(1));
    FIRST_PAUSE.saturating_mul(doubled).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_eight_seconds_or_a_minute_where_this_program_is_refused() {
        let seconds = |of: fn(u32) -> Duration| (1..9).map(move |failures| of(failures).as_secs());
        assert!(seconds(|failures| pause(failures, 0)).eq([1, 2, 4, 8, 8, 8, 8, 8]));
        assert!(seconds(|failures| pause(failures, failures)).eq([1, 2, 4, 8, 16, 32, 60, 60]));
        assert!(seconds(|refusals| pause(100, refusals)).eq([1, 2, 4, 8, 16, 32, 60, 60]));
        assert_eq!(pause(u32::MAX, 0).as_secs(), 8);
        assert_eq!(pause(u32::MAX, u32::MAX).as_secs(), 60);
    }
}
