//! The addresses of Pods: a /24 pool, assigned in a ring, so that a released address is reused last.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

const FIRST: u8 = 2;
const LAST: u8 = 254;

/// The assigned host numbers.
#[derive(Debug)]
pub(crate) struct Pool {
    network: [u8; 3],
    used: BTreeSet<u8>,
    next: u8,
}

impl Pool {
    /// Parses `a.b.c.0/24`; number one is the Node.
    pub(crate) fn parse(subnet: &str) -> Result<Self, String> {
        let error = || format!("--pod-subnet {subnet:?}: a network of 256 addresses: 10.244.0.0/24");
        let address: Ipv4Addr = subnet
            .strip_suffix("/24")
            .ok_or_else(error)?
            .parse()
            .map_err(|_| error())?;
        let [a, b, c, host] = address.octets();
        if host != 0 {
            return Err(error());
        }
        Ok(Self {
            network: [a, b, c],
            used: BTreeSet::new(),
            next: FIRST,
        })
    }

    /// A free address; `None` when all are assigned.
    pub(crate) fn take(&mut self) -> Option<Ipv4Addr> {
        let free = (self.next..=LAST)
            .chain(FIRST..self.next)
            .find(|host| !self.used.contains(host))?;
        self.used.insert(free);
        self.next = if free == LAST { FIRST } else { free.saturating_add(1) };
        let [a, b, c] = self.network;
        Some(Ipv4Addr::new(a, b, c, free))
    }

    pub(crate) fn release(&mut self, address: Ipv4Addr) {
        let [_, _, _, host] = address.octets();
        self.used.remove(&host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_address_is_reused_last() {
        let mut pool = Pool::parse("10.1.2.0/24").unwrap();
        let first = pool.take().unwrap();
        assert_eq!(first, Ipv4Addr::new(10, 1, 2, 2));
        pool.release(first);
        let rest: Vec<Ipv4Addr> = (0..252).filter_map(|_| pool.take()).collect();
        assert!(!rest.contains(&first));
        assert_eq!(pool.take(), Some(first));
        assert_eq!(pool.take(), None, "253 Pods at most");
    }

    #[test]
    fn subnet_must_be_a_24_network() {
        for subnet in ["10.1.2.0", "10.1.2.0/16", "10.1.2.3/24", "x/24"] {
            assert!(Pool::parse(subnet).is_err(), "{subnet}");
        }
    }
}
