//! What this process requested of Ironic and has not seen end.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use metal3_domain::ids::NodeUuid;
use metal3_ironic::calls::provision::Step;
use metal3_ironic::model::node::Node;
use serde_json::Value;

use crate::node::bios;
use crate::node::firmware::{self, Files};

/// Reports about the present generation of an object that the API server refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RefusedReports {
    /// That about the HostFirmwareSettings.
    pub settings: bool,
    /// That about the HostFirmwareComponents.
    pub components: bool,
    /// The owner of the HostUpdatePolicy.
    pub policy: bool,
}

/// A reboot of a running machine that this process requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestedReboot {
    /// Ironic accepted the request.
    Accepted,
    /// No response arrived. The node as it was before the request.
    Unanswered(NodeMark),
}

impl RequestedReboot {
    /// Whether Ironic accepted the request, as far as this later observation of the node shows.
    #[must_use]
    pub fn is_accepted(&self, node: &Node) -> bool {
        match self {
            Self::Accepted => true,
            Self::Unanswered(before) => *before != NodeMark::of(node),
        }
    }
}

/// What Ironic changes in a node when it accepts a power change. Its times are compared with each other only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeMark {
    updated_at: Option<DateTime<Utc>>,
    reservation: Option<String>,
    target_power_state: Option<String>,
}

impl NodeMark {
    /// The mark of a node.
    #[must_use]
    pub fn of(node: &Node) -> Self {
        Self {
            updated_at: node.updated_at,
            reservation: node.reservation.clone(),
            target_power_state: node.target_power_state.clone(),
        }
    }
}

/// A cleaning or a service for the settings of the BIOS or updates of the firmware.
#[derive(Debug, Clone, PartialEq)]
pub struct CleaningOrder {
    /// The node.
    pub node: NodeUuid,
    /// The values that it sets, by the name of the setting.
    pub settings: BTreeMap<String, Value>,
    /// The updates of the firmware that it makes and that are not recorded as ended.
    pub files: Files,
    /// Those of them that have not ended, as this process saw them last. `None`: it saw none of them begin.
    pub left: Option<Files>,
    /// It has no step for the disks.
    pub is_only: bool,
    /// What is known of it.
    pub progress: CleaningProgress,
}

impl CleaningOrder {
    /// Whether these steps are those of the order, and not of another client.
    #[must_use]
    pub fn is_of_steps(&self, steps: &[Step]) -> bool {
        let settings = bios::settings_of(steps).unwrap_or_default();
        !steps.is_empty()
            && self.settings.keys().eq(settings.keys())
            && self.files.is_subset(&firmware::in_steps(steps))
    }
}

/// What is known of a cleaning or a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CleaningProgress {
    /// No response arrived.
    Unconfirmed,
    /// Ironic accepted it, or the node shows it.
    Begun,
    /// The node shows that it failed.
    Failed,
}
