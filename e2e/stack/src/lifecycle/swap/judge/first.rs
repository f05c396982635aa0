//! Whether the dry run of `preflight` saw what the new managers then did.

use std::collections::BTreeSet;

use super::{Turn, none};
use crate::claim::Proof;
use crate::lifecycle::swap::Family;
use crate::lifecycle::swap::first::Happened;
use crate::lifecycle::swap::logs::Write;

impl Turn {
    /// A Go manager has no dry run, so nothing is predicted of the way back.
    pub(super) fn first_changes(&self) -> Proof {
        let Some(first) = &self.first else {
            let missing = (self.to == Family::Ours).then(|| "preflight made no dry run".to_owned());
            return none(missing.into_iter().collect(), "no dry run of a Go manager".to_owned());
        };
        let at_rest: BTreeSet<String> = self.at_rest();
        let to_hosts: Vec<&Write> = at_rest.iter().flat_map(|host| self.writes_to(host)).collect();
        let writes: Vec<&Write> = self.writes.iter().flatten().collect();
        let differences = first.compare(&Happened {
            at_rest: &at_rest,
            to_hosts_at_rest: &to_hosts,
            writes: &writes,
            orders: &self.orders,
            all_orders: &self.all_orders,
        });
        none(differences, format!("{} changes seen before", first.len()))
    }
}
