//! Who learns what a dry run does not send.
//!
//! With an observer a reconcile goes on as if each of its merge patches of a cached object had been done: otherwise an order that
//! follows the record of it would never be seen. The next reconcile may begin with the object as it is: a cache that has reached a
//! later version keeps that. What a server would add is not known, so other writes count as not done.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::cache::Key;

use super::effect::Effect;
use super::target::{Writable, WriteTarget};
use super::writer::Mode;
use crate::cache::AnswerContent;
use crate::patch::apply;
use crate::queue::RequestSource;
use crate::version::ResourceVersion;

/// Receives what a dry run decides. Without one it is logged only.
pub trait DryRunObserver: Send + Sync {
    /// A write was not sent.
    fn write(&self, effect: &Effect);

    /// A request to another system, for this object of `kind`, was not sent. `interrupts`: it may interrupt or erase a machine.
    fn order(&self, kind: &str, object: &Key, verb: &'static str, interrupts: bool);

    /// Work began or ended.
    fn works(&self, work: Work, began: bool);

    /// A reconcile ended; `failure` says why what it would do is not known.
    fn reconciled(&self, controller: &'static str, key: &str, failure: Option<String>);
}

/// What a controller does in a dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// It waits for the first lists of what it reads.
    FirstLists,
    /// It reconciles a key.
    Reconcile,
}

/// Whether writes are sent, and who learns of those that are not.
#[derive(Clone)]
pub struct WriteMode {
    pub(super) mode: Mode,
    pub(super) observer: Option<Arc<dyn DryRunObserver>>,
}

impl WriteMode {
    /// A dry run that is reported to `observer`.
    #[must_use]
    pub fn observed_by(observer: Arc<dyn DryRunObserver>) -> Self {
        Self {
            mode: Mode::ObserveOnly,
            observer: Some(observer),
        }
    }
}

impl From<Mode> for WriteMode {
    fn from(mode: Mode) -> Self {
        Self { mode, observer: None }
    }
}

impl fmt::Debug for WriteMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.mode.fmt(f)
    }
}

/// The media type of a merge patch.
const MERGE: &str = "application/merge-patch+json";

/// Puts the object into its cache as the request would leave it, and returns it. None when that is not known.
pub(super) fn assume<K: Writable>(
    target: &impl WriteTarget<K>,
    (source, key): (Option<&RequestSource>, &Key),
    request: &http::Request<Vec<u8>>,
) -> Option<K> {
    let kind = request.headers().get(http::header::CONTENT_TYPE)?;
    let patch: Value = serde_json::from_slice(request.body()).ok().filter(|_| kind == MERGE)?;
    let before = target.cached(key)?;
    let version: u64 = before.meta().resource_version.as_deref()?.parse().ok()?;
    let mut document = serde_json::to_value(&before).ok()?;
    apply(&patch, &mut document);
    let mut after: K = serde_json::from_value(document).ok()?;
    let meta = after.meta_mut();
    meta.resource_version = Some(version.saturating_add(1).to_string());
    // The server removes an object with its last finalizer.
    let is_left = meta.deletion_timestamp.is_none() || meta.finalizers.as_ref().is_some_and(|all| !all.is_empty());
    let written = is_left.then(|| target.begin_write(source, key))?;
    written.wrote(&after, AnswerContent::OwnChange).ok()?;
    Some(after)
}

/// The cached object, if an assumed write made it newer than what the server has.
pub(super) fn newer<K: Writable>(target: &impl WriteTarget<K>, key: &Key, found: &K) -> Option<K> {
    let version = |object: &K| ResourceVersion::parse(object.meta().resource_version.as_deref()?).ok();
    target.cached(key).filter(|cached| version(cached) > version(found))
}
