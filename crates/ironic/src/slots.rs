//! Slots: how many hosts may load the provisioning network at once, and which are next.
//!
//! One process decides, so counting needs no request: a slot is recorded when it is granted. Keys belong to groups, and
//! the groups that wait take turns, so that a group with many keys does not keep the others waiting. Within a group the
//! order is first come, first served.
//! The invariant: once the holders are known, a slot is free only if no key waits, and the number of holders exceeds
//! the limit only by those that held a slot at the start. The host controller decides which hosts need a
//! slot, and when.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

/// The default of the Go manager.
pub const DEFAULT_LIMIT: usize = 20;

/// The result of a request for a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotState {
    /// The key has a slot.
    Granted,
    /// The key waits.
    Waiting {
        /// The number of keys before it, if no further key comes.
        ahead: usize,
    },
}

/// The slots of one Ironic.
///
/// differs: `slots-by-namespace`
#[derive(Debug, Clone)]
pub struct Slots<K> {
    limit: usize,
    group: fn(&K) -> &str,
    holders: BTreeSet<K>,
    /// The waiting keys of each group that waits.
    waiting: BTreeMap<String, VecDeque<K>>,
    /// The group that received the latest slot; the next one by name is next.
    latest: Option<String>,
    /// Before the holders are known no slot is granted: unknown is not absent.
    holders_known: bool,
}

impl<K: Ord + Clone> Slots<K> {
    /// Slots with unknown holders: every key waits until [`Slots::restore`]. All keys are of one group.
    #[must_use]
    pub const fn with_unknown_holders(limit: usize) -> Self {
        Self {
            limit,
            group: |_| "",
            holders: BTreeSet::new(),
            waiting: BTreeMap::new(),
            latest: None,
            holders_known: false,
        }
    }

    /// The same with a group for each key.
    #[must_use]
    pub fn grouped_by(self, group: fn(&K) -> &str) -> Self {
        Self { group, ..self }
    }

    /// Sets the holders, from the states of the nodes after a start. Returns the keys with new slots.
    #[must_use = "the keys with new slots must be enqueued"]
    pub fn restore(&mut self, holders: impl IntoIterator<Item = K>) -> Vec<K> {
        self.holders.extend(holders);
        for queue in self.waiting.values_mut() {
            queue.retain(|key| !self.holders.contains(key));
        }
        self.waiting.retain(|_, queue| !queue.is_empty());
        self.holders_known = true;
        self.refill()
    }

    /// Requests a slot. Repeating it changes nothing, so each reconcile may call it.
    pub fn request(&mut self, key: &K) -> SlotState {
        if self.holders.contains(key) {
            return SlotState::Granted;
        }
        let group = (self.group)(key).to_owned();
        if self.holders_known && self.waiting.is_empty() && self.holders.len() < self.limit {
            self.holders.insert(key.clone());
            self.latest = Some(group);
            return SlotState::Granted;
        }
        let queue = self.waiting.entry(group.clone()).or_default();
        let position = queue.iter().position(|waiting| waiting == key);
        let position = position.unwrap_or_else(|| {
            queue.push_back(key.clone());
            queue.len() - 1
        });
        SlotState::Waiting {
            ahead: self.ahead(&group, position),
        }
    }

    /// Releases a slot, or the place in the queue. Returns the keys with new slots.
    #[must_use = "the keys with new slots must be enqueued"]
    pub fn release(&mut self, key: &K) -> Vec<K> {
        self.holders.remove(key);
        let group = (self.group)(key);
        if let Some(queue) = self.waiting.get_mut(group) {
            queue.retain(|waiting| waiting != key);
            if queue.is_empty() {
                self.waiting.remove(group);
            }
        }
        self.refill()
    }

    /// The keys with a slot, in order.
    pub fn holders(&self) -> impl Iterator<Item = &K> {
        self.holders.iter()
    }

    /// The waiting keys, by group, first come first.
    pub fn waiting(&self) -> impl Iterator<Item = &K> {
        self.waiting.values().flatten()
    }

