//! What keeps a release back, its signatures with a key of its owner, and their verification without a network but that of
//! the registry.
//!
//! One signature covers all files: that of `SHA256SUMS`, which names each with its digest. The manifests name an image by
//! its digest, which has its own signature in the registry, and two attestations: how it was built, and of which packages.

mod attested;
mod check;
mod cosign;
pub(crate) mod installed;
mod provenance;
mod ready;
pub(crate) mod sums;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use metal3_files::workspace;
use serde_json::Value;

use self::cosign::{Cosign, Kind};
use self::provenance::Built;
use crate::images::{Written, pushed, read_whole, require_unreleased};
use crate::release::chart::push;
use crate::run::changes;
pub(crate) use check::{Options, run as check};
pub(crate) use ready::run as ready;
pub(crate) use sums::run as sums;

/// The folder of the charts in a release.
const CHARTS: &str = "charts";
/// That of the sums.
pub(crate) const SIGNATURE: &str = "SHA256SUMS.sig";

/// What is signed or verified.
#[derive(Args)]
pub(crate) struct Release {
    /// Folder of the release
    folder: PathBuf,
    /// `HOST/NAME` of a registry that has a copy of the image, for verification alone; by default that of the manifests
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

/// The files of a folder that are not as this commit writes them for these images, in words.
pub(crate) fn others(folder: &Path, images: &Path) -> Result<Vec<String>> {
    ready::differing(folder, images, &installed::of(folder)?)
}

/// Signs a release of a clean checkout, and the image that its manifests install, which is that of the layout in `images`.
pub(crate) fn sign(release: &Release, images: &Path, origin: &Origin) -> Result<bool> {
    let root = workspace::root()?;
    ensure!(
        changes(&root)?.is_empty(),
        "the checkout has changes that are not committed: a provenance would name a commit without them"
    );
    ensure!(
        !origin.source.is_empty() && !origin.builder.is_empty(),
        "set SOURCE to the URL of the source, and BUILDER to one that names who builds"
    );
    let installed = installed::only(&installed::of(&release.folder)?)?;
    installed.require_at(&release.registry)?;
    let (image, repository) = (installed.at(""), installed.repository(""));
    let written = Written::read(images)?;
    ensure!(
        origin.source == written.source,
        "the images name the source {}, and SOURCE is {}: run `make images` with it",
        written.source,
        origin.source
    );
    let layout = written.at(repository)?;
    ensure!(
        image == layout,
        "the manifests install {image}, and the layout is {layout}: run `make release-check`"
    );
    require_unreleased(images, repository)?;
    push::require_unreleased(&release.folder.join(CHARTS), repository)?;
    sign_files(release.cosign(), release, (&root, &written.compiler), origin)?;
    pushed(images, repository)?;
    sign_image(release.cosign(), release, &image)?;
    println!("{image}: signed and attested");
    sign_charts(release.cosign(), release, repository)?;
    Ok(true)
}

/// `built`: the checkout, and the compilers of the images.
fn sign_files(cosign: Cosign<'_>, release: &Release, built: (&Path, &str), origin: &Origin) -> Result<()> {
    let (root, compiler) = built;
    let predicate = provenance::of(root, compiler, &origin.source, &origin.builder)?;
    write(
        &release.folder.join(Kind::Provenance.file()),
        format!("{predicate:#}\n"),
    )?;
    seal(cosign, &release.key, &release.folder)?;
    println!("{}: signed", release.folder.join(sums::FILE).display());
    Ok(())
}

/// Writes `SHA256SUMS` and its signature.
fn seal(cosign: Cosign<'_>, key: &Path, folder: &Path) -> Result<()> {
    let path = folder.join(sums::FILE);
    write(&path, sums::of(folder)?)?;
    cosign.sign_file(key, &path, &folder.join(SIGNATURE))
}

fn sign_image(cosign: Cosign<'_>, release: &Release, image: &str) -> Result<()> {
    cosign.sign_image(&release.key, image)?;
    Kind::ALL
        .into_iter()
        .try_for_each(|kind| cosign.attest(&release.key, image, kind, &release.folder.join(kind.file())))
}

/// Pushes the charts of the release next to its images in a repository, and signs them.
fn sign_charts(cosign: Cosign<'_>, release: &Release, repository: &str) -> Result<()> {
    for chart in push::pushed(&release.folder.join(CHARTS), repository)? {
        cosign.sign_image(&release.key, &chart)?;
        println!("{chart}: signed");
    }
    Ok(())
}

/// Verifies the charts in the registry, which are those of the folder: their digest depends on its files alone.
fn verify_charts(cosign: Cosign<'_>, release: &Release, repository: &str) -> Result<()> {
    for chart in push::names(&release.folder.join(CHARTS), repository)? {
        cosign
            .verify_image(&release.key, &chart)
            .with_context(|| format!("the signature of the chart {chart}"))?;
        read_whole(&chart)?;
        println!("{chart}: as signed");
    }
    Ok(())
}

/// Verifies the files of a release, its version if one is wanted, and the image that its manifests install.
pub(crate) fn verify(release: &Release, wanted: &str) -> Result<bool> {
    verified(release.cosign(), release, wanted)?;
    Ok(true)
}

fn verified(cosign: Cosign<'_>, release: &Release, wanted: &str) -> Result<()> {
    verify_files(cosign, release)?;
    let built = Built::read(&read(&release.folder.join(Kind::Provenance.file()))?)?;
    built.require(wanted)?;
    let image = installed::only(&installed::of(&release.folder)?)?;
    verify_image(cosign, release, &image.at(&release.registry))?;
    verify_charts(cosign, release, image.repository(&release.registry))?;
    println!(
        "{}: {} of commit {}",
        release.folder.display(),
        built.version,
        built.revision
    );
    Ok(())
}

fn verify_files(cosign: Cosign<'_>, release: &Release) -> Result<()> {
    let path = release.folder.join(sums::FILE);
    cosign
        .verify_file(&release.key, &path, &release.folder.join(SIGNATURE))
        .with_context(|| format!("the signature of the files, {}", path.display()))?;
    let count = sums::verify(&release.folder)?;
    println!("{}: {count} files are as signed", release.folder.display());
    Ok(())
}

fn verify_image(cosign: Cosign<'_>, release: &Release, image: &str) -> Result<()> {
    cosign
        .verify_image(&release.key, image)
        .with_context(|| format!("the signature of the image {image}"))?;
    // cosign compares the digest that was signed, and reads none of the content.
    read_whole(image)?;
    println!("{image}: as signed");
    for kind in Kind::ALL {
        let statement = cosign
            .verify_attestation(&release.key, image, kind)
            .with_context(|| format!("the attestation of {} for {image}", kind.file()))?;
        ensure!(
            attested::predicates(&statement)?.contains(&read(&release.folder.join(kind.file()))?),
            "{image} is attested with another {}",
            kind.file()
        );
        println!("{image}: {} is as attested", kind.file());
    }
    Ok(())
}

fn read(path: &Path) -> Result<Value> {
    let content = fs::read(path).with_context(|| format!("read {}", path.display()))?;
    serde_json::from_slice(&content).with_context(|| format!("read {}", path.display()))
}

fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    fs::write(path, content).with_context(|| format!("write {}", path.display()))
}

#[cfg(test)]
mod commands_tests;
