//! Histories by seed: three replicas without a leader, old caches, deaths in the middle of a pass, requests that arrive
//! late, machines that go and come again under the same name.

use metal3_faults::Random;

use super::world::World;
use crate::machine::rules::Rules;

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

#[test]
fn three_replicas_without_a_leader_never_harm_a_host_and_finish() {
    for seed in 0..60 {
        if let Some(why) = history(seed, Rules::ALL) {
            panic!("{why}");
        }
    }
}

const ALL: Rules = Rules::ALL;

/// Each rule that the histories are there for, taken away.
const WITHOUT: [(&str, Rules); 13] = [
    (
        "choose_first",
        Rules {
            choose_first: false,
            ..ALL
        },
    ),
    (
        "confirm_claim",
        Rules {
            confirm_claim: false,
            ..ALL
        },
    ),
    (
        "at_version",
        Rules {
            at_version: false,
            ..ALL
        },
    ),
    (
        "data_first",
        Rules {
            data_first: false,
            ..ALL
        },
    ),
    ("own_data", Rules { own_data: false, ..ALL }),
    (
        "confirm_provision",
        Rules {
            confirm_provision: false,
            ..ALL
        },
    ),
    (
        "provision_once",
        Rules {
            provision_once: false,
            ..ALL
        },
    ),
    (
        "release_own",
        Rules {
            release_own: false,
            ..ALL
        },
    ),
    (
        "confirm_release",
        Rules {
            confirm_release: false,
            ..ALL
        },
    ),
    (
        "confirm_freed",
        Rules {
            confirm_freed: false,
            ..ALL
        },
    ),
    (
        "wait_for_host",
        Rules {
            wait_for_host: false,
            ..ALL
        },
    ),
    (
        "host_before_data",
        Rules {
            host_before_data: false,
            ..ALL
        },
    ),
    (
        "machine_last",
        Rules {
            machine_last: false,
            ..ALL
        },
    ),
];

#[test]
fn each_rule_prevents_a_history_that_goes_wrong_without_it() {
    let mut missed = Vec::new();
    for (name, rules) in WITHOUT {
        match (0..400).find_map(|seed| history(seed, rules)) {
            Some(why) => println!("without {name}: {}", why.lines().next().unwrap_or_default()),
            None => missed.push(name),
        }
    }
    assert!(missed.is_empty(), "nothing goes wrong without {missed:?}");
}
