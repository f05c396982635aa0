//! The packages of the program, inside it: the section `.dep-v0` in the form of `cargo auditable`, which tools read that look for
//! advisories in programs.
//!
//! The section is added to the linked program. So it is no setting of the compiler, on which every byte depends.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde_json::Value;

use super::program::Architecture;
use crate::run::{next_to, succeed};
use crate::tools;

const SECTION: &str = ".dep-v0";

/// Writes the program with these packages next to it; returns the path. What it already lists is replaced.
pub(super) fn embed(program: &Path, architecture: &Architecture, packages: &Value) -> Result<PathBuf> {
    let (list, audited) = (next_to(program, "packages"), next_to(program, "audited"));
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
    zlib.write_all(&serde_json::to_vec(packages)?)
        .context("compress the packages")?;
    let content = zlib.finish().context("compress the packages")?;
    fs::write(&list, content).with_context(|| format!("write {}", list.display()))?;
    let outcome = succeed(
        objcopy(architecture)?
            .args(["--remove-section", SECTION])
            .arg("--add-section")
            .arg(format!("{SECTION}={}", list.display()))
            .args(["--set-section-flags", &format!("{SECTION}=noload,readonly")])
            .arg(program)
            .arg(&audited),
    );
    fs::remove_file(&list).with_context(|| format!("remove {}", list.display()))?;
    outcome.map(|_| audited)
}

/// The packages that a program lists.
pub(super) fn read(program: &Path, architecture: &Architecture) -> Result<Value> {
    let (list, copy) = (next_to(program, "packages"), next_to(program, "copy"));
    let outcome = succeed(
        objcopy(architecture)?
            .arg("--dump-section")
            .arg(format!("{SECTION}={}", list.display()))
            .arg(program)
            .arg(&copy),
    );
    if copy.exists() {
        fs::remove_file(&copy).with_context(|| format!("remove {}", copy.display()))?;
    }
    outcome?;
    let content = fs::read(&list).with_context(|| format!("{} has no {SECTION}", program.display()))?;
    fs::remove_file(&list).with_context(|| format!("remove {}", list.display()))?;
    let mut text = String::new();
    let mut zlib = ZlibDecoder::new(content.as_slice());
    zlib.read_to_string(&mut text)
        .context("read the packages of the program")?;
    serde_json::from_str(&text).context("read the packages of the program")
}

/// The one for executables of the architecture, which comes with its compiler.
fn objcopy(architecture: &Architecture) -> Result<Command> {
    let (compiler, packages) = architecture.compiler;
    let program = compiler.replace("-gcc", "-objcopy");
    let packages = if architecture.is_native() {
        &["binutils"]
    } else {
        packages
    };
    tools::install(&program, packages)?;
    Ok(Command::new(program))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{architecture, native};
    use super::*;

    #[test]
    fn embedded_packages_are_read_back_and_the_program_starts() {
        let folder = std::env::temp_dir().join(format!("metal3-audit-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let program = folder.join("program");
        fs::copy("/bin/true", &program).unwrap();
        let architecture = architecture(native().unwrap()).unwrap();
        let before = read(&program, architecture).map_err(|error| error.to_string());
        let other = json!({ "packages": [{ "name": "b", "version": "2.0.0", "source": "local" }] });
        let packages = json!({ "packages": [{ "name": "a", "version": "1.0.0", "source": "crates.io" }] });
        let first = embed(&program, architecture, &other).unwrap();
        let second = embed(&first, architecture, &packages).unwrap();
        let directly = embed(&program, architecture, &packages).unwrap();
        let found = read(&second, architecture).unwrap();
        let started = Command::new(&second).status().unwrap();
        let equal = fs::read(&directly).unwrap() == fs::read(&second).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert!(before.unwrap_err().contains("has no .dep-v0"));
        assert_eq!(found, packages);
        assert!(started.success());
        assert!(equal, "what was listed before leaves a trace");
    }
}
