//! An exhaustive model: one host, one node with a disk, two processes that both act as leader, caches of any age,
//! crashes after any write, an Ironic that fails, loses its database and has other users, and a user.
//!
//! Every step is tried from each state; known states are not explored again. Each safety rule is switched off in turn,
//! and then some history must show a violation.

mod counts;
mod explore;
mod invariants;
mod ironic;
mod program;
mod state;

use explore::explore;
use state::{Bounds, HostChange, ModelState};

use crate::plan::rules::Rules;

const ALL: Rules = Rules::ALL;

const RUNNING: Bounds = Bounds {
    start: "provisioned",
    changes: &[],
    programs: 1,
    crashes: 0,
    hours: 1,
    budget: 5,
    refill: 5,
    is_known: true,
    may_fail: false,
    old_node: None,
};
const ENROLLED: Bounds = Bounds {
    start: "",
    changes: &[HostChange::SetImage("a")],
    crashes: 1,
    is_known: false,
    ..RUNNING
};
/// The image is removed and requested again.
const IMAGE_RESTORED: Bounds = Bounds {
    changes: &[HostChange::RemoveImage, HostChange::SetImage("a")],
    crashes: 1,
    ..RUNNING
};
/// The same, and Ironic loses its database meanwhile.
const IMAGE_RESTORED_NODE_LOST: Bounds = Bounds {
    changes: &[HostChange::RemoveImage, HostChange::LoseNode, HostChange::SetImage("a")],
    ..IMAGE_RESTORED
};
const REPLACED: Bounds = Bounds {
    changes: &[HostChange::SetImage("b")],
    crashes: 1,
    ..RUNNING
};
const PAUSED: Bounds = Bounds {
    changes: &[HostChange::RemoveImage, HostChange::Pause],
    crashes: 1,
    ..RUNNING
};
/// clusterctl: paused, then marked and deleted, then removed.
const MOVED: Bounds = Bounds {
    changes: &[HostChange::Pause, HostChange::Move],
    ..RUNNING
};
/// A move by a tool that does not mark the object.
const MOVED_UNMARKED: Bounds = Bounds {
    changes: &[HostChange::Pause, HostChange::MoveUnmarked],
    ..RUNNING
};
const NODE_LOST: Bounds = Bounds {
    changes: &[HostChange::LoseNode],
    crashes: 1,
    ..RUNNING
};
/// Ironic and the API lost their state, and the saved status is unreadable.
const UNREADABLE: Bounds = Bounds {
    start: "unreadable",
    is_known: false,
    ..RUNNING
};
/// Another user assigns the node to an instance during deprovisioning.
const REASSIGNED: Bounds = Bounds {
    changes: &[HostChange::RemoveImage, HostChange::AssignToOther],
    crashes: 1,
    ..RUNNING
};
/// Another user assigns the node to an instance, and the host is deleted, with enough time for all attempts.
const REASSIGNED_DELETED: Bounds = Bounds {
    changes: &[HostChange::AssignToOther, HostChange::Delete],
    hours: 5,
    ..RUNNING
};
const DELETED: Bounds = Bounds {
    changes: &[HostChange::Delete],
    crashes: 1,
    ..RUNNING
};
const DELETED_EXTERNAL: Bounds = Bounds {
    changes: &[HostChange::SetExternal, HostChange::Delete],
    ..RUNNING
};
const DELETED_WITHOUT_SECRET: Bounds = Bounds {
    changes: &[HostChange::LoseSecret, HostChange::Delete],
    is_known: false,
    ..RUNNING
};
const IMAGE_CHANGED: Bounds = Bounds {
    start: "available",
    changes: &[HostChange::SetImage("a"), HostChange::SetImage("b")],
    ..RUNNING
};
const NO_BUDGET: Bounds = Bounds {
    changes: &[HostChange::RemoveImage],
    budget: 0,
    ..RUNNING
};
const FAILING: Bounds = Bounds {
    start: "available",
    changes: &[HostChange::SetImage("a")],
    may_fail: true,
    hours: 2,
    ..RUNNING
};
/// An older manager named the node by the plain host name.
const RENAMED: Bounds = Bounds {
    start: "renamed",
    is_known: false,
    ..RUNNING
};
/// No process has begun deprovisioning; this one has an observation of the node from before the deployment.
const STALE_NODE: Bounds = Bounds {
    start: "deprovisioning",
    old_node: Some("available"),
    ..RUNNING
};
const TWO_PROCESSES: Bounds = Bounds {
    start: "deprovisioning",
    programs: 2,
    hours: 0,
    ..RUNNING
};

fn run(bounds: Bounds, rules: Rules) -> Result<usize, String> {
    explore(ModelState::start(bounds, rules), 400_000)
}

#[test]
fn no_history_erases_a_requested_image_and_every_history_ends_as_requested() {
    let worlds = [
        ("running", RUNNING),
        ("enrolled", ENROLLED),
        ("image restored", IMAGE_RESTORED),
        ("image restored, node lost", IMAGE_RESTORED_NODE_LOST),
        ("replaced", REPLACED),
        ("paused", PAUSED),
        ("moved", MOVED),
        ("moved without a mark", MOVED_UNMARKED),
        ("node lost", NODE_LOST),
        ("unreadable", UNREADABLE),
        ("reassigned", REASSIGNED),
        ("reassigned and deleted", REASSIGNED_DELETED),
        ("deleted", DELETED),
        ("deleted, external", DELETED_EXTERNAL),
        ("deleted, without Secret", DELETED_WITHOUT_SECRET),
        ("image changed", IMAGE_CHANGED),
        ("no budget", NO_BUDGET),
        ("failing", FAILING),
        ("stale node", STALE_NODE),
        ("renamed", RENAMED),
        ("two processes", TWO_PROCESSES),
    ];
    for (name, bounds) in worlds {
        match run(bounds, ALL) {
            Ok(states) => println!("{name}: {states} states"),
            Err(trace) => panic!("{name}: {trace}"),
        }
    }
}

/// Each rule, and the bounds in which its absence shows a violation.
fn without() -> Vec<(&'static str, Bounds, Rules)> {
    macro_rules! missing {
        ($($rule:ident in $model:expr),+ $(,)?) => {
            vec![$((stringify!($rule), $model, Rules { $rule: false, ..ALL })),+]
        };
    }
    missing![
        skip_paused in PAUSED,
        skip_moving in MOVED,
        grace_after_pause in MOVED_UNMARKED,
        keep_saved_status in UNREADABLE,
        record_first in IMAGE_RESTORED,
        read_host_first in IMAGE_RESTORED,
        read_node_first in REASSIGNED,
        wait_when_stale in STALE_NODE,
        absent_by_search in RENAMED,
        own_instance in REASSIGNED,
        adopt_the_provisioned in NODE_LOST,
        keep_external in DELETED_EXTERNAL,
        match_image in IMAGE_CHANGED,
        cancel_deprovisioning in IMAGE_RESTORED,
        keep_budget in NO_BUDGET,
        back_off in FAILING,
        search_before_release in DELETED,
    ]
}

#[test]
fn each_rule_prevents_a_violation() {
    let mut unneeded = Vec::new();
    for (name, bounds, rules) in without() {
        match run(bounds, rules) {
            Ok(states) => unneeded.push(format!("{name}: no violation without it in {states} states")),
            Err(why) => println!("without {name}: {}", why.lines().next().unwrap_or_default()),
        }
    }
    assert!(unneeded.is_empty(), "{}", unneeded.join("\n"));
}
