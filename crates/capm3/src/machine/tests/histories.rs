//! Random histories by seed: three replicas without leader election, outdated caches, crashes during a reconcile,
//! delayed requests, machines that are deleted and created again under the same name.

use metal3_sim_faults::Random;

use super::simulation::Simulation;
use crate::machine::rules::Rules;
use crate::tests::every_case;

const STEPS: usize = 160;

/// Runs the history of a seed and returns the first violation.
fn history(seed: u64, rules: Rules) -> Option<String> {
    let mut random = Random::seeded(seed);
    let mut simulation = Simulation::new(rules, 3, 2);
    simulation.server.is_bare = random.below(4) == 0;
    for step in 0..STEPS {
        simulation.step(&mut random);
        if let Some(why) = simulation.server.wrong.first() {
            let log: Vec<_> = simulation.server.writes.iter().rev().take(12).rev().cloned().collect();
            return Some(format!("seed {seed}, step {step}: {why}\n  {}", log.join("\n  ")));
        }
    }
    simulation.settle();
    let wrong = simulation
        .server
        .wrong
        .first()
        .cloned()
        .or_else(|| simulation.final_violations().into_iter().next());
    wrong.map(|why| format!("seed {seed}, at rest: {why}\n{:#?}", simulation.server.writes))
}

/// Number of histories with and without each rule.
const SEEDS: u64 = 400;
/// Number of those that always run.
const ALWAYS: u64 = 60;

#[test]
fn three_replicas_without_leader_never_damage_a_host_and_finish() {
    let seeds = if every_case() { SEEDS } else { ALWAYS };
    for seed in (0..seeds).chain(WITHOUT.iter().map(|(_, _, seed)| *seed)) {
        if let Some(why) = history(seed, Rules::ALL) {
            panic!("{why}");
        }
    }
}

const ALL: Rules = Rules::ALL;

/// Each rule that random histories cover, disabled, with the seed of a history that fails without it. Scripted races
/// cover the rest.
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
fn each_rule_prevents_a_failing_history() {
    let mut unneeded = Vec::new();
    for (name, rules, known) in WITHOUT {
        match std::iter::once(known)
            .chain(0..SEEDS)
            .find_map(|seed| history(seed, rules))
        {
            Some(why) => println!("without {name}: {}", why.lines().next().unwrap_or_default()),
            None => unneeded.push(name),
        }
    }
    assert!(unneeded.is_empty(), "no history fails without {unneeded:?}");
}
