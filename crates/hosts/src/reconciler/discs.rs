//! The discs of hosts: what this process has done about each since its machine was last on.
//!
//! All of it may be lost: a process that starts reads the drive, and attempts what is asked for again.

use std::collections::BTreeMap;
use std::time::Duration;

use metal3_api::metal3::v1alpha1::{BareMetalHost, DataImage};
use metal3_domain::clock::Monotonic;
use metal3_domain::uri::public_text;
use metal3_ironic::Error;
use metal3_ironic::model::node::Node;
use metal3_runtime::cache::Key;
use parking_lot::Mutex;

use crate::facts::{DISC_ATTEMPTS, DiscAttempts, DiscOrder, DiscRefusal};
use crate::plan::disc::{Purpose, RETRY, wanted};

/// How long Ironic may take to begin with an order that it received: its API waits so long for a conductor
/// (`rpc_response_timeout`).
const IRONIC_LIMIT: Duration = Duration::from_secs(60);

/// How long a BMC may show the drive as it was before an order that Ironic has ended. Some do for a moment; Ironic itself waits some
/// seconds for one that ejects.
const SETTLING: Duration = Duration::from_secs(30);

/// What the attempts are for. With another goal they begin again.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Goal {
    uid: String,
    wanted: Option<String>,
    is_removal: bool,
}

impl Goal {
    fn of(host: &BareMetalHost, object: &DataImage) -> Self {
        let is_removal = host.metadata.deletion_timestamp.is_some();
        let purpose = if is_removal { Purpose::Removal } else { Purpose::Start };
        Self {
            uid: object.metadata.uid.clone().unwrap_or_default(),
            wanted: wanted(object, purpose).map(str::to_owned),
            is_removal,
        }
    }
}

struct Memory {
    goal: Goal,
    attempts: DiscAttempts,
    retry_at: Option<Monotonic>,
    /// When the drive is shown as it is. `None`: Ironic has not ended the last order.
    settled_at: Option<Monotonic>,
}

/// The attempts, by host.
#[derive(Default)]
pub(super) struct Discs(Mutex<BTreeMap<Key, Memory>>);

impl Discs {
    /// The attempts of a host. `node`: as it was after the last order. `led`: since when this process leads.
    pub(super) fn view(
        &self,
        key: &Key,
        host: &BareMetalHost,
        (object, node): (Option<&DataImage>, Option<&Node>),
        (led, now): (Monotonic, Monotonic),
    ) -> DiscAttempts {
        let mut all = self.0.lock();
        let Some(goal) = object.map(|object| Goal::of(host, object)) else {
            all.remove(key);
            return DiscAttempts::default();
        };
        let new = |goal| Memory {
            goal,
            attempts: DiscAttempts::default(),
            retry_at: None,
            settled_at: None,
        };
        let memory = all.entry(key.clone()).or_insert_with(|| new(goal.clone()));
        if memory.goal != goal {
            *memory = new(goal);
        }
        let is_unlocked = node.is_some_and(|node| node.reservation.is_none());
        if memory.attempts.ordered.is_some() && is_unlocked {
            memory.settled_at.get_or_insert(now.after(SETTLING));
        }
        let earlier = IRONIC_LIMIT.saturating_sub(now.since(led));
        let left = |at: Monotonic| Some(at.since(now)).filter(|left| !left.is_zero());
        DiscAttempts {
            delay_left: memory.retry_at.and_then(left),
            settling_left: match memory.settled_at {
                None if memory.attempts.ordered.is_some() => Some(SETTLING),
                settled_at => settled_at.and_then(left),
            },
            earlier_left: (!earlier.is_zero()).then_some(earlier),
            ..memory.attempts.clone()
        }
    }

    /// Ironic accepted an order. It loads the whole image before it ends it.
    pub(super) fn ordered(&self, key: &Key, order: DiscOrder) {
        if let Some(memory) = self.0.lock().get_mut(key) {
            memory.attempts.ordered = Some(order);
            memory.attempts.is_announced = false;
            memory.settled_at = None;
        }
    }

