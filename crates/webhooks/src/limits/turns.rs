//! What each address does one after the other.
//!
//! Reviews wait for memory in the order of their arrival, whatever their number. So of one address only one waits at a
//! time, and the others of it wait for their turn first: another address waits for one of them at most.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// Questions of one address that are asked at once.
const QUESTIONS_OF_ONE: usize = 8;

/// The turns of all addresses; clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Turns(Arc<Mutex<BTreeMap<Option<IpAddr>, Weak<Turn>>>>);

/// The turns of an address.
#[derive(Debug)]
pub(super) struct Turn {
    /// To wait for memory.
    pub(super) memory: tokio::sync::Mutex<()>,
    /// To ask the API server.
    pub(super) questions: Semaphore,
}

impl Turns {
    /// The turns of an address, shared while one of its requests is under way.
    pub(super) fn of(&self, client: Option<IpAddr>) -> Arc<Turn> {
        let mut turns = self.0.lock();
        if let Some(turn) = turns.get(&client).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::new(Turn {
            memory: tokio::sync::Mutex::default(),
            questions: Semaphore::new(QUESTIONS_OF_ONE),
        });
        turns.insert(client, Arc::downgrade(&turn));
        turn
    }
}
