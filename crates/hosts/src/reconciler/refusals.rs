//! Responses of Ironic that reject a request or a read, by host.
//!
//! A rejection may be gone with the next observation of the node, so it is retried without a record. The same response
//! several times in a row for a minute, while the node does not change, is a failure of the host.

use std::collections::BTreeMap;
use std::sync::Arc;

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::clock::Monotonic;
use metal3_ironic::Error;
use metal3_ironic::model::node::Node;
use metal3_runtime::cache::Key;
use parking_lot::Mutex;

use crate::facts::{EQUAL_REFUSALS, LOCK_THRESHOLD, PORT_RETRY, REFUSAL_THRESHOLD, RefusalClass, Refused};
use crate::plan::state::is_port_left_out;

/// Clones share the records.
#[derive(Clone, Default)]
pub(super) struct Refusals(Arc<Mutex<BTreeMap<Key, OfHost>>>);

struct OfHost {
    generation: Option<i64>,
    /// `None`: it is not reported any more.
    last: Option<Refused>,
    /// The last response to each request or read.
    responses: BTreeMap<&'static str, Repeated>,
}

/// A response, how often it came in a row, and when first.
struct Repeated {
    cause: Option<Cause>,
    times: u32,
    since: Monotonic,
    last: Monotonic,
}

/// A response, and the node that it was about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cause {
    response: String,
    node: String,
    /// Ironic itself failed.
    is_server_error: bool,
    /// Ironic works with the node, or does not end.
    is_lock: bool,
}

impl Cause {
    /// `None`: a wait alone resolves the error. A request without a response counts while Ironic answers others.
    pub(super) fn of(error: &Error, node: Option<&Node>, is_answering: bool) -> Option<Self> {
        // A proxy whose server does not respond sends the last two.
        let is_timeout = matches!(
            error,
            Error::Timeout { .. }
                | Error::Unexpected {
                    status: Some(502 | 504),
                    ..
                }
        );
        if is_timeout && !is_answering {
            return None;
        }
        let is_lock = matches!(error, Error::Locked(_));
        if is_lock && node.is_some_and(|node| node.reservation.is_none()) {
            // The lock is a new one: this node was free.
            return None;
        }
        let is_failure = matches!(
            error,
            Error::Unexpected {
                status: Some(500..),
                ..
            }
        );
        Some(Self {
            response: without_ids(&lasting(error)?),
            node: node.map(describe).unwrap_or_default(),
            is_server_error: is_timeout || is_failure || is_lock,
            is_lock,
        })
    }
}

impl Refusals {
    /// The last one of a host, if its generation is unchanged. One of a port that is left out is dropped after a while, so
    /// that the port is requested again.
    pub(super) fn last(&self, host: &BareMetalHost, now: Monotonic) -> Option<Refused> {
        let refusals = self.0.lock();
        let of_host = refusals.get(&Key::of(host))?;
        let last = of_host.last.as_ref()?;
        let is_old = of_host
            .responses
            .get(last.request)
            .is_some_and(|response| now.since(response.last) >= PORT_RETRY);
        let is_current = of_host.generation == host.metadata.generation && !(is_old && is_port_left_out(host, last));
        of_host.last.clone().filter(|_| is_current)
    }

