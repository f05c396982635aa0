//! Runs a suite about a release on a stack of its own, started before the suite and stopped after it.
//!
//! The program runs itself again in the stack's network. After a failure only the stack's logs remain.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;

use crate::instance;
use crate::places::Places;
use crate::registry;
use crate::supervise::Extent;

/// The release under test.
#[derive(Debug, Args)]
pub(crate) struct Released {
    /// Directory written by `make release`, or to be written from the archive.
    #[arg(long)]
    pub(crate) release: PathBuf,
    /// The binary of that release.
    #[arg(long)]
    pub(crate) binary: PathBuf,
    /// Archive written by `make bundle`: the stack gets a registry, its script loads the images into it and writes the release, and
    /// Pods pull by digest. Nothing else can be reached from there.
    #[arg(long)]
    pub(crate) bundle: Option<PathBuf>,
    /// Set by the command itself when it runs in the stack's network.
    #[arg(long, hide = true)]
    pub(crate) inside: bool,
}

impl Released {
    /// What must exist before.
    pub(crate) fn files(&self) -> [&PathBuf; 2] {
        [self.bundle.as_ref().unwrap_or(&self.release), &self.binary]
    }

    /// The command line of these options.
    fn args(&self) -> anyhow::Result<Vec<OsString>> {
        let mut args: Vec<OsString> = vec!["--inside".into()];
        for (flag, path) in [("--release", &self.release), ("--binary", &self.binary)] {
            args.extend([flag.into(), std::fs::canonicalize(path)?.into()]);
        }
        Ok(args)
    }

    /// Starts the stack, runs `before`, runs the suite inside with these arguments, and stops the stack. Returns whether all
    /// claims hold.
    pub(crate) fn prove(
        &self,
        places: &Places,
        before: impl FnOnce() -> anyhow::Result<()>,
        suite: Vec<OsString>,
    ) -> anyhow::Result<bool> {
        instance::down(places)?;
        let begun = match &self.bundle {
            Some(bundle) => self.up_with_bundle(places, bundle),
            None => up(places),
        };
        if let Err(error) = begun.and_then(|()| before()) {
            instance::down(places)?;
            return Err(error);
        }
        let held = instance::command(places, &self.again(places, suite)?)?
            .status()?
            .success();
        if !held {
            println!("logs are kept in {}", crate::claims::keep_logs(places)?.display());
        }
        instance::down(places)?;
        if self.bundle.is_some() {
            // It was written by this run, and the next suite writes it again.
            remove(&self.release)?;
        }
        Ok(held)
    }

    /// Starts the stack and loads the archive there, under the name of the release, and under another one for an upgrade.
    fn up_with_bundle(&self, places: &Places, bundle: &Path) -> anyhow::Result<()> {
        instance::up(places, &Extent::with_kubelet_flags(KUBELET_FLAGS).with_registry())?;
        let folder = places.state_file("bundle");
        remove(&folder)?;
        ensure!(
            !self.release.exists(),
            "--release {} is to be written from the archive, and exists",
            self.release.display()
        );
        std::fs::create_dir_all(&folder)?;
        let unpack = ["tar", "--strip-components=1", "-xf"].map(OsString::from).to_vec();
        let paths = [
            std::fs::canonicalize(bundle)?.into(),
            "-C".into(),
            folder.clone().into(),
        ];
        run(places, &[unpack, paths.to_vec()].concat())?;
        let release = std::path::absolute(&self.release)?;
        for (suffix, release) in [("", release), (NEXT, folder.join("next"))] {
            let name = format!("{}/{NAME}{suffix}", registry::ADDRESS);
            let script = folder.join("load.sh");
            run(places, &["sh".into(), script.into(), name.into(), release.into()])?;
        }
        Ok(())
    }

    fn again(&self, places: &Places, suite: Vec<OsString>) -> anyhow::Result<Vec<OsString>> {
        let program = std::env::current_exe()?.into_os_string();
        let mut args = vec![program, "--cache".into(), places.cache().into()];
        args.extend(["--name".into(), OsString::from(&places.name)]);
        args.extend(["--network".into(), places.network().to_string().into()]);
        args.extend(suite);
        args.extend(self.args()?);
        Ok(args)
    }
}

/// What the name of an image has in addition in the registry of a stack, for an upgrade to another image.
pub(crate) const NEXT: &str = "-next";
/// The images in the registry of a stack.
const NAME: &str = "metal3/capm3";
/// A kubelet that updates volumes each second.
const KUBELET_FLAGS: &[&str] = &["--refresh=1"];

/// The image in a file of a release.
pub(crate) fn image(components: &str) -> anyhow::Result<&str> {
    let line = components.lines().find_map(|line| line.trim().strip_prefix("image: "));
    Ok(line.context("the components name no image")?.trim_matches(['"', '\'']))
}

/// Starts a stack whose kubelet updates volumes each second.
pub(crate) fn up(places: &Places) -> anyhow::Result<()> {
    instance::up(places, &Extent::with_kubelet_flags(KUBELET_FLAGS))
}

/// Fails for a missing file, with the command that creates it.
pub(crate) fn ensure_made<'a>(files: impl IntoIterator<Item = &'a PathBuf>, by: &str) -> anyhow::Result<()> {
    for file in files {
        ensure!(file.exists(), "{} is missing: run `{by}`", file.display());
    }
    Ok(())
}

fn remove(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    Ok(())
}

/// Runs a program in the stack's network.
fn run(places: &Places, args: &[OsString]) -> anyhow::Result<()> {
    let output = instance::command(places, args)?
        .output()
        .context("running a program in the stack")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{args:?}: {said}");
    Ok(())
}
