//! Scenarios on the simulated world.

use metal3_manager::sandbox::world::Faults;
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
    for file in files {
        let scenario = read(&file).unwrap();
        let setting = Setting { seed: 1, troubled };
        let run = play(&scenario, &folder, setting, true)
            .unwrap_or_else(|error| panic!("{} ({}), {setting:?}: {error:#}", file.display(), scenario.about));
        assert!(!run.journal.lines().is_empty(), "{}: nothing happened", file.display());
        assert_eq!(run.checks, run.journal.lines().len(), "a write was not checked");
    }
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
fn every_script_can_be_read_and_names_files_and_faults_that_are_there() {
    let folder = workspace::root().unwrap().join(FOLDER);
    for file in scripts(&folder).unwrap() {
        for step in read(&file).unwrap().steps {
            match step {
                Step::Apply(apply) => {
                    assert!(folder.join(&apply.file).is_file(), "{}: {}", file.display(), apply.file);
                }
                Step::Fault { has, .. } => drop(serde_json::from_value::<Faults>(has.into()).unwrap()),
                _ => {}
            }
        }
    }
}
