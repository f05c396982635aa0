//! `release-check`: what keeps the written files from being released.
//!
//! All files are written again, from this commit and the layout of the images, and compared: a release has no other bytes and no
//! further file, such as the login of a user or an archive of an earlier build.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use metal3_files::{documents, workspace};
use metal3_flags::version::version;
use serde_json::Value;

use super::cosign::Kind;
use super::installed::{self, Installed};
use super::{CHARTS, sums};
use crate::images::{NO_SOURCE, Written};
use crate::release::chart::package;
use crate::release::{self, chart, clusterctl};
use crate::run::{changes, git, next_to};
use crate::{notices, plugin};

/// The architectures of a release, in the order of the layout.
const ARCHITECTURES: [&str; 2] = ["amd64", "arm64"];
const CHANGES: &str = "CHANGELOG.md";
const DEFINITIONS: &str = "manifests/crds";
/// The line of the page on releases that names the commit of the release before.
const PREVIOUS: (&str, &str) = ("docs/releasing.md", "Previous release: ");
/// The line of the commit whose program is upgraded and rolled back, in the same page: that of the release before, once there is one.
const UPGRADED: &str = "Upgraded from: ";
/// What the first line says before there is a release.
const NONE_YET: &str = "none yet";

/// What is compared.
#[derive(Clone, Debug, Default)]
struct Facts {
    /// Files of the checkout that differ from the commit.
    changed: String,
    /// The commit of the checkout.
    head: String,
    version: String,
    /// The version that is to be released; empty if none was named.
    wanted: String,
    changelog: String,
    /// Tag, digest, commit and source of the images.
    tag: String,
    digest: String,
    revision: String,
    source: String,
    /// The architectures of the images.
    architectures: Vec<String>,
    /// The versions of each part of the folder: what clusterctl finds, the charts, the plugin.
    parts: BTreeMap<String, Vec<String>>,
    /// What is wrong with the archives of the charts.
    packaged: Option<String>,
    /// Whether the licences in the folder are those of the packages.
    has_notices: bool,
    /// Archives of the plugin that should be there, and that are.
    archives: (Vec<String>, Vec<String>),
    /// Where Krew downloads an archive.
    url: Option<String>,
    /// Files that are not as this commit writes them, in words.
    others: Vec<String>,
    /// Images in the manifests.
    installed: Installed,
    /// The commit of the release before.
    previous: Option<String>,
    /// The commit from which a test upgrades.
    upgraded: Option<String>,
    /// Definitions that changed since the release before.
    definitions: Vec<String>,
}

/// Prints what is missing. `false` when something is.
pub(crate) fn run(folder: &Path, images: &Path, wanted: &str) -> Result<bool> {
    let problems = problems(&facts(folder, images, wanted)?);
    for problem in &problems {
        println!("{problem}");
    }
    if problems.is_empty() {
        println!("{}: can be released as {}", folder.display(), version());
    }
    Ok(problems.is_empty())
}

fn facts(folder: &Path, images: &Path, wanted: &str) -> Result<Facts> {
    let root = workspace::root()?;
    let written = Written::read(images)?;
    let page = documents::text(&root.join(PREVIOUS.0))?;
    let previous = commit(&page, PREVIOUS.1)?;
    let archives = written.architectures.iter().map(|one| plugin::name(&version(), one));
    let installed = installed::of(folder)?;
    Ok(Facts {
        changed: changes(&root)?,
        head: git(&root, &["rev-parse", "HEAD"])?,
        version: version(),
        wanted: wanted.to_owned(),
        changelog: documents::text(&root.join(CHANGES))?,
        parts: parts(folder)?,
        archives: (archives.collect(), plugin::archives(folder)?),
        url: plugin::url(folder)?,
        packaged: package::written(&folder.join(CHARTS))
            .err()
            .map(|error| format!("{error:#}")),
        has_notices: fs::read_to_string(folder.join(notices::FILE)).ok() == Some(notices::of(&root)?),
        others: differing(folder, images, &installed)?,
        installed,
        definitions: match &previous {
            Some(commit) => changed_definitions(&root, commit)?,
            None => Vec::new(),
        },
        previous,
        upgraded: commit(&page, UPGRADED)?,
        tag: written.tag,
        digest: written.digest,
        revision: written.revision,
        source: written.source,
        architectures: written.architectures,
    })
}

