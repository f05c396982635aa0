//! Every history of a small world: two replicas without a leader, two addresses, three claims of both kinds, caches as
//! old as they like, requests that arrive late or never, restarts, claims made again under the same name.
//!
//! A state is what the server has, what each replica believes and still wants to do, and which requests are on their
//! way. From each state every step is tried; states that were met before are not followed again. What bounds the world
//! is how often a user acts, how many requests are late and how often a process starts anew.

mod explore;
mod state;

use super::world::Overlooks;
use crate::rules::Rules;
use explore::explore;
use state::{Bounds, Deed, State};

const ALONE: Bounds = Bounds {
    replicas: 1,
    addresses: 2,
    made: &[0],
    deeds: &[],
    late: 1,
    restarts: 0,
    is_warm: false,
};
const BOTH: Bounds = Bounds {
    replicas: 2,
    late: 0,
    is_warm: true,
    ..ALONE
};
/// A claim is deleted and made again while a request is late.
const AGAIN: Bounds = Bounds {
    deeds: &[Deed::Delete(0), Deed::Make(0)],
    ..ALONE
};
/// The pool loses its ranges while a grant is under way, another claim comes, the ranges come back.
const EMPTIED: Bounds = Bounds {
    made: &[1],
    deeds: &[Deed::Empty, Deed::Make(2), Deed::Fill],
    ..ALONE
};
/// The claim goes, then the pool.
const FOLDED: Bounds = Bounds {
    deeds: &[Deed::Delete(0), Deed::DeletePool],
    ..ALONE
};
const POOL_GOES: Bounds = Bounds {
    deeds: &[Deed::DeletePool],
    restarts: 1,
    ..ALONE
};
/// Two claims of one name, of both kinds.
const TWINS: Bounds = Bounds { made: &[0, 1], ..BOTH };
/// A claim comes while two replicas are at work.
const ARRIVES: Bounds = Bounds {
    made: &[],
    deeds: &[Deed::Make(0)],
    ..BOTH
};
const TRIPLE: Bounds = Bounds {
    made: &[0, 1, 2],
    late: 1,
    ..BOTH
};
const JOINS: Bounds = Bounds {
    made: &[1],
    deeds: &[Deed::Make(0)],
    ..BOTH
};

const COLD_TWINS: Bounds = Bounds {
    is_warm: false,
    ..TWINS
};
const COLD_JOINS: Bounds = Bounds {
    is_warm: false,
    ..JOINS
};

fn run(bounds: Bounds, rules: Rules, overlooks: Overlooks) -> Result<usize, String> {
    explore(State::start(bounds, rules, overlooks), 1_000_000)
}

/// Every world in which a broken rule is looked for holds under all of them.
fn holds(name: &str, bounds: Bounds) -> usize {
    match run(bounds, Rules::ALL, Overlooks::default()) {
        Ok(states) => {
            println!("{name}: {states} states");
            states
        }
        Err(story) => panic!("{name}: {story}"),
    }
}

#[test]
fn two_replicas_never_grant_one_address_twice_to_three_claims_while_a_request_is_late() {
    assert!(holds("three claims of both kinds", TRIPLE) > 10_000);
}

#[test]
fn replicas_agree_whoever_comes_goes_or_starts_anew() {
    let worlds = [
        ("from nothing", Bounds { is_warm: false, ..BOTH }),
        ("a claim comes", ARRIVES),
        ("a second claim comes", JOINS),
        ("made again", AGAIN),
        (
            "made again, with a restart",
            Bounds {
                made: &[0, 1],
                restarts: 1,
                ..AGAIN
            },
        ),
        ("the ranges vanish and return", EMPTIED),
        ("claim and pool go", FOLDED),
        ("the pool goes", POOL_GOES),
        ("two of one name", TWINS),
        ("alone", ALONE),
    ];
    for (name, bounds) in worlds {
        holds(name, bounds);
    }
}

const ALL: Rules = Rules::ALL;

/// A rule that is taken away, and the world in which it is missed.
const WITHOUT: [(&str, Bounds, Rules); 11] = [
    (
        "protect_first",
        ALONE,
        Rules {
            protect_first: false,
            ..ALL
        },
    ),
    (
        "record_first",
        COLD_TWINS,
        Rules {
            record_first: false,
            ..ALL
        },
    ),
    (
        "list_on_takeover",
        COLD_TWINS,
        Rules {
            list_on_takeover: false,
            ..ALL
        },
    ),
    (
        "keep_until_seen",
        EMPTIED,
        Rules {
            keep_until_seen: false,
            ..ALL
        },
    ),
    (
        "void_by_read",
        COLD_JOINS,
        Rules {
            void_by_read: false,
            ..ALL
        },
    ),
    (
        "finish_the_living",
        EMPTIED,
        Rules {
            finish_the_living: false,
            ..ALL
        },
    ),
    (
        "orphan_by_read",
        ARRIVES,
        Rules {
            orphan_by_read: false,
            ..ALL
        },
    ),
    (
        "sweep_orphans",
        AGAIN,
        Rules {
            sweep_orphans: false,
            ..ALL
        },
    ),
    (
        "match_by_uid",
        AGAIN,
        Rules {
            match_by_uid: false,
            ..ALL
        },
    ),
    (
        "list_before_release",
        FOLDED,
        Rules {
            list_before_release: false,
            ..ALL
        },
    ),
    (
        "empty_before_release",
        POOL_GOES,
        Rules {
            empty_before_release: false,
            ..ALL
        },
    ),
];

/// Every rule is missed when it is not there: in these worlds something goes wrong without it.
#[test]
fn each_rule_prevents_a_history_that_goes_wrong_without_it() {
    for (name, bounds, rules) in WITHOUT {
        let story = run(bounds, rules, Overlooks::default());
        let why = story.expect_err(&format!("nothing goes wrong without {name}"));
        println!("without {name}: {}", why.lines().next().unwrap_or_default());
    }
}

/// The same for each precondition that a write carries.
#[test]
fn each_precondition_prevents_a_history_that_goes_wrong_without_it() {
    let none = Overlooks::default();
    let overlooked = [
        (
            "the version of the pool",
            COLD_TWINS,
            Overlooks {
                pool_version: true,
                ..none
            },
        ),
        (
            "the version of a claim",
            AGAIN,
            Overlooks {
                claim_version: true,
                ..none
            },
        ),
        (
            "UID and version of an address",
            AGAIN,
            Overlooks {
                address_version: true,
                ..none
            },
        ),
        (
            "whose object exists already",
            AGAIN,
            Overlooks {
                whose_exists: true,
                ..none
            },
        ),
    ];
    for (name, bounds, overlooks) in overlooked {
        let why = run(bounds, Rules::ALL, overlooks).expect_err(name);
        println!("without {name}: {}", why.lines().next().unwrap_or_default());
    }
}
