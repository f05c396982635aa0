//! Histories by seed: three replicas without a leader, old caches, deaths in the middle of a pass, requests that arrive
//! late, machines that go and come again under the same name.

use metal3_sim_faults::Random;

use super::world::World;
use crate::machine::rules::Rules;
use crate::tests::every_case;

const STEPS: usize = 160;

/// What goes wrong in the history of a seed.
fn history(seed: u64, rules: Rules) -> Option<String> {
    let mut random = Random::seeded(seed);
    let mut world = World::new(rules, 3, 2);
    world.server.is_bare = random.below(4) == 0;
    for step in 0..STEPS {
        world.step(&mut random);
        if let Some(why) = world.server.wrong.first() {
            let story: Vec<_> = world.server.writes.iter().rev().take(12).rev().cloned().collect();
            return Some(format!("seed {seed}, step {step}: {why}\n  {}", story.join("\n  ")));
        }
    }
    world.settle();
    let wrong = world
        .server
        .wrong
        .first()
        .cloned()
        .or_else(|| world.unrested().into_iter().next());
    wrong.map(|why| format!("seed {seed}, at rest: {why}\n{:#?}", world.server.writes))
}

/// Histories that are tried without a rule, and with all of them, so that a rule is missed only where nothing else is.
const SEEDS: u64 = 400;
/// Those of them that are always tried.
const FEW: u64 = 60;

#[test]
fn three_replicas_without_a_leader_never_harm_a_host_and_finish() {
    let seeds = if every_case() { SEEDS } else { FEW };
    for seed in (0..seeds).chain(WITHOUT.iter().map(|(_, _, seed)| *seed)) {
        if let Some(why) = history(seed, Rules::ALL) {
            panic!("{why}");
        }
    }
}

const ALL: Rules = Rules::ALL;

/// Each rule that drawn histories are there for, taken away, and the history that is known to go wrong then. The others
/// are in the histories that are written down.
const WITHOUT: [(&str, Rules, u64); 8] = [
    (
        "choose_first",
        Rules {
            choose_first: false,
            ..ALL
        },
        78,
    ),
    (
        "at_version",
        Rules {
            at_version: false,
            ..ALL
        },
        19,
    ),
    (
        "data_first",
        Rules {
            data_first: false,
            ..ALL
        },
        0,
    ),
    (
        "release_own",
        Rules {
            release_own: false,
            ..ALL
        },
        0,
    ),
    (
        "confirm_freed",
        Rules {
            confirm_freed: false,
            ..ALL
        },
        0,
    ),
    (
        "wait_for_host",
        Rules {
            wait_for_host: false,
            ..ALL
        },
        18,
    ),
    (
        "host_before_data",
        Rules {
            host_before_data: false,
            ..ALL
        },
        18,
    ),
    (
        "machine_last",
        Rules {
            machine_last: false,
            ..ALL
        },
        18,
    ),
];

#[test]
fn each_rule_prevents_a_history_that_goes_wrong_without_it() {
    let mut missed = Vec::new();
    for (name, rules, known) in WITHOUT {
        match std::iter::once(known)
            .chain(0..SEEDS)
            .find_map(|seed| history(seed, rules))
        {
            Some(why) => println!("without {name}: {}", why.lines().next().unwrap_or_default()),
            None => missed.push(name),
        }
    }
    assert!(missed.is_empty(), "nothing goes wrong without {missed:?}");
}