fn problems(facts: &Facts) -> Vec<String> {
    let mut problems = of_version(facts);
    problems.extend(of_images(facts));
    problems.extend(of_parts(facts));
    problems.extend(of_changes(facts));
    problems
}

fn of_version(facts: &Facts) -> Vec<String> {
    let Facts { version, wanted, .. } = facts;
    let mut problems = Vec::new();
    if !facts.changed.is_empty() {
        problems.push(format!(
            "the checkout has changes that are not committed: {}",
            facts.changed
        ));
    }
    if version.ends_with("-dev") {
        problems.push(format!(
            "{version} is a development version: set CAPM3_PATCH to the patch number"
        ));
    }
    if !wanted.is_empty() && wanted != version {
        problems.push(format!(
            "this is {version}, not {wanted}: release a commit of that series"
        ));
    }
    problems
}

fn of_images(facts: &Facts) -> Vec<String> {
    let Facts {
        version, digest, head, ..
    } = facts;
    let mut problems = Vec::new();
    if facts.tag != *version {
        problems.push(format!(
            "the images are of {}, and this is {version}: run `make images`",
            facts.tag
        ));
    }
    if facts.revision != *head {
        problems.push(format!(
            "the images were built from {}, and this is {head}: run `make images`",
            facts.revision
        ));
    }
    if facts.architectures != ARCHITECTURES {
        problems.push(format!(
            "the images are for [{}], not for [{}]: run `make images` without ARCHS",
            facts.architectures.join(", "),
            ARCHITECTURES.join(", ")
        ));
    }
    if facts.source == NO_SOURCE {
        problems.push("the images name no source: set SOURCE to its URL, and run `make images`".to_owned());
    }
    if facts.installed.is_empty() {
        problems.push("no manifest installs an image: run `make release chart`".to_owned());
    }
    for (image, files) in &facts.installed {
        if !image.ends_with(&format!("@{digest}")) {
            let files: Vec<&str> = files.iter().map(String::as_str).collect();
            problems.push(format!(
                "{} installs {image}, not {digest}: run `make release chart` with the image that `make image` prints",
                files.join(", ")
            ));
        }
    }
    problems
}

fn of_parts(facts: &Facts) -> Vec<String> {
    let Facts { version, .. } = facts;
    let stale = facts.parts.iter().filter(|(_, found)| **found != [version.clone()]);
    let mut problems: Vec<String> = stale
        .map(|(part, found)| {
            let found = if found.is_empty() {
                "nothing".to_owned()
            } else {
                found.join(", ")
            };
            format!("{part} has {found}, not {version} alone: empty RELEASE and run `make release chart plugin`")
        })
        .collect();
    problems.extend(facts.packaged.clone());
    if !facts.has_notices {
        problems.push(format!(
            "{} does not have the licences of this commit: run `make release`",
            notices::FILE
        ));
    }
    let (wanted, found) = &facts.archives;
    if wanted != found {
        problems.push(format!(
            "the archives of the plugin are [{}], not [{}]: run `make plugin`",
            found.join(", "),
            wanted.join(", ")
        ));
    }
    if let Some(url) = facts
        .url
        .as_deref()
        .filter(|url| !url.contains(&format!("/{version}/")))
    {
        problems.push(format!(
            "{} downloads {url}, and the files of {version} are below another folder: set PLUGIN_URL to a URL with /{version}",
            plugin::MANIFEST
        ));
    }
    let others = facts.others.iter();
    problems.extend(others.map(|other| format!("{other}: empty RELEASE and run `make release chart plugin`")));
    problems
}

fn of_changes(facts: &Facts) -> Vec<String> {
    let mut problems = Vec::new();
    let section = section(&facts.changelog, &facts.version);
    if section.is_none() {
        problems.push(format!("{CHANGES} has no section `## {}`", facts.version));
    }
    let released = facts.version.trim_end_matches("-dev");
    let mut older = titles(&facts.changelog).filter(|title| *title != released);
    if let (None, Some(older)) = (&facts.previous, older.next()) {
        problems.push(format!(
            "{CHANGES} has {older}, and {} says `{}{NONE_YET}`: write the commit of the release before there",
            PREVIOUS.0, PREVIOUS.1
        ));
    }
    if let Some(previous) = &facts.previous
        && !facts
            .upgraded
            .as_deref()
            .is_some_and(|upgraded| is_same(upgraded, previous))
    {
        problems.push(format!(
            "{} says `{}{previous}`, and `{UPGRADED}{}`: write the commit of the release before there, too, so that `make e2e-previous` upgrades from it",
            PREVIOUS.0,
            PREVIOUS.1,
            facts.upgraded.as_deref().unwrap_or(NONE_YET)
        ));
    }
    for definition in &facts.definitions {
        if !section.unwrap_or_default().contains(&format!("`{definition}`")) {
            problems.push(format!("{CHANGES} does not name the changed definition `{definition}`"));
        }
    }
    problems
}

