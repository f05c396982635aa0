//! What this process remembers of each subscription: failures, waits, and creations whose response is lost. All of it may be
//! lost: a process that starts takes a creation that another one recorded for one that may still come.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use metal3_domain::clock::Monotonic;
use metal3_runtime::cache::Key;
use metal3_runtime::reason::Reason;
use parking_lot::Mutex;

use super::facts::{Attempts, HostView};
use super::plan::Wait;
use crate::live::Reading;

/// How long Ironic may take to begin with a request that it received: its API waits so long for a conductor
/// (`rpc_response_timeout`).
const IRONIC_LIMIT: Duration = Duration::from_secs(60);

/// What a failure may follow from. When it changes, the next attempt is not delayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Circumstances {
    pub(super) is_deleted: bool,
    pub(super) host: Reading<HostView>,
    pub(super) bmc_address: Option<String>,
    /// The version of the Secret with the headers.
    pub(super) headers: Option<String>,
}

struct Failed {
    circumstances: Circumstances,
    failures: i64,
    until: Monotonic,
    wait: Wait,
}

struct Memory {
    uid: String,
    creation_may_come_until: Monotonic,
    host_absent: Option<Monotonic>,
    waiting: Option<(Reason, Monotonic)>,
    failed: Option<Failed>,
}

/// The memories, by object.
#[derive(Default)]
pub(super) struct Memories(Mutex<BTreeMap<Key, Memory>>);

impl Memories {
    /// What is remembered of the object. `is_open`: a creation is recorded, and its result is not.
    pub(super) fn view(
        &self,
        (key, uid): (&Key, &str),
        is_open: bool,
        circumstances: &Circumstances,
        now: Monotonic,
    ) -> Attempts {
        let mut all = self.0.lock();
        if all.get(key).is_none_or(|memory| memory.uid != uid) {
            let limit = if is_open { IRONIC_LIMIT } else { Duration::ZERO };
            all.insert(key.clone(), Memory::new(uid, now.after(limit)));
        }
        let mut hasher = DefaultHasher::new();
        (key, uid).hash(&mut hasher);
        let mut attempts = Attempts {
            jitter: hasher.finish(),
            ..Attempts::default()
        };
        let Some(memory) = all.get_mut(key) else {
            return attempts;
        };
        attempts.creation_may_come_for = memory.creation_may_come_until.since(now);
        attempts.waiting = memory.waiting.map(|(reason, since)| (reason, now.since(since)));
        match &memory.failed {
            Some(failed) if failed.circumstances == *circumstances => {
                attempts.failures = failed.failures;
                let left = failed.until.since(now);
                attempts.delayed = (!left.is_zero()).then(|| (failed.wait.clone(), left));
            }
            Some(_) => memory.failed = None,
            None => {}
        }
        attempts
    }

    /// Since when there is no host; zero while there is one.
    pub(super) fn host_absent_for(&self, key: &Key, host: &Reading<HostView>, now: Monotonic) -> Duration {
        let mut all = self.0.lock();
        let Some(memory) = all.get_mut(key) else {
            return Duration::ZERO;
        };
        match host {
            Reading::Known(HostView::Absent) => now.since(*memory.host_absent.get_or_insert(now)),
            Reading::Known(HostView::Present { .. }) => {
                memory.host_absent = None;
                Duration::ZERO
            }
            Reading::NotRead | Reading::Failed(_) => Duration::ZERO,
        }
    }

    /// The response to a creation is lost.
    pub(super) fn unanswered(&self, key: &Key, now: Monotonic) -> Duration {
        if let Some(memory) = self.0.lock().get_mut(key) {
            memory.creation_may_come_until = now.after(IRONIC_LIMIT);
        }
        IRONIC_LIMIT
    }

    /// A reconcile ended with this wait.
    pub(super) fn waits(&self, key: &Key, wait: &Wait, circumstances: Circumstances, now: Monotonic) {
        let mut all = self.0.lock();
        let Some(memory) = all.get_mut(key) else { return };
        if memory.waiting.is_none_or(|(reason, _)| reason != wait.reason) {
            memory.waiting = Some((wait.reason, now));
        }
        if wait.is_failure {
            let failures = memory.failed.as_ref().map_or(0, |failed| failed.failures);
            memory.failed = Some(Failed {
                circumstances,
                failures: failures.saturating_add(1),
                until: now.after(wait.recheck.unwrap_or_default()),
                wait: wait.clone(),
            });
        }
    }

