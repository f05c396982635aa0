//! Who looks on: a watch of each kind, whose every version is told, so nothing is missed that lasted for a moment. A script
//! begins when all of them have told what there was before.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use metal3_scenario::Observed;
use serde_json::Value;

use super::kinds::Kinds;
use crate::claims::world::World;
use crate::pki::{ADMIN, AUTHORITY};
use crate::wait::until;

/// Longer than any script.
const LONGEST: &str = "7200";
/// A server that has only learned of many kinds takes a while.
const READY: Duration = Duration::from_secs(120);
const BOOKMARK: &str = "\"type\":\"BOOKMARK\"";

/// The watches of a namespace; they end with it.
pub(super) struct Seen {
    watches: Vec<(Child, PathBuf)>,
}

impl Seen {
    /// Looks on from here.
    pub(super) fn begin(world: &World, kinds: &Kinds, namespace: &str) -> anyhow::Result<Self> {
        let folder = world.places.state_file("seen").join(namespace);
        fs::create_dir_all(&folder)?;
        let mut seen = Self { watches: Vec::new() };
        let server = format!("https://{}:6443", world.places.node_address());
        for place in kinds.all() {
            let path = folder.join(place.resource());
            let url = format!(
                "{server}{}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true\
                 &timeoutSeconds={LONGEST}",
                place.path(namespace)
            );
            // A server that has only learned of a kind says 429 for a moment.
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
                .arg(world.places.certificate(AUTHORITY))
                .arg("--cert")
                .arg(world.places.certificate(ADMIN))
                .arg("--key")
                .arg(world.places.key(ADMIN))
                .arg(url)
                .stdin(Stdio::null())
                .stdout(File::create(&path)?)
                .spawn()
                .context("running curl")?;
            seen.watches.push((child, path));
        }
        for (_, path) in &seen.watches {
            until(READY, &format!("the watch of {}", path.display()), || {
                // A bookmark ends what there was before.
                Ok(fs::read_to_string(path)?.contains(BOOKMARK).then_some(()))
            })?;
        }
        Ok(seen)
    }

    /// What objects said of themselves until now.
    pub(super) fn end(mut self) -> anyhow::Result<Observed> {
        let mut observed = Observed::default();
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

impl Drop for Seen {
    fn drop(&mut self) {
        for (child, _) in &mut self.watches {
            child.kill().unwrap_or_default();
            child.wait().map(drop).unwrap_or_default();
        }
    }
}

/// A line for each version. The last may be half written.
fn note(observed: &mut Observed, path: &Path) -> anyhow::Result<()> {
    let text = fs::read_to_string(path)?;
    let end = text.rfind('\n').unwrap_or_default();
    for line in text.get(..end).unwrap_or_default().lines() {
        let event: Value = serde_json::from_str(line).with_context(|| format!("in {}", path.display()))?;
        anyhow::ensure!(event["type"] != "ERROR", "the watch says {}", event["object"]);
        if event["type"] != "BOOKMARK" {
            observed.note(&event["object"]);
        }
    }
    Ok(())
}
