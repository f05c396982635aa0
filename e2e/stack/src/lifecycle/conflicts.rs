//! Writes of this program that the API server refused with 409. Pure.
//!
//! The one who wrote the object last is the cause: a precondition names a version that it replaced, or it created what was to be created.
//! A conflict after a write of another client cannot be avoided, and is counted. One after a write of this program is a defect: a
//! controller did not wait for its own write, or two products write one object at the same time.

use std::collections::BTreeMap;

use anyhow::ensure;

use super::audit_log::Request;
use crate::claim::Proof;

/// A conflict after an own write that cannot be avoided.
struct Expected {
    /// With its subresource.
    resource: &'static str,
    /// The accounts of the refused write and of the one before, without their namespaces; `None` for any.
    accounts: Option<(&'static str, &'static str)>,
    /// Whether it was sent before the other write had ended: a controller awaits its own writes, so another object was reconciled.
    overlaps: bool,
    why: &'static str,
}

const EXPECTED: &[Expected] = &[
    Expected {
        resource: "leases",
        accounts: None,
        overlaps: false,
        why: "candidates for one Lease write the same version of it, and one of them is to win",
    },
    // Without the precondition a status that was decided for another spec would be written.
    Expected {
        resource: "baremetalhosts/status",
        accounts: Some(("baremetal-operator-controller-manager", "capm3-manager")),
        overlaps: false,
        why: "a machine takes, pauses or releases a host while the status for its former spec is on its way",
    },
    // The loser takes another host at once.
    Expected {
        resource: "baremetalhosts",
        accounts: Some(("capm3-manager", "capm3-manager")),
        overlaps: true,
        why: "two machines choose one host at the same time, and one of them is to win",
    },
];
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// A refused write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::lifecycle) struct Conflict {
    /// The account that sent it.
    by: String,
    verb: String,
    /// With its subresource.
    resource: String,
    name: String,
    /// When it came.
    received: String,
    /// Who wrote the object last.
    after: Option<Writer>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Writer {
    account: String,
    is_ours: bool,
    /// When the write had ended.
    done: String,
}

/// The conflicts of this program from this byte of an audit log on. Earlier events say who wrote an object last.
pub(in crate::lifecycle) fn of(log: &str, from: usize) -> Vec<Conflict> {
    let mut last: BTreeMap<[String; 3], Writer> = BTreeMap::new();
    let (mut conflicts, mut at) = (Vec::new(), 0_usize);
    for line in log.split_inclusive('\n') {
        let begin = at;
        at = at.saturating_add(line.len());
        let Some(request) = Request::read(line).filter(|one| one.stage == "ResponseComplete" && !one.is_read()) else {
            continue;
        };
        let key = [&request.kind, &request.namespace, &request.name].map(Clone::clone);
        let writer = Writer::of(&request);
        if request.has_succeeded() {
            last.insert(key, writer);
        } else if request.code == 409 && writer.is_ours && begin >= from {
            conflicts.push(Conflict {
                by: writer.account,
                verb: request.verb,
                resource: request.resource,
                name: request.name,
                received: request.received,
                after: last.get(&key).cloned(),
            });
        }
    }
    conflicts
}

impl Writer {
    fn of(request: &Request) -> Self {
        Self {
            account: request.user.trim_start_matches(SERVICE_ACCOUNT).to_owned(),
            is_ours: request.is_ours() && request.user.starts_with(SERVICE_ACCOUNT),
            done: request.at.clone(),
        }
    }
}

impl Conflict {
    /// Whether this program caused it.
    fn is_own(&self) -> bool {
        let Some(writer) = self.after.as_ref().filter(|writer| writer.is_ours) else {
            return false;
        };
        let is_of = |account: &str, name: &str| account.rsplit(':').next() == Some(name);
        !EXPECTED.iter().any(|one| {
            let accounts = one.accounts;
            let is_by = accounts.is_none_or(|(by, after)| is_of(&self.by, by) && is_of(&writer.account, after));
            one.resource == self.resource && is_by && (!one.overlaps || self.received < writer.done)
        })
    }

    /// Without the name of the object.
    fn kind(&self) -> String {
        let after = self
            .after
            .as_ref()
            .map_or("another write", |writer| writer.account.as_str());
        format!("{} {} of {} after {after}", self.verb, self.resource, self.by)
    }
}

/// None has this program as its cause. The others are counted.
pub(in crate::lifecycle) fn none_is_own(conflicts: &[Conflict]) -> Proof {
    let own = conflicts.iter().filter(|conflict| conflict.is_own());
    let own: Vec<String> = own.map(|one| format!("{}: {}", one.name, one.kind())).collect();
    ensure!(own.is_empty(), "{}", own.join("\n       "));
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for conflict in conflicts {
        *counts.entry(conflict.kind()).or_default() += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(kind, count)| format!("{count} x {kind}")).collect();
    Ok(match counts.as_slice() {
        [] => "no write was refused".to_owned(),
        counts => counts.join(", "),
    })
}

