//! The compiler of an architecture: the pinned one if it has the standard library of the architecture, else the distribution's.
//!
//! The packages of the distribution are unpacked into a folder of the cache. They are not installed: the package of its compiler
//! conflicts with that of rustup, and packages of another architecture are a setting of the whole machine.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::program::{Architecture, native};
use crate::run::succeed;
use crate::tools;

/// A compiler with the standard library of an architecture.
pub(super) struct Compiler {
    pub(super) program: OsString,
    /// Its folder.
    pub(super) sysroot: PathBuf,
}

impl Compiler {
    /// Finds it, or adds what is missing. The error says why there is none.
    pub(super) fn of(root: &Path, architecture: &Architecture) -> Result<Self> {
        let pinned = Self::at(root, std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))?;
        if pinned.has(architecture) {
            return Ok(pinned);
        }
        let folder = cache()?.join("rustc-web").join(architecture.name);
        // An earlier run found no other way.
        if folder.join(WRAPPER).is_file() {
            let unpacked = Self::at(root, folder.join(WRAPPER).into())?;
            if unpacked.has(architecture) {
                return Ok(unpacked);
            }
        }
        let Err(no_rustup) = add_target(architecture.triple) else {
            return Ok(pinned);
        };
        eprintln!(
            "`rustup target add {}` failed: {no_rustup}. The compiler of the distribution is unpacked",
            architecture.triple
        );
        let unpacked = unpack(&folder, architecture).and_then(|()| Self::at(root, folder.join(WRAPPER).into()));
        let unpacked = unpacked.with_context(|| {
            format!(
                "the compiler has no standard library for {0}, `rustup target add {0}` failed ({no_rustup}), and so did the \
                 packages of the distribution. Run it where rustup reaches its server, or set RUSTC to a compiler that has it",
                architecture.triple
            )
        })?;
        ensure!(
            unpacked.has(architecture),
            "the packages {COMPILER} and {LIBRARY}:{} have no standard library for {}",
            architecture.name,
            architecture.triple
        );
        Ok(unpacked)
    }

    fn at(root: &Path, program: OsString) -> Result<Self> {
        let printed = succeed(Command::new(&program).args(["--print", "sysroot"]).current_dir(root))?;
        Ok(Self {
            program,
            sysroot: PathBuf::from(printed.trim()),
        })
    }

    fn has(&self, architecture: &Architecture) -> bool {
        let libraries = self.sysroot.join("lib/rustlib").join(architecture.triple);
        libraries.join("lib").is_dir()
    }

    /// `rustc 1.95.0 (…), gcc 12.2.0`: this one, and the C compiler that links.
    pub(super) fn version(&self, root: &Path, architecture: &Architecture) -> Result<String> {
        let printed = succeed(Command::new(&self.program).arg("--version").current_dir(root))?;
        let linker = architecture.linker()?;
        let of_linker = succeed(Command::new(linker).arg("--version"))?;
        let of_linker = of_linker.lines().next().unwrap_or_default().trim();
        Ok(format!("{}, {of_linker}", printed.trim()))
    }
}

/// The package of the distribution's newest compiler, and that of the standard library of an architecture.
const COMPILER: &str = "rustc-web";
const LIBRARY: &str = "libstd-rust-web-dev";
/// The compiler with the folder of its libraries.
const WRAPPER: &str = "rustc";

