//! Watches each kind and records each version, so that no transient state is missed. A script starts after all watches have
//! delivered the initial objects.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use metal3_scenario::ObservedStates;
use serde_json::Value;

use super::kinds::Kinds;
use crate::claims::stack::Stack;
use crate::pki::{ADMIN, AUTHORITY};
use crate::wait::until;

/// Longer than any script.
const WATCH_TIMEOUT: &str = "7200";
/// A server with new CRDs needs a while.
const READY: Duration = Duration::from_secs(120);
const BOOKMARK: &str = "\"type\":\"BOOKMARK\"";

/// The watches of a namespace; dropping it ends them.
pub(super) struct StateWatches {
    watches: Vec<(Child, PathBuf)>,
}

impl StateWatches {
    pub(super) fn begin(stack: &Stack, kinds: &Kinds, namespace: &str) -> anyhow::Result<Self> {
        let folder = stack.places.state_file("seen").join(namespace);
        fs::create_dir_all(&folder)?;
        let mut state_watches = Self { watches: Vec::new() };
        let server = format!("https://{}:6443", stack.places.node_address());
        for place in kinds.all() {
            let path = folder.join(place.resource());
            let url = format!(
                "{server}{}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true\
                 &timeoutSeconds={WATCH_TIMEOUT}",
                place.path(namespace)
            );
            // The server answers 429 for a moment after a CRD is created.
            let child = Command::new("curl")
                .args([
                    "--silent",
                    "--show-error",
                    "--fail",
                    "--no-buffer",
                    "--retry",
                    "20",
                    "--cacert",
                ])
                .arg(stack.places.certificate(AUTHORITY))
                .arg("--cert")
                .arg(stack.places.certificate(ADMIN))
                .arg("--key")
                .arg(stack.places.key(ADMIN))
                .arg(url)
                .stdin(Stdio::null())
                .stdout(File::create(&path)?)
                .spawn()
                .context("running curl")?;
            state_watches.watches.push((child, path));
        }
        for (_, path) in &state_watches.watches {
            until(READY, &format!("the watch of {}", path.display()), || {
                // The bookmark ends the initial list.
                Ok(fs::read_to_string(path)?.contains(BOOKMARK).then_some(()))
            })?;
        }
        Ok(state_watches)
    }

    /// Ends the watches; returns the observed states.
    pub(super) fn end(mut self) -> anyhow::Result<ObservedStates> {
        let mut observed = ObservedStates::default();
        for (child, path) in &mut self.watches {
            let ended = child.try_wait()?;
            anyhow::ensure!(ended.is_none(), "the watch of {} broke", path.display());
            child.kill()?;
            child.wait()?;
            note(&mut observed, path)?;
        }
        self.watches.clear();
        Ok(observed)
    }
}

impl Drop for StateWatches {
    fn drop(&mut self) {
        for (child, _) in &mut self.watches {
            child.kill().unwrap_or_default();
            child.wait().map(drop).unwrap_or_default();
        }
    }
}

/// Reads an event per line. The last line may be incomplete.
fn note(observed: &mut ObservedStates, path: &Path) -> anyhow::Result<()> {
    let text = fs::read_to_string(path)?;
    let end = text.rfind('\n').unwrap_or_default();
    for line in text.get(..end).unwrap_or_default().lines() {
        let event: Value = serde_json::from_str(line).with_context(|| format!("in {}", path.display()))?;
        anyhow::ensure!(event["type"] != "ERROR", "the watch reports {}", event["object"]);
        if event["type"] != "BOOKMARK" {
            observed.record(&event["object"]);
        }
    }
    Ok(())
}
