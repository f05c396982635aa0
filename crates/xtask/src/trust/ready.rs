//! `release-check`: what keeps the written files from being released.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use metal3_files::workspace;
use metal3_flags::version::version;

use crate::images::named;
use crate::run::git;

const CHANGES: &str = "CHANGELOG.md";
const DEFINITIONS: &str = "manifests/crds";
/// The line of the page on releases that names the commit of the release before.
const PREVIOUS: (&str, &str) = ("docs/releasing.md", "Previous release: ");
/// Where clusterctl finds a release.
const PROVIDER: &str = "infrastructure-metal3";

/// What is compared.
#[derive(Clone, Debug, Default)]
struct Facts {
    /// Files of the checkout that differ from the commit, as git prints them.
    changed: String,
    version: String,
    changelog: String,
    /// Tag and digest of the images.
    tag: String,
    digest: String,
    /// Versions that clusterctl finds in the folder.
    folders: Vec<String>,
    /// Images in the manifests, with the file that names each.
    images: BTreeMap<String, String>,
    /// Definitions that changed since the release before.
    definitions: Vec<String>,
}

/// Prints what is missing. `false` when something is.
pub(crate) fn run(folder: &Path, images: &Path) -> Result<bool> {
    let problems = problems(&facts(folder, images)?);
    for problem in &problems {
        println!("{problem}");
    }
    if problems.is_empty() {
        println!("{}: can be released as {}", folder.display(), version());
    }
    Ok(problems.is_empty())
}

fn facts(folder: &Path, images: &Path) -> Result<Facts> {
    let root = workspace::root()?;
    let (tag, digest) = named(images)?;
    let read = |path: &str| fs::read_to_string(root.join(path)).with_context(|| format!("read {path}"));
    Ok(Facts {
        changed: git(&root, &["status", "--porcelain"])?,
        version: version(),
        changelog: read(CHANGES)?,
        tag,
        digest,
        folders: entries(&folder.join(PROVIDER))?,
        images: images_of(folder)?,
        definitions: match previous(&read(PREVIOUS.0)?) {
            Some(commit) => changed_definitions(&root, &commit)?,
            None => Vec::new(),
        },
    })
}

fn problems(facts: &Facts) -> Vec<String> {
    let Facts { version, digest, .. } = facts;
    let mut problems = Vec::new();
    if !facts.changed.is_empty() {
        problems.push("the checkout has changes that are not committed".to_owned());
    }
    if version.ends_with("-dev") {
        problems.push(format!(
            "{version} is a development version: set CAPM3_PATCH to the patch number"
        ));
    }
    let section = section(&facts.changelog, version);
    if section.is_none() {
        problems.push(format!("{CHANGES} has no section `## {version}`"));
    }
    if facts.tag != *version {
        problems.push(format!(
            "the images are of {}, and this is {version}: run `make images`",
            facts.tag
        ));
    }
    if facts.folders != [version.clone()] {
        let found = facts.folders.join(", ");
        problems.push(format!(
            "{PROVIDER} has {found}, not {version} alone: empty RELEASE and run `make release`"
        ));
    }
    for (image, file) in &facts.images {
        if !image.ends_with(&format!("@{digest}")) {
            problems.push(format!(
                "{file} installs {image}, not {digest}: run `make release` with the image that `make push` prints"
            ));
        }
    }
    for definition in &facts.definitions {
        if !section.unwrap_or_default().contains(&format!("`{definition}`")) {
            problems.push(format!("{CHANGES} does not name the changed definition `{definition}`"));
        }
    }
    problems
}

/// The text of a version in the list of changes.
fn section<'a>(changelog: &'a str, version: &str) -> Option<&'a str> {
    let sections = changelog.split("\n## ").skip(1);
    let mut own = sections.filter_map(|section| section.split_once('\n'));
    own.find_map(|(title, text)| (title.split_whitespace().next() == Some(version)).then_some(text))
}

