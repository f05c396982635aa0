//! What each step cost: requests of the three managers, of Cluster API's, and to Ironic. Pure.
//!
//! Leases, Events and reviews of callers are left out, as are watches and Ironic's feed: they go on whatever happens.

use std::fmt::Write as _;

use metal3_ledger::{Log, Tally};

use super::audit::MANAGERS;
use super::requests;

/// Whatever happens.
pub(super) const STEADY: [&str; 4] = ["leases", "events", "tokenreviews", "subjectaccessreviews"];
const CLUSTER_API: [&str; 3] = [
    "system:serviceaccount:capi-system:capi-manager",
    "system:serviceaccount:capi-kubeadm-bootstrap-system:capi-kubeadm-bootstrap-manager",
    "system:serviceaccount:capi-kubeadm-control-plane-system:capi-kubeadm-control-plane-manager",
];

/// Writes and reads; of Ironic orders and looks.
type Asked = (u64, u64);

pub(super) struct Phase {
    what: String,
    /// Machines, addresses, hosts, Cluster API, Ironic.
    asked: [Asked; 5],
}

impl Phase {
    /// By the parts of both logs that were written meanwhile. A line that is cut off at either end is left out.
    pub(super) fn read(what: &str, audit: &str, ironic: &str) -> anyhow::Result<Self> {
        let whole = audit.rfind('\n').and_then(|end| audit.get(..end)).unwrap_or_default();
        let begin = whole.find('{').unwrap_or_default();
        let log = Log::read(whole.get(begin..).unwrap_or_default())?;
        let [machines, addresses, hosts] = MANAGERS.each_ref().map(|manager| of(&log.of(manager.account.user)));
        let others = CLUSTER_API.iter().map(|user| of(&log.of(user)));
        let others = others.fold((0, 0), |all: Asked, one| (all.0 + one.0, all.1 + one.1));
        let by_login = || requests::of(ironic).filter(|one| one.by_login && !one.is_feed());
        let orders = by_login().filter(requests::Request::is_order).count();
        let looks = by_login().count().saturating_sub(orders);
        let ironic = (u64::try_from(orders)?, u64::try_from(looks)?);
        Ok(Self {
            what: what.to_owned(),
            asked: [machines, addresses, hosts, others, ironic],
        })
    }
}

fn of(tally: &Tally) -> Asked {
    let mut asked = (0, 0);
    for (target, count) in &tally.asked {
        match target.verb.as_str() {
            _ if STEADY.contains(&target.resource.as_str()) => {}
            "watch" => {}
            "get" | "list" => asked.1 += count,
            _ => asked.0 += count,
        }
    }
    asked
}

pub(super) fn table(phases: &[Phase]) -> String {
    let mut text =
        "## Requests of each step\n\nWrites and reads; of Ironic orders and looks. Leases, Events, reviews, watches \
                    and the feed are left out.\n\n\
                    | Step | Machines | Addresses | Hosts | Cluster API | Ironic |\n\
                    | --- | ---: | ---: | ---: | ---: | ---: |\n"
            .to_owned();
    for Phase { what, asked } in phases {
        let cells = asked.map(|(writes, reads)| format!("{writes} + {reads}"));
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
    fn what_goes_on_whatever_happens_is_left_out() {
        let asked = [
            ("patch", "metal3machines"),
            ("get", "secrets"),
            ("list", "ipaddresses"),
            ("watch", "metal3machines"),
            ("update", "leases"),
            ("create", "events"),
        ];
        let audit: String = asked
            .iter()
            .enumerate()
            .map(|(at, (verb, what))| event(at, verb, what))
            .collect();
        let phase = Phase::read("it", &audit, "").unwrap();
        assert_eq!(phase.asked, [(1, 2), (0, 0), (0, 0), (0, 0), (0, 0)]);
        assert!(table(&[phase]).ends_with("| it | 1 + 2 | 0 + 0 | 0 + 0 | 0 + 0 | 0 + 0 |\n"));
    }
}
