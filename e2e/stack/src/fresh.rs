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
    /// Directory written by `make release`.
    #[arg(long)]
    pub(crate) release: PathBuf,
    /// The binary of that release.
    #[arg(long)]
    pub(crate) binary: PathBuf,
    /// Directory written by `make images`: the stack gets a registry with them, and its Pods pull them by digest.
    #[arg(long)]
    pub(crate) images: Option<PathBuf>,
    /// Set by the command itself when it runs in the stack's network.
    #[arg(long, hide = true)]
    pub(crate) inside: bool,
}

impl Released {
    pub(crate) fn files(&self) -> [&PathBuf; 2] {
        [&self.release, &self.binary]
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
        match &self.images {
            Some(images) => self.up_with_registry(places, images)?,
            None => up(places)?,
        }
        if let Err(error) = before() {
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
        Ok(held)
    }

    /// Starts the stack with the images under the name in the release, and under another one for an upgrade.
    fn up_with_registry(&self, places: &Places, images: &Path) -> anyhow::Result<()> {
        instance::up(places, &Extent::with_kubelet_flags(KUBELET_FLAGS).with_registry())?;
        let path = self.release.join("all-in-one.yaml");
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let image = image(&text)?;
        ["", NEXT]
            .iter()
            .try_for_each(|suffix| push(places, images, image, suffix))
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

/// Copies the images of a release into the registry, under the name that a manifest has for them: `HOST/NAME@sha256:…`.
/// `suffix` makes it another name.
fn push(places: &Places, layout: &Path, image: &str, suffix: &str) -> anyhow::Result<()> {
    let (name, digest) = image
        .split_once('@')
        .with_context(|| format!("the release has {image}, which is not an image by digest"))?;
    let here = name.starts_with(&format!("{}/", registry::ADDRESS));
    ensure!(
        here,
        "the release has {image}, and the registry of a stack is {}",
        registry::ADDRESS
    );
    let xtask = std::env::current_exe()?.with_file_name("xtask");
    let name = format!("{name}{suffix}");
    let args = [
        xtask.as_os_str(),
        "push".as_ref(),
        layout.as_os_str(),
        "--registry".as_ref(),
        name.as_ref(),
    ];
    let pushed = instance::command(places, &args)?.output().context("running xtask")?;
    let output = String::from_utf8_lossy(&pushed.stdout);
    ensure!(
        pushed.status.success() && output.trim() == format!("{name}@{digest}"),
        "{image} was not pushed: {output}{}",
        String::from_utf8_lossy(&pushed.stderr)
    );
    Ok(())
}
