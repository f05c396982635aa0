//! How the files of a release came to be, in the form of SLSA: the predicate of an attestation.
//!
//! Like the files themselves it depends on the commit and on the tools of the machine only: it has no time and no random
//! number, so a second build of the same commit with the same tools can be compared with it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use metal3_flags::version::version;
use serde_json::{Value, json};

use crate::images::sha256;
use crate::run::git;

/// The description of the build in the source, which a reader of the predicate looks up at the commit.
const BUILD_TYPE: &str = "docs/releasing.md";
/// Files that decide which sources and which compiler are used.
const PINS: [&str; 2] = ["Cargo.lock", "rust-toolchain.toml"];

/// What the predicate says.
#[derive(Debug)]
struct Facts {
    version: String,
    revision: String,
    /// URL of the source.
    source: String,
    /// Who builds, as the key's owner names it.
    builder: String,
    compiler: String,
    /// Pinned files with the digest of their content.
    pins: Vec<(String, String)>,
}

/// The release that a predicate describes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Built {
    pub(super) version: String,
    /// The commit.
    pub(super) revision: String,
}

impl Built {
    /// Reads it from a predicate.
    pub(super) fn read(predicate: &Value) -> Result<Self> {
        let text = |at: &str| {
            let text = predicate.pointer(at).and_then(Value::as_str);
            text.map(str::to_owned)
                .with_context(|| format!("the provenance has no {at}"))
        };
        Ok(Self {
            version: text("/buildDefinition/externalParameters/version")?,
            revision: text("/buildDefinition/resolvedDependencies/0/digest/gitCommit")?,
        })
    }

    /// Requires the version that is wanted, if one is: a signed older release has a valid signature, too.
    pub(super) fn require(&self, wanted: &str) -> Result<()> {
        let version = &self.version;
        ensure!(
            wanted.is_empty() || wanted == version,
            "the release is {version}, not {wanted}"
        );
        Ok(())
    }
}

/// The predicate of a clean checkout, for images of these compilers.
pub(super) fn of(root: &Path, compiler: &str, source: &str, builder: &str) -> Result<Value> {
    let pin = |name: &str| -> Result<(String, String)> {
        let content = fs::read(root.join(name)).with_context(|| format!("read {name}"))?;
        Ok((
            name.to_owned(),
            sha256(&content).trim_start_matches("sha256:").to_owned(),
        ))
    };
    Ok(predicate(&Facts {
        version: version(),
        revision: git(root, &["rev-parse", "HEAD"])?,
        source: source.to_owned(),
        builder: builder.to_owned(),
        compiler: compiler.to_owned(),
        pins: PINS.into_iter().map(pin).collect::<Result<_>>()?,
    }))
}

fn predicate(facts: &Facts) -> Value {
    let mut dependencies = vec![json!({
        "uri": format!("git+{}", facts.source), "digest": { "gitCommit": facts.revision },
    })];
    let pins = facts
        .pins
        .iter()
        .map(|(name, digest)| json!({ "name": name, "digest": { "sha256": digest } }));
    dependencies.extend(pins);
    json!({
        "buildDefinition": {
            "buildType": format!("{}/blob/{}/{BUILD_TYPE}", facts.source, facts.revision),
            "externalParameters": { "version": facts.version, "source": facts.source },
            "internalParameters": { "compiler": facts.compiler },
            "resolvedDependencies": dependencies,
        },
        // cosign writes the empty member, and the attested predicate is compared with the file.
        "runDetails": { "builder": { "id": facts.builder }, "metadata": {} },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Value {
        predicate(&Facts {
            version: "v1.15.0".to_owned(),
            revision: "c0ffee".to_owned(),
            source: "https://git.example/metal3".to_owned(),
            builder: "https://ci.example/release".to_owned(),
            compiler: "rustc 1.95.0".to_owned(),
            pins: vec![("Cargo.lock".to_owned(), "ab12".to_owned())],
        })
    }

    #[test]
    fn another_version_than_the_wanted_one_is_an_error() {
        let built = Built::read(&sample()).unwrap();
        assert_eq!((built.version.as_str(), built.revision.as_str()), ("v1.15.0", "c0ffee"));
        built.require("").unwrap();
        built.require("v1.15.0").unwrap();
        let error = built.require("v1.15.1").unwrap_err().to_string();
        assert_eq!(error, "the release is v1.15.0, not v1.15.1");
        let error = Built::read(&json!({})).unwrap_err().to_string();
        assert!(error.contains("version"), "{error}");
    }

    #[test]
    fn predicate_names_commit_compiler_pins_and_builder() {
        let predicate = sample();
        for (at, wanted) in [
            (
                "/buildDefinition/buildType",
                "https://git.example/metal3/blob/c0ffee/docs/releasing.md",
            ),
            ("/buildDefinition/externalParameters/version", "v1.15.0"),
            ("/buildDefinition/internalParameters/compiler", "rustc 1.95.0"),
            (
                "/buildDefinition/resolvedDependencies/0/uri",
                "git+https://git.example/metal3",
            ),
            ("/buildDefinition/resolvedDependencies/0/digest/gitCommit", "c0ffee"),
            ("/buildDefinition/resolvedDependencies/1/name", "Cargo.lock"),
            ("/buildDefinition/resolvedDependencies/1/digest/sha256", "ab12"),
            ("/runDetails/builder/id", "https://ci.example/release"),
        ] {
            assert_eq!(predicate.pointer(at).and_then(Value::as_str), Some(wanted), "{at}");
        }
    }
}