/// The conflicts that may be, each with its reason.
pub(super) fn expected() -> impl Iterator<Item = String> {
    EXPECTED.iter().map(|one| format!("{}: {}", one.resource, one.why))
}

/// A conflict of which this program is the cause.
#[cfg(test)]
pub(in crate::lifecycle) fn own_for_test() -> Vec<Conflict> {
    vec![Conflict {
        by: "a:manager".to_owned(),
        verb: "patch".to_owned(),
        resource: "ippools".to_owned(),
        name: "o".to_owned(),
        received: String::new(),
        after: Some(Writer {
            account: "a:manager".to_owned(),
            is_ours: true,
            done: String::new(),
        }),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "capm3/v1";
    const MANAGER: &str = "system:serviceaccount:a:manager";

    fn event(verb: &str, resource: &str, (user, agent): (&str, &str), code: u16) -> String {
        let object = format!(r#"{{"resource":"{resource}","namespace":"n","name":"o"}}"#);
        format!(
            r#"{{"verb":"{verb}","user":{{"username":"{user}"}},"userAgent":"{agent}","objectRef":{object},"responseStatus":{{"code":{code}}},"stage":"ResponseComplete"}}"#
        )
    }

    /// A write of this one, and then a refused one of this program.
    fn after(resource: &str, writer: (&str, &str), code: u16) -> Vec<Conflict> {
        let log = [
            event("patch", resource, writer, code),
            event("patch", resource, (MANAGER, OURS), 409),
        ];
        of(&log.join("\n"), 0)
    }

    #[test]
    fn conflict_is_caused_by_the_one_who_wrote_the_object_last() {
        for (resource, writer, code, is_own) in [
            ("ippools", (MANAGER, OURS), 200, true),
            ("ippools", ("system:serviceaccount:b:other", OURS), 201, true),
            ("ippools", (MANAGER, "manager/v0"), 200, false),
            ("ippools", ("admin", "kubectl/v1"), 200, false),
            // A command of this program that a person typed.
            ("ippools", ("admin", OURS), 200, false),
            // It wrote nothing.
            ("ippools", (MANAGER, OURS), 422, false),
            ("leases", (MANAGER, OURS), 200, false),
        ] {
            let found = after(resource, writer, code);
            assert_eq!(found.len(), 1);
            assert_eq!(none_is_own(&found).is_err(), is_own, "{resource} {writer:?} {code}");
        }
    }

    #[test]
    fn conflicts_that_one_of_two_decisions_must_lose_are_expected() {
        const HOSTS: &str = "system:serviceaccount:b:baremetal-operator-controller-manager";
        const MACHINES: &str = "system:serviceaccount:a:capm3-manager";
        for (resource, by, after, received, is_own) in [
            ("baremetalhosts/status", HOSTS, MACHINES, "3", false),
            ("baremetalhosts/status", HOSTS, HOSTS, "3", true),
            ("baremetalhosts/status", MACHINES, HOSTS, "3", true),
            ("baremetalhosts", HOSTS, MACHINES, "1", true),
            ("baremetalhosts", MACHINES, MACHINES, "1", false),
            // It is sent after the other one: a controller that has not seen its own write.
            ("baremetalhosts", MACHINES, MACHINES, "2", true),
            ("baremetalhosts", MACHINES, MACHINES, "3", true),
        ] {
            let account = |user: &str| user.trim_start_matches(SERVICE_ACCOUNT).to_owned();
            let conflict = Conflict {
                by: account(by),
                verb: "patch".to_owned(),
                resource: resource.to_owned(),
                name: "o".to_owned(),
                received: received.to_owned(),
                after: Some(Writer {
                    account: account(after),
                    is_ours: true,
                    done: "2".to_owned(),
                }),
            };
            assert_eq!(conflict.is_own(), is_own, "{resource} {by} {after} {received}");
        }
    }

    #[test]
    fn later_write_of_another_client_is_the_cause() {
        let log = [
            event("patch", "ippools", (MANAGER, OURS), 200),
            event("patch", "ippools", ("admin", "kubectl/v1"), 200),
            event("get", "ippools", (MANAGER, OURS), 200),
            event("patch", "ippools", (MANAGER, OURS), 409),
        ];
        let figures = none_is_own(&of(&log.join("\n"), 0)).unwrap();
        assert_eq!(figures, "1 x patch ippools of a:manager after admin");
    }

    #[test]
    fn conflicts_of_others_and_of_before_are_left_out_and_earlier_writes_count() {
        let own = event("patch", "ippools", (MANAGER, OURS), 200) + "\n";
        let refused = event("patch", "ippools", (MANAGER, OURS), 409) + "\n";
        let other = event("patch", "ippools", (MANAGER, "manager/v0"), 409) + "\n";
        let log = [own.clone(), refused.clone(), other, refused.clone()].concat();
        let found = of(&log, own.len() + refused.len());
        assert_eq!(found.len(), 1);
        assert!(none_is_own(&found).is_err());
        assert_eq!(none_is_own(&of(&own, 0)).unwrap(), "no write was refused");
    }
}
