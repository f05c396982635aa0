//! Transitions of the provision state.

use serde::Serialize;
use serde_json::{Value, json};

use super::NodeRef;
use crate::request::{Call, Effect, Method, order};
use crate::text::{self, ControlCharacter};

/// One step of cleaning, deploying or servicing. `Debug` shows no arguments.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// `bios`, `raid`, `firmware`, `deploy`, `management`.
    pub interface: String,
    /// Its name.
    pub step: String,
    /// Its arguments.
    pub args: serde_json::Map<String, Value>,
    /// Its priority among deploy steps; other steps have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u16>,
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.interface, self.step)
    }
}

/// The config drive of the first boot: an object with `meta_data`, `network_data` and `user_data`. Secret.
#[derive(Clone, Default, PartialEq)]
pub struct ConfigDrive(pub serde_json::Map<String, Value>);

impl std::fmt::Debug for ConfigDrive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ConfigDrive(not shown)")
    }
}

/// A transition.
#[derive(Debug, Clone, PartialEq)]
pub enum Transition {
    /// Manage the node, or return it from a failure.
    Manage,
    /// Inspect the hardware.
    Inspect,
    /// Adopt a running machine.
    Adopt,
    /// Clean the node, as configured, and make it available.
    Provide,
    /// Run these cleaning steps. Destructive, unless all are of interfaces that touch no disk.
    Clean(Vec<Step>),
    /// Deploy. Destructive.
    Deploy {
        /// For the first start.
        config_drive: ConfigDrive,
        /// In place of Ironic's own steps, or in addition to them.
        steps: Vec<Step>,
    },
    /// Deploy again over the existing image. Destructive.
    Rebuild {
        /// For the first start.
        config_drive: ConfigDrive,
    },
    /// Tear down. Destructive.
    Delete,
    /// Abort the running operation.
    Abort,
    /// Continue after a hold.
    Unhold,
    /// Run these steps on an active node.
    Service(Vec<Step>),
}

impl Transition {
    /// The target in Ironic's API.
    #[must_use]
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Manage => "manage",
            Self::Inspect => "inspect",
            Self::Adopt => "adopt",
            Self::Provide => "provide",
            Self::Clean(_) => "clean",
            Self::Deploy { .. } => "active",
            Self::Rebuild { .. } => "rebuild",
            Self::Delete => "deleted",
            Self::Abort => "abort",
            Self::Unhold => "unhold",
            Self::Service(_) => "service",
        }
    }

    /// Whether it may delete data of the machine, so that it requires an audit line. A cleaning for BIOS and firmware
    /// alone only boots the machine.
    #[must_use]
    pub fn is_destructive(&self) -> bool {
        match self {
            Self::Clean(steps) => {
                steps.is_empty()
                    || steps
                        .iter()
                        .any(|step| !["bios", "firmware"].contains(&step.interface.as_str()))
            }
            Self::Provide | Self::Deploy { .. } | Self::Rebuild { .. } | Self::Delete => true,
            Self::Manage | Self::Inspect | Self::Adopt | Self::Abort | Self::Unhold | Self::Service(_) => false,
        }
    }

    fn into_body(self) -> Value {
        let verb = self.verb();
        match self {
            Self::Manage | Self::Inspect | Self::Adopt | Self::Provide | Self::Delete | Self::Abort | Self::Unhold => {
                json!({"target": verb})
            }
            Self::Clean(steps) => json!({"target": verb, "clean_steps": steps}),
            Self::Service(steps) => json!({"target": verb, "service_steps": steps}),
            Self::Rebuild { config_drive } => json!({"target": verb, "configdrive": config_drive.0}),
            Self::Deploy { config_drive, steps } if steps.is_empty() => {
                json!({"target": verb, "configdrive": config_drive.0})
            }
            Self::Deploy { config_drive, steps } => {
                json!({"target": verb, "configdrive": config_drive.0, "deploy_steps": steps})
            }
        }
    }
}

/// Requests a transition. Ironic accepts or rejects it at once and performs it later.
///
/// # Errors
/// When a control character would get into the arguments of a step.
pub fn request(node: &NodeRef, transition: Transition) -> Result<Call<()>, ControlCharacter> {
    let body = transition.into_body();
    for steps in ["clean_steps", "deploy_steps", "service_steps"] {
        text::check(steps, body.get(steps).unwrap_or(&Value::Null))?;
    }
    // The target alone is no argument.
    let arguments = body.as_object().is_some_and(|body| body.len() > 1);
    let path = ["nodes", node.segment(), "states", "provision"];
    let effect = Effect::Transition { arguments };
    Ok(order("change the provision state", Method::Put, &path, effect).with_body(body))
}
