//! Entries that are not members: annotations and labels, flags, environment variables and metrics. Flags and variables come from
//! their tables, the rest from the source.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use metal3_files::documents;
use metal3_flags::{Handling, TABLE, VARIABLES};

use super::rows::{Class, Row};
use super::{Entry, Table};

/// Annotations and labels.
pub(crate) const KEYS: &str = "Annotations and labels";
pub(crate) const FLAGS: &str = "Flags";
pub(crate) const ENVIRONMENT: &str = "Environment variables";
pub(crate) const METRICS: &str = "Metrics";
/// Subjects that are no kinds.
pub(crate) const SUBJECTS: [&str; 4] = [KEYS, FLAGS, ENVIRONMENT, METRICS];

/// Folders with the source of the program.
const SOURCES: [&str; 10] = [
    "api/src",
    "crates/capi/src",
    "crates/capm3/src",
    "crates/domain/src",
    "crates/hosts/src",
    "crates/ipam/src",
    "crates/ironic/src",
    "crates/manager/src",
    "crates/runtime/src",
    "crates/webhooks/src",
];
/// Folder of the program, the only one that reads environment variables.
const PROGRAM: &str = "crates/manager/src";
/// Texts that look like keys and are values, types (also of Secrets) or finalizers.
const NO_KEYS: [&str; 11] = [
    "baremetalhost.metal3.io/preprovisioningImage",
    "infrastructure.cluster.x-k8s.io/endpoint-taken",
    "infrastructure.cluster.x-k8s.io/secret",
    "kubernetes.io/dockerconfigjson",
    "kubernetes.io/service-account-token",
    "ipam-metal3",
    "metal3-rs",
    "metal3.io/capm3",
    "app.kubernetes.io/part-of",
    "cert-manager.io/inject-ca-from",
    "clusterctl.cluster.x-k8s.io/skip-crd-name-preflight-check",
];
/// Ends of the domains of keys.
const DOMAINS: [&str; 3] = ["metal3.io", "x-k8s.io", "kubernetes.io"];
/// Keys in the record of a node, which look like metrics.
const NODE_KEYS: [&str; 4] = [
    "metal3_agent",
    "metal3_deploy_step",
    "metal3_image",
    "metal3_image_login",
];
/// Beginnings of names of metrics.
const METRIC_PREFIXES: [&str; 7] = [
    "certwatcher_",
    "controller_runtime_",
    "leader_election_",
    "metal3_",
    "process_",
    "rest_client_",
    "workqueue_",
];
/// Ends of the names of constants that contain a key of any form.
const KEY_CONSTANTS: [&str; 4] = ["_ANNOTATION", "_LABEL", "_ANNOTATION_PREFIX", "_LABEL_PREFIX"];

/// All of them.
pub(crate) fn all(root: &Path) -> Result<BTreeSet<Entry>> {
    let entry = |subject: &str, name: &str| Entry {
        subject: subject.to_owned(),
        name: name.to_owned(),
    };
    let mut found = BTreeSet::new();
    found.extend(TABLE.iter().map(|flag| entry(FLAGS, flag.name)));
    found.extend(VARIABLES.iter().map(|variable| entry(ENVIRONMENT, variable.name)));
    for folder in SOURCES {
        for file in documents::files(&root.join(folder), &["rs"])? {
            if crate::lints::is_test(&file) {
                continue;
            }
            let text = documents::text(&file)?;
            found.extend(keys(&text).iter().map(|key| entry(KEYS, key)));
            if folder == PROGRAM {
                found.extend(variables(&text).iter().map(|name| entry(ENVIRONMENT, name)));
            }
            found.extend(metrics(&text).iter().map(|name| entry(METRICS, name)));
        }
    }
    Ok(found)
}

/// The source before its tests.
fn without_tests(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .take_while(|line| line.trim() != "#[cfg(test)]")
        .filter(|line| !line.trim_start().starts_with("//"))
}

/// The text literals of a line that contain no blank.
fn literals(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').skip(1).step_by(2).filter(|text| !text.contains(' '))
}

