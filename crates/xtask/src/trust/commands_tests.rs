//! What the Makefile and the workflows run, in which order, and with which files.

use std::path::Path;
use std::process::Command;

use metal3_files::{documents, workspace};
use serde_json::Value;

/// The commands of a target, with variables of the environment.
fn commands(target: &str, environment: &[(&str, &str)]) -> String {
    let mut make = make();
    make.args(["--dry-run", "--no-print-directory", target])
        .envs(environment.iter().copied());
    crate::run::succeed(&mut make).unwrap()
}

fn make() -> Command {
    let mut make = Command::new("make");
    // `make test` runs this test.
    for inherited in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL"] {
        make.env_remove(inherited);
    }
    make.current_dir(workspace::root().unwrap());
    make
}

/// Requires that the texts occur, each after the one before.
fn in_order(text: &str, wanted: &[&str]) {
    let mut rest = text;
    for one in wanted {
        let Some((_, after)) = rest.split_once(one) else {
            panic!("`{one}` is missing, or comes too early, in {text}");
        };
        rest = after;
    }
}

fn steps(workflow: &str, job: &str) -> Vec<Value> {
    let path = workspace::root().unwrap().join(".github/workflows").join(workflow);
    let read = documents::parse(&documents::text(&path).unwrap(), &path).unwrap();
    read[0].value["jobs"][job]["steps"].as_array().unwrap().clone()
}

#[test]
fn checks_of_a_release_write_into_none_of_the_user() {
    for target in ["trust-check", "plugin-check"] {
        let written = commands(target, &[("RELEASE", "/srv/release"), ("IMAGES", "/srv/images")]);
        assert!(
            written.contains("checked/images") && !written.contains("/srv/"),
            "{written}"
        );
    }
}

#[test]
fn signatures_are_checked_with_images_that_are_there_only_on_request() {
    for (built, writes) in [("", true), ("1", false)] {
        let commands = commands("trust-check", &[("BUILT", built)]);
        assert_eq!(commands.contains("xtask -- images "), writes, "{commands}");
        assert!(commands.contains("trust-check --images"), "{commands}");
    }
    let of_release = commands("bundled-release", &[]);
    assert!(of_release.contains("xtask -- images "), "{of_release}");
    assert!(of_release.contains("checked/images"), "{of_release}");
}

#[test]
fn release_is_checked_before_it_is_signed() {
    in_order(&commands("sign", &[]), &[" release-check ", " sbom ", " sign "]);
}

#[test]
fn private_key_is_not_a_file_of_the_checkout() {
    let ignored = documents::text(&workspace::root().unwrap().join(".gitignore")).unwrap();
    assert!(ignored.lines().any(|line| line == "*.key"), "{ignored}");
}

#[test]
fn image_is_published_after_the_checks_and_a_release_after_its_verification() {
    let text: Vec<String> = steps("release.yml", "release").iter().map(Value::to_string).collect();
    in_order(
        &text.join("\n"),
        &[
            "make public-key",
            "make release-packages",
            "make images-check ONCE=1\"",
            "make release-files",
            "make release-check VERSION=",
            "make registry-login",
            "make push push-charts",
            "make sign",
            "make verify-release",
            "upload-artifact",
        ],
    );
}

#[test]
fn release_waits_for_the_tests_of_each_change_on_a_commit_of_the_main_branch() {
    let path = workspace::root().unwrap().join(".github/workflows/release.yml");
    let read = documents::parse(&documents::text(&path).unwrap(), &path).unwrap();
    let jobs = &read[0].value["jobs"];
    assert_eq!(jobs["release"]["needs"], serde_json::json!(["tests"]));
    assert_eq!(jobs["tests"]["uses"], "./.github/workflows/test.yml");
    assert_eq!(jobs["tests"]["needs"], serde_json::json!(["commit"]));
    assert_eq!(
        steps("release.yml", "commit").last().unwrap()["run"],
        "make release-commit"
    );
    let tests = workspace::root().unwrap().join(".github/workflows/test.yml");
    let text = documents::text(&tests).unwrap();
    let wanted = [
        "  workflow_call:\n",
        "make check\n",
        "make test\n",
        "make trust-check ",
        "make chart-check\n",
    ];
    in_order(&text, &wanted);
}

