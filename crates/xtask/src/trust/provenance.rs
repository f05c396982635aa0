//! How the files of a release came to be, in the form of SLSA: the predicate of an attestation.
//!
//! Like the files themselves it depends on the commit and on the tools of the machine only: it has no time and no random
//! number, so a second build of the same commit with the same tools can be compared with it.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use metal3_flags::version::version;
use serde_json::{Value, json};

use crate::images::sha256;
use crate::run::{git, succeed};

/// The description of the build, which a reader of the predicate looks up.
const BUILD_TYPE: &str = "docs/releasing.md#signatures";
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

/// The predicate of a clean checkout.
pub(super) fn of(root: &Path, source: &str, builder: &str) -> Result<Value> {
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
        compiler: succeed(Command::new("rustc").arg("--version").current_dir(root))?
            .trim()
            .to_owned(),
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
            "buildType": format!("{}/{BUILD_TYPE}", facts.source),
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

    #[test]
    fn predicate_names_commit_compiler_pins_and_builder() {
        let predicate = predicate(&Facts {
            version: "v1.15.0".to_owned(),
            revision: "c0ffee".to_owned(),
            source: "https://git.example/metal3".to_owned(),
            builder: "https://ci.example/release".to_owned(),
            compiler: "rustc 1.95.0".to_owned(),
            pins: vec![("Cargo.lock".to_owned(), "ab12".to_owned())],
        });
        for (at, wanted) in [
            (
                "/buildDefinition/buildType",
                "https://git.example/metal3/docs/releasing.md#signatures",
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