/// The commit of the release before. `None`: there is none.
fn previous(page: &str) -> Option<String> {
    let line = page.lines().find_map(|line| line.strip_prefix(PREVIOUS.1))?;
    let commit = line.trim().trim_matches('`');
    commit
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit())
        .then(|| commit.to_owned())
}

fn changed_definitions(root: &Path, commit: &str) -> Result<Vec<String>> {
    let changed = git(root, &["diff", "--name-only", commit, "--", DEFINITIONS])?;
    let names = changed.lines().filter_map(|path| path.rsplit('/').next());
    Ok(names
        .filter_map(|name| name.strip_suffix(".yaml"))
        .map(str::to_owned)
        .collect())
}

fn entries(folder: &Path) -> Result<Vec<String>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("list {}: run `make release` first", folder.display()))?;
    let mut names = entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// The images in the manifests at the top of a folder.
fn images_of(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut images = BTreeMap::new();
    for name in entries(folder)?
        .into_iter()
        .filter(|name| name.ends_with("components.yaml"))
    {
        let path = folder.join(&name);
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let of_lines = text
            .lines()
            .filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix("image: "));
        images.extend(of_lines.map(|image| (image.trim_matches('"').to_owned(), name.clone())));
    }
    Ok(images)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut Facts);

    fn ready() -> Facts {
        Facts {
            version: "v1.15.0".to_owned(),
            changelog:
                "# Changes\n\n## v1.15.0\n\n- `metal3.io_baremetalhosts` has a field more\n\n## v1.14.9\n\nold\n"
                    .to_owned(),
            tag: "v1.15.0".to_owned(),
            digest: "sha256:ab".to_owned(),
            folders: vec!["v1.15.0".to_owned()],
            images: BTreeMap::from([("registry.example/capm3@sha256:ab".to_owned(), "a.yaml".to_owned())]),
            definitions: vec!["metal3.io_baremetalhosts".to_owned()],
            ..Facts::default()
        }
    }

    #[test]
    fn what_keeps_a_release_back_is_named() {
        assert_eq!(problems(&ready()), Vec::<String>::new());
        let cases: [(&str, Change); 7] = [
            ("not committed", |facts| facts.changed = " M README.md".to_owned()),
            ("set CAPM3_PATCH", |facts| "v1.15.0-dev".clone_into(&mut facts.version)),
            ("no section `## v1.15.1`", |facts| {
                "v1.15.1".clone_into(&mut facts.version)
            }),
            ("the images are of v1.14.0", |facts| {
                "v1.14.0".clone_into(&mut facts.tag)
            }),
            ("infrastructure-metal3 has v1.14.0, v1.15.0", |facts| {
                facts.folders.insert(0, "v1.14.0".to_owned())
            }),
            ("a.yaml installs registry.example/capm3@sha256:ab", |facts| {
                "sha256:cd".clone_into(&mut facts.digest)
            }),
            ("the changed definition `metal3.io_hostclaims`", |facts| {
                facts.definitions.push("metal3.io_hostclaims".to_owned());
            }),
        ];
        for (wanted, change) in cases {
            let mut facts = ready();
            change(&mut facts);
            let found = problems(&facts);
            assert!(
                found.iter().any(|problem| problem.contains(wanted)),
                "{wanted}: {found:?}"
            );
        }
    }

    #[test]
    fn note_of_an_older_version_does_not_count() {
        let mut facts = ready();
        facts.changelog = facts
            .changelog
            .replace("- `metal3.io_baremetalhosts` has a field more", "nothing");
        facts.changelog.push_str("`metal3.io_baremetalhosts`\n");
        assert_eq!(problems(&facts).len(), 1, "{:?}", problems(&facts));
    }

    #[test]
    fn release_before_is_a_commit_or_none() {
        assert_eq!(previous("a\nPrevious release: `c0ffee`\n").as_deref(), Some("c0ffee"));
        assert_eq!(previous("Previous release: none yet\n"), None);
    }
}
