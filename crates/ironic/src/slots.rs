//! Slots: how many hosts may load the provisioning network at once, and which are next.
//!
//! One process decides, so counting needs no request: a slot is recorded when it is granted, first come, first served.
//! The invariant: once the holders are known, a slot is free only if no key waits, and the number of holders exceeds
//! the limit only by those that held a slot at the start. The host controller decides which hosts need a
//! slot, and when.

use std::collections::{BTreeSet, VecDeque};

/// The default of the Go manager.
pub const DEFAULT_LIMIT: usize = 20;

/// The result of a request for a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotState {
    /// The key has a slot.
    Granted,
    /// The key waits.
    Waiting {
        /// The number of keys before it.
        ahead: usize,
    },
}

/// The slots of one Ironic.
#[derive(Debug, Clone)]
pub struct Slots<K> {
    limit: usize,
    holders: BTreeSet<K>,
    queue: VecDeque<K>,
    /// Before the holders are known no slot is granted: unknown is not absent.
    holders_known: bool,
}

impl<K: Ord + Clone> Slots<K> {
    /// Slots with unknown holders: every key waits until [`Slots::restore`].
    #[must_use]
    pub const fn with_unknown_holders(limit: usize) -> Self {
        Self {
            limit,
            holders: BTreeSet::new(),
            queue: VecDeque::new(),
            holders_known: false,
        }
    }

    /// Sets the holders, from the states of the nodes after a start. Returns the keys with new slots.
    #[must_use = "the keys with new slots must be enqueued"]
    pub fn restore(&mut self, holders: impl IntoIterator<Item = K>) -> Vec<K> {
        self.holders.extend(holders);
        self.queue.retain(|key| !self.holders.contains(key));
        self.holders_known = true;
        self.refill()
    }

    /// Requests a slot. Repeating it changes nothing, so each reconcile may call it.
    pub fn request(&mut self, key: &K) -> SlotState {
        if self.holders.contains(key) {
            return SlotState::Granted;
        }
        if let Some(ahead) = self.queue.iter().position(|waiting| waiting == key) {
            return SlotState::Waiting { ahead };
        }
        if self.holders_known && self.queue.is_empty() && self.holders.len() < self.limit {
            self.holders.insert(key.clone());
            return SlotState::Granted;
        }
        self.queue.push_back(key.clone());
        SlotState::Waiting {
            ahead: self.queue.len().saturating_sub(1),
        }
    }

    /// Releases a slot, or the place in the queue. Returns the keys with new slots.
    #[must_use = "the keys with new slots must be enqueued"]
    pub fn release(&mut self, key: &K) -> Vec<K> {
        self.holders.remove(key);
        self.queue.retain(|waiting| waiting != key);
        self.refill()
    }

    /// The keys with a slot, in order.
    pub fn holders(&self) -> impl Iterator<Item = &K> {
        self.holders.iter()
    }

    /// The waiting keys, first come first.
    pub fn waiting(&self) -> impl Iterator<Item = &K> {
        self.queue.iter()
    }

    fn refill(&mut self) -> Vec<K> {
        let free = if self.holders_known {
            self.limit.saturating_sub(self.holders.len())
        } else {
            0
        };
        let next: Vec<K> = self.queue.drain(..free.min(self.queue.len())).collect();
        self.holders.extend(next.iter().cloned());
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn holders_known(limit: usize) -> Slots<u8> {
        let mut slots = Slots::with_unknown_holders(limit);
        assert!(slots.restore([]).is_empty());
        slots
    }

    #[test]
    fn no_slot_is_granted_before_the_holders_are_known() {
        let mut slots = Slots::with_unknown_holders(2);
        assert_eq!(slots.request(&1), SlotState::Waiting { ahead: 0 });
        assert_eq!(slots.request(&2), SlotState::Waiting { ahead: 1 });
        assert_eq!(slots.request(&3), SlotState::Waiting { ahead: 2 });
        assert_eq!(slots.restore([3]), [1]);
        assert_eq!(slots.request(&3), SlotState::Granted);
        assert_eq!(slots.request(&2), SlotState::Waiting { ahead: 0 });
    }

    #[test]
    fn a_released_slot_is_granted_at_once_to_the_key_that_waited_longest() {
        let mut slots = holders_known(1);
        assert_eq!(slots.request(&9), SlotState::Granted);
        for (ahead, key) in [8, 2, 5].into_iter().enumerate() {
            assert_eq!(slots.request(&key), SlotState::Waiting { ahead });
        }
        assert_eq!(slots.release(&9), [8]);
        assert_eq!(slots.release(&8), [2]);
        assert_eq!(slots.release(&2), [5]);
        assert!(slots.release(&5).is_empty());
    }

    #[test]
    fn more_holders_than_the_limit_keep_their_slots_and_the_rest_wait() {
        let mut slots = Slots::with_unknown_holders(2);
        assert!(slots.restore([1, 2, 3]).is_empty());
        assert_eq!(slots.request(&4), SlotState::Waiting { ahead: 0 });
        assert!(slots.release(&1).is_empty());
        assert_eq!(slots.release(&2), [4]);
        assert_eq!(slots.request(&4), SlotState::Granted);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Request(u8),
        Release(u8),
        Restore(Vec<u8>),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0u8..12).prop_map(Step::Request),
            3 => (0u8..12).prop_map(Step::Release),
            1 => proptest::collection::vec(0u8..12, 0..4).prop_map(Step::Restore),
        ]
    }

    proptest! {
        #[test]
        fn a_slot_is_free_only_when_no_key_waits_and_grants_follow_the_order_of_requests(
            steps in proptest::collection::vec(step(), 0..80)
        ) {
            let mut slots = Slots::with_unknown_holders(3);
            let (limit, mut holders_known, mut allowed) = (3, false, 0);
            for step in steps {
                let queue: Vec<u8> = slots.waiting().copied().collect();
                let before = slots.holders().count();
                let granted = match step {
                    Step::Request(key) => { slots.request(&key); Vec::new() }
                    Step::Release(key) => slots.release(&key),
                    Step::Restore(holders) => { holders_known = true; allowed = 12; slots.restore(holders) }
                };
                let order: Vec<u8> = queue.into_iter().filter(|key| granted.contains(key)).collect();
                prop_assert_eq!(&order, &granted);
                let held = slots.holders().count();
                prop_assert!(held <= limit.max(before).max(allowed));
                allowed = 0;
                prop_assert!(!holders_known || held >= limit || slots.waiting().count() == 0);
                prop_assert!(holders_known || held == 0);
                prop_assert!(slots.holders().all(|key| slots.waiting().all(|waiting| waiting != key)));
            }
        }
    }
}
