//! The side of those who tell.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::api::core::v1::ObjectReference;
use kube_core::Resource;
use tokio::sync::mpsc;

use crate::reason::Reason;

/// Whether somebody should look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Importance {
    /// For the record.
    Normal,
    /// Something is wrong.
    Warning,
}

impl Importance {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// Something that happened to an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The object.
    pub about: ObjectReference,
    /// Whether somebody should look.
    pub importance: Importance,
    /// For programs.
    pub reason: Reason,
    /// For people. No secrets: whoever may read events reads it.
    pub note: String,
}

/// What became of the events told so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventStats {
    /// Lost because the publisher did not keep up.
    pub dropped: u64,
    /// Lost because the API server did not take them.
    pub failed: u64,
    /// Writes to the API server.
    pub written: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) dropped: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) written: AtomicU64,
}

impl Counters {
    fn stats(&self) -> EventStats {
        EventStats {
            dropped: self.dropped.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            written: self.written.load(Ordering::Relaxed),
        }
    }
}

/// Where events are told. Clones share it.
#[derive(Debug, Clone)]
pub struct EventRecorder {
    sender: mpsc::Sender<Event>,
    counters: Arc<Counters>,
}

/// Where told events lie until somebody takes them.
#[derive(Debug)]
pub struct EventQueue {
    pub(super) receiver: mpsc::Receiver<Event>,
    pub(super) counters: Arc<Counters>,
}

impl EventRecorder {
    /// A sink and its inbox, which holds at most `capacity` events.
    #[must_use]
    pub fn bounded(capacity: usize) -> (Self, EventQueue) {
        let (sender, receiver) = mpsc::channel(capacity.max(1));
        let counters = Arc::new(Counters::default());
        let sink = Self {
            sender,
            counters: Arc::clone(&counters),
        };
        (sink, EventQueue { receiver, counters })
    }

    /// Tells that something happened to `object`. Never waits; an event that finds no room is counted and lost.
    pub fn record<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        importance: Importance,
        reason: Reason,
        note: impl Into<String>,
    ) {
        let event = Event {
            about: ObjectReference {
                // A series follows the object, not its versions.
                resource_version: None,
                ..object.object_ref(&())
            },
            importance,
            reason,
            note: note.into(),
        };
        if self.sender.try_send(event).is_err() {
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What became of the events told so far.
    #[must_use]
    pub fn stats(&self) -> EventStats {
        self.counters.stats()
    }
}

impl EventQueue {
    /// What was told since the last look, in order.
    pub fn take(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.receiver.try_recv().ok()).collect()
    }
}