    /// Records one. Returns it with the class that follows from those before.
    pub(super) fn record(
        &self,
        host: &Key,
        generation: Option<i64>,
        refused: Refused,
        cause: Option<Cause>,
        now: Monotonic,
    ) -> Refused {
        let mut refusals = self.0.lock();
        let of_host = refusals.remove(host).filter(|before| before.generation == generation);
        let mut responses = of_host.map(|before| before.responses).unwrap_or_default();
        let (times, since) = match responses.get(refused.request) {
            Some(before) if cause.is_some() && before.cause == cause => (before.times.saturating_add(1), before.since),
            Some(_) | None => (1, now),
        };
        // The first repetitions come within milliseconds, in which nothing ends.
        let threshold = if cause.as_ref().is_some_and(|cause| cause.is_lock) {
            LOCK_THRESHOLD
        } else {
            REFUSAL_THRESHOLD
        };
        let is_lasting = times >= EQUAL_REFUSALS && now.since(since) >= threshold;
        let class = match refused.class {
            RefusalClass::Transient if is_lasting => match &cause {
                Some(cause) if cause.is_server_error => RefusalClass::ServerError,
                Some(_) | None => RefusalClass::Persistent,
            },
            class => class,
        };
        let refused = Refused { class, ..refused };
        let response = Repeated {
            cause,
            times,
            since,
            last: now,
        };
        responses.insert(refused.request, response);
        let of_host = OfHost {
            generation,
            last: Some(refused.clone()),
            responses,
        };
        refusals.insert(host.clone(), of_host);
        refused
    }

    /// The last one is over. The next equal response is not the first.
    pub(super) fn forget_last(&self, host: &Key) {
        if let Some(of_host) = self.0.lock().get_mut(host) {
            of_host.last = None;
        }
    }

    /// Ironic serves requests again. Returns the hosts that wait for that.
    pub(super) fn end_failures_of_ironic(&self) -> Vec<Key> {
        let mut refusals = self.0.lock();
        let mut hosts = Vec::new();
        for (host, of_host) in refusals.iter_mut() {
            let last = of_host.last.as_mut();
            let last = last.filter(|last| matches!(last.class, RefusalClass::Access | RefusalClass::ServerError));
            if let Some(last) = last {
                last.is_over = true;
                hosts.push(host.clone());
            }
        }
        hosts
    }

    /// Ironic changes the state of the node, or the host does not exist any more.
    pub(super) fn remove(&self, host: &Key) {
        self.0.lock().remove(host);
    }

    /// A read succeeded, or a request that only changes the record of the node.
    pub(super) fn remove_one(&self, host: &Key, name: &'static str) {
        let mut refusals = self.0.lock();
        let Some(of_host) = refusals.get_mut(host) else { return };
        of_host.responses.remove(name);
        if of_host.last.as_ref().is_some_and(|last| last.request == name) {
            refusals.remove(host);
        }
    }
}

/// The response without its request ID, if a repetition may get the same for ever.
fn lasting(error: &Error) -> Option<String> {
    match error {
        Error::NotFound(refusal)
        | Error::WrongState(refusal)
        | Error::Exists(refusal)
        | Error::Invalid(refusal)
        | Error::Locked(refusal)
        | Error::Protected(refusal) => Some(format!("{}: {}", refusal.status, refusal.message)),
        Error::Unexpected {
            status: Some(status),
            reason,
            ..
        } => Some(format!("{status}: {reason}")),
        Error::Unexpected { status: None, .. }
        | Error::Busy(_)
        | Error::Unauthorised(_)
        | Error::NoCommonVersion(_)
        | Error::TooOld { .. }
        | Error::Unreachable { .. }
        | Error::Untrusted { .. } => None,
        Error::Timeout { .. } => Some("no response".to_owned()),
    }
}

/// The text without long hexadecimal numbers: some responses of Ironic contain the ID of a message, new each time.
fn without_ids(text: &str) -> String {
    const LONG: usize = 16;
    let is_id = |word: &&str| word.len() >= LONG && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let words = text.split_whitespace().filter(|word| !is_id(word));
    words.collect::<Vec<_>>().join(" ")
}

/// Completes the rejection of a port with those of ports that are left out already: they stay so.
pub(super) fn with_ports_before(host: &BareMetalHost, before: Option<&Refused>, refused: Refused) -> Refused {
    let before = before.filter(|before| is_port_left_out(host, before));
    match before.filter(|_| is_port_left_out(host, &refused)) {
        Some(before) => Refused {
            message: format!("{}; {}", before.message, refused.message),
            ..refused
        },
        None => refused,
    }
}

