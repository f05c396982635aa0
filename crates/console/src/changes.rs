//! Batches of changes, for pages that are open.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use metal3_domain::clock::Clock;
use metal3_explain::text::printable_text;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::broadcast;

use crate::about;
use crate::fleet::{Fleet, Row};
use crate::login::Login;
use crate::objects::Key;
use crate::shared::Shared;

/// Changes come in bursts, which reach pages together.
const BURST: Duration = Duration::from_millis(100);
/// Batches that a slow page may be late by; then it reads all again.
const BATCHES: usize = 64;
/// Rows of a batch. A larger one, such as the first list, has pages read all again.
const MOST_ROWS: usize = 1_000;
/// Namespaces that a batch names.
const MOST_NAMESPACES: usize = 50;

/// The fleet, and who follows it.
pub(crate) struct Changes {
    pub(crate) shared: Arc<Shared>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) login: Arc<Login>,
    pub(crate) waits: about::Waits,
    state: Mutex<State>,
    batches: broadcast::Sender<Bytes>,
}

#[derive(Default)]
struct State {
    fleet: Fleet,
    version: u64,
    /// With the turn of the login that it shows.
    document: Option<(u64, Bytes)>,
}

/// One batch, as pages get it.
#[derive(Serialize)]
struct Batch<'a> {
    version: u64,
    rows: Vec<&'a Row>,
    gone: &'a [Key],
    /// Whether pages have to read all again.
    all: bool,
    /// Namespaces with changes; empty for all.
    namespaces: BTreeSet<&'a str>,
    scope: about::Scope,
}

/// The whole fleet, as pages get it.
#[derive(Serialize)]
struct Whole<'a> {
    version: u64,
    rows: Vec<&'a Row>,
    scope: about::Scope,
}

impl Changes {
    pub(crate) fn new(shared: Arc<Shared>, clock: Arc<dyn Clock>, login: Arc<Login>) -> Self {
        Self {
            shared,
            clock,
            login,
            waits: about::Waits::default(),
            state: Mutex::default(),
            batches: broadcast::channel(BATCHES).0,
        }
    }

    /// Computes and sends batches until it is dropped.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut turns = self.login.subscribe();
        loop {
            tokio::select! {
                () = self.shared.changed.notified() => {}
                _ = turns.changed() => {}
            }
            tokio::time::sleep(BURST).await;
            let own = Arc::clone(&self);
            // A first list of thousands of hosts takes a while.
            drop(tokio::task::spawn_blocking(move || own.batch()).await);
        }
    }

    fn batch(&self) {
        let changes = self.shared.take_changed();
        let mut state = self.state.lock();
        let delta = state.fleet.apply(&self.shared, &changes);
        state.version += 1;
        state.document = None;
        // Rows that were computed before another user logged in reach no page after that.
        let all = delta.rows.len() > MOST_ROWS || self.login.is_hidden();
        let mut namespaces: BTreeSet<&str> = changes.iter().map(|change| change.namespace.as_str()).collect();
        if all || namespaces.len() > MOST_NAMESPACES {
            namespaces.clear();
        }
        let batch = Batch {
            version: state.version,
            rows: delta.rows.iter().filter(|_| !all).map(AsRef::as_ref).collect(),
            gone: if all { &[] } else { &delta.gone },
            all,
            namespaces,
            scope: about::scope(self),
        };
        // Without pages there is no receiver.
        drop(self.batches.send(document(&batch)));
    }

    /// The batches from now on, and the version of the fleet before them.
    pub(crate) fn subscribe(&self) -> (u64, broadcast::Receiver<Bytes>) {
        let state = self.state.lock();
        (state.version, self.batches.subscribe())
    }

    /// All rows.
    pub(crate) fn fleet(&self) -> Bytes {
        let mut state = self.state.lock();
        let turn = self.login.turn();
        if let Some((_, known)) = state.document.as_ref().filter(|(shown, _)| *shown == turn) {
            return known.clone();
        }
        let fresh = document(&Whole {
            version: state.version,
            rows: state.fleet.rows().map(AsRef::as_ref).collect(),
            scope: about::scope(self).without_time(),
        });
        state.document = Some((turn, fresh.clone()));
        fresh
    }
}

/// A document for a page. What would turn the direction of text is replaced.
pub(crate) fn document(value: &impl Serialize) -> Bytes {
    let text = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
    Bytes::from(printable_text(&text))
}
