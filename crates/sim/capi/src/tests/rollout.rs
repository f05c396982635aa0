//! Rollouts: replicas of the new MachineSet and of the old ones.

use crate::core::deployment::{Rollout, SetView};

fn set(wanted: i64, there: i64, ready: i64) -> SetView {
    SetView { wanted, there, ready }
}

type Row = (&'static str, SetView, Option<SetView>, i64, i64);

/// Each row: the new MachineSet, an old one, and the expected replicas of both.
fn check(replicas: i64, surge: i64, unavailable: i64, rows: &[Row]) {
    let rollout = Rollout {
        replicas,
        surge,
        unavailable,
    };
    for (why, new, old, up, down) in rows {
        let (found, others) = rollout.step(*new, old.as_slice());
        assert_eq!((found, others.iter().sum::<i64>()), (*up, *down), "{why}");
    }
}

#[test]
fn with_a_surge_a_new_machine_is_ready_before_an_old_one_is_deleted() {
    let (none, two) = (set(0, 0, 0), Some(set(2, 2, 2)));
    let rows = [
        ("no old set", none, None, 2, 0),
        ("one more than requested", none, two, 1, 2),
        ("the new one has to be ready first", set(1, 1, 0), two, 1, 2),
        ("then an old one is deleted", set(1, 1, 1), two, 1, 1),
        (
            "a machine being deleted still counts",
            set(1, 1, 1),
            Some(set(1, 2, 1)),
            1,
            1,
        ),
        ("its deletion allows a new one", set(1, 1, 1), Some(set(1, 1, 1)), 2, 1),
        (
            "a machine that is not ready is deleted first",
            none,
            Some(set(2, 2, 1)),
            1,
            1,
        ),
    ];
    check(2, 1, 0, &rows);
}

#[test]
fn without_a_surge_an_old_machine_is_deleted_before_a_new_one_is_created() {
    let none = set(0, 0, 0);
    let rows = [
        ("an old one is deleted first", none, Some(set(2, 2, 2)), 0, 1),
        ("while being deleted it still counts", none, Some(set(1, 2, 1)), 0, 1),
        ("then a new one is created", none, Some(set(1, 1, 1)), 1, 1),
    ];
    check(2, 0, 1, &rows);
    let two = set(2, 2, 2);
    check(1, 1, 0, &[("scaling down needs no rollout", two, None, 1, 0)]);
    check(5, 1, 0, &[("neither does scaling up", two, None, 5, 0)]);
}

#[test]
fn a_rollout_ends_with_all_machines_in_the_new_set_and_keeps_its_bounds() {
    for (replicas, surge, unavailable) in [(1, 1, 0), (3, 1, 0), (3, 0, 1), (5, 2, 2)] {
        let rollout = Rollout {
            replicas,
            surge,
            unavailable,
        };
        let (mut new, mut old) = (set(0, 0, 0), set(replicas, replicas, replicas));
        for _ in 0..100 {
            let (up, down) = rollout.step(new, &[old]);
            assert!(up + old.there <= replicas + surge, "{rollout:?}: too many");
            // One machine is created or deleted at a time.
            old.wanted = down[0];
            new.wanted = up;
            if new.there < new.wanted {
                new = set(up, new.there + 1, new.there + 1);
            } else if old.there > old.wanted {
                old = set(old.wanted, old.there - 1, old.ready.min(old.there - 1));
            }
            assert!(new.ready + old.ready >= replicas - unavailable, "{rollout:?}: too few");
        }
        assert_eq!((new.there, old.there), (replicas, 0), "{rollout:?}");
    }
}