/// Whether Ironic cannot serve any request at present.
pub(super) const fn is_unavailable(error: &Error) -> bool {
    match error {
        Error::Busy(_) | Error::Unreachable { .. } | Error::Untrusted { .. } | Error::Timeout { .. } => true,
        Error::NotFound(_)
        | Error::Locked(_)
        | Error::WrongState(_)
        | Error::Exists(_)
        | Error::Invalid(_)
        | Error::Protected(_)
        | Error::Unauthorised(_)
        | Error::NoCommonVersion(_)
        | Error::TooOld { .. }
        | Error::Unexpected { .. } => false,
    }
}

/// Whether the response is lost. An error of Ironic itself is a response: Ironic may change the node before it fails, so a
/// changed node would not show that it accepted the request.
pub(super) const fn is_unanswered(error: &Error) -> bool {
    match error {
        Error::Timeout { .. } => true,
        Error::Unreachable { was_sent, .. } => *was_sent,
        // A proxy sends these.
        Error::Unexpected { status, .. } => matches!(status, None | Some(502 | 504)),
        Error::NotFound(_)
        | Error::Locked(_)
        | Error::WrongState(_)
        | Error::Exists(_)
        | Error::Invalid(_)
        | Error::Protected(_)
        | Error::Unauthorised(_)
        | Error::Busy(_)
        | Error::NoCommonVersion(_)
        | Error::TooOld { .. }
        | Error::Untrusted { .. } => false,
    }
}

