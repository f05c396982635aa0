//! Scenarios on the simulated world, twice with one seed.

use super::*;

/// Set, every scenario runs; else the first alone, because each takes some seconds.
const EVERY: &str = "METAL3_EVERY_SCENARIO";

#[test]
fn a_scenario_holds_and_one_seed_tells_one_story() {
    let folder = workspace::root().unwrap().join(FOLDER);
    let mut files = scripts(&folder).unwrap();
    if std::env::var_os(EVERY).is_none() {
        files.truncate(1);
    }
    assert!(!files.is_empty());
    for file in files {
        let scenario = read(&file).unwrap();
        let tell = || {
            let told = run::run(&scenario, &folder, 1);
            told.unwrap_or_else(|error| panic!("{} ({}), seed 1: {error:#}", file.display(), scenario.about))
        };
        let (first, second) = (tell(), tell());
        let differs = first.iter().zip(&second).find(|(one, other)| one != other);
        assert_eq!(differs, None, "{}", file.display());
        assert_eq!(first.len(), second.len(), "{}", file.display());
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
