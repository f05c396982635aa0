//! Tables of the places. [`history`] has their invariants in any history.

mod history;

use super::*;

fn key(namespace: &str, name: impl ToString) -> Key {
    Key {
        namespace: namespace.to_owned(),
        name: name.to_string(),
    }
}

fn state() -> State {
    State::new(Limits::of(10))
}

/// A remediation or machine of a namespace, and its cluster.
fn pair(namespace: &str, name: impl ToString, cluster: &str) -> (Key, Key) {
    (key(namespace, name), key(namespace, cluster))
}

impl State {
    /// How many of these keys get a place.
    fn begun(&mut self, namespace: &str, names: std::ops::Range<u32>, cluster: &str, now: Instant) -> usize {
        let begin = |name| {
            let (key, cluster) = pair(namespace, name, cluster);
            self.begin(&key, &cluster, now).0
        };
        names.map(begin).filter(|has_place| *has_place).count()
    }

    /// The server of a cluster answers one request now, after this time.
    fn answer(&mut self, namespace: &str, cluster: &str, took: Duration, now: Instant) {
        let (key, cluster) = pair(namespace, "first", cluster);
        assert!(self.begin(&key, &cluster, now).0);
        assert_eq!(self.response(&key, took, now), []);
        assert_eq!(self.end(&key, now), []);
    }

    fn response(&mut self, key: &Key, took: Duration, now: Instant) -> Woken {
        self.asked(key, now - took);
        self.answered(key, now)
    }

    fn is_quick(&self, cluster: &Key, now: Instant) -> bool {
        self.usage(now).is_quick(cluster)
    }

    fn is_empty(&self) -> bool {
        self.held.is_empty() && self.namespaces.is_empty() && self.tickets.is_empty()
    }
}

#[test]
fn places_follow_from_the_number_of_workers() {
    let limits = |workers| {
        let limits = Limits::of(workers);
        [limits.of_namespace, limits.slow_of_namespace, limits.slow]
    };
    assert_eq!(
        [0, 1, 2, 5, 10, 50].map(limits),
        [[2, 1, 1], [2, 1, 1], [2, 1, 1], [2, 1, 2], [4, 2, 5], [20, 2, 25],]
    );
}

#[test]
fn servers_that_are_not_known_to_be_quick_leave_places_of_their_namespace_to_others() {
    let (mut state, now) = (state(), Instant::now());
    state.answer("one", "quick", QUICK, now);
    assert_eq!(state.begun("one", 0..9, "silent", now), 2);
    assert_eq!(state.begun("one", 10..19, "quick", now), 2);
    assert_eq!(state.begun("two", 0..9, "silent", now), 2);
    assert_eq!(state.begun("three", 0..9, "silent", now), 1, "half of the workers");
    assert_eq!(state.begun("four", 0..9, "silent", now), 0);
}

/// Namespaces compete for the places of slow servers, and a place for a quick one is none of these.
#[test]
fn quick_requests_of_a_namespace_put_its_slow_ones_in_front_of_no_other_and_behind_none() {
    let (mut state, now) = (state(), Instant::now());
    state.answer("busy", "quick", Duration::ZERO, now);
    let mut holders = Vec::new();
    for number in 0..5 {
        let namespace = format!("silent-{number}");
        assert_eq!(state.begun(&namespace, 0..1, "silent", now), 1);
        holders.push(pair(&namespace, 0, "silent"));
    }
    for number in 0..6 {
        assert_eq!(state.begun(&format!("silent-{number}"), 1..3, "silent", now), 0);
    }
    assert_eq!(state.begun("busy", 0..1, "unknown", now), 0);
    let mut rounds = 0;
    loop {
        state.answer("busy", "quick", Duration::ZERO, now);
        let (key, cluster) = holders.remove(0);
        let woken = state.end(&key, now);
        assert!(!state.begin(&key, &cluster, now).0);
        let [next] = &woken[..] else { panic!("{woken:?}") };
        if next.namespace == "busy" {
            break;
        }
        assert!(state.begin(next, &pair(&next.namespace, 0, "silent").1, now).0);
        holders.push((next.clone(), pair(&next.namespace, 0, "silent").1));
        rounds += 1;
        assert!(rounds < 7, "the namespace waits for ever");
    }
}

#[test]
fn namespace_has_a_number_of_places_however_quick_its_servers_are() {
    let (mut state, now) = (state(), Instant::now());
    state.answer("one", "quick", Duration::ZERO, now);
    assert_eq!(state.begun("one", 0..9, "quick", now), 3);
    assert_eq!(state.begun("one", 10..19, "silent", now), 1, "the last one");
}