/// What a rejection may depend on. A rejected request changes the node's time of change.
fn describe(node: &Node) -> String {
    format!(
        "{} {} {:?} {:?} {} {:?} {:?} {:?}",
        node.uuid,
        node.provision_state,
        node.power_state,
        node.target_power_state,
        node.maintenance,
        node.fault,
        node.instance_uuid,
        node.last_error,
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use metal3_ironic::error::Refusal as Response;

    use super::*;

    fn host() -> Key {
        Key {
            namespace: "metal".to_owned(),
            name: "h".to_owned(),
        }
    }

    fn host_in(state: &str, generation: i64) -> BareMetalHost {
        let fixture = crate::tests::fixture::Fixture::new(state);
        let generation = serde_json::json!({ "metadata": { "generation": generation } });
        serde_json::from_value(fixture.host(generation).host).unwrap()
    }

    fn last(refusals: &Refusals, generation: i64) -> Option<Refused> {
        let host = host_in("available", generation);
        refusals.last(&host, Monotonic::new(Duration::from_hours(1)))
    }

    fn node(state: &str) -> Node {
        serde_json::from_value(crate::tests::fixture::node(state)).unwrap()
    }

    fn wrong_state(message: &str) -> Error {
        Error::WrongState(Response {
            operation: "change the power state",
            status: 400,
            message: message.to_owned(),
            request_id: None,
        })
    }

    /// The response to the given attempt, all [`REFUSAL_THRESHOLD`] apart.
    fn refuse(refusals: &Refusals, attempt: u32, request: &'static str, error: &Error, node: &Node) -> RefusalClass {
        refuse_at(
            refusals,
            Monotonic::new(REFUSAL_THRESHOLD * attempt),
            request,
            error,
            node,
        )
    }

    fn refuse_at(
        refusals: &Refusals,
        at: Monotonic,
        request: &'static str,
        error: &Error,
        node: &Node,
    ) -> RefusalClass {
        let refused = Refused {
            request,
            class: RefusalClass::Transient,
            message: error.to_string(),
            is_fresh: false,
            is_over: false,
            is_lock: matches!(error, Error::Locked(_)),
        };
        let cause = Cause::of(error, Some(node), true);
        refusals.record(&host(), Some(1), refused, cause, at).class
    }

    #[test]
    fn third_equal_response_about_an_unchanged_node_is_persistent() {
        use RefusalClass::{Persistent, Transient};
        let refusals = Refusals::default();
        let (active, other) = (node("active"), node("manageable"));
        let no = wrong_state("no");
        let mut classes = Vec::new();
        let steps = [
            ("power on", &no, &active),
            ("power on", &no, &active),
            ("power on", &no, &other),
            ("power on", &no, &other),
            ("power on", &no, &other),
            ("manage", &no, &other),
            ("manage", &wrong_state("not now"), &other),
            ("manage", &no, &other),
            ("manage", &no, &other),
            ("power on", &no, &other),
            ("manage", &no, &other),
        ];
        for (attempt, (request, error, node)) in (0..).zip(steps) {
            classes.push(refuse(&refusals, attempt, request, error, node));
        }
        let expected = [
            Transient, Transient, Transient, Transient, Persistent, Transient, Transient, Transient, Transient,
            Persistent, Persistent,
        ];
        assert_eq!(classes, expected);
        assert_eq!(last(&refusals, 1).unwrap().class, Persistent);
        assert_eq!(last(&refusals, 2), None, "the host changed");
        refusals.remove_one(&host(), "validate node");
        assert!(last(&refusals, 1).is_some());
        refusals.remove(&host());
        assert_eq!(refuse(&refusals, 20, "manage", &no, &other), Transient);
    }

    #[test]
    fn rejected_port_is_requested_again_after_an_hour_if_it_is_left_out() {
        let exists = Error::Exists(Response {
            operation: "create a port",
            status: 409,
            message: "it exists".to_owned(),
            request_id: None,
        });
        let refused = Refused {
            request: "create port",
            class: RefusalClass::Invalid,
            message: exists.to_string(),
            is_fresh: false,
            is_over: false,
            is_lock: false,
        };
        let refusals = Refusals::default();
        refusals.record(&host(), Some(1), refused, None, Monotonic::new(Duration::ZERO));
        for (state, minutes, is_kept) in [
            ("provisioned", 59, true),
            ("provisioned", 60, false),
            ("deprovisioning", 60, false),
            // It waits for its port, with a backoff.
            ("provisioning", 60, true),
            ("registering", 6_000, true),
        ] {
            let last = refusals.last(&host_in(state, 1), Monotonic::new(Duration::from_mins(minutes)));
            assert_eq!(last.is_some(), is_kept, "{state} after {minutes} min");
        }
    }

    /// Otherwise each of them would be requested again because the other was rejected last.
    #[test]
    fn ports_that_are_left_out_stay_so_when_another_one_is_rejected() {
        let refused = |request, message: &str| Refused {
            request,
            class: RefusalClass::Invalid,
            message: message.to_owned(),
            is_fresh: false,
            is_over: false,
            is_lock: false,
        };
        let port = |message| refused("create port", message);
        for (state, before, now, expected) in [
            ("provisioned", None, port("b exists"), "b exists"),
            (
                "provisioned",
                Some(port("a exists")),
                port("b exists"),
                "a exists; b exists",
            ),
            (
                "provisioned",
                Some(refused("adopt", "no")),
                port("b exists"),
                "b exists",
            ),
            ("provisioned", Some(port("a exists")), refused("adopt", "no"), "no"),
            // It waits for its port and requests it again and again.
            ("provisioning", Some(port("a exists")), port("a exists"), "a exists"),
        ] {
            let known = with_ports_before(&host_in(state, 1), before.as_ref(), now);
            assert_eq!(known.message, expected, "{state}");
        }
    }

    #[test]
    fn equal_responses_within_a_short_time_are_one_disturbance() {
        let refusals = Refusals::default();
        let failed = Error::Unexpected {
            operation: "x",
            status: Some(500),
            reason: "database is locked".to_owned(),
        };
        let refuse = |millis| {
            let at = Monotonic::new(Duration::from_millis(millis));
            refuse_at(&refusals, at, "manage", &failed, &node("enroll"))
        };
        for millis in [0, 2, 8, 20, 500, 59_999] {
            assert_eq!(refuse(millis), RefusalClass::Transient, "{millis} ms");
        }
        assert_eq!(refuse(60_000), RefusalClass::ServerError);
        refusals.forget_last(&host());
        assert_eq!(last(&refusals, 1), None);
        assert_eq!(refuse(60_001), RefusalClass::ServerError, "it is not the first one");
    }

    #[test]
    fn failures_of_ironic_are_over_when_it_serves_requests_again() {
        let refusals = Refusals::default();
        let failed = Error::Unexpected {
            operation: "x",
            status: Some(500),
            reason: "no database".to_owned(),
        };
        for (error, is_ended) in [(failed, true), (wrong_state("no"), false)] {
            for attempt in 0..EQUAL_REFUSALS {
                refuse(&refusals, attempt, "manage", &error, &node("enroll"));
            }
            assert_eq!(
                refusals.end_failures_of_ironic(),
                Vec::from_iter(is_ended.then(host)),
                "{error}"
            );
            assert_eq!(last(&refusals, 1).unwrap().is_over, is_ended, "{error}");
            refuse(&refusals, 9, "manage", &error, &node("enroll"));
            assert!(!last(&refusals, 1).unwrap().is_over, "it is a new one");
        }
    }

    #[test]
    fn request_without_a_response_counts_while_ironic_answers_others() {
        let of_proxy = Error::Unexpected {
            operation: "x",
            status: Some(504),
            reason: "Gateway Timeout".to_owned(),
        };
        for late in [Error::Timeout { operation: "x" }, of_proxy] {
            let refusals = Refusals::default();
            let mut class = RefusalClass::Transient;
            for attempt in 0..EQUAL_REFUSALS {
                class = refuse(&refusals, attempt, "validate node", &late, &node("available"));
            }
            assert_eq!(class, RefusalClass::ServerError, "{late}");
            assert_eq!(Cause::of(&late, None, false), None, "{late}");
        }
    }

    #[test]
    fn lock_that_stays_is_a_failure_of_ironic() {
        let locked = Error::Locked(Response {
            operation: "x",
            status: 409,
            message: "is locked by host".to_owned(),
            request_id: None,
        });
        let free = node("enroll");
        let mut held = free.clone();
        held.reservation = Some("host".to_owned());
        let refusals = Refusals::default();
        use RefusalClass::{ServerError, Transient};
        for (minute, node, class) in [
            (0, &held, Transient),
            (5, &held, Transient),
            (14, &held, Transient),
            (15, &held, ServerError),
            (20, &held, ServerError),
            // It ended, and another one began.
            (21, &free, Transient),
            (22, &held, Transient),
            (30, &held, Transient),
            (36, &held, Transient),
            (37, &held, ServerError),
        ] {
            let at = Monotonic::new(Duration::from_mins(minute));
            assert_eq!(
                refuse_at(&refusals, at, "manage", &locked, node),
                class,
                "minute {minute}"
            );
        }
    }

    #[test]
    fn number_of_a_message_makes_no_other_response() {
        let refusals = Refusals::default();
        let mut class = RefusalClass::Transient;
        for (attempt, id) in (0..).zip(["53b9f4c0a1d94e8d9b1f", "0c2f4c0aa1d94e8d9b1f", "9d2f4c0aa1d94e8d9b1f"]) {
            let failed = Error::Unexpected {
                operation: "x",
                status: Some(500),
                reason: format!("Timed out waiting for a reply to message ID {id}"),
            };
            class = refuse(&refusals, attempt, "manage", &failed, &node("enroll"));
        }
        assert_eq!(class, RefusalClass::ServerError);
    }

    #[test]
    fn busy_node_and_unreachable_ironic_are_never_persistent() {
        let locked = Error::Locked(Response {
            operation: "x",
            status: 409,
            message: "is locked by host".to_owned(),
            request_id: None,
        });
        let unreachable = Error::Unreachable {
            operation: "x",
            reason: "refused".to_owned(),
            was_sent: false,
        };
        for error in [locked, unreachable] {
            let refusals = Refusals::default();
            for attempt in 0..5 {
                let class = refuse(&refusals, attempt, "manage", &error, &node("enroll"));
                assert_eq!(class, RefusalClass::Transient, "{error}");
            }
        }
    }
}
