//! The critical section of a cache.
//!
//! One thread at a time is inside. A thread that is inside one cache and enters another could deadlock with a thread
//! that does the reverse, and no test finds that reliably. So a build with debug assertions panics at the first
//! attempt.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

use parking_lot::{Mutex, MutexGuard};

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Proof of being inside.
pub(super) struct Section<'a, T>(MutexGuard<'a, T>);

impl<'a, T> Section<'a, T> {
    pub(super) fn enter(lock: &'a Mutex<T>) -> Self {
        let was_inside = INSIDE.replace(true);
        debug_assert!(!was_inside, "a subscriber of a cache must not use a cache");
        Self(lock.lock())
    }
}

impl<T> Drop for Section<'_, T> {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

impl<T> Deref for Section<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Section<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
