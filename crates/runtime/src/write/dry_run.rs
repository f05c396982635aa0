//! Who learns what a dry run does not send.

use std::fmt;
use std::sync::Arc;

use crate::cache::Key;

use super::effect::Effect;
use super::writer::Mode;

/// Receives what a dry run decides. Without one it is logged only.
pub trait DryRunObserver: Send + Sync {
    /// A write was not sent.
    fn write(&self, effect: &Effect);

    /// A request to another system, for this object of `kind`, was not sent. `interrupts`: it may interrupt or erase a machine.
    fn order(&self, kind: &str, object: &Key, verb: &'static str, interrupts: bool);

    /// A reconcile ended; `failure` says why what it would do is not known.
    fn reconciled(&self, controller: &'static str, key: &str, failure: Option<String>);
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
