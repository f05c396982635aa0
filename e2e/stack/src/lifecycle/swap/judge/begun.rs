//! Whether work in flight was begun once.

use super::{Turn, none};
use crate::claim::Proof;
use crate::lifecycle::swap::stage::{FAILED, host};
use crate::lifecycle::swap::work::{CUT, FLASHED, REBUILT, RETUNED, SERVICED};

impl Turn {
    pub(super) fn begun_once(&self) -> Proof {
        let failed: Vec<String> = FAILED.iter().map(|(number, _)| host(*number)).collect();
        let again = self
            .begun
            .times
            .iter()
            .filter(|((host, _), number)| **number > 1 && !failed.contains(host));
        // Until the Go manager has read the settings that they brought, without a switch too.
        let repeated = |(name, state): &(String, String)| {
            let is_repeated = [RETUNED, SERVICED].iter().any(|number| *name == host(*number));
            is_repeated && ["cleaning", "servicing"].contains(&state.as_str())
        };
        let by_go = self.begun.by_go_again.iter();
        let by_go = by_go.filter(|(work, _)| !failed.contains(&work.0) && !repeated(work));
        let mut violations: Vec<String> = again
            .chain(by_go)
            .map(|((host, state), number)| format!("{host}: {state} {number} times"))
            .collect();
        let in_flight = [
            (REBUILT, "/provisioning/state", "preparing"),
            (FLASHED, "/operationalStatus", "servicing"),
        ];
        // The shortest may end while the last one is ordered.
        let serviced = (!self.work.is_cut).then_some((SERVICED, "/operationalStatus", "servicing"));
        for (number, member, wanted) in in_flight.into_iter().chain(serviced) {
            let found = self.host_at(&host(number), 1).unwrap_or_default();
            let state = found["status"].pointer(member);
            if state.is_none_or(|state| state != wanted) {
                violations.push(format!(
                    "{} was {state:?} when the switch began, and was to be {wanted}",
                    host(number)
                ));
            }
        }
        // In each switch an image is deployed, a machine inspected and two are serviced: otherwise the log was not understood.
        let always = [
            (self.work.provisioned, "deploying"),
            (self.work.inspected, "inspecting"),
            (SERVICED, "servicing"),
            (FLASHED, "servicing"),
        ];
        let cut = self.work.is_cut.then_some((CUT, "servicing"));
        for (number, state) in always.into_iter().chain(cut) {
            if !self.begun.times.contains_key(&(host(number), state.to_owned())) {
                violations.push(format!("{}: no {state} is in the log", host(number)));
            }
        }
        let times: usize = self.begun.by_go_again.values().sum();
        let begun = self.begun.times.len();
        none(
            violations,
            match times {
                0 => format!("{begun} pieces of work"),
                _ => {
                    format!("{begun} pieces of work; the Go manager repeated those with BIOS settings {times} times")
                }
            },
        )
    }
}
