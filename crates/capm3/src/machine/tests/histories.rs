//! Random histories by seed: three replicas without leader election, outdated caches, crashes during a reconcile,
//! delayed requests, machines that are deleted and created again under the same name.

use metal3_sim_faults::Random;

use super::simulation::{Simulation, without};
use crate::machine::rules::Rules;
use crate::tests::every_case;

const STEPS: usize = 160;

/// Runs the history of a seed and returns the first violation.
fn history(seed: u64, rules: Rules) -> Option<String> {
    history_of(seed, Simulation::new(rules, 3, 2))
}

fn history_of(seed: u64, mut simulation: Simulation) -> Option<String> {
    let mut random = Random::seeded(seed);
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

#[test]
fn three_replicas_without_leader_keep_every_host_of_a_set_with_node_reuse() {
    for seed in 0..if every_case() { SEEDS } else { ALWAYS } {
        let mut simulation = Simulation::new(Rules::ALL, 3, 2);
        simulation.keep_hosts();
        if let Some(why) = history_of(seed, simulation) {
            panic!("{why}");
        }
    }
}

/// Zones are removed and hosts change their place at any time, and replicas know it late.
#[test]
fn machines_keep_to_their_zones_and_are_never_written_without_the_data_of_one() {
    for seed in 0..if every_case() { SEEDS } else { ALWAYS } {
        for is_required in [true, false] {
            let mut simulation = Simulation::new(Rules::ALL, 3, 3);
            simulation.zone(is_required);
            if let Some(why) = zoned_history(seed, simulation) {
                panic!("required: {is_required}, {why}");
            }
        }
    }
}

fn zoned_history(seed: u64, mut simulation: Simulation) -> Option<String> {
    let mut random = Random::seeded(seed);
    let failed = |simulation: &Simulation, when: String| {
        let why = simulation.server.wrong.first()?;
        Some(format!("seed {seed}, {when}: {why}\n{:#?}", simulation.server.writes))
    };
    for step in 0..STEPS {
        simulation.edit_zones(&mut random);
        simulation.step(&mut random);
        if let Some(why) = failed(&simulation, format!("step {step}")) {
            return Some(why);
        }
    }
    simulation.restore_zones();
    simulation.settle();
    let wrong = simulation.final_violations();
    simulation.server.wrong.extend(wrong);
    failed(&simulation, "at rest".to_owned())
}

/// Disables a rule.
type Disable = fn(&mut Rules);

/// Each rule that random histories cover, the switch that disables it, and the seed of a history that fails without it.
/// Scripted races cover the rest.
const WITHOUT: [(&str, Disable, u64); 8] = [
    ("choose_first", |rules| rules.choose_first = false, 78),
    ("at_version", |rules| rules.at_version = false, 19),
    ("data_first", |rules| rules.data_first = false, 0),
    ("release_own", |rules| rules.release_own = false, 0),
    ("confirm_freed", |rules| rules.confirm_freed = false, 0),
    ("wait_for_host", |rules| rules.wait_for_host = false, 18),
    ("host_before_data", |rules| rules.host_before_data = false, 18),
    ("machine_last", |rules| rules.machine_last = false, 18),
];

#[test]
fn each_rule_prevents_a_failing_history() {
    let mut unneeded = Vec::new();
    for (name, disable, known) in WITHOUT {
        let rules = without(disable);
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
