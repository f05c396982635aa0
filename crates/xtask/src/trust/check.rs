//! `trust-check`: a release is signed with a key made for it, verified, and refused after each change that somebody
//! between its owner and its user could make.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use metal3_files::workspace;

use super::cosign::{Cosign, Kind};
use super::{Origin, Release, SIGNATURE, sign_files, sign_image, sums, verify_files, verify_image, write};
use crate::images::{Registry, named, pushed};
use crate::run::succeed;

/// A user must not wait longer for a verification.
const LIMIT: Duration = Duration::from_mins(1);

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
    let (own, other) = (work.join("own"), work.join("other"));
    cosign.make_key(&own)?;
    cosign.make_key(&other)?;
    let release = |key: PathBuf| Release {
        folder: work.join("release"),
        images: options.images.clone(),
        registry: format!("127.0.0.1:{}/metal3/capm3", registry.port),
        cosign: options.cosign.clone(),
        key,
    };
    succeed(
        std::process::Command::new("cp")
            .arg("-r")
            .arg(&options.folder)
            .arg(work.join("release")),
    )?;
    let origin = Origin {
        source: "https://source.example/metal3".to_owned(),
        builder: "https://builder.example/check".to_owned(),
    };
    let (signing, verifying) = (release(own.with_extension("key")), release(own.with_extension("pub")));
    sign_files(cosign, &signing, &workspace::root()?, &origin)?;
    let image = pushed(&options.images, &signing.registry)?;
    sign_image(cosign, &signing, &image)?;
    let begun = Instant::now();
    verify_files(cosign, &verifying)?;
    verify_image(cosign, &verifying, &image)?;
    let took = begun.elapsed();
    ensure!(took < LIMIT, "verified in {took:?}");
    println!("verified in {:.1} s", took.as_secs_f64());

    let files = || verify_files(cosign, &verifying);
    let of_image = || verify_image(cosign, &verifying, &image);
    let folder = &verifying.folder;
    let (list, signature) = (folder.join(sums::FILE), folder.join(SIGNATURE));
    with_change(
        &folder.join(Kind::Packages.file()),
        &files,
        "a file with a changed byte",
    )?;
    with_change(
        &folder.join(Kind::Packages.file()),
        &of_image,
        "packages that are not those of the image",
    )?;
    with_change(&list, &files, "a list with a changed byte")?;
    with_change(&signature, &files, "a changed signature")?;
    let added = folder.join("added.yaml");
    write(&added, "")?;
    rejected(files(), "a file that is not named")?;
    fs::remove_file(&added)?;
    let stranger = release(other.with_extension("pub"));
    rejected(verify_files(cosign, &stranger), "files signed with another key")?;
    rejected(
        verify_image(cosign, &stranger, &image),
        "an image signed with another key",
    )?;
    let (_, digest) = named(&options.images)?;
    with_change(&stored(work, &digest), &of_image, "an image with a changed byte")?;
    files()?;
    of_image()
}

/// Changes the last byte of a file, which must then be rejected, and restores it.
fn with_change(path: &Path, verify: &dyn Fn() -> Result<()>, what: &str) -> Result<()> {
    let content = fs::read(path).with_context(|| format!("read {}", path.display()))?;
    let mut changed = content.clone();
    // The last byte of a text may be a newline that nobody reads.
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

/// Where the registry stores a content.
fn stored(work: &Path, digest: &str) -> PathBuf {
    let hex = digest.trim_start_matches("sha256:");
    let start = hex.get(..2).unwrap_or_default();
    work.join("registry/data/docker/registry/v2/blobs/sha256")
        .join(start)
        .join(hex)
        .join("data")
}
