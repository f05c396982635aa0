//! What is to be changed of a node as it is found.
//!
//! A difference becomes one operation of a JSON patch. What Ironic would refuse in the node's present state is not
//! asked for; it is named, and asked for when the state allows it.

use metal3_ironic::calls::patch::Patch;
use metal3_ironic::model::Fields;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;
use serde_json::Value;

use super::masked::{Look, look};

/// Whether Ironic has the login that the host has now. It does not show what it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passwords {
    /// It was sent, or another controller recorded that it was.
    AsSent,
    /// It changed since, or nobody knows.
    Changed,
}

/// What to change of a node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// In one request. Empty: nothing now.
    pub patch: Patch,
    /// The fields that wait until the node's state lets them change, such as `boot_interface`.
    pub postponed: Vec<String>,
}

impl Changes {
    /// Whether the login is among what waits: then it is still to be sent, and not to be recorded as sent.
    #[must_use]
    pub fn login_waits(&self) -> bool {
        self.postponed
            .iter()
            .any(|field| field.ends_with("_password") || field.ends_with("_username"))
    }
}

/// The maps of a node in which single keys are ours.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    DriverInfo,
    InstanceInfo,
    Properties,
}

impl Part {
    const fn name(self) -> &'static str {
        match self {
            Self::DriverInfo => "driver_info",
            Self::InstanceInfo => "instance_info",
            Self::Properties => "properties",
        }
    }

    const fn of(self, node: &Node) -> &Fields {
        match self {
            Self::DriverInfo => &node.driver_info,
            Self::InstanceInfo => &node.instance_info,
            Self::Properties => &node.properties,
        }
    }
}

/// Collects the differences between what is wanted and what is found.
pub(super) struct Comparison<'a> {
    found: &'a Node,
    passwords: Passwords,
    /// The driver cannot change now, so neither can what it is told.
    driver_waits: bool,
    changes: Changes,
}

impl<'a> Comparison<'a> {
    pub(super) fn with(found: &'a Node, passwords: Passwords) -> Self {
        Self {
            found,
            passwords,
            driver_waits: false,
            changes: Changes::default(),
        }
    }

    /// A field of the node itself.
    pub(super) fn field(&mut self, name: &str, found: Option<Value>, wanted: Option<Value>) {
        if found != wanted {
            self.change(&[name], wanted, takes_changes(self.found));
        }
    }

    /// The driver. While it has to wait, so has `driver_info`: the present one would not understand it, and lose the
    /// machine.
    pub(super) fn driver(&mut self, wanted: &str) {
        let found = self.found.driver.as_deref();
        self.driver_waits = found != Some(wanted) && !takes_kinds(self.found);
        self.kind("driver", found, Some(wanted));
    }

    /// An interface, which Ironic lets change in few states.
    pub(super) fn kind(&mut self, name: &str, found: Option<&str>, wanted: Option<&str>) {
        if found != wanted {
            let open = takes_changes(self.found) && takes_kinds(self.found);
            self.change(&[name], wanted.map(Value::from), open);
        }
    }

    /// One key of a map. `None`: it shall not be there.
    pub(super) fn entry(&mut self, part: Part, key: &str, wanted: Option<Value>) {
        let found = part.of(self.found).get(key);
        let differs = match (&wanted, found) {
            (None, found) => found.is_some(),
            (Some(wanted), found) => match look(found, wanted) {
                Look::Same => false,
                Look::Different => true,
                Look::Hidden => self.passwords == Passwords::Changed,
            },
        };
        if differs {
            let waits = self.driver_waits && matches!(part, Part::DriverInfo);
            self.change(&[part.name(), key], wanted, takes_changes(self.found) && !waits);
        }
    }

    /// Names a field that has to wait.
    pub(super) fn postpone(&mut self, name: &str) {
        self.changes.postponed.push(name.to_owned());
    }

    fn change(&mut self, path: &[&str], wanted: Option<Value>, open: bool) {
        if !open {
            return self.postpone(&path.join("/"));
        }
        let patch = std::mem::take(&mut self.changes.patch);
        self.changes.patch = match wanted {
            Some(wanted) => patch.set(path, wanted),
            None => patch.remove(path),
        };
    }

    pub(super) fn done(self) -> Changes {
        self.changes
    }
}

/// Whether Ironic takes a change of the node's record now. While it carries out a transition it does not, except in
/// states that wait for something. A lock, which passes soon, does not show here.
pub(super) const fn takes_changes(node: &Node) -> bool {
    match node.provision_state {
        S::Inspecting | S::Other(_) => false,
        S::Verifying
        | S::InspectWait
        | S::InspectFailed
        | S::CleanFailed
        | S::DeployFailed
        | S::Error
        | S::AdoptFailed
        | S::RescueFailed
        | S::UnrescueFailed
        | S::ServiceHold
        | S::ServiceFailed => true,
        S::Enroll
        | S::Manageable
        | S::Available
        | S::Active
        | S::Cleaning
        | S::CleanWait
        | S::CleanHold
        | S::Deploying
        | S::WaitCallBack
        | S::DeployHold
        | S::Deleting
        | S::Adopting
        | S::Servicing
        | S::ServiceWait
        | S::Rescuing
        | S::RescueWait
        | S::Rescue
        | S::Unrescuing => node.target_provision_state.is_none() && !node.provision_state.is_transitional(),
    }
}

/// Whether Ironic lets the driver and the interfaces change now.
const fn takes_kinds(node: &Node) -> bool {
    node.maintenance
        || matches!(
            node.provision_state,
            S::Enroll | S::InspectWait | S::Manageable | S::Available
        )
}
