//! `images`: the container images of the program as an OCI image layout, written without a container engine.
//!
//! An image contains one static file, and the licences of what is in it. The same commit gives the same bytes in every folder: paths of the machine are
//! replaced at compile time, and the only time is `SOURCE_DATE_EPOCH` or that of the commit.

mod audit;
mod check;
mod compiler;
mod elf;
mod layer;
mod layout;
mod program;
mod registry;
mod written;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use metal3_files::workspace;
use metal3_flags::version::version;

use self::compiler::Compiler;
use self::layout::{Facts, Layout};
use self::program::{Architecture, Build, architecture};
use crate::run::{changes, git, succeed};
use crate::{notices, sbom};
pub(crate) use layer::{Entry, archive, compressed, fits};
pub(crate) use layout::{NO_SOURCE, sha256};
pub(crate) use program::{RELEASED, native, triples};
pub(crate) use registry::{
    Registry, copy_layout, is_loopback, push, pushed, read_whole, require_same, require_unreleased,
};
pub(crate) use written::Written;

/// The profile of a release. Images of another one name a revision that is none.
const DIST: &str = "dist";

/// How the program is built.
#[derive(Args)]
pub(crate) struct Compiled {
    /// `dist`, or `dev` to skip optimisation
    #[arg(long, default_value = DIST)]
    profile: String,
    /// Folder of the compiler's output
    #[arg(long, env = "CARGO_TARGET_DIR", default_value = "target")]
    target: PathBuf,
}

/// What is in the images.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    compiled: Compiled,
    /// Architectures of the images
    #[arg(long, value_delimiter = ',', default_value = "amd64,arm64")]
    architectures: Vec<String>,
    /// URL of the source, for the annotations
    #[arg(long, default_value = "")]
    source: String,
    /// Seconds since 1970; by default the time of the commit
    #[arg(long, env = "SOURCE_DATE_EPOCH")]
    epoch: Option<u64>,
}

