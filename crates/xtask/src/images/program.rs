//! Builds the static program of an architecture, with the same bytes in every folder.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::compiler::Compiler;
use super::elf;
use crate::tools;

/// An architecture of the images.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Architecture {
    /// Its name in an image.
    pub(super) name: &'static str,
    variant: Option<&'static str>,
    /// Its name for the compiler. Named even on the same machine, so that flags do not reach build scripts and macros.
    pub(super) triple: &'static str,
    /// Its number in an executable.
    machine: u16,
    /// C compiler and linker, with the Debian packages that contain them and the static C library.
    pub(super) compiler: (&'static str, &'static [&'static str]),
    /// Whether the compiler's own linker is the default.
    is_linked_by_lld: bool,
    /// The program that runs its executables on another machine, with its Debian package.
    pub(super) emulator: (&'static str, &'static str),
}

pub(super) const ARCHITECTURES: [Architecture; 2] = [
    Architecture {
        name: "amd64",
        variant: None,
        triple: "x86_64-unknown-linux-gnu",
        machine: 62,
        compiler: (
            "x86_64-linux-gnu-gcc",
            &["gcc-x86-64-linux-gnu", "libc6-dev-amd64-cross"],
        ),
        is_linked_by_lld: true,
        emulator: ("qemu-x86_64-static", "qemu-user-static"),
    },
    Architecture {
        name: "arm64",
        variant: Some("v8"),
        triple: "aarch64-unknown-linux-gnu",
        machine: 183,
        compiler: (
            "aarch64-linux-gnu-gcc",
            &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"],
        ),
        is_linked_by_lld: false,
        emulator: ("qemu-aarch64-static", "qemu-user-static"),
    },
];

/// The targets of the released programs.
pub(crate) fn triples() -> impl Iterator<Item = &'static str> {
    ARCHITECTURES.iter().map(|architecture| architecture.triple)
}

impl Architecture {
    /// The platform in an index and in a configuration.
    pub(super) fn platform(&self) -> Value {
        match self.variant {
            Some(variant) => json!({ "architecture": self.name, "os": "linux", "variant": variant }),
            None => json!({ "architecture": self.name, "os": "linux" }),
        }
    }

    /// The C compiler, which also links.
    pub(super) fn linker(&self) -> Result<&'static str> {
        if self.is_native() {
            return Ok("cc");
        }
        let (compiler, packages) = self.compiler;
        tools::install(compiler, packages)?;
        Ok(compiler)
    }

    /// Whether this machine runs its executables without an emulator.
    pub(super) fn is_native(&self) -> bool {
        self.triple.starts_with(std::env::consts::ARCH)
    }
}

/// An architecture by its name.
pub(crate) fn architecture(name: &str) -> Result<&'static Architecture> {
    let known = ARCHITECTURES.iter().find(|known| known.name == name);
    known.with_context(|| format!("`{name}` is not an architecture of the images: amd64 or arm64"))
}

/// The architecture of this machine.
pub(crate) fn native() -> Result<&'static str> {
    let native = ARCHITECTURES.iter().find(|known| known.is_native());
    native.map(|known| known.name).context("no image is for this machine")
}

/// The features of the released program: all but the sandbox.
pub(crate) const RELEASED: [&str; 3] = ["--no-default-features", "--features", "console"];

/// Functions with the same instructions once, and relocations in their short form: a twentieth of the program. Only the compiler's
/// own linker is known to understand both.
const SMALLER: [&str; 2] = ["-Clink-arg=-Wl,--icf=all", "-Clink-arg=-Wl,--pack-dyn-relocs=relr"];

/// What to build, and where.
pub(crate) struct Build<'a> {
    /// The checkout.
    pub(super) root: &'a Path,
    /// The folder of the compiler's output.
    pub(super) target: &'a Path,
    /// `dist`, or `dev` to skip optimisation.
    pub(super) profile: &'a str,
    /// Arguments of cargo: [`RELEASED`], or others to compare with.
    pub(super) features: &'a [&'a str],
}

