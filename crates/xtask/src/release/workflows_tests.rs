//! The workflows call targets of the Makefile and nothing else: what a runner does, a developer can do.

use std::process::Command;

use metal3_files::{documents, workspace};
use serde_json::Value;

/// The commands of all steps, with the file of each.
fn commands() -> Vec<(String, String)> {
    let folder = workspace::root().unwrap().join(".github/workflows");
    let mut commands = Vec::new();
    for path in documents::files(&folder, &["yml"]).unwrap() {
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = documents::text(&path).unwrap();
        let workflow = &documents::parse(&text, &path).unwrap()[0].value;
        for job in workflow["jobs"].as_object().unwrap().values() {
            // A job may be another workflow.
            let steps = job["steps"].as_array().map_or(&[][..], Vec::as_slice);
            assert!(!steps.is_empty() || job["uses"].is_string(), "{file}: {job}");
            let runs = steps.iter().filter_map(|step| step.get("run"));
            commands.extend(
                runs.filter_map(Value::as_str)
                    .map(|run| (file.clone(), run.trim().to_owned())),
            );
        }
    }
    commands
}

/// A tag of an action is what its owner makes of it later.
#[test]
fn each_action_of_a_workflow_is_named_by_its_commit() {
    let folder = workspace::root().unwrap().join(".github/workflows");
    let mut actions = 0;
    for path in documents::files(&folder, &["yml"]).unwrap() {
        let text = documents::text(&path).unwrap();
        let uses = text
            .lines()
            .filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix("uses:"));
        for action in uses.filter(|action| !action.starts_with(" ./")) {
            let (commit, version) = action.split_once('@').unwrap().1.split_once(" # v").unwrap();
            let is_commit = commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(is_commit && !version.is_empty(), "{}: {action}", path.display());
            actions += 1;
        }
    }
    assert!(actions > 3, "{actions}");
}

#[test]
fn each_command_of_a_workflow_is_a_target_of_the_makefile() {
    let makefile = documents::text(&workspace::root().unwrap().join("Makefile")).unwrap();
    let is_target = |name: &str| {
        makefile
            .lines()
            .any(|line| line.starts_with(&format!("{name}:")) && line.contains(" ## "))
    };
    let commands = commands();
    assert!(commands.len() > 10, "{commands:?}");
    for (file, command) in commands {
        let mut words = command.split_whitespace().peekable();
        if words.next_if_eq(&"sudo").is_some() {
            words.next_if_eq(&"--preserve-env=PATH,HOME");
        }
        assert_eq!(words.next(), Some("make"), "{file}: {command}");
        let (settings, targets): (Vec<&str>, Vec<&str>) = words.partition(|word| word.contains('='));
        assert!(!targets.is_empty(), "{file}: {command}");
        for target in targets {
            assert!(is_target(target), "{file}: {command}: {target}");
        }
        for setting in settings {
            let has_command = setting.contains(['`', ';', '|', '&']) || setting.contains("$(");
            assert!(!has_command, "{file}: {command}");
        }
    }
}

#[test]
fn tag_that_is_a_command_starts_no_release_and_is_an_error_of_make() {
    let root = workspace::root().unwrap();
    let workflow = documents::text(&root.join(".github/workflows/release.yml")).unwrap();
    assert!(workflow.contains(r#"tags: ["v[0-9]+.[0-9]+.[0-9]+", "v[0-9]+.[0-9]+.[0-9]+-rc.[0-9]+"]"#));
    let made = |name: &str, value: &str| {
        let mut make = Command::new("make");
        make.current_dir(&root)
            .args(["--dry-run", "release-check"])
            .env(name, value);
        let output = make.output().unwrap();
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    assert!(made("RELEASE_TAG", "v1.15.0-rc.1").0);
    for name in ["RELEASE_TAG", "VERSION", "PLUGIN_URL", "SOURCE", "BUILDER", "REGISTRY"] {
        for value in ["v1.15.0$(shell id)", "v1.15.0\"`id`\"", "v1.15.0;id", "v1.15.0'"] {
            let (is_accepted, said) = made(name, value);
            let is_named = said.contains(&format!("{name} has a character"));
            assert!(!is_accepted && is_named, "{name}={value}: {said}");
        }
    }
}
