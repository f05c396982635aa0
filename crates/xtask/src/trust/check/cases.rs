//! The changes that are refused, each with a part of the reason.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use super::super::cosign::Kind;
use super::super::{CHARTS, SIGNATURE, installed, read, seal, sums, write};
use super::{Key, Scene, set};
use crate::images::Written;
use crate::release::chart::package;
use crate::run::succeed;

/// The values of the chart of the program.
const VALUES: &str = "charts/metal3-rs/values.yaml";

/// A changed copy of the release.
struct Case {
    what: &'static str,
    /// A part of the reason for which it is refused.
    why: &'static str,
    change: fn(&Scene<'_>, &Path) -> Result<()>,
}

const CASES: [Case; 15] = [
    Case {
        what: "a file with a changed byte",
        why: "sbom.cdx.json has other bytes",
        change: |_, folder| flip(&folder.join(Kind::Packages.file())),
    },
    Case {
        what: "a list of files with a changed byte",
        why: "the signature of the files",
        change: |_, folder| flip(&folder.join(sums::FILE)),
    },
    Case {
        what: "a signature with a changed byte",
        why: "the signature of the files",
        change: |_, folder| flip(&folder.join(SIGNATURE)),
    },
    Case {
        what: "a file that is not named",
        why: "added.yaml is not named",
        change: |_, folder| write(&folder.join("added.yaml"), ""),
    },
    Case {
        what: "a release without one of its files",
        why: "metadata.yaml is missing",
        change: |_, folder| fs::remove_file(folder.join("metadata.yaml")).context("remove a file"),
    },
    Case {
        what: "manifests with another image, signed with another key",
        why: "the signature of the files",
        change: |scene, folder| {
            install(folder, usize::MAX, &scene.older)?;
            seal(scene.cosign(), &scene.private(Key::Other), folder)
        },
    },
    Case {
        what: "one manifest with another image",
        why: "install 2 images",
        change: |scene, folder| signed(scene, folder, |folder| install(folder, 1, &scene.older)),
    },
    Case {
        what: "manifests with a tag",
        why: "which has no digest",
        change: |scene, folder| {
            let tag = format!("{}:v0.0.0", scene.repository);
            signed(scene, folder, |folder| install(folder, usize::MAX, &tag))
        },
    },
    Case {
        what: "manifests with a signed image of another release",
        why: "is attested with another provenance.json",
        change: |scene, folder| signed(scene, folder, |folder| install(folder, usize::MAX, &scene.older)),
    },
    Case {
        what: "an image with the attestations of another one",
        why: "the attestation of provenance.json",
        change: |scene, folder| {
            let image = &scene.attested_by_copy;
            signed(scene, folder, |folder| install(folder, usize::MAX, image))
        },
    },
    Case {
        what: "an image with the signature of another one",
        why: "the signature of the image",
        change: |scene, folder| {
            let image = &scene.signed_by_copy;
            signed(scene, folder, |folder| install(folder, usize::MAX, image))
        },
    },
    Case {
        what: "a provenance that names another commit",
        why: "is attested with another provenance.json",
        change: |scene, folder| {
            let commit = "/buildDefinition/resolvedDependencies/0/digest/gitCommit";
            signed(scene, folder, |folder| rewrite(folder, Kind::Provenance, commit))
        },
    },
    Case {
        what: "charts that were changed and not pushed",
        why: "the signature of the chart",
        change: |scene, folder| {
            signed(scene, folder, |folder| {
                let text = fs::read_to_string(folder.join(VALUES)).context("read the values")?;
                write(&folder.join(VALUES), text.replace("replicas: 2", "replicas: 1"))?;
                package::write(&folder.join(CHARTS))
            })
        },
    },
    Case {
        what: "an archive of a chart with other files than its folder",
        why: "has other files than",
        change: |scene, folder| {
            signed(scene, folder, |folder| {
                let text = fs::read_to_string(folder.join(VALUES)).context("read the values")?;
                write(&folder.join(VALUES), text.replace("replicas: 2", "replicas: 1"))
            })
        },
    },
    Case {
        what: "a list of packages with another package",
        why: "is attested with another sbom.cdx.json",
        change: |scene, folder| {
            signed(scene, folder, |folder| {
                rewrite(folder, Kind::Packages, "/components/0/name")
            })
        },
    },
];

impl Scene<'_> {
    pub(super) fn judge(&self) -> Result<()> {
        let release = self.folder();
        self.verify_in_time()?;
        for case in &CASES {
            let copy = self.work.join("changed");
            succeed(Command::new("cp").arg("-r").arg(&release).arg(&copy))?;
            (case.change)(self, &copy).with_context(|| format!("prepare {}", case.what))?;
            let outcome = self.verify(&copy, Key::Own, "");
            fs::remove_dir_all(&copy).with_context(|| format!("remove {}", copy.display()))?;
            rejected(outcome, case.what, case.why)?;
        }
        let stranger = self.verify(&release, Key::Other, "");
        rejected(
            stranger,
            "a release signed with another key",
            "the signature of the files",
        )?;
        let older = self.verify(&release, Key::Own, "v999.0.0");
        rejected(older, "another release than the wanted one", ", not v999.0.0")?;
        self.of_registry(&release)?;
        self.verify(&release, Key::Own, "")
    }

    /// The registry serves other bytes.
    fn of_registry(&self, release: &Path) -> Result<()> {
        let verify = || self.verify(release, Key::Own, "");
        let index = Written::read(&self.options.images)?.digest;
        let layer = largest(&self.options.images.join("blobs/sha256"))?;
        // cosign reads neither; the whole content is read after it.
        for (digest, what) in [
            (index, "an index with a changed byte"),
            (layer, "a layer with a changed byte"),
        ] {
            let path = stored(&self.work, &digest);
            let content = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
            flip(&path)?;
            let outcome = verify();
            write(&path, content)?;
            rejected(outcome, what, "the content of 127.0.0.1")?;
        }
        Ok(())
    }
}

fn rejected(outcome: Result<()>, what: &str, why: &str) -> Result<()> {
    let Err(error) = outcome else {
        bail!("{what} was accepted")
    };
    let reason = format!("{error:#}");
    ensure!(
        reason.contains(why),
        "{what} is rejected, but not because of `{why}`: {reason}"
    );
    println!("refused: {what} ({why})");
    Ok(())
}

/// A change that the owner of the key signs.
fn signed(scene: &Scene<'_>, folder: &Path, change: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    change(folder)?;
    seal(scene.cosign(), &scene.private(Key::Own), folder)
}

/// Changes a bit in the middle of a file: the last byte of a text may be a newline that has no meaning.
fn flip(path: &Path) -> Result<()> {
    let mut content = fs::read(path).with_context(|| format!("read {}", path.display()))?;
    let middle = content.len() / 2;
    let byte = content.get_mut(middle);
    *byte.with_context(|| format!("{} is empty", path.display()))? ^= 1;
    write(path, content)
}

/// Writes another image into the first `limit` files that install one.
fn install(folder: &Path, limit: usize, image: &str) -> Result<()> {
    for (old, files) in installed::of(folder)? {
        for name in files.iter().take(limit) {
            let path = folder.join(name);
            let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
            write(&path, text.replace(&old, image))?;
        }
    }
    Ok(())
}

/// Replaces a text in a predicate, which stays a valid document.
fn rewrite(folder: &Path, kind: Kind, at: &str) -> Result<()> {
    let path = folder.join(kind.file());
    let mut predicate = read(&path)?;
    set(&mut predicate, at, json!("other"))?;
    write(&path, format!("{predicate:#}\n"))
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
