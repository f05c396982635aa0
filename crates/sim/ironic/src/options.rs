//! Options of a simulated Ironic.

use std::sync::Arc;

use metal3_domain::clock::Clock;
use metal3_ironic::version::{Microversion, Range};
use metal3_sim_bmc::profile::Profile;

use crate::machine::Pace;

/// Options of a simulated Ironic.
#[derive(Debug, Clone)]
pub struct Options {
    /// The seed of UUIDs.
    pub seed: u64,
    /// Durations of operations.
    pub pace: Pace,
    /// Supported microversions.
    pub versions: Range,
    /// The clock. The simulator sleeps with the timers of the async runtime, so the clock must follow them.
    pub clock: Arc<dyn Clock>,
    /// Hardware profiles, assigned round-robin. When empty, every machine is `small`.
    pub profiles: Vec<Profile>,
}

impl Options {
    /// Options of the Ironic release that the claims are checked on.
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
