//! Whether hosts at rest keep their states, and failed ones their errors.

use serde_json::Value;

use super::{Turn, none};
use crate::claim::Proof;
use crate::lifecycle::swap::logs::Verb;
use crate::lifecycle::swap::stage::{FAILED, host};

impl Turn {
    /// Whether a retry has not ended at the last mark: it has no error until it fails. The new manager ordered a deployment, or a
    /// machine that is to be off is shown as on, with its failures counted.
    fn is_tried_again(&self, name: &str) -> bool {
        let host = self.host_at(name, 2).unwrap_or_default();
        let status = &host["status"];
        if status["provisioning"]["state"] == "provisioned" {
            let is_counted = status["errorCount"].as_u64().is_some_and(|count| count > 0);
            return is_counted && host["spec"]["online"] == false && status["poweredOn"] == true;
        }
        let is_running =
            status["provisioning"]["state"] == "provisioning" && status["errorType"].as_str().is_none_or(str::is_empty);
        let mut orders = self.orders.iter();
        is_running && orders.any(|order| order.host == name && order.what == Verb::Provision)
    }

    pub(super) fn states(&self) -> Proof {
        let mut violations = Vec::new();
        for (number, what) in FAILED {
            let (name, error) = (host(*number), what.split(':').next().unwrap_or_default());
            let has_error = self.since_switch(&name).any(|one| one["status"]["errorType"] == error);
            if !has_error && !self.is_tried_again(&name) {
                violations.push(format!("{name} has no {error}"));
            }
        }
        for name in &self.at_rest() {
            let summary = |mark| {
                let host = self.host_at(name, mark).unwrap_or_default();
                let status = &host["status"];
                let each = [
                    &status["provisioning"]["state"],
                    &status["operationalStatus"],
                    &status["errorType"],
                ];
                // An empty text and an absent member are the same.
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                (each.map(text), host["status"]["poweredOn"] == true)
            };
            let (before, now) = (summary(0), summary(2));
            if before != now {
                violations.push(format!("{name} was {before:?}, is {now:?}"));
            }
        }
        none(violations, String::new())
    }
}