    /// An Event says that the last order had its effect.
    pub(super) fn announced(&self, key: &Key) {
        if let Some(memory) = self.0.lock().get_mut(key) {
            memory.attempts.is_announced = true;
        }
    }

    /// Ironic rejected an order.
    pub(super) fn refused(&self, key: &Key, refusal: DiscRefusal) {
        if let Some(memory) = self.0.lock().get_mut(key) {
            memory.attempts.refused = Some(refusal);
        }
    }

    /// An attempt failed.
    pub(super) fn failed(&self, key: &Key, (message, is_last): (String, bool), now: Monotonic) {
        if let Some(memory) = self.0.lock().get_mut(key) {
            let attempts = &mut memory.attempts;
            attempts.failures = attempts.failures.saturating_add(1);
            attempts.is_over |= is_last || attempts.failures >= DISC_ATTEMPTS;
            attempts.message = Some(message);
            attempts.ordered = None;
            attempts.refused = None;
            memory.retry_at = Some(now.after(RETRY));
        }
    }

    /// What an attempt needs cannot be written: the machine starts without it.
    pub(super) fn give_up(&self, key: &Key) {
        if let Some(memory) = self.0.lock().get_mut(key) {
            memory.attempts.is_over = true;
        }
    }

    pub(super) fn remove(&self, key: &Key) {
        self.0.lock().remove(key);
    }
}

/// Whether the same request will be rejected however often it is sent.
pub(super) const fn is_final(error: &Error) -> bool {
    !error.is_of_every_request() && matches!(error, Error::Invalid(_) | Error::Unauthorised(_) | Error::TooOld { .. })
}

/// Whether an error is about the disc or the drive. Others are of Ironic, or of a node that it works with.
pub(super) const fn is_about_disc(error: &Error) -> bool {
    let is_of_bmc = matches!(error, Error::Unexpected { status: Some(500), .. });
    is_of_bmc || is_final(error)
}

