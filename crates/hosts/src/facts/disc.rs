//! What a decision about the disc of a host knows: its DataImage, the virtual drive, and the attempts so far.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::DataImage;
use metal3_runtime::plan::Observed;

use super::HostFreshness;
use crate::node::drive::Drive;

/// After so many failures that are about the disc the host starts without it.
pub const DISC_ATTEMPTS: u32 = 3;

/// The disc of a host.
#[derive(Debug, Clone)]
pub struct DiscFacts<'a> {
    /// The DataImage with the host's name.
    pub object: Observed<&'a DataImage>,
    /// How fresh that observation is.
    pub freshness: HostFreshness,
    /// The virtual drive, read since the last change of the node in this reconcile.
    pub drive: Observed<&'a DriveView>,
    /// What this process has done about the disc since the machine was last on.
    pub attempts: DiscAttempts,
}

/// The result of a read of the virtual drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriveView {
    /// The BMC answered.
    Known(Drive),
    /// Ironic does not read it, however often it is asked: why.
    Unsupported(String),
    /// Ironic asked the BMC without success: why.
    Failed(String),
}

/// A request about the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiscOrder {
    /// A disc is inserted.
    Insert,
    /// All discs are ejected.
    Eject,
}

/// Why Ironic did not accept an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscRefusal {
    /// Its message, without secrets.
    pub message: String,
    /// Whether the same order will be rejected however often it is sent.
    pub is_final: bool,
}

/// What this process has done about the disc since the machine was last on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiscAttempts {
    /// Failures that are about the disc, or its BMC: not those of an unreachable Ironic or a locked node.
    pub failures: u32,
    /// Nothing more is attempted before the machine starts.
    pub is_over: bool,
    /// The last failure, as reported.
    pub message: Option<String>,
    /// The rest of the delay after a failure.
    pub delay_left: Option<Duration>,
    /// The last order that Ironic accepted.
    pub ordered: Option<DiscOrder>,
    /// An Event says that the last order had its effect.
    pub is_announced: bool,
    /// The last order was rejected, which is not counted yet.
    pub refused: Option<DiscRefusal>,
    /// How long Ironic may still begin with an order that another process sent. `None`: it has ended it.
    pub earlier_left: Option<Duration>,
    /// How long the BMC may still show the drive as it was before the last order.
    pub settling_left: Option<Duration>,
}

impl DiscAttempts {
    /// Whether there was one.
    #[must_use]
    pub const fn is_begun(&self) -> bool {
        self.failures > 0 || self.is_over || self.ordered.is_some() || self.refused.is_some()
    }
}
