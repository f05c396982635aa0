//! Every version of every object that the API server had, in order: what is shown under a failure.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use metal3_capisim::view::Object;
use metal3_capisim::watch::{News, follow};
use metal3_manager::sandbox::world::{World, all_kinds};
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The lines, by the version that each tells of.
#[derive(Debug, Clone, Default)]
pub(super) struct Journal(Arc<Mutex<BTreeMap<u64, String>>>);

impl Journal {
    /// Keeps one, as long as the tasks live.
    pub(super) fn keep(world: &World, tasks: &mut JoinSet<()>) -> Self {
        let journal = Self::default();
        let (to, mut news) = unbounded_channel();
        for kind in all_kinds() {
            let name = kind.kind;
            let say = move |news| (name, news);
            tasks.spawn(follow(world.cluster.client("journal"), kind, None, to.clone(), say));
        }
        let (lines, start) = (journal.clone(), Instant::now());
        tasks.spawn(async move {
            while let Some((kind, news)) = news.recv().await {
                let seconds = start.elapsed().as_secs_f64();
                lines.note(kind, &news, seconds);
            }
        });
        journal
    }

    fn note(&self, kind: &str, news: &News, seconds: f64) {
        let (object, verb) = match news {
            News::Seen(object) => (object, if object.is_going() { "is going" } else { "is" }),
            News::Gone(object) => (object, "is gone"),
            News::Listed(_) => return,
        };
        let line = format!("{seconds:10.3} s  {kind} {} {verb} {}", object.key(), state(object));
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.entry(object.version()).or_insert(line);
    }

    /// All lines.
    pub(super) fn lines(&self) -> Vec<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.values().map(|line| line.trim_end().to_owned()).collect()
    }
}

/// What is worth a word of an object's state.
fn state(object: &Object) -> String {
    let known = [
        "/status/phase",
        "/status/provisioning/state",
        "/status/errorMessage",
        "/status/nodeRef/name",
    ];
    let said = known.iter().map(|at| object.text(at)).filter(|text| !text.is_empty());
    said.collect::<Vec<_>>().join(", ")
}