#[test]
fn server_that_was_slow_once_is_slow_for_a_while_whatever_it_answers() {
    let (mut state, begin) = (state(), Instant::now());
    let number = |state: &mut State, now: Instant| {
        let number = state.begun("one", 0..9, "edge", now);
        (0..9).for_each(|name| drop(state.leave(&key("one", name), now)));
        (0..9).for_each(|name| drop(state.end(&key("one", name), now)));
        number
    };
    state.answer("one", "edge", QUICK, begin);
    assert_eq!(number(&mut state, begin), 3);
    state.answer("one", "edge", QUICK + Duration::from_millis(1), begin);
    assert_eq!(number(&mut state, begin), 2);
    state.answer("one", "edge", Duration::ZERO, begin);
    assert_eq!(number(&mut state, begin), 2);
    let later = begin + REMEMBERED;
    assert_eq!(number(&mut state, later), 2, "nothing is known of it");
    state.answer("one", "edge", Duration::ZERO, later);
    assert_eq!(number(&mut state, later), 3);
    state.forget(later);
    assert_eq!(state.servers.len(), 1);
    state.forget(later + REMEMBERED);
    assert!(state.servers.is_empty() && state.is_empty());
}

/// A list of many pages takes long, and its server may be quick.
#[test]
fn the_slowest_response_of_a_reconcile_counts() {
    let (mut state, now) = (state(), Instant::now());
    let (first, edge) = pair("one", 0, "edge");
    for (responses, places) in [(vec![0, 1000, 900], 3), (vec![0, 1001, 0], 2)] {
        assert!(state.begin(&first, &edge, now).0);
        for millis in responses {
            assert_eq!(state.response(&first, Duration::from_millis(millis), now), []);
        }
        state.end(&first, now);
        assert_eq!(state.begun("one", 10..19, "edge", now), places);
        (10..19).for_each(|name| drop(state.leave(&key("one", name), now)));
        (10..19).for_each(|name| drop(state.end(&key("one", name), now)));
    }
}

#[test]
fn place_lasts_until_the_end_of_the_reconcile() {
    let (mut state, now) = (state(), Instant::now());
    assert_eq!(state.begun("one", 0..3, "edge", now), 2);
    let [(first, edge), (third, _)] = [pair("one", 0, "edge"), pair("one", 2, "edge")];
    // From the read of a Node to its change.
    assert!(state.begin(&first, &edge, now).0);
    assert!(!state.begin(&third, &edge, now).0);
    assert_eq!(state.leave(&first, now), [], "it does not wait");
    assert!(!state.begin(&third, &edge, now).0);
    assert_eq!(state.end(&first, now), [third]);
}

#[test]
fn place_is_kept_for_the_first_that_waits_and_for_a_short_time() {
    let (mut state, now) = (state(), Instant::now());
    assert_eq!(state.begun("one", 0..4, "edge", now), 2);
    let [first, second, third, fourth] = [0, 1, 2, 3].map(|name| key("one", name));
    let edge = key("one", "edge");
    assert_eq!(state.end(&first, now), std::slice::from_ref(&third));
    assert!(!state.begin(&first, &edge, now).0, "it waits behind the others");
    assert_eq!(state.end(&third, now), [], "of a reconcile before that");
    let later = now + KEPT - Duration::from_millis(1);
    assert!(!state.begin(&fourth, &edge, later).0);
    assert_eq!(state.begin(&third, &edge, later), (true, vec![]));
    assert_eq!(state.end(&second, now), [fourth]);
    // The fourth is not reconciled in time.
    assert_eq!(state.refresh(now + KEPT), [first]);
}

#[test]
fn who_does_not_wait_any_more_is_passed_over() {
    let (mut state, now) = (state(), Instant::now());
    assert_eq!(state.begun("one", 0..6, "edge", now), 2);
    let [first, _, third, fourth, fifth, sixth] = [0, 1, 2, 3, 4, 5].map(|name| key("one", name));
    assert_eq!(state.leave(&fourth, now), []);
    assert_eq!(state.end(&first, now), std::slice::from_ref(&third));
    assert_eq!(state.leave(&third, now), std::slice::from_ref(&fifth));
    // Its Cluster changes, and so does its place in the queue.
    let (has_place, woken) = state.begin(&fifth, &key("one", "other"), now);
    assert_eq!((has_place, woken), (false, vec![sixth]));
}

