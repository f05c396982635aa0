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
    /// Ironic works with other nodes, or has no conductor.
    is_overloaded: bool,
    /// Ironic refuses this program, and not its change feed.
    is_access: bool,
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
        // Ironic has no conductor for the node, or no free worker.
        let is_overloaded = matches!(error, Error::Busy(_));
        let is_access = error.is_of_every_request();
        if (is_timeout || is_overloaded || is_access) && !is_answering {
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
            is_overloaded,
            is_access,
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
        let threshold = if cause.as_ref().is_some_and(|cause| cause.is_lock || cause.is_overloaded) {
            LOCK_THRESHOLD
        } else {
            REFUSAL_THRESHOLD
        };
        let is_lasting = times >= EQUAL_REFUSALS && now.since(since) >= threshold;
        let class = match refused.class {
            RefusalClass::Transient if is_lasting => match &cause {
                Some(cause) if cause.is_access => RefusalClass::Access,
                Some(cause) if cause.is_overloaded => RefusalClass::Busy,
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

    /// Ironic serves requests again. Returns the hosts of it that wait for that.
    pub(super) fn end_failures_of_ironic(&self, is_of_ironic: impl Fn(&Key) -> bool) -> Vec<Key> {
        let mut refusals = self.0.lock();
        let mut hosts = Vec::new();
        for (host, of_host) in refusals.iter_mut().filter(|(host, _)| is_of_ironic(host)) {
            let last = of_host.last.as_mut();
            let last = last.filter(|last| {
                matches!(
                    last.class,
                    RefusalClass::Access | RefusalClass::Busy | RefusalClass::ServerError
                )
            });
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
        | Error::Busy(refusal)
        | Error::Unauthorised(refusal)
        | Error::Protected(refusal) => Some(format!("{}: {}", refusal.status, refusal.message)),
        Error::Untrusted { reason, .. } => Some(reason.clone()),
        Error::NoCommonVersion(error) => Some(error.to_string()),
        Error::Unexpected {
            status: Some(status),
            reason,
            ..
        } => Some(format!("{status}: {reason}")),
        Error::Unexpected { status: None, .. }
        | Error::TooOld { .. }
        | Error::Unreachable { .. }
        | Error::NotReady { .. } => None,
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
        Error::Busy(_)
        | Error::Unreachable { .. }
        | Error::NotReady { .. }
        | Error::Untrusted { .. }
        | Error::Timeout { .. } => true,
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
        | Error::NotReady { .. }
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
mod tests;
