//! Every history of a small world: one host, one node with a disk, two programs that both think they lead, caches as old
//! as they like, crashes after any write, an Ironic that fails, forgets and is used by others, and a user.
//!
//! From each state every step is tried; states that were met before are not followed again. Each rule of the decision
//! is taken away in turn, and then some history goes wrong.

mod counts;
mod explore;
mod ironic;
mod judge;
mod program;
mod world;

use explore::explore;
use world::{Bounds, Deed, World};

use crate::rules::Rules;

const ALL: Rules = Rules::ALL;

/// A host that runs an image and is left to itself.
const RUNNING: Bounds = Bounds {
    start: "provisioned",
    deeds: &[],
    programs: 1,
    crashes: 0,
    hours: 1,
    budget: 5,
    refill: 5,
    is_known: true,
    may_fail: false,
    old_node: None,
};
/// From the object to a running image.
const ENROLLED: Bounds = Bounds {
    start: "",
    deeds: &[Deed::Ask("a")],
    crashes: 1,
    is_known: false,
    ..RUNNING
};
/// The image goes and comes back.
const TAKEN_BACK: Bounds = Bounds {
    deeds: &[Deed::AskNothing, Deed::Ask("a")],
    crashes: 1,
    ..RUNNING
};
const REPLACED: Bounds = Bounds {
    deeds: &[Deed::Ask("b")],
    crashes: 1,
    ..RUNNING
};
const PAUSED: Bounds = Bounds {
    deeds: &[Deed::AskNothing, Deed::Pause],
    crashes: 1,
    ..RUNNING
};
/// clusterctl: paused, then marked and deleted, then taken away.
const MOVED: Bounds = Bounds {
    deeds: &[Deed::Pause, Deed::Move],
    ..RUNNING
};
/// The same by a tool that leaves no mark.
const MOVED_UNMARKED: Bounds = Bounds {
    deeds: &[Deed::Pause, Deed::MoveUnmarked],
    ..RUNNING
};
const FORGOTTEN: Bounds = Bounds {
    deeds: &[Deed::Forget],
    crashes: 1,
    ..RUNNING
};
/// Ironic and the API lost what they knew, and what was saved of the status cannot be read.
const UNREADABLE: Bounds = Bounds {
    start: "unreadable",
    is_known: false,
    ..RUNNING
};
/// Somebody uses the node for something else while ours is torn down.
const TAKEN: Bounds = Bounds {
    deeds: &[Deed::AskNothing, Deed::GiveToAnother],
    crashes: 1,
    ..RUNNING
};
/// Somebody uses the node for something else, and the host goes: with time enough to give up.
const TAKEN_DELETED: Bounds = Bounds {
    deeds: &[Deed::GiveToAnother, Deed::Delete],
    hours: 5,
    ..RUNNING
};
const DELETED: Bounds = Bounds {
    deeds: &[Deed::Delete],
    crashes: 1,
    ..RUNNING
};
const DELETED_EXTERNAL: Bounds = Bounds {
    deeds: &[Deed::SayExternal, Deed::Delete],
    ..RUNNING
};
const DELETED_BLIND: Bounds = Bounds {
    deeds: &[Deed::LoseSecret, Deed::Delete],
    is_known: false,
    ..RUNNING
};
const CHANGED_MIND: Bounds = Bounds {
    start: "available",
    deeds: &[Deed::Ask("a"), Deed::Ask("b")],
    ..RUNNING
};
const BROKE: Bounds = Bounds {
    deeds: &[Deed::AskNothing],
    budget: 0,
    ..RUNNING
};
const FAILING: Bounds = Bounds {
    start: "available",
    deeds: &[Deed::Ask("a")],
    may_fail: true,
    hours: 2,
    ..RUNNING
};
/// An older manager named the node as the host alone.
const RENAMED: Bounds = Bounds {
    start: "renamed",
    is_known: false,
    ..RUNNING
};
/// Another program has torn nothing down yet; this one remembers the node from before it was deployed.
const LATE: Bounds = Bounds {
    start: "deprovisioning",
    old_node: Some("available"),
    ..RUNNING
};
const BOTH: Bounds = Bounds {
    start: "deprovisioning",
    programs: 2,
    hours: 0,
    ..RUNNING
};

fn run(bounds: Bounds, rules: Rules) -> Result<usize, String> {
    explore(World::start(bounds, rules), 400_000)
}

#[test]
fn no_history_wipes_what_is_wanted_and_every_history_comes_to_rest_as_asked() {
    let worlds = [
        ("running", RUNNING),
        ("enrolled", ENROLLED),
        ("taken back", TAKEN_BACK),
        ("replaced", REPLACED),
        ("paused", PAUSED),
        ("moved", MOVED),
        ("moved without a mark", MOVED_UNMARKED),
        ("forgotten", FORGOTTEN),
        ("unreadable", UNREADABLE),
        ("taken", TAKEN),
        ("taken and deleted", TAKEN_DELETED),
        ("deleted", DELETED),
        ("deleted, external", DELETED_EXTERNAL),
        ("deleted, without login", DELETED_BLIND),
        ("changed mind", CHANGED_MIND),
        ("no budget", BROKE),
        ("failing", FAILING),
        ("late", LATE),
        ("renamed", RENAMED),
        ("two programs", BOTH),
    ];
    for (name, bounds) in worlds {
        match run(bounds, ALL) {
            Ok(states) => println!("{name}: {states} states"),
            Err(story) => panic!("{name}: {story}"),
        }
    }
}

/// A rule that is taken away, and the world in which it is missed.
fn without() -> Vec<(&'static str, Bounds, Rules)> {
    macro_rules! missing {
        ($($rule:ident in $world:expr),+ $(,)?) => {
            vec![$((stringify!($rule), $world, Rules { $rule: false, ..ALL })),+]
        };
    }
    missing![
        rest_when_paused in PAUSED,
        rest_when_moved in MOVED,
        grace_after_pause in MOVED_UNMARKED,
        keep_saved_status in UNREADABLE,
        record_first in TAKEN_BACK,
        read_host_first in TAKEN_BACK,
        read_node_first in TAKEN,
        wait_when_stale in LATE,
        absent_by_search in RENAMED,
        own_instance in TAKEN,
        adopt_the_provisioned in FORGOTTEN,
        keep_external in DELETED_EXTERNAL,
        match_image in CHANGED_MIND,
        take_back in TAKEN_BACK,
        keep_budget in BROKE,
        back_off in FAILING,
        search_before_release in DELETED,
    ]
}

#[test]
fn each_rule_prevents_a_history_that_goes_wrong_without_it() {
    let mut unmissed = Vec::new();
    for (name, bounds, rules) in without() {
        match run(bounds, rules) {
            Ok(states) => unmissed.push(format!("{name}: nothing goes wrong without it in {states} states")),
            Err(why) => println!("without {name}: {}", why.lines().next().unwrap_or_default()),
        }
    }
    assert!(unmissed.is_empty(), "{}", unmissed.join("\n"));
}
