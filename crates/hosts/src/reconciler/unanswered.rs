//! Changes whose response is lost, by host: Ironic may still be about to perform them.
//!
//! A change waits in Ironic for a worker of the API and for the lock of the node, and is performed although no client waits for
//! its response any more. Until that is over the node shows nothing of it. What would happen to a second one:
//!
//! | Change | Sent again at once |
//! |---|---|
//! | power, provision state, deletion of the node | not sent before the first is over: the machine could be rebooted twice, or switched off after it was switched on again |
//! | creation of the node or a port | Ironic rejects the later one: names and addresses are unique. A search without a result is none until the first is over |
//! | fields of the node, maintenance | both set the same. An older value that comes late is compared before each power or provision request |
//!
//! The end of an operation that an order of it may still contradict is no end before: a host would be `provisioned` with a disk
//! that Ironic erases a moment later.
//!
//! A program that is replaced leaves no record of what it sent. Of that, two do harm that is not seen later: a creation, whose
//! node nothing deletes, and the removal of an image that is requested again. So for the same time after its start this process
//! knows of no host whether one is to come.

use std::collections::BTreeMap;
use std::time::Duration;

use metal3_domain::clock::Monotonic;
use metal3_runtime::cache::Key;
use parking_lot::Mutex;

/// How long Ironic may take to begin with a change that it received: its API waits so long for a conductor
/// (`rpc_response_timeout`).
const IRONIC_LIMIT: Duration = Duration::from_secs(60);

/// When each host lost a response last.
#[derive(Default)]
pub(super) struct Unanswered {
    lost: Mutex<BTreeMap<Key, Monotonic>>,
}

impl Unanswered {
    pub(super) fn record(&self, host: &Key, now: Monotonic) {
        self.lost.lock().insert(host.clone(), now);
    }

    /// How long Ironic may still begin with a change of the host.
    pub(super) fn left(&self, host: &Key, now: Monotonic) -> Option<Duration> {
        let mut lost = self.lost.lock();
        let left = IRONIC_LIMIT.saturating_sub(now.since(*lost.get(host)?));
        if left.is_zero() {
            lost.remove(host);
            return None;
        }
        Some(left)
    }

    /// How long Ironic may still begin with a creation of the host's node, whichever process sent it. `led`: since when it is this
    /// process.
    pub(super) fn creation_left(&self, host: &Key, led: Monotonic, now: Monotonic) -> Option<Duration> {
        let of_others = IRONIC_LIMIT.saturating_sub(now.since(led));
        self.left(host, now).max((!of_others.is_zero()).then_some(of_others))
    }

    pub(super) fn remove(&self, host: &Key) {
        self.lost.lock().remove(host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_is_over_a_minute_after_its_response_was_given_up() {
        let (unanswered, host) = (
            Unanswered::default(),
            Key {
                namespace: "metal".to_owned(),
                name: "h".to_owned(),
            },
        );
        let at = |second| Monotonic::new(Duration::from_secs(second));
        let left = |second| unanswered.left(&host, at(second)).map(|left| left.as_secs());
        assert_eq!(left(0), None);
        unanswered.record(&host, at(10));
        assert_eq!((left(10), left(69), left(70)), (Some(60), Some(1), None));
        unanswered.record(&host, at(100));
        unanswered.record(&host, at(130));
        assert_eq!(left(140), Some(50), "the last one counts");
        unanswered.remove(&host);
        assert_eq!(left(140), None);
    }

    /// Another process may have sent one before this one began, to any host.
    #[test]
    fn creation_may_come_for_a_minute_after_the_start() {
        let unanswered = Unanswered::default();
        let host = Key {
            namespace: "metal".to_owned(),
            name: "h".to_owned(),
        };
        let at = |second| Monotonic::new(Duration::from_secs(second));
        let left = |second| {
            unanswered
                .creation_left(&host, at(100), at(second))
                .map(|left| left.as_secs())
        };
        assert_eq!((left(100), left(159), left(160)), (Some(60), Some(1), None));
        unanswered.record(&host, at(200));
        assert_eq!((left(210), left(260)), (Some(50), None));
    }
}