/// Versions and texts in the list of changes.
fn sections(changelog: &str) -> impl Iterator<Item = (&str, &str)> {
    let sections = changelog.split("\n## ").skip(1);
    let parted = sections.filter_map(|section| section.split_once('\n'));
    parted.map(|(title, text)| (title.split_whitespace().next().unwrap_or_default(), text))
}

fn titles(changelog: &str) -> impl Iterator<Item = &str> {
    sections(changelog).map(|(title, _)| title)
}

/// The text of a version in the list of changes.
fn section<'a>(changelog: &'a str, version: &str) -> Option<&'a str> {
    sections(changelog).find_map(|(title, text)| (title == version).then_some(text))
}

/// Whether two names, of which either may be shortened, are those of one commit.
fn is_same(one: &str, other: &str) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// The commit in the line that begins like this. `None`: the page says that there is none.
fn commit(page: &str, start: &str) -> Result<Option<String>> {
    let path = PREVIOUS.0;
    let line = page.lines().find_map(|line| line.strip_prefix(start));
    let line = line.with_context(|| format!("{path} has no line `{start}`"))?.trim();
    if line == NONE_YET {
        return Ok(None);
    }
    let commit = line.trim_matches('`');
    let is_commit = (7..=64).contains(&commit.len()) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_commit {
        bail!("`{start}{line}` in {path} is neither a commit nor `{NONE_YET}`");
    }
    Ok(Some(commit.to_owned()))
}

fn changed_definitions(root: &Path, commit: &str) -> Result<Vec<String>> {
    let changed = git(
        root,
        &["diff", "--name-only", "--no-renames", commit, "--", DEFINITIONS],
    )?;
    Ok(changed.lines().filter_map(definition).map(str::to_owned).collect())
}

/// The definition in a file. The list of the files is none.
fn definition(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?.strip_suffix(".yaml")?;
    (name != "kustomization").then_some(name)
}

/// The versions of each part of a release. A part that is missing has none.
fn parts(folder: &Path) -> Result<BTreeMap<String, Vec<String>>> {
    let mut parts = BTreeMap::new();
    for provider in clusterctl::folders() {
        parts.insert(provider.to_owned(), entries(&folder.join(provider))?);
    }
    let charts = chart::CHARTS.map(|chart| (format!("{CHARTS}/{chart}/Chart.yaml"), "/appVersion"));
    let plugin = (plugin::MANIFEST.to_owned(), "/spec/version");
    for (path, at) in charts.into_iter().chain([plugin]) {
        let file = folder.join(&path);
        let documents = match file.is_file() {
            true => documents::parse(&documents::text(&file)?, &file)?,
            false => Vec::new(),
        };
        let versions = documents.iter().filter_map(|document| document.value.pointer(at));
        parts.insert(path, versions.filter_map(Value::as_str).map(str::to_owned).collect());
    }
    Ok(parts)
}

/// Files that are not as this commit writes them for the image that they install. Those that `sbom` and `sign` write again are left out,
/// and so are all where several images are installed: there is none to write them for.
pub(super) fn differing(folder: &Path, images: &Path, installed: &Installed) -> Result<Vec<String>> {
    let mut named = installed.keys();
    let (Some(image), None) = (named.next(), named.next()) else {
        return Ok(Vec::new());
    };
    let again = next_to(folder, "again");
    remove(&again)?;
    let wanted = release::write(&again, image)
        .and_then(|_| chart::write(&again.join(CHARTS), image))
        .and_then(|()| plugin::again(&again, images, folder))
        .and_then(|()| sums::digests(&again));
    remove(&again)?;
    let mut found = sums::digests(folder)?;
    for later in Kind::ALL {
        found.remove(&format!("./{}", later.file()));
    }
    Ok(sums::differences(&wanted?, &found, "is no file of a release"))
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("remove {}", folder.display()))
        }
        _ => Ok(()),
    }
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

#[cfg(test)]
mod tests;
