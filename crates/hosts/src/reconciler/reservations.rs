//! How long this process observes the present reservation of each host's node.
//!
//! The times in a node are those of Ironic's clock, which may differ from this one: they are compared with each other only.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use metal3_domain::clock::Monotonic;
use metal3_domain::ids::NodeUuid;
use metal3_ironic::model::node::Node;
use metal3_runtime::cache::Key;
use parking_lot::Mutex;

#[derive(Default)]
pub(super) struct Reservations(Mutex<BTreeMap<Key, Reservation>>);

struct Reservation {
    of: Holder,
    since: Monotonic,
}

/// A node that changes while it is reserved is worked with.
#[derive(PartialEq, Eq)]
struct Holder {
    node: NodeUuid,
    conductor: String,
    changed: Option<DateTime<Utc>>,
}

impl Holder {
    fn of(node: &Node) -> Option<Self> {
        Some(Self {
            node: node.uuid.clone(),
            conductor: node.reservation.clone()?,
            changed: node.updated_at,
        })
    }
}

impl Reservations {
    /// How long this process observes the node with its present reservation and without a change. `None`: the node has no
    /// reservation, or is not observed now, which ends nothing.
    pub(super) fn held_for(&self, host: &Key, node: Option<&Node>, now: Monotonic) -> Option<Duration> {
        let node = node?;
        let mut reservations = self.0.lock();
        let Some(of) = Holder::of(node) else {
            reservations.remove(host);
            return None;
        };
        let known = reservations.get(host).filter(|known| known.of == of);
        let since = known.map_or(now, |known| known.since);
        reservations.insert(host.clone(), Reservation { of, since });
        Some(now.since(since))
    }

    pub(super) fn remove(&self, host: &Key) {
        self.0.lock().remove(host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(conductor: Option<&str>, changed: i64) -> Node {
        let mut node: Node = serde_json::from_value(crate::tests::fixture::node("active")).unwrap();
        node.reservation = conductor.map(str::to_owned);
        node.updated_at = DateTime::from_timestamp(changed, 0);
        node
    }

    #[test]
    fn reservation_lasts_from_its_first_observation_whatever_the_times_of_the_node() {
        let reservations = Reservations::default();
        let host = Key {
            namespace: "metal".to_owned(),
            name: "h".to_owned(),
        };
        let held = |second, node: Option<&Node>| {
            let now = Monotonic::new(Duration::from_secs(second));
            reservations.held_for(&host, node, now).map(|held| held.as_secs())
        };
        let (free, first) = (node(None, 900_000), node(Some("c1"), 900_000));
        assert_eq!(held(10, Some(&free)), None);
        assert_eq!(held(20, Some(&first)), Some(0));
        assert_eq!(held(50, Some(&first)), Some(30));
        assert_eq!(held(60, None), None, "not observed");
        assert_eq!(held(70, Some(&first)), Some(50), "the same one");
        assert_eq!(held(80, Some(&node(Some("c1"), 900_001))), Some(0), "the node changed");
        assert_eq!(held(90, Some(&node(Some("c2"), 900_001))), Some(0), "another conductor");
        assert_eq!(held(95, Some(&free)), None);
        assert_eq!(held(99, Some(&node(Some("c2"), 900_001))), Some(0), "a new one");
        reservations.remove(&host);
        assert_eq!(
            held(120, Some(&node(Some("c2"), 900_001))),
            Some(0),
            "the host is another one"
        );
    }
}
