//! How many hosts of one Ironic are reconciled at once, where there are several: the requests of one that does not respond must
//! not occupy the workers that the hosts of another need.

use std::collections::VecDeque;
use std::sync::Arc;

use metal3_runtime::cache::Key;
use metal3_runtime::queue::Waker;
use parking_lot::Mutex;

/// The seats of one Ironic. Clones share them.
#[derive(Clone)]
pub(super) struct Seats(Arc<Shared>);

struct Shared {
    limit: usize,
    waker: Waker<Key>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    taken: usize,
    /// Hosts without a seat, in the order of their reconciles.
    waiting: VecDeque<Key>,
}

/// A seat, until it is dropped. Then the host that waits longest is enqueued.
pub(super) struct Seat(Seats);

impl Seats {
    pub(super) fn new(limit: usize, waker: Waker<Key>) -> Self {
        Self(Arc::new(Shared {
            limit: limit.max(1),
            waker,
            inner: Mutex::default(),
        }))
    }

    /// Takes one. `None`: none is free, and the host is enqueued when one is.
    pub(super) fn take(&self, host: &Key) -> Option<Seat> {
        let mut inner = self.0.inner.lock();
        let place = inner.waiting.iter().position(|one| one == host);
        if inner.taken < self.0.limit {
            inner.taken = inner.taken.saturating_add(1);
            place.and_then(|place| inner.waiting.remove(place));
            return Some(Seat(self.clone()));
        }
        if place.is_none() {
            inner.waiting.push_back(host.clone());
        }
        None
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let next = {
            let mut inner = self.0.0.inner.lock();
            inner.taken = inner.taken.saturating_sub(1);
            inner.waiting.pop_front()
        };
        if let Some(next) = next {
            self.0.0.waker.enqueue(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use metal3_domain::clock::{Clock, Monotonic};
    use metal3_runtime::queue::Queue;

    use super::*;

    #[derive(Debug)]
    struct Still;

    impl Clock for Still {
        fn now(&self) -> chrono::DateTime<chrono::Utc> {
            chrono::DateTime::UNIX_EPOCH
        }

        fn monotonic(&self) -> Monotonic {
            Monotonic::new(Duration::ZERO)
        }
    }

    #[test]
    fn seat_that_is_left_goes_to_the_host_that_waits_longest() {
        let queue = Queue::new(Arc::new(Still));
        let seats = Seats::new(1, queue.waker());
        let key = |name: &str| Key {
            namespace: "metal".to_owned(),
            name: name.to_owned(),
        };
        let first = seats.take(&key("a")).unwrap();
        assert!(seats.take(&key("b")).is_none() && seats.take(&key("c")).is_none() && seats.take(&key("b")).is_none());
        let waiting = || {
            seats
                .0
                .inner
                .lock()
                .waiting
                .iter()
                .map(|key| key.name.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(waiting(), ["b", "c"]);
        drop(first);
        assert_eq!(waiting(), ["c"], "b is enqueued");
        let second = seats.take(&key("c"));
        assert!(second.is_some() && waiting().is_empty(), "who comes first takes it");
        assert!(seats.take(&key("b")).is_none());
        drop(second);
        assert!(seats.take(&key("b")).is_some());
    }
}
