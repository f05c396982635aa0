//! Checks of a layout: a second build in another folder, and what `skopeo`, `umoci` and the program itself print.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use metal3_files::{documents, workspace};
use serde_json::Value;

use super::layout::{ENTRYPOINT, Facts, Layout, USER};
use super::program::Architecture;
use super::{Options, audit, layout_of, start};
use crate::run::{next_to, succeed};
use crate::{notices, sbom, tools};

/// Builds a clone of the checkout in another folder. The error names the files that differ.
pub(super) fn again(root: &Path, first: &Layout, options: &Options) -> Result<()> {
    let folder = scratch(root, options, "again")?;
    let clone = folder.join("another/checkout");
    fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    succeed(
        Command::new("git")
            .args(["clone", "--quiet", "--local"])
            .arg(root)
            .arg(&clone),
    )?;
    let second = layout_of(&clone, &folder.join("output"), options)?;
    fs::remove_dir_all(&folder).with_context(|| format!("remove {}", folder.display()))?;
    let Some(second) = second else {
        bail!("the clone was not built")
    };
    let differ = first
        .files
        .iter()
        .filter(|(path, content)| second.files.get(*path) != Some(*content));
    let differ: Vec<String> = differ.map(|(path, _)| path.display().to_string()).collect();
    ensure!(
        differ.is_empty(),
        "built in another folder, other files: {}",
        differ.join(", ")
    );
    println!("built in two folders: {} equal files", first.files.len());
    Ok(())
}

/// An empty folder of the compiler's output.
fn scratch(root: &Path, options: &Options, name: &str) -> Result<std::path::PathBuf> {
    let folder = root.join(&options.compiled.target).join("images-check").join(name);
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("remove {}", folder.display()))
        }
        _ => Ok(folder),
    }
}

/// Has `umoci`, which reads no index, unpack the image of an architecture; returns the path of its entry point.
fn unpacked(folder: &Path, scratch: &Path, architecture: &Architecture, facts: &Facts) -> Result<PathBuf> {
    tools::install("umoci", &["umoci"])?;
    let (single, bundle) = (scratch.join("image"), scratch.join("bundle"));
    fs::create_dir_all(scratch).with_context(|| format!("create {}", scratch.display()))?;
    let image = |layout: &Path| format!("{}:{}", layout.display(), facts.version);
    succeed(
        Command::new("skopeo")
            .args([
                "--override-os",
                "linux",
                "--override-arch",
                architecture.name,
                "copy",
                "--quiet",
            ])
            .args([format!("oci:{}", image(folder)), format!("oci:{}", image(&single))]),
    )?;
    succeed(
        Command::new("umoci")
            .args(["unpack", "--rootless", "--image", &image(&single)])
            .arg(&bundle),
    )?;
    entry_point(&bundle)
}

/// The path of the entry point of a bundle, which has no other file than that and the licences.
fn entry_point(bundle: &Path) -> Result<PathBuf> {
    let settings = bundle.join("config.json");
    let text = fs::read(&settings).with_context(|| format!("read {}", settings.display()))?;
    let settings: Value = serde_json::from_slice(&text).context("read the settings of the bundle")?;
    let started = settings.pointer("/process/args/0").and_then(Value::as_str);
    ensure!(started == Some(ENTRYPOINT), "umoci reads {started:?} as entry point");
    let root = bundle.join("rootfs");
    let mut files = Vec::new();
    for file in fs::read_dir(&root).with_context(|| format!("list {}", root.display()))? {
        files.push(file?.file_name().to_string_lossy().into_owned());
    }
    files.sort();
    let program = ENTRYPOINT.trim_start_matches('/');
    ensure!(
        files == [notices::FILE, program],
        "umoci unpacks {}, not {} and {program}",
        files.join(", "),
        notices::FILE
    );
    Ok(root.join(program))
}

/// Compares the packages that an unpacked program lists, and the licences next to it, with those of the lock file.
fn compare(program: &Path, architecture: &Architecture) -> Result<()> {
    let root = workspace::root()?;
    ensure!(
        audit::read(program, architecture)? == sbom::audited(&root, architecture.triple)?,
        "the program lists other packages than those of the lock file"
    );
    ensure!(
        documents::text(&program.with_file_name(notices::FILE))? == notices::of(&root)?,
        "the image has other licences than those of the packages"
    );
    Ok(())
}

/// `skopeo` reads user, entry point, labels and layer of an architecture; the program in the layer starts.
pub(super) fn judge(folder: &Path, architecture: &Architecture, facts: &Facts) -> Result<()> {
    tools::install("skopeo", &["skopeo"])?;
    let inspect = |arguments: &[&str]| -> Result<Value> {
        let image = format!("oci:{}:{}", folder.display(), facts.version);
        let mut skopeo = Command::new("skopeo");
        skopeo.args([
            "--override-os",
            "linux",
            "--override-arch",
            architecture.name,
            "inspect",
        ]);
        let text = succeed(skopeo.args(arguments).arg(image))?;
        serde_json::from_str(&text).context("read skopeo's answer")
    };
    let image = inspect(&[])?;
    let config = inspect(&["--config"])?;
    for (document, at, wanted) in [
        (&image, "/Architecture", architecture.name),
        (&config, "/architecture", architecture.name),
        (&config, "/config/User", USER),
        (&config, "/config/Entrypoint/0", ENTRYPOINT),
        (&image, "/Labels/org.opencontainers.image.revision", &facts.revision),
        (&image, "/Labels/org.opencontainers.image.version", &facts.version),
        (&image, "/Labels/org.opencontainers.image.source", &facts.source),
        (&image, "/Labels/org.opencontainers.image.licenses", "Apache-2.0"),
    ] {
        let found = document.pointer(at).and_then(Value::as_str);
        ensure!(found == Some(wanted), "skopeo reads {found:?} at {at}, not {wanted:?}");
    }
    let layers = image.get("Layers").and_then(Value::as_array).map_or(0, Vec::len);
    ensure!(layers == 1, "skopeo reads {layers} layers, not one");
    let scratch = next_to(folder, architecture.name);
    let printed = unpacked(folder, &scratch, architecture, facts).and_then(|program| {
        compare(&program, architecture)?;
        let printed = start(&program, architecture, "--version")?;
        Ok((printed, start(&program, architecture, "--help")?))
    });
    if scratch.exists() {
        fs::remove_dir_all(&scratch).with_context(|| format!("remove {}", scratch.display()))?;
    }
    let (printed, help) = printed?;
    ensure!(
        printed.trim() == format!("capm3 {}", facts.version),
        "the program prints `{}`",
        printed.trim()
    );
    ensure!(help.contains("--controllers"), "the program does not print its flags");
    println!(
        "linux/{}: skopeo reads it, umoci unpacks it, it lists its packages, has their licences, and starts: {}",
        architecture.name,
        printed.trim()
    );
    Ok(())
}
