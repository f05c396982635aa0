use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use metal3_files::documents;

use super::*;
use crate::images::stand_in;
use crate::run::succeed;

const URL: &str = "https://git.example/metal3/releases/download/v0.0.0";

/// The platforms that Krew runs on.
const PLATFORMS: [(&str, &str); 11] = [
    ("windows", "386"),
    ("windows", "amd64"),
    ("windows", "arm64"),
    ("linux", "386"),
    ("linux", "amd64"),
    ("linux", "arm"),
    ("linux", "arm64"),
    ("linux", "ppc64le"),
    ("darwin", "386"),
    ("darwin", "amd64"),
    ("darwin", "arm64"),
];

/// What Krew requires of a manifest in a file, in addition to its schema.
fn faults(file: &str, manifest: &Value) -> Vec<String> {
    let text = |at: &str| manifest.pointer(at).and_then(Value::as_str).unwrap_or_default();
    let version = text("/spec/version").strip_prefix('v').unwrap_or_default();
    let numbers: Vec<&str> = version
        .split(['-', '+'])
        .next()
        .unwrap_or_default()
        .split('.')
        .collect();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name = file.strip_suffix(".yaml").unwrap_or_default();
    let short = text("/spec/shortDescription");
    let platforms = manifest["spec"]["platforms"].as_array().cloned().unwrap_or_default();
    let mut faults: Vec<String> = [
        (
            text("/apiVersion") == "krew.googlecontainertools.github.com/v1alpha2",
            "apiVersion",
        ),
        (text("/kind") == "Plugin", "kind"),
        (
            !name.is_empty() && name.chars().all(is_word) && text("/metadata/name") == name,
            "name",
        ),
        (
            numbers.len() == 3 && numbers.iter().all(|part| part.parse::<u32>().is_ok()),
            "version",
        ),
        (!short.is_empty() && !short.contains(['\r', '\n']), "shortDescription"),
        (!platforms.is_empty(), "no platforms"),
    ]
    .into_iter()
    .filter(|(is_met, _)| !is_met)
    .map(|(_, what)| what.to_owned())
    .collect();
    let mut selected = Vec::new();
    for platform in &platforms {
        faults.extend(of_platform(platform).into_iter().map(str::to_owned));
        selected.push(chosen(platform));
    }
    let distinct: BTreeSet<_> = selected.iter().flatten().collect();
    if distinct.len() != selected.iter().map(Vec::len).sum::<usize>() {
        faults.push("two platforms for one machine".to_owned());
    }
    faults
}

fn of_platform(platform: &Value) -> Vec<&'static str> {
    let text = |member: &str| platform[member].as_str().unwrap_or_default();
    let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    let labels = platform["selector"]["matchLabels"].as_object();
    let is_known = |name: &String| name == "os" || name == "arch";
    let checks = [
        (!text("uri").is_empty(), "uri"),
        (
            text("sha256").len() == 64 && text("sha256").chars().all(is_hex),
            "sha256",
        ),
        (!text("bin").is_empty(), "bin"),
        (platform["files"].is_null(), "files"),
        (
            labels.is_some_and(|all| !all.is_empty() && all.keys().all(is_known)),
            "selector",
        ),
        (!chosen(platform).is_empty(), "no machine"),
    ];
    checks
        .into_iter()
        .filter(|(is_met, _)| !is_met)
        .map(|(_, what)| what)
        .collect()
}

/// The machines that a platform is for.
fn chosen(platform: &Value) -> Vec<(&'static str, &'static str)> {
    let label = |name: &str| platform["selector"]["matchLabels"][name].as_str();
    let is_chosen = |(os, arch): &(&str, &str)| {
        label("os").is_none_or(|label| label == *os) && label("arch").is_none_or(|label| label == *arch)
    };
    PLATFORMS.into_iter().filter(is_chosen).collect()
}

fn sample() -> Value {
    let sums = [("amd64", "0a".repeat(32)), ("arm64", "1b".repeat(32))];
    manifest("v1.15.0", &sums, URL, "https://git.example/metal3")
}

