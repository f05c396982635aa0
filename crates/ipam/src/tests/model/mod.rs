//! All histories of a small model: two replicas without a leader, two addresses, three claims of both kinds, caches of
//! any age, requests that arrive late or never, restarts, claims created again under the same name.
//!
//! A state consists of the objects of the server, the cache and plan of each replica, and the requests in flight. Every
//! step is explored from each state; visited states are skipped. The model is bounded by the number of user actions,
//! late requests and restarts.

mod explore;
mod state;

use super::api_server::IgnoredPreconditions;
use crate::rules::Rules;
use explore::explore;
use state::{Bounds, State, UserAction};

const ONE_REPLICA: Bounds = Bounds {
    replicas: 1,
    addresses: 2,
    claims: &[0],
    user_actions: &[],
    late: 1,
    restarts: 0,
    is_warm: false,
};
const TWO_REPLICAS: Bounds = Bounds {
    replicas: 2,
    late: 0,
    is_warm: true,
    ..ONE_REPLICA
};
/// A claim is deleted and created again while a request is late.
const CREATED_AGAIN: Bounds = Bounds {
    user_actions: &[UserAction::Delete(0), UserAction::Create(0)],
    ..ONE_REPLICA
};
/// The pool loses its ranges during an allocation, another claim is created, the ranges return.
const EMPTIED: Bounds = Bounds {
    claims: &[1],
    user_actions: &[UserAction::Empty, UserAction::Create(2), UserAction::Refill],
    ..ONE_REPLICA
};
/// The claim is deleted, then the pool.
const ALL_DELETED: Bounds = Bounds {
    user_actions: &[UserAction::Delete(0), UserAction::DeletePool],
    ..ONE_REPLICA
};
const POOL_DELETED: Bounds = Bounds {
    user_actions: &[UserAction::DeletePool],
    restarts: 1,
    ..ONE_REPLICA
};
/// Two claims of one name, of both kinds.
const SAME_NAME: Bounds = Bounds {
    claims: &[0, 1],
    ..TWO_REPLICAS
};
/// A claim is created while two replicas run.
const CLAIM_CREATED: Bounds = Bounds {
    claims: &[],
    user_actions: &[UserAction::Create(0)],
    ..TWO_REPLICAS
};
const THREE_CLAIMS: Bounds = Bounds {
    claims: &[0, 1, 2],
    late: 1,
    ..TWO_REPLICAS
};
const SECOND_CLAIM: Bounds = Bounds {
    claims: &[1],
    user_actions: &[UserAction::Create(0)],
    ..TWO_REPLICAS
};

const COLD_SAME_NAME: Bounds = Bounds {
    is_warm: false,
    ..SAME_NAME
};
const COLD_SECOND_CLAIM: Bounds = Bounds {
    is_warm: false,
    ..SECOND_CLAIM
};

fn run(bounds: Bounds, rules: Rules, ignored: IgnoredPreconditions) -> Result<usize, String> {
    explore(State::start(bounds, rules, ignored), 1_000_000)
}

/// Asserts that no history of a case fails with all rules; returns the number of states.
fn succeeds(name: &str, bounds: Bounds) -> usize {
    match run(bounds, Rules::ALL, IgnoredPreconditions::default()) {
        Ok(states) => {
            println!("{name}: {states} states");
            states
        }
        Err(trace) => panic!("{name}: {trace}"),
    }
}

#[test]
fn two_replicas_never_allocate_one_address_twice_while_a_request_is_late() {
    assert!(succeeds("three claims of both kinds", THREE_CLAIMS) > 10_000);
}

#[test]
fn replicas_agree_when_claims_and_pools_are_created_and_deleted_and_processes_restart() {
    let cases = [
        (
            "cold caches",
            Bounds {
                is_warm: false,
                ..TWO_REPLICAS
            },
        ),
        ("a claim is created", CLAIM_CREATED),
        ("a second claim is created", SECOND_CLAIM),
        ("created again", CREATED_AGAIN),
        (
            "created again, with a restart",
            Bounds {
                claims: &[0, 1],
                restarts: 1,
                ..CREATED_AGAIN
            },
        ),
        ("the ranges vanish and return", EMPTIED),
        ("claim and pool are deleted", ALL_DELETED),
        ("the pool is deleted", POOL_DELETED),
        ("two of one name", SAME_NAME),
        ("one replica", ONE_REPLICA),
    ];
    for (name, bounds) in cases {
        succeeds(name, bounds);
    }
}

/// Disables rules or preconditions.
type Disable<T> = fn(&mut T);

/// Disabled rules, each with a case that fails.
const DISABLED_RULES: [(&str, Bounds, Disable<Rules>); 11] = [
    ("finalizer_first", ONE_REPLICA, |rules| rules.finalizer_first = false),
    ("record_first", COLD_SAME_NAME, |rules| rules.record_first = false),
    ("list_on_takeover", COLD_SAME_NAME, |rules| {
        rules.list_on_takeover = false
    }),
    ("keep_until_seen", EMPTIED, |rules| rules.keep_until_seen = false),
    ("void_by_read", COLD_SECOND_CLAIM, |rules| rules.void_by_read = false),
    ("complete_live_claims", EMPTIED, |rules| {
        rules.complete_live_claims = false
    }),
    ("orphan_by_read", CLAIM_CREATED, |rules| rules.orphan_by_read = false),
    ("delete_orphans", CREATED_AGAIN, |rules| rules.delete_orphans = false),
    ("match_by_uid", CREATED_AGAIN, |rules| rules.match_by_uid = false),
    ("list_before_release", ALL_DELETED, |rules| {
        rules.list_before_release = false
    }),
    ("empty_before_release", POOL_DELETED, |rules| {
        rules.empty_before_release = false
    }),
];

#[test]
fn each_rule_prevents_a_history_that_fails_without_it() {
    for (name, bounds, disable) in DISABLED_RULES {
        let mut rules = Rules::ALL;
        disable(&mut rules);
        let trace = run(bounds, rules, IgnoredPreconditions::default());
        let why = trace.expect_err(&format!("nothing fails without {name}"));
        println!("without {name}: {}", why.lines().next().unwrap_or_default());
    }
}

#[test]
fn each_precondition_prevents_a_history_that_fails_without_it() {
    let cases: [(&str, Bounds, Disable<IgnoredPreconditions>); 4] = [
        ("the version of the pool", COLD_SAME_NAME, |ignored| {
            ignored.pool_version = true
        }),
        ("the version of a claim", CREATED_AGAIN, |ignored| {
            ignored.claim_version = true
        }),
        ("UID and version of an address", CREATED_AGAIN, |ignored| {
            ignored.address_version = true
        }),
        ("the owner of an existing object", CREATED_AGAIN, |ignored| {
            ignored.existing_owner = true
        }),
    ];
    for (name, bounds, ignore) in cases {
        let mut ignored = IgnoredPreconditions::default();
        ignore(&mut ignored);
        let why = run(bounds, Rules::ALL, ignored).expect_err(name);
        println!("without {name}: {}", why.lines().next().unwrap_or_default());
    }
}
