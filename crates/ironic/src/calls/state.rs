//! Power, boot, RAID and network states of a node.

use std::time::Duration;

use serde_json::{Value, json};

use super::NodeRef;
use crate::model::node::{BootDevice, States, Vif};
use crate::model::page::{self, Page};
use crate::request::{Call, Effect, Method, order, read, read_with};

/// A change of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Power {
    /// Switch on.
    On,
    /// Switch off at once.
    Off,
    /// Ask the operating system to shut down, and switch off after this time.
    SoftOff(Duration),
    /// Off and on at once.
    Reboot,
    /// Ask the operating system to shut down, then start again.
    SoftReboot,
}

impl Power {
    fn into_body(self) -> Value {
        match self {
            Self::On => json!({"target": "power on"}),
            Self::Off => json!({"target": "power off"}),
            Self::SoftOff(limit) => json!({"target": "soft power off", "timeout": limit.as_secs().max(1)}),
            Self::Reboot => json!({"target": "rebooting"}),
            Self::SoftReboot => json!({"target": "soft rebooting"}),
        }
    }

    /// Whether it interrupts a running system, so that it requires an audit line.
    #[must_use]
    pub const fn is_destructive(self) -> bool {
        match self {
            Self::Off | Self::SoftOff(_) | Self::Reboot | Self::SoftReboot => true,
            Self::On => false,
        }
    }
}

/// The states of a node.
#[must_use]
pub fn get(node: &NodeRef) -> Call<States> {
    read("read the states of a node", &["nodes", node.segment(), "states"])
}

/// Requests a change of power.
#[must_use]
pub fn set_power(node: &NodeRef, power: Power) -> Call<()> {
    let path = ["nodes", node.segment(), "states", "power"];
    // A machine without soft power off rejects it with 400: the argument is the verb itself.
    let arguments = matches!(power, Power::SoftOff(_) | Power::SoftReboot);
    let effect = Effect::Transition { arguments };
    order("change the power state", Method::Put, &path, effect).with_body(power.into_body())
}

/// Sets the logical disks for the next cleaning. None: the order is cleared.
#[must_use]
pub fn set_target_raid(node: &NodeRef, logical_disks: &[Value]) -> Call<()> {
    let path = ["nodes", node.segment(), "states", "raid"];
    let body = if logical_disks.is_empty() {
        json!({})
    } else {
        json!({"logical_disks": logical_disks})
    };
    order("set the wanted RAID", Method::Put, &path, Effect::Repeatable).with_body(body)
}

/// The boot device. Reading it changes `updated_at` of the node.
#[must_use]
pub fn boot_device(node: &NodeRef) -> Call<BootDevice> {
    read(
        "read the boot device",
        &["nodes", node.segment(), "management", "boot_device"],
    )
}

/// Sets the boot device.
#[must_use]
pub fn set_boot_device(node: &NodeRef, device: &str, persistent: bool) -> Call<()> {
    let path = ["nodes", node.segment(), "management", "boot_device"];
    let body = json!({"boot_device": device, "persistent": persistent});
    order("set the boot device", Method::Put, &path, Effect::Repeatable).with_body(body)
}

/// The attached networks.
#[must_use]
pub fn vifs(node: &NodeRef) -> Call<Page<Vif>> {
    read_with("list attached networks", &["nodes", node.segment(), "vifs"], |body| {
        page::decode("vifs", body)
    })
}