impl Build<'_> {
    /// Builds the program of an architecture; returns its path. The error says why it cannot be built here.
    pub(crate) fn program(&self, architecture: &Architecture) -> Result<PathBuf> {
        let compiler = Compiler::of(self.root, architecture)?;
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .args(["build", "--quiet", "--locked", "--package", "metal3-manager"])
            .args(self.features)
            .args([
                "--profile",
                self.profile,
                "--target",
                architecture.triple,
                "--target-dir",
            ])
            .arg(self.target)
            .current_dir(self.root)
            .env("RUSTC", &compiler.program)
            .env("CARGO_INCREMENTAL", "0");
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(decides_bytes) {
                cargo.env_remove(name);
            }
        }
        cargo
            .env("CARGO_ENCODED_RUSTFLAGS", self.flags(&compiler.sysroot, architecture))
            // Debug information contains the folder of the checkout. Names of functions remain.
            .env("CARGO_PROFILE_DEV_DEBUG", "false");
        if !architecture.is_native() {
            let linker = architecture.linker()?;
            let triple = architecture.triple.replace('-', "_");
            cargo.env(format!("CC_{triple}"), linker);
            cargo.env(format!("CARGO_TARGET_{}_LINKER", triple.to_uppercase()), linker);
        }
        let status = cargo.status().context("run cargo")?;
        ensure!(
            status.success(),
            "cargo build for {} failed with {status}",
            architecture.triple
        );
        let folder = if self.profile == "dev" { "debug" } else { self.profile };
        Ok(self.target.join(architecture.triple).join(folder).join("capm3"))
    }

    /// Static, and without the paths of this machine. Files of the checkout are relative to it for the compiler, so its
    /// folder is not among the flags: another checkout uses the same output.
    fn flags(&self, sysroot: &Path, architecture: &Architecture) -> OsString {
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
        // The last prefix that matches counts: the folder of the output is often one of the checkout.
        let folders = [
            (Some(sysroot), "/rust"),
            (home.as_deref(), "/cargo"),
            (Some(self.target), "/target"),
        ];
        let mut flags = OsString::from("-Ctarget-feature=+crt-static");
        for (folder, name) in folders {
            let Some(folder) = folder else { continue };
            flags.push("\x1f--remap-path-prefix=");
            flags.push(folder);
            flags.push("=");
            flags.push(name);
        }
        // Cargo does not apply `strip` of a profile that has other settings for the package of the program.
        if self.profile == "dist" {
            flags.push("\x1f-Cstrip=symbols");
        }
        let linker = sysroot
            .join("lib/rustlib")
            .join(architecture.triple)
            .join("bin/gcc-ld/ld.lld");
        if architecture.is_linked_by_lld && architecture.is_native() && linker.is_file() {
            for smaller in SMALLER {
                flags.push("\x1f");
                flags.push(smaller);
            }
        }
        flags
    }
}

/// Whether a variable of the environment decides about the bytes of the program. The build reads none that the user has set.
fn decides_bytes(name: &str) -> bool {
    const BEGINNINGS: [&str; 9] = [
        "CARGO_PROFILE_",
        "CARGO_TARGET_",
        "CARGO_BUILD_",
        "CC_",
        "CFLAGS",
        "CXXFLAGS",
        "AR_",
        "TARGET_",
        "HOST_",
    ];
    // gcc reads the last ones itself.
    const NAMES: [&str; 13] = [
        "CC",
        "AR",
        "ARFLAGS",
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "CPATH",
        "C_INCLUDE_PATH",
        "LIBRARY_PATH",
        "COMPILER_PATH",
        "GCC_EXEC_PREFIX",
        "LDFLAGS",
    ];
    if name == "CARGO_BUILD_JOBS" {
        return false;
    }
    NAMES.contains(&name) || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// Reads a program, and checks that it is one of the architecture that needs no library.
pub(super) fn read(path: &Path, architecture: &Architecture) -> Result<Vec<u8>> {
    let program = fs::read(path).with_context(|| format!("read {}", path.display()))?;
    let complaint = match (elf::machine(&program), elf::is_static(&program)) {
        (Some(machine), _) if machine != architecture.machine => "is of another architecture than",
        (Some(_), Some(true)) => return Ok(program),
        (Some(_), Some(false)) => "needs libraries, which the image does not have, on",
        _ => "is not an executable of",
    };
    bail!("{} {complaint} linux/{}", path.display(), architecture.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_a_user_for_compilers_do_not_reach_the_build() {
        for name in [
            "CC",
            "CC_aarch64_unknown_linux_gnu",
            "CFLAGS",
            "CFLAGS_x86_64-unknown-linux-gnu",
            "TARGET_CFLAGS",
            "CARGO_PROFILE_DIST_LTO",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS",
            "RUSTFLAGS",
            "RUSTC_WRAPPER",
            "HOST_CFLAGS",
            "CPATH",
        ] {
            assert!(decides_bytes(name), "{name}");
        }
        for name in [
            "PATH",
            "HOME",
            "CARGO_HOME",
            "RUSTUP_HOME",
            "CACHE",
            "CAPM3_PATCH",
            "CARGO_NET_OFFLINE",
            "CARGO_BUILD_JOBS",
        ] {
            assert!(!decides_bytes(name), "{name}");
        }
    }
}
