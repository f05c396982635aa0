//! Rollouts: how many machines the new set and the old ones are to have.

use crate::core::{Roll, SetView};

fn set(wanted: i64, there: i64, ready: i64) -> SetView {
    SetView { wanted, there, ready }
}

type Row = (&'static str, SetView, Option<SetView>, i64, i64);

/// For each row: the new set, an old one, and how many machines each is to have.
fn check(replicas: i64, surge: i64, unavailable: i64, rows: &[Row]) {
    let roll = Roll {
        replicas,
        surge,
        unavailable,
    };
    for (why, new, old, up, down) in rows {
        let (found, others) = roll.step(*new, old.as_slice());
        assert_eq!((found, others.iter().sum::<i64>()), (*up, *down), "{why}");
    }
}

#[test]
fn with_a_surge_a_new_machine_is_ready_before_an_old_one_goes() {
    let (none, two) = (set(0, 0, 0), Some(set(2, 2, 2)));
    let rows = [
        ("first of all there is no old set", none, None, 2, 0),
        ("one more than asked for", none, two, 1, 2),
        ("the new one has to be ready first", set(1, 1, 0), two, 1, 2),
        ("then an old one goes", set(1, 1, 1), two, 1, 1),
        ("one that goes holds its place", set(1, 1, 1), Some(set(1, 2, 1)), 1, 1),
        ("gone it makes room", set(1, 1, 1), Some(set(1, 1, 1)), 2, 1),
        ("who is not ready is missed by nobody", none, Some(set(2, 2, 1)), 1, 1),
    ];
    check(2, 1, 0, &rows);
}

#[test]
fn without_a_surge_an_old_machine_is_gone_before_a_new_one_comes() {
    let none = set(0, 0, 0);
    let rows = [
        ("an old one goes first", none, Some(set(2, 2, 2)), 0, 1),
        ("it holds its place", none, Some(set(1, 2, 1)), 0, 1),
        ("its place is taken", none, Some(set(1, 1, 1)), 1, 1),
    ];
    check(2, 0, 1, &rows);
    let two = set(2, 2, 2);
    check(1, 1, 0, &[("scaling down needs no rollout", two, None, 1, 0)]);
    check(5, 1, 0, &[("scaling up neither", two, None, 5, 0)]);
}

#[test]
fn a_rollout_ends_with_all_machines_in_the_new_set_and_keeps_its_bounds() {
    for (replicas, surge, unavailable) in [(1, 1, 0), (3, 1, 0), (3, 0, 1), (5, 2, 2)] {
        let roll = Roll {
            replicas,
            surge,
            unavailable,
        };
        let (mut new, mut old) = (set(0, 0, 0), set(replicas, replicas, replicas));
        for _ in 0..100 {
            let (up, down) = roll.step(new, &[old]);
            assert!(up + old.there <= replicas + surge, "{roll:?}: more than there may be");
            // A machine comes or goes, one at a time.
            old.wanted = down[0];
            new.wanted = up;
            if new.there < new.wanted {
                new = set(up, new.there + 1, new.there + 1);
            } else if old.there > old.wanted {
                old = set(old.wanted, old.there - 1, old.ready.min(old.there - 1));
            }
            assert!(
                new.ready + old.ready >= replicas - unavailable,
                "{roll:?}: fewer than there must be"
            );
        }
        assert_eq!((new.there, old.there), (replicas, 0), "{roll:?}");
    }
}
