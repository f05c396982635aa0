//! The requests under way and the bytes of their bodies, of all clients and of each.
//!
//! A client that sends many must not lock out the others, so each address may use a part only.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

/// Requests under way. The server keeps the headers of each, at most 16 KiB.
pub(super) const REQUESTS: usize = 256;
/// Requests of one address.
const REQUESTS_OF_ONE: usize = 128;
/// Bytes of the bodies of all requests.
pub(super) const BODIES: usize = 48 << 20;
/// Bytes of the bodies of one address: two of the longest.
const BODIES_OF_ONE: usize = 32 << 20;

/// Counts requests and bytes; clones share the counts.
#[derive(Debug, Clone, Default)]
pub(super) struct Bodies(Arc<Mutex<Used>>);

#[derive(Debug, Default)]
struct Used {
    all: Share,
    by_client: BTreeMap<Option<IpAddr>, Share>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Share {
    requests: usize,
    bytes: usize,
}

impl Bodies {
    /// Counts a request until the result is dropped; `None` when it is one too many.
    pub(super) fn begin(&self, client: Option<IpAddr>) -> Option<Held> {
        let mut used = self.0.lock();
        let own = used.by_client.get(&client).copied().unwrap_or_default();
        if used.all.requests >= REQUESTS || own.requests >= REQUESTS_OF_ONE {
            return None;
        }
        used.all.requests += 1;
        used.by_client.entry(client).or_default().requests += 1;
        Some(Held {
            bodies: self.clone(),
            client,
            bytes: 0,
        })
    }

    /// Whether nothing is counted.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        let used = self.0.lock();
        used.all == Share::default() && used.by_client.is_empty()
    }
}

/// A request with the bytes of its body.
#[derive(Debug)]
pub(super) struct Held {
    bodies: Bodies,
    client: Option<IpAddr>,
    bytes: usize,
}

impl Held {
    /// Counts further bytes; false when they are too many. It does not wait, because bodies that wait for each other
    /// would all be late.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        let mut used = self.bodies.0.lock();
        let all = used.all.bytes.saturating_add(bytes);
        let Some(own) = used.by_client.get_mut(&self.client) else {
            return false;
        };
        let of_one = own.bytes.saturating_add(bytes);
        if all > BODIES || of_one > BODIES_OF_ONE {
            return false;
        }
        own.bytes = of_one;
        used.all.bytes = all;
        self.bytes = self.bytes.saturating_add(bytes);
        true
    }
}

impl Held {
    /// Counts the request alone: its body is gone.
    pub(super) fn without_bytes(mut self) -> Self {
        let mut used = self.bodies.0.lock();
        used.all.bytes = used.all.bytes.saturating_sub(self.bytes);
        if let Some(own) = used.by_client.get_mut(&self.client) {
            own.bytes = own.bytes.saturating_sub(self.bytes);
        }
        drop(used);
        self.bytes = 0;
        self
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut used = self.bodies.0.lock();
        let subtract = |share: &mut Share| {
            share.requests = share.requests.saturating_sub(1);
            share.bytes = share.bytes.saturating_sub(self.bytes);
        };
        subtract(&mut used.all);
        if let Some(own) = used.by_client.get_mut(&self.client) {
            subtract(own);
            if own.requests == 0 {
                used.by_client.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(number: u8) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, number]))
    }

    #[test]
    fn a_client_with_many_requests_does_not_lock_out_others() {
        let bodies = Bodies::default();
        let mut open: Vec<_> = (0..REQUESTS_OF_ONE).map(|_| bodies.begin(client(1)).unwrap()).collect();
        assert!(bodies.begin(client(1)).is_none());
        assert!(bodies.begin(client(2)).is_some());
        open.pop();
        open.push(bodies.begin(client(1)).unwrap());
        open.extend((0..REQUESTS_OF_ONE).map(|_| bodies.begin(client(2)).unwrap()));
        assert!(bodies.begin(client(3)).is_none(), "too many of all");
        drop(open);
        assert!(bodies.is_idle());
    }

    #[test]
    fn a_client_with_long_bodies_leaves_bytes_to_others() {
        let bodies = Bodies::default();
        let (mut one, mut other) = (bodies.begin(client(1)).unwrap(), bodies.begin(client(2)).unwrap());
        assert!(one.grow(BODIES_OF_ONE));
        assert!(!one.grow(1));
        assert!(other.grow(BODIES - BODIES_OF_ONE));
        assert!(!other.grow(1), "too many of all");
        drop(one);
        assert!(other.grow(BODIES_OF_ONE - (BODIES - BODIES_OF_ONE)));
        drop(other);
        assert!(bodies.is_idle());
    }
}
