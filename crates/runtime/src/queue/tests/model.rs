//! Compares the queue with a naive model: plain lists, searched from the front.

use std::time::Duration;

use metal3_domain::clock::Monotonic;
use proptest::prelude::*;

use crate::queue::{FIRST_DELAY, LONGEST_DELAY, Lane, Outcome, WorkQueue};

#[derive(Debug, Clone, Copy)]
enum Op {
    Add(u8, Lane),
    Take,
    /// Finishes the n-th key in work.
    Finish(usize, Outcome),
    Wait(u64),
    Hold(u8),
    Free(u8),
}

#[derive(Debug, Default)]
struct Model {
    ready: Vec<(Lane, u8)>,
    working: Vec<(u8, Lane)>,
    again: Vec<(u8, Lane)>,
    delayed: Vec<(Duration, u8, Lane)>,
    /// One entry for each hold.
    holds: Vec<u8>,
    /// Held keys that are otherwise ready.
    held: Vec<(Lane, u8)>,
    /// Key, end of its window, length of its window.
    failing: Vec<(u8, Duration, Duration)>,
}

impl Model {
    fn release(&mut self, now: Duration) {
        self.delayed.sort_by_key(|(due, ..)| *due);
        while self.delayed.first().is_some_and(|(due, ..)| *due <= now) {
            let (_, key, lane) = self.delayed.remove(0);
            self.make_ready(lane, key);
        }
    }

    fn make_ready(&mut self, lane: Lane, key: u8) {
        let place = if self.holds.contains(&key) {
            &mut self.held
        } else {
            &mut self.ready
        };
        place.push((lane, key));
    }

    fn hold(&mut self, key: u8) {
        self.holds.push(key);
        self.held.extend(self.ready.extract_if(.., |(_, ready)| *ready == key));
    }

    fn release_hold(&mut self, key: u8) {
        if let Some(at) = self.holds.iter().position(|held| *held == key) {
            self.holds.remove(at);
        }
        if !self.holds.contains(&key) {
            self.ready.extend(self.held.extract_if(.., |(_, held)| *held == key));
        }
    }

    fn add(&mut self, key: u8, lane: Lane) {
        if self.working.iter().any(|(working, _)| *working == key) {
            match self.again.iter_mut().find(|(again, _)| *again == key) {
                Some((_, wanted)) => *wanted = lane.min(*wanted),
                None => self.again.push((key, lane)),
            }
            return;
        }
        if let Some((waiting, _)) = self.held.iter_mut().find(|(_, held)| *held == key) {
            *waiting = lane.min(*waiting);
            return;
        }
        self.delayed.retain(|(_, delayed, _)| *delayed != key);
        match self.ready.iter().position(|(_, ready)| *ready == key) {
            Some(at) if lane < self.ready[at].0 => {
                self.ready.remove(at);
                self.ready.push((lane, key));
            }
            Some(_) => {}
            None => self.make_ready(lane, key),
        }
    }

    fn fail(&mut self, key: u8, now: Duration) -> Duration {
        match self.failing.iter_mut().find(|(failing, ..)| *failing == key) {
            None => {
                self.failing.push((key, now + FIRST_DELAY, FIRST_DELAY));
                now + FIRST_DELAY
            }
            Some((_, end, length)) => {
                if *end <= now {
                    *length = (*length * 2).min(LONGEST_DELAY);
                    *end = now + *length;
                }
                *end
            }
        }
    }

    fn finish(&mut self, nth: usize, outcome: Outcome, now: Duration) -> u8 {
        let (key, lane) = self.working.remove(nth);
        let due = match outcome {
            Outcome::Failed => Some(self.fail(key, now)),
            Outcome::Throttled(pause) => Some(self.fail(key, now).max(now + pause)),
            Outcome::RequeueAfter(pause) => Some(now + pause),
            Outcome::Done => None,
        };
        if !matches!(outcome, Outcome::Failed | Outcome::Throttled(_)) {
            self.failing.retain(|(failing, ..)| *failing != key);
        }
        if let Some(at) = self.again.iter().position(|(again, _)| *again == key) {
            let (_, wanted) = self.again.remove(at);
            self.make_ready(wanted, key);
        } else if let Some(due) = due {
            self.delayed.push((due, key, lane));
        }
        key
    }
}

fn lane() -> impl Strategy<Value = Lane> {
    prop_oneof![Just(Lane::High), Just(Lane::Low)]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        2 => Just(Outcome::Done),
        1 => (0_u64..40).prop_map(|millis| Outcome::RequeueAfter(Duration::from_millis(millis))),
        3 => Just(Outcome::Failed),
        1 => (0_u64..40).prop_map(|millis| Outcome::Throttled(Duration::from_millis(millis))),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0_u8..6, lane()).prop_map(|(key, lane)| Op::Add(key, lane)),
        4 => Just(Op::Take),
        4 => (0_usize..6, outcome()).prop_map(|(nth, outcome)| Op::Finish(nth, outcome)),
        2 => (0_u64..30).prop_map(Op::Wait),
        1 => (0_u8..6).prop_map(Op::Hold),
        1 => (0_u8..6).prop_map(Op::Free),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn queue_behaves_as_the_model_with_plain_lists(ops in prop::collection::vec(op(), 0..120)) {
        let (mut queue, mut model, mut now) = (WorkQueue::default(), Model::default(), Duration::ZERO);
        // At the end every key finishes and every timer expires, so a lost key is detected.
        let free = (0..6).flat_map(|key| std::iter::repeat_n(Op::Free(key), 120));
        let end = std::iter::repeat_n([Op::Finish(0, Outcome::Done), Op::Wait(10_000_000), Op::Take], 20).flatten();
        for op in ops.into_iter().chain(free).chain(end) {
            model.release(now);
            match op {
                Op::Add(key, lane) => {
                    queue.add(key, lane, Monotonic::new(now));
                    model.add(key, lane);
                }
                Op::Wait(millis) => now += Duration::from_millis(millis),
                Op::Finish(nth, outcome) if nth < model.working.len() => {
                    let key = model.finish(nth, outcome, now);
                    prop_assert!(queue.finish(&key, outcome, Monotonic::new(now)).is_some());
                }
                Op::Finish(..) => {}
                Op::Hold(key) => {
                    queue.hold(key, Monotonic::new(now));
                    model.hold(key);
                }
                Op::Free(key) => {
                    queue.release(&key, Monotonic::new(now));
                    model.release_hold(key);
                }
                Op::Take => match queue.take(Monotonic::new(now)) {
                    None => prop_assert!(model.ready.is_empty(), "lost: {:?}", model.ready),
                    Some(taken) => {
                        let first = model.ready.iter().position(|(lane, _)| *lane == taken.lane);
                        prop_assert!(first.is_some(), "{taken:?} came from an empty lane");
                        let (lane, key) = model.ready.remove(first.unwrap());
                        prop_assert_eq!((taken.lane, taken.key), (lane, key), "not first come, first served");
                        prop_assert!(!model.holds.contains(&key), "{key} is dispatched while held");
                        prop_assert!(model.working.iter().all(|(working, _)| *working != key), "{key} runs twice at once");
                        model.working.push((key, lane));
                    }
                },
            }
            let figures = queue.stats(Monotonic::new(now));
            prop_assert_eq!(figures.working, model.working.len());
            prop_assert_eq!(
                figures.high + figures.low + figures.delayed + figures.held,
                model.ready.len() + model.delayed.len() + model.held.len()
            );
        }
        prop_assert_eq!(queue.stats(Monotonic::new(now)).failing, 0);
        prop_assert_eq!(queue.depth(), 0);
    }
}