    /// A reconcile ended without a wait.
    pub(super) fn done(&self, key: &Key) {
        if let Some(memory) = self.0.lock().get_mut(key) {
            memory.waiting = None;
            memory.failed = None;
        }
    }

    pub(super) fn remove(&self, key: &Key) {
        self.0.lock().remove(key);
    }
}

impl Memory {
    fn new(uid: &str, creation_may_come_until: Monotonic) -> Self {
        Self {
            uid: uid.to_owned(),
            creation_may_come_until,
            host_absent: None,
            waiting: None,
            failed: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::subscription_reason::{NODE_LOCKED, STATE_UNKNOWN};

    fn at(second: u64) -> Monotonic {
        Monotonic::new(Duration::from_secs(second))
    }

    fn key() -> Key {
        Key {
            namespace: "metal".to_owned(),
            name: "events".to_owned(),
        }
    }

    fn circumstances(node: &str) -> Circumstances {
        Circumstances {
            is_deleted: false,
            host: Reading::Known(HostView::Present {
                node: Some(node.to_owned()),
                bar: None,
            }),
            bmc_address: None,
            headers: None,
        }
    }

    fn failure(reason: Reason) -> Wait {
        Wait {
            reason,
            message: "m".to_owned(),
            recheck: Some(Duration::from_secs(100)),
            is_reported: true,
            is_failure: true,
        }
    }

    fn view(memories: &Memories, uid: &str, node: &str, second: u64) -> Attempts {
        memories.view((&key(), uid), true, &circumstances(node), at(second))
    }

    #[test]
    fn creation_that_another_process_recorded_may_come_for_a_minute() {
        let memories = Memories::default();
        let left = |second| view(&memories, "u", "n", second).creation_may_come_for.as_secs();
        assert_eq!((left(10), left(69), left(70)), (60, 1, 0));
        memories.unanswered(&key(), at(100));
        assert_eq!((left(100), left(160)), (60, 0));
        let own = Memories::default();
        let seen = own.view((&key(), "u"), false, &circumstances("n"), at(10));
        assert_eq!(
            seen.creation_may_come_for,
            Duration::ZERO,
            "nothing was recorded before"
        );
    }

    #[test]
    fn failure_delays_the_next_attempt_until_something_changes() {
        let memories = Memories::default();
        view(&memories, "u", "n", 0);
        for second in [0, 200] {
            memories.waits(&key(), &failure(NODE_LOCKED), circumstances("n"), at(second));
        }
        let delayed = view(&memories, "u", "n", 250);
        let left = delayed.delayed.map(|(wait, left)| (wait.reason, left.as_secs()));
        assert_eq!((delayed.failures, left), (2, Some((NODE_LOCKED, 50))));
        assert_eq!(view(&memories, "u", "n", 300).delayed, None);
        assert_eq!(view(&memories, "u", "n", 300).failures, 2, "the delay grows");
        assert_eq!(view(&memories, "u", "other", 250).failures, 0, "another node");
        memories.waits(&key(), &failure(NODE_LOCKED), circumstances("n"), at(300));
        assert_eq!(view(&memories, "new", "n", 300).failures, 0, "another object");
    }

    #[test]
    fn wait_lasts_as_long_as_its_reason_and_a_host_is_absent_until_it_is_seen() {
        let memories = Memories::default();
        view(&memories, "u", "n", 0);
        for second in [0, 30] {
            memories.waits(&key(), &failure(NODE_LOCKED), circumstances("n"), at(second));
        }
        let waiting = |second| {
            view(&memories, "u", "n", second)
                .waiting
                .map(|(_, waited)| waited.as_secs())
        };
        assert_eq!(waiting(40), Some(40));
        memories.waits(&key(), &failure(STATE_UNKNOWN), circumstances("n"), at(40));
        assert_eq!(waiting(45), Some(5));
        memories.done(&key());
        assert_eq!(waiting(50), None);
        let absent = |host: &Reading<HostView>, second| memories.host_absent_for(&key(), host, at(second)).as_secs();
        let (gone, unread) = (Reading::Known(HostView::Absent), Reading::NotRead);
        assert_eq!((absent(&gone, 10), absent(&unread, 20), absent(&gone, 30)), (0, 0, 20));
        assert_eq!((absent(&circumstances("n").host, 40), absent(&gone, 50)), (0, 0));
    }
}
