//! Records events.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::api::core::v1::ObjectReference;
use kube_core::Resource;
use tokio::sync::mpsc;

use crate::reason::Reason;

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Importance {
    /// For the record.
    Normal,
    /// A problem.
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

/// An event about an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The object.
    pub about: ObjectReference,
    /// The type.
    pub importance: Importance,
    /// For programs.
    pub reason: Reason,
    /// For people. No secrets: everyone who may read events reads it.
    pub note: String,
}

/// Counts of recorded events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventStats {
    /// Dropped because the queue was full.
    pub dropped: u64,
    /// Not written because the API server rejected them.
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

/// Records events. Clones share the queue.
#[derive(Debug, Clone)]
pub struct EventRecorder {
    sender: mpsc::Sender<Event>,
    counters: Arc<Counters>,
}

/// Recorded events until they are published.
#[derive(Debug)]
pub struct EventQueue {
    pub(super) receiver: mpsc::Receiver<Event>,
    pub(super) counters: Arc<Counters>,
}

impl EventRecorder {
    /// A recorder and its queue of at most `capacity` events.
    #[must_use]
    pub fn bounded(capacity: usize) -> (Self, EventQueue) {
        let (sender, receiver) = mpsc::channel(capacity.max(1));
        let counters = Arc::new(Counters::default());
        let recorder = Self {
            sender,
            counters: Arc::clone(&counters),
        };
        (recorder, EventQueue { receiver, counters })
    }

    /// Records an event about `object`. Never waits; without room in the queue the event is dropped and counted.
    pub fn record<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        importance: Importance,
        reason: Reason,
        note: impl Into<String>,
    ) {
        let event = Event {
            about: ObjectReference {
                // A series belongs to the object, not to one version.
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

    /// The counts so far.
    #[must_use]
    pub fn stats(&self) -> EventStats {
        EventStats {
            dropped: self.counters.dropped.load(Ordering::Relaxed),
            failed: self.counters.failed.load(Ordering::Relaxed),
            written: self.counters.written.load(Ordering::Relaxed),
        }
    }
}

impl EventQueue {
    /// The recorded events since the last call, in order.
    pub fn take(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.receiver.try_recv().ok()).collect()
    }
}
