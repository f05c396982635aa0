//! What objects of others say of an endpoint, while somebody asks.
//!
//! A kind is watched from the first question to the last: who asks for nothing costs nothing. A pass asks with
//! [`Sources::look`], and is woken when the answer changes. A kind that is not served, or that we may not list, is tried
//! again every so often.
//!
//! A template for an endpoint is the same, but that one ConfigMap is watched, and no other.
//!
//! Which version of a kind is read follows from discovery, which everybody may ask for: the place of an endpoint is the
//! same in all versions of the contract.

mod discover;
mod foreign;
mod nudge;
mod templates;
mod watched;

use std::fmt;

use metal3_runtime::cache::Key;
pub use metal3_runtime::watch::WakeFn;

use crate::endpoint::reading::{Readings, Wanted};

pub use foreign::{EndpointSources, Foreign};
pub(in crate::controller) use nudge::wake;
pub use nudge::{KamajiControlPlane, Nudging};
pub use watched::Watched;

/// Access to what others say.
pub trait Sources: fmt::Debug + Send + Sync + 'static {
    /// From now on those who wait are woken this way.
    fn set_wake(&self, wake: WakeFn);

    /// What is known of the objects that `waiter` wants; nothing while the first answer is on its way. From now on it
    /// waits for these, and for no others.
    fn look(&self, waiter: &Key, wanted: &Wanted) -> Option<Readings>;
}
