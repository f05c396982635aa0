//! The commands of cosign with a key: without a transparency log, so that verification needs no network but that of the
//! registry.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::images::is_loopback;
use crate::run::succeed;

/// The kinds of attestations of an image, as cosign names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Provenance,
    Packages,
}

impl Kind {
    pub(super) const ALL: [Self; 2] = [Self::Provenance, Self::Packages];

    const fn name(self) -> &'static str {
        match self {
            Self::Provenance => "slsaprovenance1",
            Self::Packages => "cyclonedx",
        }
    }

    /// The file of the release with the predicate.
    pub(super) const fn file(self) -> &'static str {
        match self {
            Self::Provenance => "provenance.json",
            Self::Packages => "sbom.cdx.json",
        }
    }
}

/// The program, and the password of a key. Without one it reads `COSIGN_PASSWORD` of its environment.
#[derive(Clone, Copy)]
pub(super) struct Cosign<'a> {
    pub(super) program: &'a Path,
    /// That of the key of a check.
    pub(super) password: Option<&'a str>,
}

impl Cosign<'_> {
    /// Writes `PREFIX.key` and `PREFIX.pub`.
    pub(super) fn make_key(self, prefix: &Path) -> Result<()> {
        let prefix = prefix.display().to_string();
        self.run(&["generate-key-pair", "--output-key-prefix", &prefix])
            .map(drop)
    }

    pub(super) fn sign_file(self, key: &Path, file: &Path, signature: &Path) -> Result<()> {
        let mut command = self.command(&["sign-blob", "--yes", "--tlog-upload=false"]);
        command
            .arg("--output-signature")
            .arg(signature)
            .arg("--key")
            .arg(key)
            .arg(file);
        succeed(&mut command).map(drop)
    }

    pub(super) fn verify_file(self, key: &Path, file: &Path, signature: &Path) -> Result<()> {
        let mut command = self.command(&["verify-blob", "--insecure-ignore-tlog"]);
        command
            .arg("--signature")
            .arg(signature)
            .arg("--key")
            .arg(key)
            .arg(file);
        succeed(&mut command).map(drop)
    }

    pub(super) fn sign_image(self, key: &Path, image: &str) -> Result<()> {
        self.on_image(&["sign", "--yes", "--recursive", "--tlog-upload=false"], key, image)
    }

    pub(super) fn verify_image(self, key: &Path, image: &str) -> Result<()> {
        self.on_image(&["verify", "--insecure-ignore-tlog"], key, image)
    }

    pub(super) fn attest(self, key: &Path, image: &str, kind: Kind, predicate: &Path) -> Result<()> {
        let predicate = predicate.display().to_string();
        let words = [
            "attest",
            "--yes",
            "--tlog-upload=false",
            "--type",
            kind.name(),
            "--predicate",
            &predicate,
        ];
        self.on_image(&words, key, image)
    }

    /// The statement that an attestation of the image signs, in the envelope of cosign.
    pub(super) fn verify_attestation(self, key: &Path, image: &str, kind: Kind) -> Result<String> {
        let mut command = self.command(&["verify-attestation", "--insecure-ignore-tlog", "--type", kind.name()]);
        succeed(of_image(&mut command, key, image))
    }

    fn on_image(self, words: &[&str], key: &Path, image: &str) -> Result<()> {
        let mut command = self.command(words);
        succeed(of_image(&mut command, key, image)).map(drop)
    }

    fn run(self, words: &[&str]) -> Result<String> {
        succeed(&mut self.command(words))
    }

    fn command<W: AsRef<OsStr>>(self, words: &[W]) -> Command {
        let mut command = Command::new(self.program);
        command.args(words);
        if let Some(password) = self.password {
            command.env("COSIGN_PASSWORD", password);
        }
        command
    }
}

fn of_image<'a>(command: &'a mut Command, key: &Path, image: &str) -> &'a mut Command {
    if is_loopback(image) {
        command.args(["--allow-http-registry", "--allow-insecure-registry"]);
    }
    command.arg("--key").arg(key).arg(image)
}
