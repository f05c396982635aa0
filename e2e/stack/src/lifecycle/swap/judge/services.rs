//! Whether services are in flight at a switch and begin once, and `preflight` waits for them on the way back.

use std::collections::BTreeSet;

use super::{Turn, none};
use crate::claim::Proof;
use crate::lifecycle::swap::products::Family;
use crate::lifecycle::swap::stage::{host, stops};
use crate::lifecycle::swap::work::{FLASHED, SERVICED, UPDATED};
use crate::products::machines::NAMESPACE;

impl Turn {
    /// Of this program's services: a Go manager may repeat them.
    pub(super) fn waited_for(&self) -> Proof {
        let Some(late_stops) = &self.late_stops else {
            let is_missing = self.to == Family::Go && !self.work.is_cut;
            let missing = is_missing.then(|| "preflight did not look at services in flight".to_owned());
            return none(missing.into_iter().collect(), "not asked again".to_owned());
        };
        let services = [SERVICED, FLASHED].map(|number| format!("BareMetalHost {NAMESPACE}/{}", host(number)));
        // Updates may have ended by then.
        let updates = [UPDATED, FLASHED].map(|number| format!("HostFirmwareComponents {NAMESPACE}/{}", host(number)));
        let expected: BTreeSet<String> = services.iter().cloned().collect();
        let missing = expected.difference(late_stops);
        let missing = missing.map(|object| format!("{object} is serviced, and preflight does not wait for it"));
        let known: BTreeSet<String> = services
            .into_iter()
            .chain(updates)
            .chain(stops(self.to, &self.release))
            .collect();
        let others = late_stops.difference(&known);
        let others = others.map(|object| format!("preflight stops for {object}"));
        none(
            missing.chain(others).collect(),
            late_stops.iter().cloned().collect::<Vec<_>>().join(", "),
        )
    }
}
