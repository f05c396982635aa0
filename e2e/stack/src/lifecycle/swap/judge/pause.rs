//! Whether a Cluster that is paused during a switch is left alone, and the other side resumes it.

use super::{Turn, none};
use crate::claim::Proof;
use crate::lifecycle::swap::pause::is_paused;
use crate::lifecycle::swap::stage::{OF_CLUSTER, host};

impl Turn {
    /// Whether the host was paused with its Cluster when the switch began.
    pub(super) fn was_paused(&self, name: &str) -> bool {
        self.work.is_paused && self.host_at(name, 1).is_some_and(|host| is_paused(&host))
    }

    pub(super) fn resumed(&self) -> Proof {
        if !self.work.is_paused {
            return Ok("no Cluster is paused".to_owned());
        }
        let hosts: Vec<String> = OF_CLUSTER
            .map(host)
            .into_iter()
            .filter(|name| self.was_paused(name))
            .collect();
        let mut violations = Vec::new();
        if hosts.is_empty() {
            violations.push("no host was paused when the switch began".to_owned());
        }
        for name in &hosts {
            let orders = self.until_resumed.iter();
            let orders = orders.filter(|order| order.host == *name && order.what.acts());
            violations.extend(orders.map(|order| format!("{name} was paused: {}", order.text)));
            if self.host_at(name, 2).is_some_and(|host| is_paused(&host)) {
                violations.push(format!("{name} is still paused"));
            }
        }
        none(violations, format!("{} hosts", hosts.len()))
    }
}
