//! The number of open connections of a server.
//!
//! A client that opens many must not lock out others, so each address has a limit as well.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

/// Open connections.
const ALL: usize = 256;
/// Open connections of one address. API servers keep a few.
const OF_ONE: usize = 64;

/// Counts open connections; clones share the count.
#[derive(Debug, Clone, Default)]
pub(super) struct Connections(Arc<Mutex<Count>>);

#[derive(Debug, Default)]
struct Count {
    all: usize,
    by_client: BTreeMap<IpAddr, usize>,
}

impl Connections {
    /// Counts a connection until the result is dropped; `None` when it is one too many.
    pub(super) fn admit(&self, client: IpAddr) -> Option<Admitted> {
        let mut count = self.0.lock();
        let own = count.by_client.get(&client).copied().unwrap_or_default();
        if count.all >= ALL || own >= OF_ONE {
            return None;
        }
        count.all += 1;
        count.by_client.insert(client, own + 1);
        Some(Admitted {
            connections: self.clone(),
            client,
        })
    }
}

/// An open connection.
#[derive(Debug)]
pub(super) struct Admitted {
    connections: Connections,
    client: IpAddr,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut count = self.connections.0.lock();
        count.all = count.all.saturating_sub(1);
        match count.by_client.get_mut(&self.client) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(count.by_client.remove(&self.client)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(number: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, number])
    }

    #[test]
    fn a_client_with_many_connections_does_not_lock_out_others() {
        let connections = Connections::default();
        let mut open: Vec<_> = (0..OF_ONE).map(|_| connections.admit(client(1)).unwrap()).collect();
        assert!(connections.admit(client(1)).is_none());
        assert!(connections.admit(client(2)).is_some());
        open.pop();
        assert!(connections.admit(client(1)).is_some());
    }

    #[test]
    fn the_number_of_all_connections_is_limited_and_closed_ones_do_not_count() {
        let connections = Connections::default();
        let open: Vec<_> = (0..ALL)
            .map(|number| {
                connections
                    .admit(client(u8::try_from(number / OF_ONE).unwrap()))
                    .unwrap()
            })
            .collect();
        assert!(connections.admit(client(200)).is_none());
        drop(open);
        assert!(connections.admit(client(200)).is_some());
        let count = connections.0.lock();
        assert_eq!((count.all, count.by_client.len()), (0, 0));
    }
}
