//! Rollouts: how many machines the new set and the old ones are to have.

use crate::core::{Roll, SetView};

fn set(wanted: i64, there: i64, ready: i64) -> SetView {
    SetView { wanted, there, ready }
}

#[test]
fn machines_move_to_the_new_set_within_surge_and_unavailable() {
    let roll = |replicas, surge, unavailable| Roll {
        replicas,
        surge,
        unavailable,
    };
    let (none, two) = (set(0, 0, 0), set(2, 2, 2));
    for (why, roll, new, old, expected) in [
        (
            "first of all there is no old set",
            roll(2, 1, 0),
            none,
            vec![],
            (2, vec![]),
        ),
        ("one more than asked for", roll(2, 1, 0), none, vec![two], (1, vec![2])),
        (
            "the new one has to be ready first",
            roll(2, 1, 0),
            set(1, 1, 0),
            vec![two],
            (1, vec![2]),
        ),
        (
            "then an old one goes",
            roll(2, 1, 0),
            set(1, 1, 1),
            vec![two],
            (1, vec![1]),
        ),
        (
            "one that goes holds its place",
            roll(2, 1, 0),
            set(1, 1, 1),
            vec![set(1, 2, 1)],
            (1, vec![1]),
        ),
        (
            "gone it makes room",
            roll(2, 1, 0),
            set(1, 1, 1),
            vec![set(1, 1, 1)],
            (2, vec![1]),
        ),
        (
            "without surge an old one goes first",
            roll(2, 0, 1),
            none,
            vec![two],
            (0, vec![1]),
        ),
        (
            "and its place is taken once it is gone",
            roll(2, 0, 1),
            none,
            vec![set(1, 2, 1)],
            (0, vec![1]),
        ),
        ("now", roll(2, 0, 1), none, vec![set(1, 1, 1)], (1, vec![1])),
        (
            "those that are not ready are missed by nobody",
            roll(2, 1, 0),
            none,
            vec![set(2, 2, 1)],
            (1, vec![1]),
        ),
        ("scaling down needs no rollout", roll(1, 1, 0), two, vec![], (1, vec![])),
        ("scaling up neither", roll(5, 1, 0), two, vec![], (5, vec![])),
    ] {
        assert_eq!(roll.step(new, &old), expected, "{why}");
    }
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
