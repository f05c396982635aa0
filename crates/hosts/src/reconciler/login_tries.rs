//! When the login of a BMC was last tried without an answer of the BMC, by host.
//!
//! A BMC that is slow or away says nothing about the login, and nothing reports that it answers again. So the login is tried again
//! after a pause that grows. A process that starts tries at once.

use std::collections::BTreeMap;
use std::time::Duration;

use metal3_domain::clock::Monotonic;
use metal3_runtime::cache::Key;
use parking_lot::Mutex;

use crate::facts::LoginAnswer;

/// The pause after the first try without an answer; it doubles with each further one. An attempt may occupy the BMC for a minute.
const FIRST_PAUSE: Duration = Duration::from_mins(1);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_mins(10);

/// The tries of one version of a Secret.
struct Tries {
    version: String,
    without_answer: u32,
    last: Monotonic,
}

#[derive(Default)]
pub(super) struct LoginTries(Mutex<BTreeMap<Key, Tries>>);

impl LoginTries {
    /// Records the answer to the login in this version of the Secret.
    pub(super) fn record(&self, host: &Key, version: &str, answer: &LoginAnswer, now: Monotonic) {
        let mut tries = self.0.lock();
        let before = tries.remove(host).filter(|before| before.version == version);
        if *answer == LoginAnswer::Unknown {
            let without_answer = before.map_or(0, |before| before.without_answer).saturating_add(1);
            let (version, last) = (version.to_owned(), now);
            tries.insert(
                host.clone(),
                Tries {
                    version,
                    without_answer,
                    last,
                },
            );
        }
    }

    /// How long that login is not tried again.
    pub(super) fn pause_left(&self, host: &Key, version: &str, now: Monotonic) -> Option<Duration> {
        let tries = self.0.lock();
        let of_host = tries.get(host).filter(|of_host| of_host.version == version)?;
        let doubled = 2_u32.saturating_pow(of_host.without_answer.saturating_sub(1));
        let pause = FIRST_PAUSE.saturating_mul(doubled).min(LONGEST_PAUSE);
        let left = pause.saturating_sub(now.since(of_host.last));
        (!left.is_zero()).then_some(left)
    }

    pub(super) fn remove(&self, host: &Key) {
        self.0.lock().remove(host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_without_an_answer_is_tried_again_after_a_growing_pause() {
        let (tries, host) = (
            LoginTries::default(),
            Key {
                namespace: "metal".to_owned(),
                name: "h".to_owned(),
            },
        );
        let at = |second| Monotonic::new(Duration::from_secs(second));
        let left = |version: &str, second| tries.pause_left(&host, version, at(second)).map(|left| left.as_secs());
        assert_eq!(left("2", 0), None);
        for (second, pause) in [(100, 60), (200, 120), (400, 240), (700, 480), (1300, 600), (2000, 600)] {
            tries.record(&host, "2", &LoginAnswer::Unknown, at(second));
            assert_eq!(left("2", second), Some(pause));
            assert_eq!(
                (left("2", second + pause - 1), left("2", second + pause)),
                (Some(1), None)
            );
        }
        assert_eq!(left("3", 2000), None, "another login");
        tries.record(&host, "3", &LoginAnswer::Unknown, at(2100));
        assert_eq!((left("3", 2100), left("2", 2100)), (Some(60), None));
        tries.record(&host, "3", &LoginAnswer::Refused(String::new()), at(2200));
        assert_eq!(left("3", 2200), None, "the status of the host has its backoff");
        tries.record(&host, "3", &LoginAnswer::Unknown, at(2300));
        tries.remove(&host);
        assert_eq!(left("3", 2300), None);
    }
}