/// A namespace with few places goes first.
#[test]
fn many_that_wait_in_one_namespace_do_not_keep_another_namespace_waiting() {
    let (mut state, now) = (state(), Instant::now());
    for namespace in ["one", "two", "three"] {
        state.begun(namespace, 0..100, "silent", now);
    }
    let (late, edge) = pair("late", 0, "edge");
    assert!(!state.begin(&late, &edge, now).0);
    assert_eq!(state.end(&key("one", 0), now), [late]);
}

/// Each of five namespaces has many keys that wait for a silent server, and together they have all places for these.
#[test]
fn namespace_that_waits_gets_the_place_of_one_that_had_it_before() {
    let (mut state, now) = (state(), Instant::now());
    let crowd = ["one", "two", "three", "four", "five"];
    for namespace in crowd {
        assert_eq!(state.begun(namespace, 0..1, "silent", now), 1);
    }
    for namespace in crowd {
        assert_eq!(state.begun(namespace, 1..100, "silent", now), 0);
    }
    assert_eq!(state.begun("late", 0..100, "silent", now), 0);
    assert_eq!(state.end(&key("one", 0), now), [key("late", 0)]);
    // And so on: none waits longer than the others.
    let mut number: BTreeMap<String, u32> = BTreeMap::new();
    let mut running: std::collections::VecDeque<Key> = crowd[1..].iter().map(|name| key(name, 0)).collect();
    running.push_back(key("late", 0));
    for _ in 0..60 {
        let ended = running.pop_front().unwrap();
        drop(state.begin(&ended, &key(&ended.namespace, "silent"), now));
        for woken in state.end(&ended, now) {
            *number.entry(woken.namespace.clone()).or_default() += 1;
            assert!(state.begin(&woken, &key(&woken.namespace, "silent"), now).0);
            running.push_back(woken);
        }
    }
    assert_eq!(number.into_values().collect::<Vec<_>>(), [10; 6]);
}

#[test]
fn cluster_with_many_keys_does_not_keep_another_cluster_of_its_namespace_waiting() {
    let (mut state, now) = (state(), Instant::now());
    assert_eq!(state.begun("one", 0..50, "silent", now), 2);
    let (late, edge) = pair("one", 90, "edge");
    assert!(!state.begin(&late, &edge, now).0);
    assert!(!state.begin(&key("one", 91), &edge, now).0);
    assert_eq!(state.end(&key("one", 0), now), [late], "the first of another cluster");
    assert_eq!(state.end(&key("one", 1), now), [key("one", 2)], "one after the other");
}

#[test]
fn who_comes_late_for_its_place_waits_in_front_of_those_that_came_after_it() {
    let (mut state, now) = (state(), Instant::now());
    assert_eq!(state.begun("one", 0..6, "edge", now), 2);
    let [first, second, third, fourth, fifth] = [0, 1, 2, 3, 4].map(|name| key("one", name));
    let edge = key("one", "edge");
    assert_eq!(state.end(&first, now), std::slice::from_ref(&third));
    let later = now + KEPT;
    assert_eq!(state.refresh(later), std::slice::from_ref(&fourth));
    assert_eq!(
        state.refresh(later),
        [],
        "a place is kept once for a key that does not come"
    );
    assert!(!state.begin(&third, &edge, later).0);
    assert!(state.begin(&fourth, &edge, later).0);
    assert_eq!(state.end(&second, later), std::slice::from_ref(&third));
    // A place that no other got meanwhile is still its own.
    assert_eq!(state.begin(&third, &edge, later + KEPT), (true, vec![]));
    assert_eq!(state.end(&third, later), [fifth]);
}

#[test]
fn server_that_does_not_answer_is_slow_before_its_first_request_ends() {
    let (mut state, now) = (state(), Instant::now());
    state.answer("one", "edge", Duration::ZERO, now);
    assert_eq!(state.begun("one", 0..2, "edge", now), 2);
    state.asked(&key("one", 0), now);
    state.asked(&key("one", 1), now);
    let later = now + QUICK + Duration::from_millis(1);
    assert_eq!(state.begun("one", 2..3, "edge", later), 0);
    assert_eq!(state.begun("one", 3..4, "other", later), 0, "both count as slow");
    assert_eq!(state.answered(&key("one", 0), later), [], "and after the response, too");
    assert_eq!(state.begun("two", 0..9, "silent", later), 2);
}

/// The rest of a reconcile may take long.
#[test]
fn place_for_a_slow_server_is_free_when_its_server_answers_quickly() {
    let (mut state, now) = (state(), Instant::now());
    assert_eq!(state.begun("one", 0..4, "edge", now), 2);
    let woken = state.response(&key("one", 0), Duration::ZERO, now);
    assert_eq!(woken, [key("one", 2)], "the last place is not for it");
}