/// Adds the standard library to the pinned toolchain. The error is the reason.
fn add_target(triple: &str) -> Result<(), String> {
    // Without an answer of its server rustup waits for ever.
    let added = Command::new("timeout")
        .args(["120", "rustup", "target", "add", triple])
        .output();
    match added {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            let error = text.lines().rfind(|line| line.starts_with("error"));
            Err(error.unwrap_or("no answer within 120 s").to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Folder of what outlives a checkout.
fn cache() -> Result<PathBuf> {
    if let Some(cache) = std::env::var_os("CACHE") {
        return Ok(cache.into());
    }
    let home = std::env::var_os("HOME").context("neither CACHE nor HOME is set")?;
    Ok(Path::new(&home).join(".cache/metal3-rs"))
}

/// Downloads the packages with their own lists and without an installation, and unpacks them into the folder.
fn unpack(folder: &Path, architecture: &Architecture) -> Result<()> {
    tools::require("apt-get")?;
    let scratch = folder.with_extension("new");
    remove(&scratch)?;
    let (lists, archives) = (scratch.join("lists"), scratch.join("cache/archives"));
    for needed in [lists.join("partial"), archives.join("partial")] {
        fs::create_dir_all(&needed).with_context(|| format!("create {}", needed.display()))?;
    }
    let native = native()?;
    let apt = |words: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(["-q", "-o", "Acquire::Languages=none", "-o", "APT::Sandbox::User=root"])
            .args(["-o", &format!("APT::Architectures::={native}")])
            .args(["-o", &format!("APT::Architectures::={}", architecture.name)])
            .args(["-o", &format!("Dir::State::Lists={}", lists.display())])
            .args(["-o", &format!("Dir::Cache={}", scratch.join("cache").display())])
            .args(["-o", "Debug::NoLocking=true"])
            .args(words)
            .current_dir(&archives);
        succeed(&mut apt).map(drop)
    };
    apt(&["update"])?;
    // Of the compiler also what it needs and the machine lacks; the libraries of the other architecture are not run here.
    apt(&[
        "install",
        "-y",
        "--download-only",
        "--reinstall",
        "--no-install-recommends",
        COMPILER,
    ])?;
    apt(&["download", &format!("{LIBRARY}:{}", architecture.name)])?;
    let root = scratch.join("root");
    for package in fs::read_dir(&archives).context("list the downloaded packages")? {
        let package = package.context("list the downloaded packages")?.path();
        if package.extension().is_some_and(|ending| ending == "deb") {
            succeed(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&root))?;
        }
    }
    for done in [&lists, &scratch.join("cache")] {
        remove(done)?;
    }
    wrap(&scratch)?;
    remove(folder)?;
    fs::rename(&scratch, folder).with_context(|| format!("rename {}", scratch.display()))
}

/// Writes the program that starts the unpacked compiler with its libraries, wherever the folder is.
fn wrap(folder: &Path) -> Result<()> {
    let text = "#!/bin/sh\n# The compiler of the distribution, which is unpacked here and not installed.\n\
                root=$(dirname \"$(readlink -f \"$0\")\")/root/usr\n\
                for folder in \"$root\"/lib/*-linux-gnu; do LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; done\n\
                export LD_LIBRARY_PATH\nexec \"$root/bin/rustc\" \"$@\"\n";
    let path = folder.join(WRAPPER);
    fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).with_context(|| format!("change {}", path.display()))
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stands for the compiler: it prints the folders that the loader searches, and its arguments.
    #[test]
    fn wrapped_compiler_is_started_with_the_libraries_next_to_it() {
        let folder = std::env::temp_dir().join(format!("metal3-compiler-{}", std::process::id()));
        for part in ["root/usr/bin", "root/usr/lib/x86_64-linux-gnu"] {
            fs::create_dir_all(folder.join(part)).unwrap();
        }
        let program = folder.join("root/usr/bin/rustc");
        fs::write(&program, "#!/bin/sh\necho \"$LD_LIBRARY_PATH $*\"\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        wrap(&folder).unwrap();
        let moved = folder.with_extension("moved");
        fs::rename(&folder, &moved).unwrap();
        let mut wrapped = Command::new(moved.join(WRAPPER));
        let printed = succeed(wrapped.env_remove("LD_LIBRARY_PATH").args(["--print", "sysroot"])).unwrap();
        let libraries = fs::canonicalize(&moved).unwrap().join("root/usr/lib/x86_64-linux-gnu");
        fs::remove_dir_all(&moved).unwrap();
        assert_eq!(printed.trim(), format!("{} --print sysroot", libraries.display()));
    }
}
