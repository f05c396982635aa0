//! How a simulated Ironic starts.

use std::sync::Arc;

use metal3_domain::clock::Clock;
use metal3_ironic::version::{Microversion, Range};
use metal3_sim_bmc::profile::Profile;

use crate::machine::Pace;

/// How an Ironic starts.
#[derive(Debug, Clone)]
pub struct Options {
    /// What identities follow from.
    pub seed: u64,
    /// How long things take.
    pub pace: Pace,
    /// The dialects that it understands.
    pub versions: Range,
    /// Where the time comes from. Waiting follows the timers of the async runtime, so use a clock that does, too.
    pub clock: Arc<dyn Clock>,
    /// What the machines are made of, dealt out in turn. Empty: every machine is a `small` one.
    pub profiles: Vec<Profile>,
}

impl Options {
    /// An Ironic like the one that the claims are held against.
    #[must_use]
    pub fn new(seed: u64, clock: Arc<dyn Clock>) -> Self {
        Self {
            seed,
            pace: Pace::default(),
            versions: Range {
                minimum: Microversion::minor(1),
                maximum: Microversion::minor(115),
            },
            clock,
            profiles: Vec::new(),
        }
    }
}
