//! Scenarios on the simulated world.

use super::*;

/// Set, every scenario runs; else the first alone, because each takes some seconds.
const EVERY: &str = "METAL3_EVERY_SCENARIO";

#[test]
fn a_scenario_holds() {
    let folder = workspace::root().unwrap().join(FOLDER);
    let mut files = scripts(&folder).unwrap();
    if std::env::var_os(EVERY).is_none() {
        files.truncate(1);
    }
    assert!(!files.is_empty());
    for file in files {
        let scenario = read(&file).unwrap();
        let told = run::run(&scenario, &folder, 1)
            .unwrap_or_else(|error| panic!("{} ({}), seed 1: {error:#}", file.display(), scenario.about));
        assert!(!told.is_empty(), "{}: nothing happened", file.display());
    }
}

#[test]
fn every_script_can_be_read_and_names_files_that_are_there() {
    let folder = workspace::root().unwrap().join(FOLDER);
    for file in scripts(&folder).unwrap() {
        for step in read(&file).unwrap().steps {
            if let script::Step::Apply(apply) = step {
                assert!(folder.join(&apply.file).is_file(), "{}: {}", file.display(), apply.file);
            }
        }
    }
}
