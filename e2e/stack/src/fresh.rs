//! A suite about a release, on a stack that nobody else uses: started for it, and gone after it.
//!
//! The program runs itself again in the stack's network. What does not hold leaves the stack's logs, and nothing else.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;

use crate::life;
use crate::places::Places;
use crate::supervise::Extent;

/// What is proved.
#[derive(Debug, Args)]
pub(crate) struct Released {
    /// Folder that `make release` has written.
    #[arg(long)]
    pub(crate) release: PathBuf,
    /// The binary of that release.
    #[arg(long)]
    pub(crate) binary: PathBuf,
    /// Set by the command itself: it is in the stack's network now.
    #[arg(long, hide = true)]
    pub(crate) inside: bool,
}

impl Released {
    pub(crate) fn files(&self) -> [&PathBuf; 2] {
        [&self.release, &self.binary]
    }

    /// The same on a command line that is run inside.
    fn words(&self) -> anyhow::Result<Vec<OsString>> {
        let mut words: Vec<OsString> = vec!["--inside".into()];
        for (flag, path) in [("--release", &self.release), ("--binary", &self.binary)] {
            words.extend([flag.into(), std::fs::canonicalize(path)?.into()]);
        }
        Ok(words)
    }

    /// Starts the stack, does what is left to do before, runs the suite in it with these words and its own, and stops the
    /// stack; whether all of it held.
    pub(crate) fn prove(
        &self,
        places: &Places,
        before: impl FnOnce() -> anyhow::Result<()>,
        suite: Vec<OsString>,
    ) -> anyhow::Result<bool> {
        life::down(places)?;
        up(places)?;
        if let Err(error) = before() {
            life::down(places)?;
            return Err(error);
        }
        let held = life::command(places, &self.again(places, suite)?)?.status()?.success();
        if !held {
            println!("logs are kept in {}", crate::claims::keep_logs(places)?.display());
        }
        life::down(places)?;
        Ok(held)
    }

    fn again(&self, places: &Places, suite: Vec<OsString>) -> anyhow::Result<Vec<OsString>> {
        let program = std::env::current_exe()?.into_os_string();
        let mut words = vec![program, "--cache".into(), places.cache().into()];
        words.extend(["--name".into(), OsString::from(&places.name)]);
        words.extend(["--network".into(), places.network().to_string().into()]);
        words.extend(suite);
        words.extend(self.words()?);
        Ok(words)
    }
}

/// A stack whose Pods learn of changes within a second.
pub(crate) fn up(places: &Places) -> anyhow::Result<()> {
    life::up(places, &Extent::with_kubelet_flags(&["--refresh=1"]))
}

/// What is missing is named with the command that makes it.
pub(crate) fn ensure_made<'a>(files: impl IntoIterator<Item = &'a PathBuf>, by: &str) -> anyhow::Result<()> {
    for file in files {
        ensure!(file.exists(), "{} is missing: run `{by}`", file.display());
    }
    Ok(())
}