/// The program of an architecture.
type Program = (&'static Architecture, Vec<u8>);

/// Builds the program of one architecture and prints its path.
pub(crate) fn program(name: &str, compiled: &Compiled) -> Result<bool> {
    let root = workspace::root()?;
    let build = Build {
        root: &root,
        target: &root.join(&compiled.target),
        profile: &compiled.profile,
        features: &program::RELEASED,
    };
    println!("{}", build.program(architecture(name)?)?.display());
    Ok(true)
}

/// Builds the program of this machine with these features, and returns its size.
pub(crate) fn size(features: &[&str], compiled: &Compiled) -> Result<u64> {
    let root = workspace::root()?;
    let build = Build {
        root: &root,
        target: &root.join(&compiled.target),
        profile: &compiled.profile,
        features,
    };
    let program = build.program(architecture(native()?)?)?;
    let size = fs::metadata(&program).with_context(|| format!("read {}", program.display()))?;
    Ok(size.len())
}

/// The compilers of the images, one text: that of all architectures, or of each.
fn compilers(root: &Path, architectures: &[String]) -> Result<String> {
    let version = |name: &String| {
        let architecture = architecture(name)?;
        Compiler::of(root, architecture)?.version(root, architecture)
    };
    let versions = architectures.iter().map(version).collect::<Result<Vec<_>>>()?;
    Ok(joined(architectures, &versions))
}

fn joined(architectures: &[String], versions: &[String]) -> String {
    match versions.split_first() {
        Some((first, others)) if others.iter().all(|other| other == first) => first.clone(),
        _ => {
            let each = architectures.iter().zip(versions);
            each.map(|(name, version)| format!("{name}: {version}"))
                .collect::<Vec<_>>()
                .join(", ")
        }
    }
}

/// Writes the layout into a folder.
pub(crate) fn run(folder: &Path, options: &Options) -> Result<bool> {
    let root = workspace::root()?;
    let Some(layout) = layout_of(&root, &root.join(&options.compiled.target), options)? else {
        return Ok(false);
    };
    write(&layout, folder)?;
    println!(
        "{}: {} for {}",
        folder.display(),
        version(),
        options.architectures.join(" and ")
    );
    println!("{}", layout.digest);
    Ok(true)
}

/// Builds twice, in this checkout and in a clone, compares the layouts, and has them read by programs of others.
pub(crate) fn check(folder: &Path, once: bool, options: &Options) -> Result<bool> {
    let root = workspace::root()?;
    ensure!(
        once || changes(&root)?.is_empty(),
        "the checkout has changes that are not committed; a clone does not have them"
    );
    let Some(layout) = layout_of(&root, &root.join(&options.compiled.target), options)? else {
        return Ok(false);
    };
    if !once {
        check::again(&root, &layout, options)?;
    }
    write(&layout, folder)?;
    for name in &options.architectures {
        check::judge(folder, architecture(name)?, &facts(&root, options)?)?;
    }
    registry::check(folder, &layout)?;
    println!("images: {} checked", layout.digest);
    Ok(true)
}

/// The layout of a checkout. `None` when an architecture cannot be built, with the reason printed.
fn layout_of(root: &Path, target: &Path, options: &Options) -> Result<Option<Layout>> {
    let build = Build {
        root,
        target,
        profile: &options.compiled.profile,
        features: &program::RELEASED,
    };
    let (programs, facts) = of_one_commit(root, options, || programs(&build, &options.architectures))?;
    let Some(programs) = programs else {
        return Ok(None);
    };
    Layout::of(&programs, &notices::of(root)?, &facts).map(Some)
}

/// What a build returns, and the facts of the checkout, which has the same commit after it as before: sources of another commit
/// would be in images that name this one.
fn of_one_commit<T>(root: &Path, options: &Options, build: impl FnOnce() -> Result<T>) -> Result<(T, Facts)> {
    let before = facts(root, options)?;
    let built = build()?;
    let after = facts(root, options)?;
    ensure!(
        after.revision == before.revision,
        "the checkout changed during the build, from {} to {}: build again",
        before.revision,
        after.revision
    );
    Ok((built, after))
}

/// The programs of all architectures. `None` when one cannot be built, with the reason printed.
fn programs(build: &Build<'_>, names: &[String]) -> Result<Option<Vec<Program>>> {
    let (mut programs, mut missing) = (Vec::new(), 0);
    for name in names {
        let architecture = architecture(name)?;
        match build
            .program(architecture)
            .and_then(|path| audit::embed(&path, architecture, &sbom::audited(build.root, architecture.triple)?))
            .and_then(|path| program::read(&path, architecture))
        {
            Ok(program) => programs.push((architecture, program)),
            Err(why) => {
                missing += 1;
                eprintln!("linux/{name} cannot be built: {why:#}");
            }
        }
    }
    if missing > 0 {
        eprintln!("no image is written. ARCHS=amd64 leaves the other architecture out");
        return Ok(None);
    }
    Ok(Some(programs))
}

/// Version, commit and time of a checkout.
fn facts(root: &Path, options: &Options) -> Result<Facts> {
    let mut revision = git(root, &["rev-parse", "HEAD"])?;
    if !changes(root)?.is_empty() {
        revision.push_str("-dirty");
    }
    if options.compiled.profile != DIST {
        revision.push_str("-dev");
    }
    let created = match options.epoch {
        Some(seconds) => seconds,
        None => git(root, &["log", "-1", "--format=%ct"])?
            .parse()
            .context("the time of the commit")?,
    };
    Ok(Facts {
        version: version(),
        revision,
        source: match options.source.as_str() {
            "" => layout::NO_SOURCE.to_owned(),
            source => source.to_owned(),
        },
        compiler: compilers(root, &options.architectures)?,
        created,
    })
}

/// Writes a layout whose program is a text and which has no licences, for checks that need another image.
pub(crate) fn stand_in(folder: &Path, text: &str) -> Result<()> {
    let facts = Facts {
        version: "v0.0.0".to_owned(),
        revision: text.to_owned(),
        source: layout::NO_SOURCE.to_owned(),
        compiler: String::new(),
        created: 0,
    };
    let programs = [(architecture("amd64")?, text.as_bytes().to_vec())];
    write(&Layout::of(&programs, "", &facts)?, folder)
}

/// Replaces the layout in a folder. A folder with anything else is an error.
fn write(layout: &Layout, folder: &Path) -> Result<()> {
    let is_empty = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
        Err(error) => return Err(error).with_context(|| format!("list {}", folder.display())),
    };
    if !is_empty && !folder.join("oci-layout").is_file() {
        bail!("{} contains something else than an image layout", folder.display());
    }
    if !is_empty {
        fs::remove_dir_all(folder).with_context(|| format!("remove {}", folder.display()))?;
    }
    for (path, content) in &layout.files {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| format!("create {}", parent.display()))?;
        }
        fs::write(&path, content).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(())
}

/// Runs the program of an architecture, on another machine in an emulator.
fn start(program: &Path, architecture: &Architecture, argument: &str) -> Result<String> {
    if architecture.is_native() {
        return succeed(Command::new(program).arg(argument));
    }
    let (emulator, package) = architecture.emulator;
    crate::tools::install(emulator, &[package])?;
    succeed(Command::new(emulator).arg(program).arg(argument))
}

#[cfg(test)]
mod tests;
