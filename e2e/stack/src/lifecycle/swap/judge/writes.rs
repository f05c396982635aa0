//! Which writes the new managers send to hosts.

use super::{Turn, none};
use crate::claim::Proof;
use crate::lifecycle::swap::logs::Write;
use crate::lifecycle::swap::products::{Family, products};

/// The machines' controller takes the pause off and then blocks moves again, and the hosts' controller removes the saved status.
const OF_A_RESUME: usize = 3;

impl Turn {
    /// Writes of the new managers to a host.
    pub(in crate::lifecycle::swap) fn writes_to(&self, name: &str) -> Vec<&Write> {
        let [_, after] = &self.writes;
        let products = products(&self.release);
        let new = |one: &&Write| {
            let is_manager = products.iter().any(|product| product.has(&one.user));
            is_manager && one.is_ours() == (self.to == Family::Ours)
        };
        after.iter().filter(new).filter(|one| one.is_to_host(name)).collect()
    }

    pub(super) fn one_write(&self) -> Proof {
        let at_rest = self.at_rest();
        let (mut violations, mut total) = (Vec::new(), 0_usize);
        for name in &at_rest {
            let writes = self.writes_to(name);
            total = total.saturating_add(writes.len());
            // The machine that Go managers up to 1.13 write as an owner is removed by a write of its own.
            let of_owner = usize::from(self.lost_its_machine_as_owner(name));
            let of_pause = if self.was_paused(name) { OF_A_RESUME } else { 1 };
            let most = of_pause.saturating_add(of_owner);
            if writes.len() > most {
                let each: Vec<String> = writes
                    .iter()
                    .map(|one| format!("{} {}", one.verb, one.resource))
                    .collect();
                violations.push(format!("{name}: {}", each.join(", ")));
            }
        }
        none(violations, format!("{total} writes to {} hosts", at_rest.len()))
    }

    fn lost_its_machine_as_owner(&self, name: &str) -> bool {
        let is_owned = |mark| {
            let host = self.host_at(name, mark).unwrap_or_default();
            let mut owners = host["metadata"]["ownerReferences"].as_array().into_iter().flatten();
            owners.any(|owner| owner["kind"] == "Metal3Machine")
        };
        is_owned(1) && !is_owned(2)
    }
}
