//! The workflows call targets of the Makefile and nothing else: what a runner does, a developer can do.

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
            let runs = job["steps"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|step| step.get("run"));
            commands.extend(
                runs.filter_map(Value::as_str)
                    .map(|run| (file.clone(), run.trim().to_owned())),
            );
        }
    }
    commands
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
