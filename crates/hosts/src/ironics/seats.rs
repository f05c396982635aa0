//! How many hosts of one Ironic, or objects about them, are reconciled at once, where there are several: the requests of one that
//! does not respond must not occupy the workers that the hosts of another need.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use metal3_runtime::cache::Key;
use metal3_runtime::queue::Waker;
use parking_lot::Mutex;

/// The seats of one Ironic. Clones share them.
#[derive(Clone)]
pub(crate) struct Seats(Arc<Shared>);

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
    /// Hosts that were enqueued for a seat, until they come for it.
    called: BTreeSet<Key>,
}

impl Inner {
    /// The host whose turn it is.
    fn call(&mut self) -> Option<Key> {
        let next = self.waiting.pop_front()?;
        self.called.insert(next.clone());
        Some(next)
    }
}

/// A seat, until it is dropped. Then the host that waits longest is enqueued.
pub(crate) struct Seat(Seats);

impl Seats {
    pub(crate) fn new(limit: usize, waker: Waker<Key>) -> Self {
        Self(Arc::new(Shared {
            limit: limit.max(1),
            waker,
            inner: Mutex::default(),
        }))
    }

    /// Takes one. `None`: none is free, and the host is enqueued when one is.
    pub(crate) fn take(&self, host: &Key) -> Option<Seat> {
        let mut inner = self.0.inner.lock();
        inner.called.remove(host);
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

    /// The host does not come: it is gone, cannot be read, or is of another Ironic. Its turn is that of the next one, which waits
    /// for nothing else.
    pub(crate) fn leave(&self, host: &Key) {
        let next = {
            let mut inner = self.0.inner.lock();
            inner.waiting.retain(|one| one != host);
            let was_called = inner.called.remove(host);
            was_called.then(|| inner.call()).flatten()
        };
        self.wake(next);
    }

    fn wake(&self, next: Option<Key>) {
        if let Some(next) = next {
            self.0.waker.enqueue(next);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let next = {
            let mut inner = self.0.0.inner.lock();
            inner.taken = inner.taken.saturating_sub(1);
            inner.call()
        };
        self.0.wake(next);
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

    fn key(name: &str) -> Key {
        Key {
            namespace: "metal".to_owned(),
            name: name.to_owned(),
        }
    }

    fn waiting(seats: &Seats) -> Vec<String> {
        let inner = seats.0.inner.lock();
        inner.waiting.iter().map(|key| key.name.clone()).collect()
    }

    #[test]
    fn seat_that_is_left_goes_to_the_host_that_waits_longest() {
        let queue = Queue::new(Arc::new(Still));
        let seats = Seats::new(1, queue.waker());
        let first = seats.take(&key("a")).unwrap();
        assert!(seats.take(&key("b")).is_none() && seats.take(&key("c")).is_none() && seats.take(&key("b")).is_none());
        assert_eq!(waiting(&seats), ["b", "c"]);
        drop(first);
        assert_eq!(waiting(&seats), ["c"], "b is enqueued");
        let second = seats.take(&key("c"));
        assert!(
            second.is_some() && waiting(&seats).is_empty(),
            "who comes first takes it"
        );
        assert!(seats.take(&key("b")).is_none());
        drop(second);
        assert!(seats.take(&key("b")).is_some());
    }

    #[test]
    fn host_that_does_not_come_passes_its_turn_on() {
        let queue = Queue::new(Arc::new(Still));
        let seats = Seats::new(1, queue.waker());
        let first = seats.take(&key("a")).unwrap();
        for name in ["gone", "moved", "c"] {
            assert!(seats.take(&key(name)).is_none());
        }
        drop(first);
        assert_eq!(waiting(&seats), ["moved", "c"], "gone is enqueued");
        seats.leave(&key("other"));
        assert_eq!(waiting(&seats), ["moved", "c"], "no one's turn");
        seats.leave(&key("gone"));
        assert_eq!(waiting(&seats), ["c"], "moved is enqueued instead");
        seats.leave(&key("moved"));
        assert!(waiting(&seats).is_empty(), "c is enqueued instead");
        assert!(seats.take(&key("c")).is_some());
    }
}
