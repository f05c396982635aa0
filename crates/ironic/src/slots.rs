//! Slots: how many hosts may load the provisioning network at once, and whose turn it is.
//!
//! One process decides, so counting needs no request: a grant is recorded when it is given. First come, first served.
//! The invariant: once the holders are known, a slot is free only if nobody waits, and the number of holders exceeds
//! the limit only by those that already held a slot when it was set. What a slot is *for*, and which hosts need one,
//! is the host controller's to say.

use std::collections::{BTreeSet, VecDeque};

/// Upstream's default for the number of busy hosts.
pub const DEFAULT_LIMIT: usize = 20;

/// What asking for a slot gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotState {
    /// It has one.
    Granted,
    /// It waits behind this many others.
    Waiting {
        /// How many come first.
        ahead: usize,
    },
}

/// The slots of one Ironic.
#[derive(Debug, Clone)]
pub struct Slots<K> {
    limit: usize,
    holders: BTreeSet<K>,
    queue: VecDeque<K>,
    /// Before the holders are known nobody gets a slot: unknown is not absent.
    counted: bool,
}

impl<K: Ord + Clone> Slots<K> {
    /// Slots whose holders are not known yet: everyone waits until [`Slots::restore`].
    #[must_use]
    pub const fn uncounted(limit: usize) -> Self {
        Self {
            limit,
            holders: BTreeSet::new(),
            queue: VecDeque::new(),
            counted: false,
        }
    }

    /// Says who holds a slot, as the states of the nodes show after a start. Returns those whose turn it is now.
    #[must_use = "those who got a slot must be woken"]
    pub fn restore(&mut self, holders: impl IntoIterator<Item = K>) -> Vec<K> {
        self.holders.extend(holders);
        self.queue.retain(|key| !self.holders.contains(key));
        self.counted = true;
        self.refill()
    }

    /// Asks for a slot. Asking again changes nothing, so a caller may ask on every pass.
    pub fn request(&mut self, key: &K) -> SlotState {
        if self.holders.contains(key) {
            return SlotState::Granted;
        }
        if let Some(ahead) = self.queue.iter().position(|waiting| waiting == key) {
            return SlotState::Waiting { ahead };
        }
        if self.counted && self.queue.is_empty() && self.holders.len() < self.limit {
            self.holders.insert(key.clone());
            return SlotState::Granted;
        }
        self.queue.push_back(key.clone());
        SlotState::Waiting {
            ahead: self.queue.len().saturating_sub(1),
        }
    }

    /// Gives back a slot, or the place in the queue. Returns those whose turn it is now.
    #[must_use = "those who got a slot must be woken"]
    pub fn release(&mut self, key: &K) -> Vec<K> {
        self.holders.remove(key);
        self.queue.retain(|waiting| waiting != key);
        self.refill()
    }

    /// Changes the limit. Nobody loses a slot by it.
    #[must_use = "those who got a slot must be woken"]
    pub fn set_limit(&mut self, limit: usize) -> Vec<K> {
        self.limit = limit;
        self.refill()
    }

    /// Who holds a slot, in order.
    pub fn holders(&self) -> impl Iterator<Item = &K> {
        self.holders.iter()
    }

    /// Who waits, first come first.
    pub fn waiting(&self) -> impl Iterator<Item = &K> {
        self.queue.iter()
    }

    fn refill(&mut self) -> Vec<K> {
        let free = if self.counted {
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

    fn counted(limit: usize) -> Slots<u8> {
        let mut slots = Slots::uncounted(limit);
        assert!(slots.restore([]).is_empty());
        slots
    }

    #[test]
    fn nobody_gets_a_slot_before_the_holders_are_known() {
        let mut slots = Slots::uncounted(2);
        assert_eq!(slots.request(&1), SlotState::Waiting { ahead: 0 });
        assert_eq!(slots.request(&2), SlotState::Waiting { ahead: 1 });
        assert_eq!(slots.request(&3), SlotState::Waiting { ahead: 2 });
        assert_eq!(slots.restore([3]), [1]);
        assert_eq!(slots.request(&3), SlotState::Granted);
        assert_eq!(slots.request(&2), SlotState::Waiting { ahead: 0 });
    }

    #[test]
    fn a_slot_that_frees_goes_in_the_same_turn_to_who_came_first() {
        let mut slots = counted(1);
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
        let mut slots = Slots::uncounted(2);
        assert!(slots.restore([1, 2, 3]).is_empty());
        assert_eq!(slots.request(&4), SlotState::Waiting { ahead: 0 });
        assert!(slots.release(&1).is_empty());
        assert_eq!(slots.release(&2), [4]);
        assert!(slots.set_limit(0).is_empty());
        assert_eq!(slots.request(&4), SlotState::Granted);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Ask(u8),
        Leave(u8),
        Limit(usize),
        Restore(Vec<u8>),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0u8..12).prop_map(Step::Ask),
            3 => (0u8..12).prop_map(Step::Leave),
            1 => (0usize..5).prop_map(Step::Limit),
            1 => proptest::collection::vec(0u8..12, 0..4).prop_map(Step::Restore),
        ]
    }

    proptest! {
        #[test]
        fn a_slot_is_free_only_when_nobody_waits_and_grants_follow_the_order_of_asking(
            steps in proptest::collection::vec(step(), 0..80)
        ) {
            let mut slots = Slots::uncounted(3);
            let (mut limit, mut counted, mut allowed) = (3, false, 0);
            for step in steps {
                let queue: Vec<u8> = slots.waiting().copied().collect();
                let before = slots.holders().count();
                let granted = match step {
                    Step::Ask(key) => { slots.request(&key); Vec::new() }
                    Step::Leave(key) => slots.release(&key),
                    Step::Limit(new) => { limit = new; slots.set_limit(new) }
                    Step::Restore(holders) => { counted = true; allowed = 12; slots.restore(holders) }
                };
                let order: Vec<u8> = queue.into_iter().filter(|key| granted.contains(key)).collect();
                prop_assert_eq!(&order, &granted);
                let held = slots.holders().count();
                prop_assert!(held <= limit.max(before).max(allowed));
                allowed = 0;
                prop_assert!(!counted || held >= limit || slots.waiting().count() == 0);
                prop_assert!(counted || held == 0);
                prop_assert!(slots.holders().all(|key| slots.waiting().all(|waiting| waiting != key)));
            }
        }
    }
}
