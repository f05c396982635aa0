//! `trust-check`: a release is signed with a key made for it, verified, and refused after each change of a byte, a file,
//! an image or a key.
//!
//! It writes its own release, for the image that it pushes, so it touches no other.

mod cases;
mod offline;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use metal3_files::workspace;
use metal3_flags::version::version;
use serde_json::Value;

use super::cosign::{Cosign, Kind};
use super::{Origin, Release, read, sign_charts, sign_files, sign_image, verified, write};
use crate::images::{Registry, Written, pushed, stand_in};
use crate::release::{self, chart};
use crate::run::{next_to, succeed};
use crate::{plugin, sbom};

#[derive(Args)]
pub(crate) struct Options {
    /// Folder of the image layout
    #[arg(long)]
    images: PathBuf,
    /// The program `cosign`
    #[arg(long)]
    cosign: PathBuf,
    /// Set by the command itself when it runs without a network
    #[arg(long, hide = true)]
    isolated: bool,
}

/// The flag of [`Options::isolated`].
const ISOLATED: &str = "--isolated";
/// How long the verification of a release takes at most, with all tools to hand.
const LIMIT: Duration = Duration::from_secs(60);

/// A signed release, and images with which its own is confused.
struct Scene<'a> {
    options: &'a Options,
    work: PathBuf,
    repository: String,
    /// The image that the release installs.
    image: String,
    /// Another image, signed and attested as one of another version.
    older: String,
    /// Another image, signed, with the attestations of the first.
    attested_by_copy: String,
    /// Another image, with the signature of the first.
    signed_by_copy: String,
}

/// Keys of a check, by their names.
#[derive(Clone, Copy)]
enum Key {
    Own,
    Other,
}

impl Key {
    const fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Other => "other",
        }
    }
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    if !options.isolated {
        return offline::again(ISOLATED);
    }
    offline::require()?;
    let work = next_to(&options.images, "check");
    if work.exists() {
        fs::remove_dir_all(&work).with_context(|| format!("remove {}", work.display()))?;
    }
    let registry = Registry::start(&work.join("registry"))?;
    let outcome = Scene::prepare(options, &work, registry.port).and_then(|scene| scene.judge());
    drop(registry);
    fs::remove_dir_all(&work).with_context(|| format!("remove {}", work.display()))?;
    outcome.map(|()| true)
}

impl<'a> Scene<'a> {
    fn prepare(options: &'a Options, work: &Path, port: u16) -> Result<Self> {
        let repository = format!("127.0.0.1:{port}/metal3/capm3");
        let push_other = |name: &str| -> Result<String> {
            let layout = work.join(name);
            stand_in(&layout, name)?;
            pushed(&layout, &repository)
        };
        let scene = Self {
            options,
            work: work.to_owned(),
            image: pushed(&options.images, &repository)?,
            older: push_other("older")?,
            attested_by_copy: push_other("attested-by-copy")?,
            signed_by_copy: push_other("signed-by-copy")?,
            repository,
        };
        for key in [Key::Own, Key::Other] {
            scene.cosign().make_key(&work.join(key.name()))?;
        }
        scene.sign()?;
        scene.sign_older()?;
        scene
            .cosign()
            .sign_image(&scene.private(Key::Own), &scene.attested_by_copy)?;
        scene.copy_tag(&scene.attested_by_copy, "att")?;
        scene.copy_tag(&scene.signed_by_copy, "sig")?;
        Ok(scene)
    }

    fn cosign(&self) -> Cosign<'a> {
        Cosign {
            program: &self.options.cosign,
            password: Some(""),
        }
    }

    fn private(&self, key: Key) -> PathBuf {
        self.work.join(format!("{}.key", key.name()))
    }

    fn folder(&self) -> PathBuf {
        self.work.join("release")
    }

    /// A release with the public or private key of a file.
    fn release(&self, folder: PathBuf, key: PathBuf) -> Release {
        Release {
            folder,
            registry: String::new(),
            cosign: self.options.cosign.clone(),
            key,
        }
    }

    /// Writes the release and signs it, as a user does.
    fn sign(&self) -> Result<()> {
        let folder = self.folder();
        release::write(&folder, &self.image)?;
        chart::write(&folder.join("charts"), &self.image)?;
        plugin::run(
            &folder,
            &self.options.images,
            &plugin::Options::at(&format!("https://archives.example/{}", version())),
        )?;
        sbom::run(&folder.join(Kind::Packages.file()), &self.options.images)?;
        let origin = Origin {
            source: "https://source.example/metal3".to_owned(),
            builder: "https://builder.example/check".to_owned(),
        };
        let signing = self.release(folder, self.private(Key::Own));
        let written = Written::read(&self.options.images)?;
        sign_files(
            self.cosign(),
            &signing,
            (&workspace::root()?, &written.compiler),
            &origin,
        )?;
        sign_image(self.cosign(), &signing, &self.image)?;
        sign_charts(self.cosign(), &signing, &self.repository)
    }

    fn sign_older(&self) -> Result<()> {
        let folder = self.work.join("predicates");
        fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        let mut provenance = read(&self.folder().join(Kind::Provenance.file()))?;
        set(
            &mut provenance,
            "/buildDefinition/externalParameters/version",
            "v0.0.0".into(),
        )?;
        write(&folder.join(Kind::Provenance.file()), provenance.to_string())?;
        let packages = read(&self.folder().join(Kind::Packages.file()))?;
        write(&folder.join(Kind::Packages.file()), packages.to_string())?;
        let signing = self.release(folder, self.private(Key::Own));
        sign_image(self.cosign(), &signing, &self.older)
    }

    /// Copies what cosign stores for the image of the release to another image.
    fn copy_tag(&self, to: &str, ending: &str) -> Result<()> {
        let stored = |image: &str| {
            let digest = image.rsplit("sha256:").next().unwrap_or_default();
            format!("docker://{}:sha256-{digest}.{ending}", self.repository)
        };
        let mut skopeo = Command::new("skopeo");
        skopeo.args(["copy", "--quiet", "--src-tls-verify=false", "--dest-tls-verify=false"]);
        succeed(skopeo.args([stored(&self.image), stored(to)])).map(drop)
    }

    /// Verifies the release, and requires that it takes no longer than a user waits.
    #[expect(clippy::disallowed_methods, reason = "this tool drives real processes in real time")]
    fn verify_in_time(&self) -> Result<()> {
        let start = Instant::now();
        self.verify(&self.folder(), Key::Own, "")?;
        let taken = start.elapsed();
        ensure!(
            taken < LIMIT,
            "the verification took {} s, not less than {}",
            taken.as_secs(),
            LIMIT.as_secs()
        );
        println!("verified in {:.1} s", taken.as_secs_f64());
        Ok(())
    }

    /// Verifies a folder as a user does.
    fn verify(&self, folder: &Path, key: Key, wanted: &str) -> Result<()> {
        let public = self.work.join(format!("{}.pub", key.name()));
        verified(self.cosign(), &self.release(folder.to_owned(), public), wanted)
    }
}

/// Sets a member that exists.
fn set(document: &mut Value, at: &str, value: Value) -> Result<()> {
    *document.pointer_mut(at).with_context(|| format!("no {at}"))? = value;
    Ok(())
}
