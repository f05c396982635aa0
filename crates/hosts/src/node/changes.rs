//! The changes that a node needs.
//!
//! A difference becomes one operation of a JSON patch. A change that Ironic would reject in the node's present state is
//! postponed and reported by name.

use metal3_ironic::calls::patch::Patch;
use metal3_ironic::model::Fields;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;
use serde_json::Value;

use super::bmc::{is_destination, is_machine};
use super::masked::{Match, compare};

/// Whether Ironic has the present credentials. Ironic does not show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passwords {
    /// They were sent, or another process recorded that they were.
    AsSent,
    /// They changed since, or it is not known.
    Changed,
}

/// The changes of a node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// The patch. Empty: no change now.
    pub patch: Patch,
    /// The fields that wait for another state of the node, such as `boot_interface`.
    pub postponed: Vec<String>,
    /// The patch changes where Ironic logs in, and lacks the credentials.
    pub needs_login: bool,
    /// The patch leads the node to another machine.
    pub leads_elsewhere: bool,
}

impl Changes {
    /// Whether the credentials are postponed: then they must not be recorded as sent.
    #[must_use]
    pub fn is_login_postponed(&self) -> bool {
        self.postponed
            .iter()
            .any(|field| field.ends_with("_password") || field.ends_with("_username"))
    }
}

/// The maps of a node with managed keys.
#[derive(Debug, Clone, Copy)]
pub(super) enum RecordMap {
    DriverInfo,
    InstanceInfo,
    Properties,
    Extra,
}

impl RecordMap {
    const fn name(self) -> &'static str {
        match self {
            Self::DriverInfo => "driver_info",
            Self::InstanceInfo => "instance_info",
            Self::Properties => "properties",
            Self::Extra => "extra",
        }
    }

    const fn of(self, node: &Node) -> &Fields {
        match self {
            Self::DriverInfo => &node.driver_info,
            Self::InstanceInfo => &node.instance_info,
            Self::Properties => &node.properties,
            Self::Extra => &node.extra,
        }
    }
}

/// Collects the differences between the desired and the observed node.
pub(super) struct Comparison<'a> {
    found: &'a Node,
    passwords: Passwords,
    /// The driver cannot change now, so `driver_info` cannot either.
    is_driver_postponed: bool,
    changes: Changes,
}

impl<'a> Comparison<'a> {
    pub(super) fn with(found: &'a Node, passwords: Passwords) -> Self {
        Self {
            found,
            passwords,
            is_driver_postponed: false,
            changes: Changes::default(),
        }
    }

    pub(super) fn field(&mut self, name: &str, found: Option<Value>, wanted: Option<Value>) {
        if found != wanted {
            self.change(&[name], wanted, takes_changes(self.found));
        }
    }

    /// Compares the driver. While it is postponed, so is `driver_info`: the present driver would not understand it.
    pub(super) fn driver(&mut self, wanted: &str) {
        let found = self.found.driver.as_deref();
        self.is_driver_postponed = found != Some(wanted) && !takes_interfaces(self.found);
        self.interface("driver", found, Some(wanted));
    }

    /// Compares an interface, which Ironic lets change in few states.
    pub(super) fn interface(&mut self, name: &str, found: Option<&str>, wanted: Option<&str>) {
        if found != wanted {
            let open = takes_changes(self.found) && takes_interfaces(self.found);
            self.change(&[name], wanted.map(Value::from), open);
        }
    }

    /// Compares one key of a map. `None`: the key must not exist.
    pub(super) fn entry(&mut self, part: RecordMap, key: &str, wanted: Option<Value>) {
        self.compare(part, key, wanted, self.passwords);
    }

    /// Compares keys of a map that are sent apart from the credentials.
    pub(super) fn entries(&mut self, part: RecordMap, keys: &[(&'static str, Option<Value>)], passwords: Passwords) {
        for (key, wanted) in keys {
            self.compare(part, key, wanted.clone(), passwords);
        }
    }

    /// Compares a secret that is sent apart from the credentials.
    pub(super) fn secret(&mut self, part: RecordMap, key: &str, wanted: Option<&str>, passwords: Passwords) {
        self.compare(part, key, wanted.map(Value::from), passwords);
    }

    fn compare(&mut self, part: RecordMap, key: &str, wanted: Option<Value>, passwords: Passwords) {
        let found = part.of(self.found).get(key);
        let differs = match (&wanted, found) {
            (None, found) => found.is_some(),
            (Some(wanted), found) => match compare(found, wanted) {
                Match::Same => false,
                Match::Different => true,
                Match::Hidden => passwords == Passwords::Changed,
            },
        };
        if differs {
            let waits = self.is_driver_postponed && matches!(part, RecordMap::DriverInfo);
            self.change(&[part.name(), key], wanted, takes_changes(self.found) && !waits);
        }
    }

    /// Compares the fields that forbid cleaning and powering off. A node without `disable_power_off` is of an Ironic that
    /// does not support it.
    pub(super) fn restrictions(&mut self, automated_clean: bool, disable_power_off: bool) {
        let found = self.found.automated_clean.map(Value::from);
        self.field("automated_clean", found, Some(automated_clean.into()));
        if let Some(found) = self.found.disable_power_off {
            self.field("disable_power_off", Some(found.into()), Some(disable_power_off.into()));
        }
    }

    pub(super) fn postpone(&mut self, name: &str) {
        self.changes.postponed.push(name.to_owned());
    }

    fn change(&mut self, path: &[&str], wanted: Option<Value>, open: bool) {
        if !open {
            return self.postpone(&path.join("/"));
        }
        self.changes.leads_elsewhere |= matches!(path, ["driver_info", key] if is_machine(key));
        self.changes.needs_login |= match path {
            ["driver"] => true,
            ["driver_info", key] => is_destination(key),
            _ => false,
        };
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

/// Whether Ironic accepts changes of the node's record now: not during a transition, except in waiting states. A short
/// lock is not visible here.
pub(crate) const fn takes_changes(node: &Node) -> bool {
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

/// Whether Ironic accepts changes of driver and interfaces now.
const fn takes_interfaces(node: &Node) -> bool {
    node.maintenance
        || matches!(
            node.provision_state,
            S::Enroll | S::InspectWait | S::Manageable | S::Available
        )
}