    /// The number of keys that receive a slot before this position of the group's queue.
    fn ahead(&self, group: &str, position: usize) -> usize {
        let is_before = |other: &str| match self.latest.as_deref() {
            // Groups after the latest one come first.
            Some(latest) => (other <= latest, other) < (group <= latest, group),
            None => other < group,
        };
        let others = self.waiting.iter().filter(|(other, _)| *other != group);
        let before = others.map(|(other, queue)| queue.len().min(position + usize::from(is_before(other))));
        position + before.sum::<usize>()
    }

    fn refill(&mut self) -> Vec<K> {
        let mut granted = Vec::new();
        while self.holders_known && self.holders.len() < self.limit {
            let Some(key) = self.next() else { break };
            self.holders.insert(key.clone());
            granted.push(key);
        }
        granted
    }

    /// Takes the first key of the group whose turn it is.
    fn next(&mut self) -> Option<K> {
        let after = |latest: &String| {
            let mut later = self
                .waiting
                .range::<str, _>((Bound::Excluded(latest.as_str()), Bound::Unbounded));
            later.next().map(|(group, _)| group.clone())
        };
        let next = self.latest.as_ref().and_then(after);
        let group = next.or_else(|| self.waiting.keys().next().cloned())?;
        let queue = self.waiting.get_mut(&group)?;
        let key = queue.pop_front();
        if queue.is_empty() {
            self.waiting.remove(&group);
        }
        self.latest = Some(group);
        key
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

    type Key = (&'static str, u8);

    fn grouped(limit: usize) -> Slots<Key> {
        let mut slots = Slots::with_unknown_holders(limit).grouped_by(|(group, _): &Key| group);
        assert!(slots.restore([]).is_empty());
        slots
    }

    #[test]
    fn a_group_with_many_keys_does_not_keep_other_groups_waiting() {
        let mut slots = grouped(2);
        let many: Vec<Key> = (0..100).map(|number| ("a", number)).collect();
        for key in &many {
            slots.request(key);
        }
        assert_eq!(slots.request(&("b", 0)), SlotState::Waiting { ahead: 0 });
        assert_eq!(slots.request(&("c", 0)), SlotState::Waiting { ahead: 1 });
        assert_eq!(slots.request(&("b", 1)), SlotState::Waiting { ahead: 3 });
        assert_eq!(slots.request(&("a", 2)), SlotState::Waiting { ahead: 2 });
        assert_eq!(slots.request(&("a", 99)), SlotState::Waiting { ahead: 100 });
        let mut granted = Vec::new();
        for key in [("a", 0), ("a", 1), ("b", 0), ("c", 0), ("a", 2)] {
            granted.extend(slots.release(&key));
        }
        assert_eq!(granted, [("b", 0), ("c", 0), ("a", 2), ("b", 1), ("a", 3)]);
    }

    #[test]
    fn groups_take_turns_after_a_restart_too() {
        let mut slots = Slots::with_unknown_holders(3).grouped_by(|(group, _): &Key| group);
        for key in [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("a", 4), ("c", 1)] {
            slots.request(&key);
        }
        assert_eq!(slots.restore([("a", 2)]), [("a", 1), ("b", 1)]);
        assert_eq!(slots.release(&("a", 2)), [("c", 1)]);
        assert_eq!(slots.release(&("c", 1)), [("a", 3)]);
    }

    proptest! {
        #[test]
        fn the_number_of_keys_ahead_is_the_number_granted_before(
            steps in proptest::collection::vec((0usize..4, 0u8..4), 1..40), of in 0usize..40, begun in 0usize..4
        ) {
            const GROUPS: [&str; 4] = ["a", "b", "c", "d"];
            let mut slots = grouped(1);
            slots.request(&(GROUPS[begun], 255));
            let keys: Vec<Key> = steps.iter().map(|(group, number)| (GROUPS[*group], *number)).collect();
            for key in &keys {
                slots.request(key);
            }
            let asked = keys[of % keys.len()];
            let SlotState::Waiting { ahead } = slots.request(&asked) else { panic!("a slot is free") };
            let (mut holder, mut before) = ((GROUPS[begun], 255), 0);
            while let Some(next) = slots.release(&holder).first() {
                holder = *next;
                if holder == asked { break }
                before += 1;
            }
            prop_assert_eq!(ahead, before);
        }
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
