//! The hosts of the suite, and what is in flight at each step. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::lifecycle::install;

pub(super) const MACHINES: usize = 6;
/// Hosts that must not notice anything: one with an image, and one without.
pub(super) const AT_REST: [u64; 2] = [1, 2];
/// Hosts that are deployed in one step and cleaned in the other.
pub(super) const PAIR: [u64; 2] = [3, 4];

/// What is asked right before a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    pub(super) provisioned: u64,
    pub(super) deprovisioned: u64,
    pub(super) created: u64,
    pub(super) deleted: Option<u64>,
}

/// With the upgrade, and with the way back.
pub(super) const STEPS: [Work; 2] = [
    Work {
        provisioned: PAIR[0],
        deprovisioned: PAIR[1],
        created: 5,
        deleted: None,
    },
    Work {
        provisioned: PAIR[1],
        deprovisioned: PAIR[0],
        created: 6,
        deleted: Some(5),
    },
];

pub(super) fn host(number: u64) -> String {
    install::host(&Value::from(number))
}

impl Work {
    pub(super) fn hosts(&self) -> BTreeSet<String> {
        let all = [self.provisioned, self.deprovisioned, self.created];
        all.into_iter().chain(self.deleted).map(host).collect()
    }

    /// The state of each host when the step begins.
    pub(super) fn in_flight(&self) -> BTreeMap<String, &'static str> {
        BTreeMap::from([
            (host(self.provisioned), "provisioning"),
            (host(self.deprovisioned), "deprovisioning"),
            (host(self.created), "inspecting"),
        ])
    }

    /// The state in which each host ends.
    pub(super) fn ends(&self) -> BTreeMap<String, &'static str> {
        BTreeMap::from([
            (host(self.provisioned), "provisioned"),
            (host(self.deprovisioned), "available"),
            (host(self.created), "available"),
        ])
    }

    /// What Ironic begins for it, by host and state.
    pub(super) fn begun(&self) -> BTreeSet<(String, String)> {
        [
            (self.provisioned, "deploying"),
            (self.deprovisioned, "cleaning"),
            (self.created, "inspecting"),
        ]
        .into_iter()
        .map(|(number, state)| (host(number), state.to_owned()))
        .collect()
    }
}
