//! Scenarios on the simulated world.

use metal3_sandbox::world::Faults;
use metal3_scenario::Step;

use super::*;

/// If set, all scenarios run; otherwise only the first, because each takes some seconds.
const EVERY: &str = "METAL3_EVERY_SCENARIO";

/// The scenarios to run.
fn chosen() -> (PathBuf, Vec<PathBuf>) {
    let folder = workspace::root().unwrap().join(FOLDER);
    let mut files = scripts(&folder).unwrap();
    if std::env::var_os(EVERY).is_none() {
        files.truncate(1);
    }
    assert!(!files.is_empty());
    (folder, files)
}

fn assert_repeatable(with_faults: bool) {
    let (folder, files) = chosen();
    let mut injected = Vec::new();
    for file in files {
        let scenario = read(&file).unwrap();
        let options = RunOptions {
            seed: 1,
            with_faults,
            ..RunOptions::default()
        };
        let files = Files {
            own: &folder,
            published: None,
        };
        let run = play(&scenario, files, options, true)
            .unwrap_or_else(|error| panic!("{} ({}), {options:?}: {error:#}", file.display(), scenario.about));
        assert!(!run.journal.lines().is_empty(), "{}: nothing happened", file.display());
        injected.push(run.injected);
    }
    let at_server = injected.iter().any(|injected| injected.at_server > 0);
    let at_ironic = injected.iter().any(|injected| injected.at_ironic > 0);
    assert_eq!((at_server, at_ironic), (with_faults, with_faults), "{injected:?}");
}

#[test]
fn a_scenario_passes_and_two_runs_of_one_seed_are_equal() {
    assert_repeatable(false);
}

#[test]
fn a_scenario_passes_with_random_faults_and_two_runs_of_one_seed_are_equal() {
    assert_repeatable(true);
}

/// BYOH speaks v1beta1 of its own group to the end; Cluster API 1.16 serves its own v1beta1 no more.
#[test]
fn cluster_of_two_providers_runs_without_v1beta1_of_cluster_api() {
    let folder = workspace::root().unwrap().join(FOLDER);
    let scenario = read(&folder.join("15-byoh.yaml")).unwrap();
    let options = RunOptions {
        seed: 1,
        without_v1beta1: true,
        ..RunOptions::default()
    };
    let files = Files {
        own: &folder,
        published: None,
    };
    let run = play(&scenario, files, options, false).unwrap();
    assert!(!run.journal.lines().is_empty());
}

#[test]
fn every_scenario_is_valid_and_refers_to_existing_files_faults_and_hosts() {
    let folder = workspace::root().unwrap().join(FOLDER);
    for file in scripts(&folder).unwrap() {
        let scenario = read(&file).unwrap();
        let more = scenario
            .steps
            .iter()
            .map(|step| if let Step::Hosts(more) = step { *more } else { 0 });
        // A machine may break before its host is added.
        let hosts = scenario.hosts + more.sum::<u32>();
        for step in scenario.steps {
            match step {
                Step::Apply(apply) => {
                    assert!(folder.join(&apply.file).is_file(), "{}: {}", file.display(), apply.file);
                }
                Step::Fault { host, has } => {
                    assert!((1..=hosts).contains(&host), "{}: no host {host}", file.display());
                    drop(serde_json::from_value::<Faults>(has.into()).unwrap());
                }
                Step::Mend(host) | Step::DeleteMachineOf(host) => {
                    assert!((1..=hosts).contains(&host), "{}: no host {host}", file.display())
                }
                _ => {}
            }
        }
    }
}
