//! Scenarios on the simulated world.

use metal3_sandbox::world::Faults;
use metal3_scenario::Step;

use super::*;

/// Set, every scenario runs; else the first alone, because each takes some seconds.
const EVERY: &str = "METAL3_EVERY_SCENARIO";

/// The scripts that are run here.
fn chosen() -> (PathBuf, Vec<PathBuf>) {
    let folder = workspace::root().unwrap().join(FOLDER);
    let mut files = scripts(&folder).unwrap();
    if std::env::var_os(EVERY).is_none() {
        files.truncate(1);
    }
    assert!(!files.is_empty());
    (folder, files)
}

fn hold_twice(troubled: bool) {
    let (folder, files) = chosen();
    let mut struck = Vec::new();
    for file in files {
        let scenario = read(&file).unwrap();
        let setting = Setting { seed: 1, troubled };
        let files = Files {
            own: &folder,
            published: None,
        };
        let run = play(&scenario, files, setting, true)
            .unwrap_or_else(|error| panic!("{} ({}), {setting:?}: {error:#}", file.display(), scenario.about));
        assert!(!run.journal.lines().is_empty(), "{}: nothing happened", file.display());
        struck.push(run.struck);
    }
    let at_server = struck.iter().any(|struck| struck.at_server > 0);
    let at_ironic = struck.iter().any(|struck| struck.at_ironic > 0);
    assert_eq!((at_server, at_ironic), (troubled, troubled), "{struck:?}");
}

#[test]
fn a_scenario_holds_and_the_same_seed_writes_the_same() {
    hold_twice(false);
}

#[test]
fn a_scenario_holds_while_requests_fail_and_the_same_seed_writes_the_same() {
    hold_twice(true);
}

#[test]
fn every_script_can_be_read_and_names_files_faults_and_hosts_that_are_there() {
    let folder = workspace::root().unwrap().join(FOLDER);
    for file in scripts(&folder).unwrap() {
        let scenario = read(&file).unwrap();
        let more = scenario
            .steps
            .iter()
            .map(|step| if let Step::Hosts(more) = step { *more } else { 0 });
        // A machine may be broken before its host is added.
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
                Step::Mend(host) => assert!((1..=hosts).contains(&host), "{}: no host {host}", file.display()),
                _ => {}
            }
        }
    }
}
