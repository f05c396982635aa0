//! The invariants of services: a running machine is serviced at a reboot only, for what its HostUpdatePolicy and the user ask for.

use serde_json::Value;

use super::history::{History, is_deleting, is_external, state};
use super::judge::{Order, SLACK};

/// The violated invariant of a service, if any.
pub(super) fn violated_services(order: &Order<'_>, host: &History, policies: &History) -> Option<String> {
    if order.transition() != Some("service") {
        return None;
    }
    let broken = |what: &str| Some(format!("service: {what}"));
    if order.node["power_state"] != "power off" {
        return broken("the machine runs");
    }
    let starts = |host: &Value| {
        let is_running = state(host) == "provisioned" || state(host) == "externally provisioned" || is_external(host);
        is_running && host["spec"]["online"] == true && host["spec"]["disablePowerOff"] != true
    };
    if !host.ever(SLACK, starts) {
        return broken("the host is not to be started");
    }
    if host.always(SLACK, is_deleting) {
        return broken("the host is being deleted");
    }
    let steps = order.body["service_steps"].as_array().into_iter().flatten();
    for step in steps {
        let field = match step["interface"].as_str() {
            Some("bios") => "firmwareSettings",
            Some("firmware") => "firmwareUpdates",
            _ => return broken("a step changes neither settings nor firmware"),
        };
        if !policies.ever(SLACK, |policy| policy["spec"][field] == "onReboot") {
            return Some(format!("service: no policy allows {field} at a reboot"));
        }
    }
    None
}
