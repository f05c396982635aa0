//! How often requests were sent, how they ended, and how long they took. Only numbers: no address and no text of Ironic.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::Error;
use crate::request::Method;

/// Upper bounds in seconds. A listing of a thousand nodes takes seconds.
pub const BOUNDS: [f64; 10] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ending {
    /// With a status below 400.
    Success,
    /// Another task or client was faster: 409.
    Conflict,
    /// Ironic does not accept the request: another 4xx.
    Refused,
    /// Ironic failed: 5xx.
    Failed,
    /// No connection, or it broke off.
    Unreachable,
    /// No response in time.
    Timeout,
    /// Certificates are not trusted, or the response is none of Ironic.
    Unusable,
}

impl Ending {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Success,
        Self::Conflict,
        Self::Refused,
        Self::Failed,
        Self::Unreachable,
        Self::Timeout,
        Self::Unusable,
    ];

    /// One word, for a label.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Conflict => "conflict",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Unusable => "unusable",
        }
    }

    /// The ending of a response with this status, or of an error.
    #[must_use]
    pub const fn of(response: Result<u16, &Error>) -> Self {
        match response {
            Ok(409) => Self::Conflict,
            Ok(400..=499) => Self::Refused,
            Ok(500..) => Self::Failed,
            Ok(_) => Self::Success,
            Err(Error::Unreachable { .. } | Error::NotReady { .. }) => Self::Unreachable,
            Err(Error::Timeout { .. }) => Self::Timeout,
            Err(_) => Self::Unusable,
        }
    }
}

/// The durations of the requests of one method.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Latency {
    /// Their number.
    pub count: u64,
    /// Their sum.
    pub total: Duration,
    /// The number of those up to each of the [`BOUNDS`] and above the one before, and of those above the last.
    pub buckets: [u64; BOUNDS.len() + 1],
}

/// The requests of a client so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Statistics {
    /// Their number.
    pub requests: BTreeMap<(Method, Ending), u64>,
    /// Their durations.
    pub latencies: BTreeMap<Method, Latency>,
}

impl Statistics {
    /// All series, at zero: a rate needs the zero before the first error.
    pub(crate) fn at_zero() -> Self {
        let pairs = |method| Ending::ALL.map(|ending| ((method, ending), 0));
        Self {
            requests: Method::ALL.into_iter().flat_map(pairs).collect(),
            latencies: Method::ALL
                .into_iter()
                .map(|method| (method, Latency::default()))
                .collect(),
        }
    }

    pub(crate) fn record(&mut self, method: Method, ending: Ending, took: Duration) {
        let requests = self.requests.entry((method, ending)).or_default();
        *requests = requests.saturating_add(1);
        let latency = self.latencies.entry(method).or_default();
        latency.count = latency.count.saturating_add(1);
        latency.total = latency.total.saturating_add(took);
        let bound = BOUNDS.iter().position(|bound| took.as_secs_f64() <= *bound);
        if let Some(bucket) = latency.buckets.get_mut(bound.unwrap_or(BOUNDS.len())) {
            *bucket = bucket.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_and_each_error_has_one_ending() {
        let operation = "list nodes";
        let unreachable = Error::Unreachable {
            operation,
            reason: "reset".to_owned(),
            was_sent: true,
        };
        let unexpected = Error::Unexpected {
            operation,
            status: Some(200),
            reason: "too long".to_owned(),
        };
        let rows = [
            (Ok(200), "success"),
            (Ok(302), "success"),
            (Ok(401), "refused"),
            (Ok(409), "conflict"),
            (Ok(503), "failed"),
            (Ok(999), "failed"),
            (Err(&unreachable), "unreachable"),
            (Err(&Error::Timeout { operation }), "timeout"),
            (Err(&unexpected), "unusable"),
        ];
        for (response, name) in rows {
            assert_eq!(Ending::of(response).name(), name, "{response:?}");
        }
    }

    #[test]
    fn durations_are_counted_in_the_bucket_of_their_bound() {
        let mut statistics = Statistics::at_zero();
        assert_eq!(statistics.requests.len(), Method::ALL.len() * Ending::ALL.len());
        for millis in [5, 10, 11, 60_000] {
            statistics.record(Method::Put, Ending::Success, Duration::from_millis(millis));
        }
        let latency = statistics.latencies.get(&Method::Put).unwrap();
        assert_eq!((latency.count, latency.total), (4, Duration::from_millis(60_026)));
        assert_eq!(latency.buckets, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(statistics.requests.get(&(Method::Put, Ending::Success)), Some(&4));
    }
}
