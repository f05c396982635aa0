//! The scripts of `e2e/scenarios` and the objects that they apply, in the program.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use metal3_scenario::Scenario;

macro_rules! scripts {
    ($($file:literal)*) => {
        /// The scripts, by file.
        const SCRIPTS: &[Script] = &[$(Script {
            file: $file,
            text: include_str!(concat!("../../../../e2e/scenarios/", $file, ".yaml")),
        }),*];
    };
}

macro_rules! objects {
    ($($file:literal)*) => {
        /// Files of objects.
        const OBJECTS: &[(&str, &str)] = &[$((
            concat!("objects/", $file, ".yaml"),
            include_str!(concat!("../../../../e2e/scenarios/objects/", $file, ".yaml")),
        )),*];
    };
}

scripts! {
    "01-one-and-two" "02-scale" "03-roll" "04-delete" "05-pause" "06-two-clusters" "07-pools" "08-broken-host"
    "09-ironic-outage" "10-foreign" "11-wrong-password" "12-kamaji" "13-secondary" "14-pool-endpoint" "15-byoh"
    "16-managed" "17-cloud" "18-zones" "19-sites" "20-from-zero" "21-ignition" "22-join-virtual" "23-join-anonymous"
    "24-join-managed" "25-node-reuse"
}

objects! {
    "byoh" "cluster" "elsewhere" "foreign" "ignition" "kamaji" "lacking" "managed" "opaque-worker" "openstack" "pooled" "secondary" "site" "workers"
    "zones"
}

/// A script.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Script {
    /// Its file, without the ending.
    file: &'static str,
    pub(super) text: &'static str,
}

impl Script {
    /// A script that is in no file.
    #[cfg(test)]
    pub(super) const fn of(text: &'static str) -> Self {
        Self { file: "00-test", text }
    }

    /// The script with this name.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        let found = SCRIPTS
            .iter()
            .find(|script| script.name() == name || script.file == name);
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = SCRIPTS.iter().map(Self::name).collect();
            format!(
                "--scenario: there is no script {name:?}; there are {}",
                names.join(", ")
            )
        })
    }

    /// The name: the file without its number.
    pub(super) fn name(&self) -> &'static str {
        self.file.split_once('-').map_or(self.file, |(_, name)| name)
    }
}

/// One line for each script.
pub(crate) fn list() -> String {
    let mut text = String::new();
    for script in SCRIPTS {
        let about = Scenario::read(script.text)
            .map(|scenario| scenario.about)
            .unwrap_or_default();
        let _ = writeln!(text, "{:<16} {about}", script.name());
    }
    text
}

/// The text of a file that a script applies.
pub(super) fn objects(file: &str) -> Result<String> {
    let found = OBJECTS.iter().find(|(name, _)| *name == file);
    found
        .map(|(_, text)| (*text).to_owned())
        .with_context(|| format!("{file}: not a file of objects in this program"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use metal3_scenario::Step;

    use super::*;

    fn files(folder: &str) -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../e2e/scenarios")
            .join(folder);
        let names = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names
            .filter_map(|name| name.strip_suffix(".yaml").map(str::to_owned))
            .collect()
    }

    #[test]
    fn program_has_each_script_and_each_file_of_objects() {
        assert_eq!(
            SCRIPTS
                .iter()
                .map(|script| script.file.to_owned())
                .collect::<BTreeSet<_>>(),
            files("")
        );
        let paths = files("objects").into_iter().map(|name| format!("objects/{name}.yaml"));
        assert_eq!(
            OBJECTS
                .iter()
                .map(|(file, _)| (*file).to_owned())
                .collect::<BTreeSet<_>>(),
            paths.collect()
        );
        for script in SCRIPTS {
            let scenario = Scenario::read(script.text).unwrap();
            for step in &scenario.steps {
                if let Step::Apply(apply) = step {
                    objects(&apply.file).unwrap();
                }
            }
        }
    }

    #[test]
    fn script_is_found_by_its_name_and_an_unknown_name_says_which_there_are() {
        assert_eq!(Script::named("broken-host").unwrap().file, "08-broken-host");
        assert_eq!(Script::named("12-kamaji").unwrap().name(), "kamaji");
        let why = Script::named("brokenhost").unwrap_err();
        assert!(SCRIPTS.iter().all(|script| why.contains(script.name())), "{why}");
        assert_eq!(list().lines().count(), SCRIPTS.len());
        assert!(list().lines().all(|line| line.len() > 30), "{}", list());
        let names: BTreeSet<&str> = SCRIPTS.iter().map(Script::name).collect();
        assert_eq!(names.len(), SCRIPTS.len());
    }
}