/// Keys of annotations and labels in the text of a source file: values of constants that are named so, and all texts that
/// have their form.
fn keys(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in without_tests(text) {
        let constant = line.split_once("const ").and_then(|(_, rest)| rest.split_once(':'));
        let name = constant.map_or("", |(name, _)| name);
        if name.ends_with("_FINALIZER") {
            continue;
        }
        let is_key = |text: &&str| {
            !NO_KEYS.contains(text) && (KEY_CONSTANTS.iter().any(|end| name.ends_with(end)) || has_form_of_key(text))
        };
        found.extend(literals(line).filter(is_key).map(str::to_owned));
    }
    found
}

/// `domain/name`, where the name is not a version.
fn has_form_of_key(text: &str) -> bool {
    let Some((domain, name)) = text.split_once('/') else {
        return false;
    };
    let is_version = name.starts_with('v') && name.chars().nth(1).is_some_and(|digit| digit.is_ascii_digit());
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    DOMAINS.iter().any(|end| domain.ends_with(end))
        && text.bytes().all(|byte| byte == b'/' || is_word(byte))
        && !is_version
}

/// Names of environment variables: texts of capital letters with underscores.
fn variables(text: &str) -> BTreeSet<String> {
    let is_capital = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let is_name = |text: &&str| text.contains('_') && text.bytes().all(is_capital);
    let found = without_tests(text).flat_map(literals).filter(is_name);
    found.map(str::to_owned).collect()
}

/// Names of metrics, without the ending that counters get when they are read.
fn metrics(text: &str) -> BTreeSet<String> {
    let is_metric = |text: &&str| {
        !NODE_KEYS.contains(text)
            && METRIC_PREFIXES.iter().any(|prefix| text.starts_with(prefix))
            && text
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    let found = without_tests(text).flat_map(literals).filter(is_metric);
    found
        .map(|name| name.strip_suffix("_total").unwrap_or(name).to_owned())
        .collect()
}

/// Flags whose row contradicts the table of flags.
pub(crate) fn contradictions(table: &Table<'_>, rows: &[Row]) -> Vec<String> {
    let mut found = Vec::new();
    for (index, row) in rows.iter().enumerate().filter(|(_, row)| row.subject == FLAGS) {
        for name in table.of_row(index) {
            let handling = TABLE.iter().find(|flag| flag.name == name).map(|flag| flag.handling);
            let classes: &[Class] = match handling {
                Some(Handling::Supported) => &[Class::Acts, Class::Untested],
                Some(Handling::Alias(_)) => &[Class::Acts, Class::Superseded],
                Some(Handling::Ignored(_)) => &[Class::Warned],
                Some(Handling::Refused(_)) => &[Class::Refused],
                None => &[],
            };
            if !classes.contains(&row.class) {
                found.push(format!("{FLAGS} {name}: the table of flags handles it in another way"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_by_form_and_by_the_name_of_their_constant() {
        let source = "//! \"metal3.io/comment\"\npub const A_LABEL: &str = \"plain\";\nconst A_FINALIZER: &str = \"metal3.io/x\";\n\
                      f(\"a.metal3.io/y\", \"metal3.io/v1alpha1\", \"see metal3.io/z\");\n    #[cfg(test)]\nf(\"metal3.io/t\");\n";
        assert_eq!(keys(source).into_iter().collect::<Vec<_>>(), ["a.metal3.io/y", "plain"]);
    }

    #[test]
    fn variables_are_texts_of_capital_letters() {
        let found = variables("read(\"POD_NAME\", \"Set IRONIC_ENDPOINT\", \"HOME\")\n");
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["POD_NAME"]);
    }

    #[test]
    fn metrics_are_found_without_their_ending() {
        let source = "(\"metal3_a\", \"Number of metal3_b\"), \"metal3_c_total\", \"metal3-d\"\n";
        assert_eq!(
            metrics(source).into_iter().collect::<Vec<_>>(),
            ["metal3_a", "metal3_c"]
        );
    }

    #[test]
    fn metrics_of_the_source_are_the_rows_of_the_page() {
        let found = all(&metal3_files::workspace::root().unwrap()).unwrap();
        let found: BTreeSet<String> = found
            .into_iter()
            .filter(|entry| entry.subject == METRICS)
            .map(|entry| entry.name)
            .collect();
        let rows = metal3_monitoring::metrics::all();
        assert_eq!(found, rows.iter().map(|row| row.name.to_owned()).collect());
    }
}
