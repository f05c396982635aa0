//! Whether the dry run of `preflight` saw what the new managers then did.

use std::collections::BTreeSet;

use super::{Turn, none};
use crate::claim::Proof;
use crate::lifecycle::swap::Family;
use crate::lifecycle::swap::first::Happened;
use crate::lifecycle::swap::logs::Write;
use crate::lifecycle::swap::stage::{FAILED, OF_CLUSTER, host};

impl Turn {
    /// A Go manager has no dry run, so nothing is predicted of the way back.
    pub(super) fn first_changes(&self) -> Proof {
        let Some(first) = &self.first else {
            let missing = (self.to == Family::Ours).then(|| "preflight made no dry run".to_owned());
            return none(missing.into_iter().collect(), "no dry run of a Go manager".to_owned());
        };
        let at_rest: BTreeSet<String> = self.at_rest();
        let to_hosts: Vec<&Write> = at_rest.iter().flat_map(|host| self.writes_to(host)).collect();
        let since = &self.since_prediction;
        let of_cluster = OF_CLUSTER
            .iter()
            .flat_map(|number| [host(*number), format!("bmc-{number}")]);
        let failed = FAILED.iter().map(|(number, _)| host(*number));
        let by_chance = of_cluster.chain(failed).collect();
        let differences = first.compare(&Happened {
            at_rest: &at_rest,
            by_chance: &by_chance,
            to_hosts_at_rest: &to_hosts,
            orders_to_hosts_at_rest: &self.orders,
            writes: &since.writes,
            orders: &since.orders,
        });
        none(differences, format!("{} changes seen before", first.len()))
    }
}
