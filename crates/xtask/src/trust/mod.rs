//! Signatures of a release with a key of its owner, and their verification without a network but that of the registry.
//!
//! One signature covers all files: that of `SHA256SUMS`, which names each with its digest. An image in a registry has its
//! own signature, and two attestations: how it was built, and of which packages.

mod attested;
mod check;
mod cosign;
mod provenance;
mod ready;
mod sums;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use metal3_files::workspace;

use self::cosign::{Cosign, Kind};
use crate::images::{named, pushed, read_whole};
use crate::run::git;
pub(crate) use check::{Options, run as check};
pub(crate) use ready::run as ready;
pub(crate) use sums::run as sums;

const SIGNATURE: &str = "SHA256SUMS.sig";

/// What is signed or verified.
#[derive(Args)]
pub(crate) struct Release {
    /// Folder of the release
    folder: PathBuf,
    /// Folder of the image layout
    #[arg(long)]
    images: PathBuf,
    /// Registry and name of the images, `HOST/NAME`; without it only files
    #[arg(long, default_value = "")]
    registry: String,
    /// The program `cosign`
    #[arg(long)]
    cosign: PathBuf,
    /// The private key to sign with, or the public one to verify with
    #[arg(long)]
    key: PathBuf,
}

/// What the provenance names.
#[derive(Args)]
pub(crate) struct Origin {
    /// URL of the source
    #[arg(long)]
    source: String,
    /// URL that names who builds
    #[arg(long)]
    builder: String,
}

impl Release {
    fn cosign(&self) -> Cosign<'_> {
        Cosign {
            program: &self.cosign,
            password: None,
        }
    }
}

/// Signs a release of a clean checkout, and its images.
pub(crate) fn sign(release: &Release, origin: &Origin) -> Result<bool> {
    let root = workspace::root()?;
    ensure!(
        git(&root, &["status", "--porcelain"])?.is_empty(),
        "the checkout has changes that are not committed: a provenance would name a commit without them"
    );
    ensure!(
        !origin.source.is_empty() && !origin.builder.is_empty(),
        "set SOURCE to the URL of the source, and BUILDER to one that names who builds"
    );
    sign_files(release.cosign(), release, &root, origin)?;
    if release.registry.is_empty() {
        println!("set REGISTRY to sign the images");
        return Ok(true);
    }
    let image = pushed(&release.images, &release.registry)?;
    sign_image(release.cosign(), release, &image)?;
    println!("{image}: signed and attested");
    Ok(true)
}

fn sign_files(cosign: Cosign<'_>, release: &Release, root: &Path, origin: &Origin) -> Result<()> {
    let predicate = provenance::of(root, &origin.source, &origin.builder)?;
    write(
        &release.folder.join(Kind::Provenance.file()),
        format!("{predicate:#}\n"),
    )?;
    let sums = sums::of(&release.folder)?;
    let path = release.folder.join(sums::FILE);
    write(&path, sums)?;
    cosign.sign_file(&release.key, &path, &release.folder.join(SIGNATURE))?;
    println!("{}: signed", path.display());
    Ok(())
}

fn sign_image(cosign: Cosign<'_>, release: &Release, image: &str) -> Result<()> {
    cosign.sign_image(&release.key, image)?;
    Kind::ALL
        .into_iter()
        .try_for_each(|kind| cosign.attest(&release.key, image, kind, &release.folder.join(kind.file())))
}

/// Verifies the files of a release and, in the registry, the image that its manifests install.
pub(crate) fn verify(release: &Release) -> Result<bool> {
    verify_files(release.cosign(), release)?;
    if release.registry.is_empty() {
        println!("set REGISTRY to verify the images");
        return Ok(true);
    }
    let (_, digest) = named(&release.images)?;
    let image = format!("{}@{digest}", release.registry);
    verify_image(release.cosign(), release, &image)?;
    Ok(true)
}

fn verify_files(cosign: Cosign<'_>, release: &Release) -> Result<()> {
    let path = release.folder.join(sums::FILE);
    cosign
        .verify_file(&release.key, &path, &release.folder.join(SIGNATURE))
        .with_context(|| format!("the signature of {}", path.display()))?;
    let count = sums::verify(&release.folder)?;
    println!("{}: {count} files are as signed", release.folder.display());
    Ok(())
}

fn verify_image(cosign: Cosign<'_>, release: &Release, image: &str) -> Result<()> {
    cosign
        .verify_image(&release.key, image)
        .with_context(|| format!("the signature of {image}"))?;
    // cosign compares the digest that was signed, and reads none of the content.
    read_whole(image, &release.images.with_extension("read"))?;
    println!("{image}: as signed");
    for kind in Kind::ALL {
        let statement = cosign
            .verify_attestation(&release.key, image, kind)
            .with_context(|| format!("{} of {image}", kind.file()))?;
        let file = release.folder.join(kind.file());
        let attested = attested::predicates(&statement)?;
        let own = fs::read(&file).with_context(|| format!("read {}", file.display()))?;
        ensure!(
            attested.contains(&serde_json::from_slice(&own)?),
            "{image} is attested with another {}",
            kind.file()
        );
        println!("{image}: {} is as attested", kind.file());
    }
    Ok(())
}

fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    fs::write(path, content).with_context(|| format!("write {}", path.display()))
}
