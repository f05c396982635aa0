//! The requests of each step: of the three managers, of Cluster API's managers, and to Ironic. Pure.
//!
//! Leases, Events, reviews, watches and Ironic's change feed are excluded: they occur at any time.

use std::fmt::Write as _;

use metal3_ledger::{Log, UserCounts};

use super::audit::MANAGERS;
use super::requests;

/// Resources with requests at any time.
pub(super) const PERIODIC: [&str; 4] = ["leases", "events", "tokenreviews", "subjectaccessreviews"];
const CLUSTER_API: [&str; 3] = [
    "system:serviceaccount:capi-system:capi-manager",
    "system:serviceaccount:capi-kubeadm-bootstrap-system:capi-kubeadm-bootstrap-manager",
    "system:serviceaccount:capi-kubeadm-control-plane-system:capi-kubeadm-control-plane-manager",
];

/// Writes and reads.
type ReadsAndWrites = (u64, u64);

pub(super) struct Phase {
    what: String,
    /// Machines, addresses, hosts, Cluster API, Ironic.
    counts: [ReadsAndWrites; 5],
}

impl Phase {
    /// Reads the parts of both logs. Incomplete lines at either end are skipped.
    pub(super) fn read(what: &str, audit: &str, ironic: &str) -> anyhow::Result<Self> {
        let whole = audit.rfind('\n').and_then(|end| audit.get(..end)).unwrap_or_default();
        let begin = whole.find('{').unwrap_or_default();
        let log = Log::read(whole.get(begin..).unwrap_or_default())?;
        let [machines, addresses, hosts] = MANAGERS
            .each_ref()
            .map(|manager| of(&log.counts_of(manager.account.user)));
        let others = CLUSTER_API.iter().map(|user| of(&log.counts_of(user)));
        let others = others.fold((0, 0), |all: ReadsAndWrites, one| (all.0 + one.0, all.1 + one.1));
        let by_login = || requests::of(ironic).filter(|one| one.by_login && !one.is_feed());
        let orders = by_login().filter(requests::Request::is_order).count();
        let reads = by_login().count().saturating_sub(orders);
        let ironic = (u64::try_from(orders)?, u64::try_from(reads)?);
        Ok(Self {
            what: what.to_owned(),
            counts: [machines, addresses, hosts, others, ironic],
        })
    }
}

fn of(user_counts: &UserCounts) -> ReadsAndWrites {
    let mut counts = (0, 0);
    for (target, count) in &user_counts.requests {
        match target.verb.as_str() {
            _ if PERIODIC.contains(&target.resource.as_str()) => {}
            "watch" => {}
            "get" | "list" => counts.1 += count,
            _ => counts.0 += count,
        }
    }
    counts
}

pub(super) fn table(phases: &[Phase]) -> String {
    let mut text = "## Requests of each step\n\nWrites and reads. Leases, Events, reviews, watches \
                                and the change feed are excluded.\n\n\
                    | Step | Machines | Addresses | Hosts | Cluster API | Ironic |\n\
                    | --- | ---: | ---: | ---: | ---: | ---: |\n"
        .to_owned();
    for Phase { what, counts } in phases {
        let cells = counts.map(|(writes, reads)| format!("{writes} + {reads}"));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {what} | {} |", cells.join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: usize, verb: &str, resource: &str) -> String {
        let user = "system:serviceaccount:capm3-system:capm3-manager";
        format!(
            "{{\"auditID\":\"{number}\",\"verb\":\"{verb}\",\"user\":{{\"username\":\"{user}\"}},\
             \"objectRef\":{{\"resource\":\"{resource}\"}}}}\n"
        )
    }

    #[test]
    fn periodic_requests_are_excluded() {
        let counts = [
            ("patch", "metal3machines"),
            ("get", "secrets"),
            ("list", "ipaddresses"),
            ("watch", "metal3machines"),
            ("update", "leases"),
            ("create", "events"),
        ];
        let audit: String = counts
            .iter()
            .enumerate()
            .map(|(at, (verb, what))| event(at, verb, what))
            .collect();
        let phase = Phase::read("it", &audit, "").unwrap();
        assert_eq!(phase.counts, [(1, 2), (0, 0), (0, 0), (0, 0), (0, 0)]);
        assert!(table(&[phase]).ends_with("| it | 1 + 2 | 0 + 0 | 0 + 0 | 0 + 0 | 0 + 0 |\n"));
    }
}