#[test]
fn commit_of_another_branch_is_not_released() {
    let root = workspace::root().unwrap();
    let checkout = std::env::temp_dir().join(format!("metal3-commit-{}", std::process::id()));
    std::fs::create_dir_all(&checkout).unwrap();
    let git = |words: &[&str]| {
        let author = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let mut git = Command::new("git");
        crate::run::succeed(git.arg("-C").arg(&checkout).args(author).args(words)).unwrap();
    };
    let released = || {
        let mut make = make();
        make.arg("--file")
            .arg(root.join("Makefile"))
            .args(["--silent", "release-commit", "MAIN=main"]);
        crate::run::succeed(make.current_dir(&checkout)).map_err(|error| error.to_string())
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["commit", "--quiet", "--allow-empty", "--message=a"]);
    let first = released();
    git(&["checkout", "--quiet", "-b", "other"]);
    git(&["commit", "--quiet", "--allow-empty", "--message=b"]);
    let on_another_branch = released();
    std::fs::remove_dir_all(&checkout).unwrap();
    assert_eq!(first, Ok(String::new()));
    let error = on_another_branch.unwrap_err();
    assert!(error.contains("the commit is not on main"), "{error}");
}

#[test]
fn version_of_a_tag_has_its_patch_number() {
    for (tag, wanted) in [("v1.15.7", "7"), ("v1.15.0-rc.1", "0-rc.1")] {
        let mut make = make();
        make.args([
            "--silent",
            "--print-data-base",
            "--dry-run",
            "help",
            &format!("RELEASE_TAG={tag}"),
        ]);
        let values = crate::run::succeed(&mut make).unwrap();
        let line = format!("CAPM3_PATCH := {wanted}");
        assert!(values.lines().any(|one| one == line), "{tag}");
    }
    let mut other = make();
    other.args(["--silent", "--dry-run", "help", "RELEASE_TAG=main"]);
    let error = crate::run::succeed(&mut other).unwrap_err().to_string();
    assert!(error.contains("RELEASE_TAG=main is no tag"), "{error}");
}

/// A login that a build script could read would be in the environment of the build of cosign.
#[test]
fn login_is_not_in_the_environment_of_a_build() {
    let text = commands("registry-login", &[("REGISTRY", "r.example:5000/a/b")]);
    let before = text.split("--unset").next().unwrap();
    assert!(!before.contains("cargo"), "{text}");
    in_order(
        &text,
        &[
            "--unset=LOGIN",
            "--unset=PASSWORD",
            "cosign",
            "login",
            "\"r.example:5000\"",
        ],
    );
}

#[test]
fn only_the_command_that_signs_has_the_private_key() {
    let steps = steps("release.yml", "release");
    let with_key: Vec<usize> = (0..steps.len())
        .filter(|at| steps[*at].to_string().contains("secrets.COSIGN"))
        .collect();
    let [at] = *with_key else {
        panic!("{with_key:?} steps have the key");
    };
    assert_eq!(steps[at]["run"], "make sign KEY=env://COSIGN_KEY");
    let before: String = steps[..at].iter().map(Value::to_string).collect();
    assert!(
        before.contains("make registry-login"),
        "cosign would be built with the key in its environment"
    );
}

#[test]
fn targets_of_the_workflows_exist() {
    let root = workspace::root().unwrap();
    let makefile = documents::text(&root.join("Makefile")).unwrap();
    let is_target = |name: &str| {
        let mut heads = makefile.lines().filter_map(|line| line.split_once(':'));
        heads.any(|(names, _)| !names.starts_with('\t') && names.split_whitespace().any(|one| one == name))
    };
    let mut found = 0;
    for path in documents::files(&root.join(".github/workflows"), &["yml"]).unwrap() {
        let text = documents::text(&path).unwrap();
        for after in text.split("make ").skip(1) {
            let words = after.split_whitespace().skip_while(|word| word.starts_with("--"));
            let is_name = |word: &&str| {
                word.chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            };
            let first = words
                .take(1)
                .map(|word| word.trim_end_matches([')', '"']))
                .find(is_name);
            let Some(first) = first else { continue };
            found += 1;
            assert!(is_target(first), "{}: make {first}", Path::new(&path).display());
        }
    }
    assert!(found > 8, "{found} commands");
}
