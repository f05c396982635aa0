//! `trust-check`: a release is signed with a key made for it, verified, and refused after each change of a byte, a file
//! or a key.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;
use metal3_files::workspace;

use super::cosign::{Cosign, Kind};
use super::{Origin, Release, SIGNATURE, sign_files, sign_image, sums, verify_files, verify_image, write};
use crate::images::{Registry, named, pushed};
use crate::run::succeed;

#[derive(Args)]
pub(crate) struct Options {
    /// Folder of the release
    folder: PathBuf,
    /// Folder of the image layout
    #[arg(long)]
    images: PathBuf,
    /// The program `cosign`
    #[arg(long)]
    cosign: PathBuf,
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    let work = options.images.with_extension("trust");
    if work.exists() {
        fs::remove_dir_all(&work).with_context(|| format!("remove {}", work.display()))?;
    }
    let registry = Registry::start(&work.join("registry"))?;
    let outcome = round(options, &work, &registry);
    drop(registry);
    fs::remove_dir_all(&work).with_context(|| format!("remove {}", work.display()))?;
    outcome.map(|()| true)
}

fn round(options: &Options, work: &Path, registry: &Registry) -> Result<()> {
    let cosign = Cosign {
        program: &options.cosign,
        password: Some(""),
    };
    let own = work.join("own");
    cosign.make_key(&own)?;
    let release = |key: PathBuf| Release {
        folder: work.join("release"),
        images: options.images.clone(),
        registry: format!("127.0.0.1:{}/metal3/capm3", registry.port),
        cosign: options.cosign.clone(),
        key,
    };
    let (signing, verifying) = (release(own.with_extension("key")), release(own.with_extension("pub")));
    succeed(Command::new("cp").arg("-r").arg(&options.folder).arg(&signing.folder))?;
    let origin = Origin {
        source: "https://source.example/metal3".to_owned(),
        builder: "https://builder.example/check".to_owned(),
    };
    sign_files(cosign, &signing, &workspace::root()?, &origin)?;
    let image = pushed(&options.images, &signing.registry)?;
    sign_image(cosign, &signing, &image)?;
    verify_files(cosign, &verifying)?;
    verify_image(cosign, &verifying, &image)?;
    changed_files(cosign, &verifying, &image)?;
    changed_image(cosign, &verifying, &image, work)?;
    let other = work.join("other");
    cosign.make_key(&other)?;
    let stranger = release(other.with_extension("pub"));
    rejected(verify_files(cosign, &stranger), "a release signed with another key")?;
    rejected(
        verify_image(cosign, &stranger, &image),
        "an image signed with another key",
    )?;
    verify_files(cosign, &verifying)?;
    verify_image(cosign, &verifying, &image)
}

fn changed_files(cosign: Cosign<'_>, release: &Release, image: &str) -> Result<()> {
    let files = || verify_files(cosign, release);
    let of_image = || verify_image(cosign, release, image);
    let packages = release.folder.join(Kind::Packages.file());
    with_change(&packages, &files, "a file with a changed byte")?;
    with_change(&packages, &of_image, "a list of packages that is not the image's")?;
    with_change(
        &release.folder.join(sums::FILE),
        &files,
        "a list of files with a changed byte",
    )?;
    with_change(
        &release.folder.join(SIGNATURE),
        &files,
        "a signature with a changed byte",
    )?;
    let added = release.folder.join("added.yaml");
    write(&added, "")?;
    let outcome = files();
    fs::remove_file(&added).with_context(|| format!("remove {}", added.display()))?;
    rejected(outcome, "a file that is not named")
}

/// The registry serves other bytes.
fn changed_image(cosign: Cosign<'_>, release: &Release, image: &str, work: &Path) -> Result<()> {
    let of_image = || verify_image(cosign, release, image);
    let (_, index) = named(&release.images)?;
    with_change(&stored(work, &index), &of_image, "an index with a changed byte")?;
    let layer = largest(&release.images.join("blobs/sha256"))?;
    with_change(&stored(work, &layer), &of_image, "a layer with a changed byte")
}

/// Changes a byte of a file, which must then be rejected, and restores it.
fn with_change(path: &Path, verify: &dyn Fn() -> Result<()>, what: &str) -> Result<()> {
    let content = fs::read(path).with_context(|| format!("read {}", path.display()))?;
    let mut changed = content.clone();
    // The last byte of a text may be a newline that has no meaning.
    let middle = changed.len() / 2;
    *changed
        .get_mut(middle)
        .with_context(|| format!("{} is empty", path.display()))? ^= 1;
    write(path, changed)?;
    let outcome = verify();
    write(path, content)?;
    rejected(outcome, what)
}

fn rejected(outcome: Result<()>, what: &str) -> Result<()> {
    match outcome {
        Ok(()) => bail!("{what} was accepted"),
        Err(_) => println!("{what} is rejected"),
    }
    Ok(())
}

/// The digest of the largest blob: the layer.
fn largest(blobs: &Path) -> Result<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(blobs).with_context(|| format!("list {}", blobs.display()))? {
        let entry = entry?;
        found.push((
            entry.metadata()?.len(),
            entry.file_name().to_string_lossy().into_owned(),
        ));
    }
    let (_, digest) = found.into_iter().max().context("the layout has no blobs")?;
    Ok(digest)
}

/// Where the registry stores a content.
fn stored(work: &Path, digest: &str) -> PathBuf {
    let hex = digest.trim_start_matches("sha256:");
    let start = hex.get(..2).unwrap_or_default();
    work.join("registry/data/docker/registry/v2/blobs/sha256")
        .join(start)
        .join(hex)
        .join("data")
}