/// A text without secrets that stays the same while the error does.
pub(super) fn text(error: &Error) -> String {
    public_text(&match error {
        Error::Invalid(refusal) | Error::Unauthorised(refusal) => refusal.message.clone(),
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use metal3_ironic::error::Refusal;
    use serde_json::json;

    use super::*;
    use crate::tests::fixture::Fixture;

    fn host() -> BareMetalHost {
        serde_json::from_value(Fixture::new("provisioned").host).unwrap()
    }

    fn object(url: &str) -> DataImage {
        serde_json::from_value(json!({ "metadata": { "name": "h", "uid": "1" }, "spec": { "url": url } })).unwrap()
    }

    fn at(seconds: u64) -> Monotonic {
        Monotonic::new(Duration::from_secs(seconds))
    }

    fn key() -> Key {
        Key {
            namespace: "metal".to_owned(),
            name: "h".to_owned(),
        }
    }

    #[test]
    fn attempts_begin_again_with_another_image_and_when_the_machine_was_on() {
        let failures = |is_ended: bool, url: Option<&str>| {
            let discs = Discs::default();
            let view = |url: Option<&str>, seconds| {
                let object = url.map(object);
                discs.view(&key(), &host(), (object.as_ref(), None), (at(0), at(seconds)))
            };
            assert_eq!(view(Some("http://a/"), 0).failures, 0);
            discs.ordered(&key(), DiscOrder::Insert);
            discs.failed(&key(), ("no".to_owned(), false), at(0));
            assert_eq!(view(Some("http://a/"), 1).ordered, None);
            if is_ended {
                discs.remove(&key());
            }
            drop(view(url, 1));
            view(Some("http://a/"), 1).failures
        };
        for (is_ended, url, expected) in [
            (false, Some("http://a/"), 1),
            (false, Some("http://b/"), 0),
            (true, Some("http://a/"), 0),
            (false, None, 0),
        ] {
            assert_eq!(failures(is_ended, url), expected, "{is_ended} {url:?}");
        }
    }

    #[test]
    fn each_order_is_announced() {
        let discs = Discs::default();
        let object = object("http://a/");
        let view = || discs.view(&key(), &host(), (Some(&object), None), (at(0), at(1)));
        drop(view());
        for order in [DiscOrder::Eject, DiscOrder::Insert] {
            discs.ordered(&key(), order);
            assert!(!view().is_announced);
            discs.announced(&key());
            assert_eq!((view().is_announced, view().ordered), (true, Some(order)));
        }
    }

    /// Ironic keeps the node locked while it loads the image, which takes minutes.
    #[test]
    fn bmc_may_be_late_from_the_end_of_an_order() {
        let discs = Discs::default();
        let node = |is_locked: bool| {
            let mut node = crate::tests::fixture::node("active");
            node["reservation"] = if is_locked { json!("conductor") } else { json!(null) };
            serde_json::from_value::<Node>(node).unwrap()
        };
        let left = |node: Option<&Node>, seconds| {
            let object = object("http://a/");
            let view = discs.view(&key(), &host(), (Some(&object), node), (at(0), at(seconds)));
            view.settling_left.map(|left| left.as_secs())
        };
        assert_eq!(left(Some(&node(false)), 0), None);
        for begin in [0, 1_000] {
            discs.ordered(&key(), DiscOrder::Insert);
            for (is_locked, seconds, expected) in [
                (Some(true), 1, Some(30)),
                (None, 50, Some(30)),
                (Some(true), 100, Some(30)),
                (Some(false), 101, Some(30)),
                (Some(true), 102, Some(29)),
                (Some(false), 130, Some(1)),
                (Some(false), 131, None),
            ] {
                let node = is_locked.map(node);
                assert_eq!(left(node.as_ref(), begin + seconds), expected, "{begin} {seconds}");
            }
        }
    }

    #[test]
    fn attempts_are_over_after_a_number_of_failures_or_a_last_one() {
        for (is_last, expected) in [(false, [false, false, true]), (true, [true, true, true])] {
            let discs = Discs::default();
            let view = |seconds| {
                discs.view(
                    &key(),
                    &host(),
                    (Some(&object("http://a/")), None),
                    (at(0), at(seconds)),
                )
            };
            drop(view(0));
            let over = [0, 100, 200].map(|seconds| {
                discs.failed(&key(), ("no".to_owned(), is_last), at(seconds));
                assert_eq!(view(seconds).delay_left, Some(RETRY));
                assert_eq!(view(seconds + RETRY.as_secs()).delay_left, None);
                view(seconds).is_over
            });
            assert_eq!(over, expected);
        }
    }

    /// Outages and locks use up no attempts.
    #[test]
    fn error_is_about_the_disc_only_when_ironic_or_the_bmc_says_so() {
        let refused = |status, message: &str| Refusal {
            operation: "attach virtual media",
            status,
            message: message.to_owned(),
            request_id: Some("req-1".to_owned()),
        };
        let refusal = |message| refused(400, message);
        let unexpected = |status| Error::Unexpected {
            operation: "attach virtual media",
            status,
            reason: "no".to_owned(),
        };
        let of_disc = Error::Invalid(refusal("cannot mount http://u:canary@a/i.iso?token=canary"));
        for (error, is_about, is_last) in [
            (of_disc.clone(), true, true),
            (Error::Unauthorised(refused(403, "no")), true, true),
            (Error::Unauthorised(refused(401, "no")), false, false),
            (unexpected(Some(500)), true, false),
            (unexpected(Some(502)), false, false),
            (unexpected(None), false, false),
            (Error::Locked(refusal("no")), false, false),
            (Error::Busy(refusal("no")), false, false),
            (Error::Timeout { operation: "attach" }, false, false),
        ] {
            assert_eq!(
                (is_about_disc(&error), is_final(&error)),
                (is_about, is_last),
                "{error:?}"
            );
        }
        assert_eq!(text(&of_disc), "cannot mount http://***@a/i.iso?***");
    }
}