#[test]
fn krew_accepts_the_manifest() {
    assert_eq!(faults(MANIFEST, &sample()), Vec::<String>::new());
    let cases: [(&str, &str, Value); 14] = [
        ("/apiVersion", "apiVersion", json!("v1")),
        ("/kind", "kind", json!("Plugins")),
        ("/metadata/name", "name", json!("capm3")),
        ("/spec/version", "version", json!("1.15.0")),
        ("/spec/version", "version", json!("v1.15")),
        ("/spec/shortDescription", "shortDescription", json!("")),
        ("/spec/shortDescription", "shortDescription", json!("a\nb")),
        ("/spec/platforms", "no platforms", json!([])),
        ("/spec/platforms/0/uri", "uri", json!("")),
        ("/spec/platforms/0/sha256", "sha256", json!("0A".repeat(32))),
        ("/spec/platforms/0/bin", "bin", json!("")),
        (
            "/spec/platforms/0/selector/matchLabels",
            "selector",
            json!({ "cpu": "x" }),
        ),
        (
            "/spec/platforms/0/selector/matchLabels/arch",
            "no machine",
            json!("riscv64"),
        ),
        (
            "/spec/platforms/0/selector/matchLabels/arch",
            "two platforms",
            json!("arm64"),
        ),
    ];
    for (at, wanted, value) in cases {
        let mut manifest = sample();
        *manifest.pointer_mut(at).unwrap() = value;
        let found = faults(MANIFEST, &manifest);
        assert!(found.iter().any(|fault| fault.contains(wanted)), "{at}: {found:?}");
    }
}

/// A layout with a text as its program, and the folder of the plugin.
fn written(name: &str) -> (PathBuf, Vec<String>) {
    let folder = std::env::temp_dir().join(format!("metal3-{name}-{}", std::process::id()));
    stand_in(&folder.join("images"), "a program").unwrap();
    let release = folder.join("release");
    fs::create_dir_all(&release).unwrap();
    fs::write(release.join(super::name("v0.0.1", "amd64")), "of another version").unwrap();
    let paths = write(&release, &folder.join("images"), &Options::at(&format!("{URL}/"))).unwrap();
    (folder, paths)
}

#[test]
fn archive_has_the_program_of_the_image_and_the_licences() {
    let (folder, paths) = written("archive");
    let archive = folder.join("release/kubectl-metal3_v0.0.0_linux_amd64.tar.gz");
    assert_eq!(
        archives(&folder.join("release")).unwrap().len(),
        1,
        "the archive of another version is gone"
    );
    assert_eq!(
        paths,
        [archive.clone(), folder.join("release/metal3.yaml")].map(|path| path.display().to_string())
    );
    let tar = |words: &[&str]| succeed(Command::new("tar").args(words).arg("-f").arg(&archive)).unwrap();
    let listed = tar(&["--numeric-owner", "-tvz"]);
    let modes: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(modes, ["-r-xr-xr-x", "-r--r--r--", "-r--r--r--"], "{listed}");
    let extracted = folder.join("extracted");
    fs::create_dir_all(&extracted).unwrap();
    tar(&["-xz", "-C", extracted.to_str().unwrap()]);
    assert_eq!(documents::text(&extracted.join("kubectl-metal3")).unwrap(), "a program");
    let root = workspace::root().unwrap();
    let text = |name: &str| documents::text(&extracted.join(name)).unwrap();
    assert_eq!(text("LICENSE"), documents::text(&root.join("LICENSE")).unwrap());
    assert_eq!(text("NOTICES.txt"), notices::of(&root).unwrap());
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn manifest_names_the_written_archive_with_its_sum() {
    let (folder, _) = written("manifest");
    let path = folder.join("release/metal3.yaml");
    let manifest = documents::parse(&documents::text(&path).unwrap(), &path)
        .unwrap()
        .remove(0)
        .value;
    assert_eq!(faults(MANIFEST, &manifest), Vec::<String>::new());
    let [platform] = manifest["spec"]["platforms"].as_array().unwrap().as_slice() else {
        panic!("{manifest}");
    };
    let name = "kubectl-metal3_v0.0.0_linux_amd64.tar.gz";
    assert_eq!(platform["uri"], format!("{URL}/{name}"));
    let content = fs::read(folder.join("release").join(name)).unwrap();
    assert_eq!(
        format!("sha256:{}", platform["sha256"].as_str().unwrap()),
        sha256(&content)
    );
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn url_of_the_archives_is_required() {
    let folder = std::env::temp_dir();
    for url in ["", "http://git.example"] {
        let error = run(&folder, &folder, &Options::at(url)).unwrap_err().to_string();
        assert!(error.contains("set PLUGIN_URL"), "{error}");
    }
}
