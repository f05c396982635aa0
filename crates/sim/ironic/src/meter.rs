//! Counts what a client asks of an Ironic.
//!
//! An [`Audit`](crate::Audit) counts methods and resources; this also counts bytes and requests per second, and keeps the
//! requests of the change feed apart.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use http::Request;
use metal3_domain::clock::Clock;
use metal3_ironic::transport::{ResponseFuture, Transport};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::describe::describe_request;

/// The name of all requests of the change feed, whose number depends on time.
pub const FEED: &str = "feed";

/// What was asked since the start or the last reading.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Requests without names: `PUT nodes/_/states/provision active`. Those of the change feed are [`FEED`].
    pub requests: BTreeMap<String, u64>,
    /// Responses with a status of 400 or above.
    pub refused: u64,
    /// The most requests in one second.
    pub peak: u64,
    /// Bytes of request bodies.
    pub received: u64,
    /// Bytes of response bodies.
    pub sent: u64,
}

impl Traffic {
    /// Requests that are not of the change feed.
    #[must_use]
    pub fn of_hosts(&self) -> u64 {
        let of_hosts = self.requests.iter().filter(|(what, _)| *what != FEED);
        of_hosts.map(|(_, number)| number).sum()
    }

    /// Adds the traffic of another time.
    pub fn add(&mut self, other: Self) {
        for (what, number) in other.requests {
            add(self.requests.entry(what).or_default(), number);
        }
        self.peak = self.peak.max(other.peak);
        for (count, more) in [
            (&mut self.refused, other.refused),
            (&mut self.received, other.received),
            (&mut self.sent, other.sent),
        ] {
            add(count, more);
        }
    }
}

/// A transport that counts.
pub struct Meter {
    wire: Arc<dyn Transport>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    traffic: Traffic,
    /// The current second, and its requests.
    second: (u64, u64),
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meter").finish_non_exhaustive()
    }
}

fn length(body: &[u8]) -> u64 {
    u64::try_from(body.len()).unwrap_or(u64::MAX)
}

fn add(count: &mut u64, more: u64) {
    *count = count.saturating_add(more);
}

impl Meter {
    /// Counts what passes to `wire`.
    #[must_use]
    pub fn new(wire: Arc<dyn Transport>, clock: Arc<dyn Clock>) -> Self {
        Self {
            wire,
            clock,
            state: Mutex::default(),
        }
    }

    /// Returns the traffic and begins again.
    pub fn take(&self) -> Traffic {
        let mut state = self.state.lock();
        state.second = (0, 0);
        std::mem::take(&mut state.traffic)
    }

    fn count(&self, request: &Request<Vec<u8>>) {
        let now = self.clock.monotonic().since_start().as_secs();
        let mut state = self.state.lock();
        let State {
            traffic,
            second: (second, number),
        } = &mut *state;
        if *second != now {
            (*second, *number) = (now, 0);
        }
        add(number, 1);
        traffic.peak = traffic.peak.max(*number);
        let what = describe_request(request).unwrap_or_else(|| FEED.to_owned());
        add(traffic.requests.entry(what).or_default(), 1);
        add(&mut traffic.received, length(request.body()));
    }
}

impl Transport for Meter {
    fn exchange(&self, request: Request<Vec<u8>>) -> ResponseFuture<'_> {
        self.count(&request);
        Box::pin(async move {
            let response = self.wire.exchange(request).await?;
            let mut state = self.state.lock();
            add(&mut state.traffic.sent, length(response.body()));
            if response.status().as_u16() >= 400 {
                add(&mut state.traffic.refused, 1);
            }
            Ok(response)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metal3_domain::clock::ManualClock;
    use metal3_ironic::transport::ConnectionBroken;
    use std::time::Duration;

    #[derive(Debug)]
    struct Answers(u16);

    impl Transport for Answers {
        fn exchange(&self, _: Request<Vec<u8>>) -> ResponseFuture<'_> {
            let response = http::Response::builder().status(self.0).body(b"four".to_vec());
            Box::pin(async move { response.map_err(|error| ConnectionBroken(error.to_string())) })
        }
    }

    fn meter(status: u16) -> (Meter, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::at(chrono::DateTime::UNIX_EPOCH));
        (Meter::new(Arc::new(Answers(status)), clock.clone()), clock)
    }

    fn request(method: &str, path: &str) -> Request<Vec<u8>> {
        let request = Request::builder().method(method).uri(path);
        request.body(b"{}".to_vec()).unwrap()
    }

    #[tokio::test]
    async fn requests_of_the_feed_are_counted_apart_and_bytes_both_ways() {
        let (meter, _) = meter(200);
        for (method, path) in [
            ("GET", "/v1/nodes/a"),
            ("GET", "/v1/nodes/b"),
            ("GET", "/v1/nodes/detail"),
        ] {
            meter.exchange(request(method, path)).await.unwrap();
        }
        let traffic = meter.take();
        assert_eq!(
            traffic.requests,
            [(FEED.to_owned(), 1), ("GET nodes/_".to_owned(), 2)].into()
        );
        assert_eq!((traffic.of_hosts(), traffic.received, traffic.sent), (2, 6, 12));
        assert_eq!(meter.take(), Traffic::default());
        let mut twice = traffic.clone();
        twice.add(traffic);
        assert_eq!((twice.of_hosts(), twice.peak, twice.sent), (4, 3, 24));
    }

    #[tokio::test]
    async fn refusals_are_counted() {
        let (meter, _) = meter(409);
        let answer = meter.exchange(request("GET", "/v1/nodes/a")).await.unwrap();
        let traffic = meter.take();
        assert_eq!(
            (answer.status().as_u16(), traffic.refused, traffic.of_hosts()),
            (409, 1, 1)
        );
    }

    #[tokio::test]
    async fn peak_is_of_one_second() {
        let (meter, clock) = meter(200);
        for pause in [0, 0, 900, 200, 0] {
            clock.advance(Duration::from_millis(pause));
            meter.exchange(request("GET", "/v1/nodes/a")).await.unwrap();
        }
        assert_eq!(meter.take().peak, 3);
    }
}
