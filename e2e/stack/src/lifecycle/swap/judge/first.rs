//! Whether the dry run of `preflight` saw what the new managers then did.

use std::collections::BTreeSet;

use super::{Turn, none};
use crate::claim::Proof;
use crate::lifecycle::swap::Family;
use crate::lifecycle::swap::first::{Happened, plural};
use crate::lifecycle::swap::logs::Write;
use crate::lifecycle::swap::products::products;
use crate::lifecycle::swap::record::Version;
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
        let of_cluster = OF_CLUSTER.iter().filter(|number| self.may_be_taken(**number));
        let of_cluster = of_cluster.flat_map(|number| [host(*number), format!("bmc-{number}")]);
        let failed = FAILED.iter().map(|(number, _)| host(*number));
        let by_chance = of_cluster.chain(failed).collect();
        let is_old = |one: &&Write| one.is_ours() != (self.to == Family::Ours) && one.is_to_host(&one.name);
        let products = products(&self.release);
        let of_managers = since.writes.iter();
        let of_managers = of_managers.filter(|one| products.iter().any(|product| product.has(&one.user)));
        let of_managers: Vec<Write> = of_managers.cloned().collect();
        let by_old = of_managers.iter().filter(is_old).map(|one| one.name.clone()).collect();
        let differences = first.compare(&Happened {
            at_rest: &at_rest,
            by_chance: &by_chance,
            hidden: &self.hidden(),
            written_before: &by_old,
            to_hosts_at_rest: &to_hosts,
            orders_to_hosts_at_rest: &self.orders,
            writes: &of_managers,
            orders: &since.orders,
        });
        none(differences, format!("{} changes seen before", first.len()))
    }

    /// Whether a machine takes the host, gives it back, or may take it: which one it takes is not decided when the dry run is made.
    fn may_be_taken(&self, number: u64) -> bool {
        let consumer = |mark| {
            let host = self.host_at(&host(number), mark)?;
            host["spec"].get("consumerRef").filter(|one| !one.is_null()).cloned()
        };
        let [before, then, after] = [0, 1, 2].map(consumer);
        before.is_none() || before != then || then != after
    }

    /// Objects whose last revision before the switch was read with more than one content.
    pub(super) fn hidden(&self) -> BTreeSet<(String, String)> {
        let until = self.marks[1].revision;
        let is_hidden = |versions: &[Version]| {
            let mut all = versions.iter().rev().skip_while(|one| one.revision > until);
            let last = all.next();
            last.zip(all.next()).is_some_and(|(last, former)| {
                last.revision == former.revision && !last.is_deleted && !former.is_deleted
            })
        };
        let objects = self.versions.iter().filter(|(_, versions)| is_hidden(versions));
        objects.map(|((kind, name), _)| (plural(kind), name.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{add, predicted, quiet};
    use super::*;
    use crate::lifecycle::swap::first::First;

    /// The hosts that machines of the cluster have, before the switch and after it, are compared as all others.
    #[test]
    fn host_of_a_machine_is_compared_unless_it_is_taken_or_given_back() {
        let of = |machine: &str| json!({ "consumerRef": { "kind": "Metal3Machine", "name": machine } });
        for (before, then, after, is_compared) in [
            (of("m"), of("m"), of("m"), true),
            (of("m"), of("m"), json!({}), false),
            (json!({}), of("m"), of("m"), false),
            (of("m"), of("n"), of("n"), false),
            (json!({}), json!({}), json!({}), false),
        ] {
            let mut turn = quiet();
            for (revision, spec) in [(5, &before), (15, &then), (25, &after)] {
                add(&mut turn, 1, revision, spec.clone());
            }
            turn.first = predicted(&[("patch", 1)]);
            let proof = turn.first_changes();
            assert_eq!(proof.is_err(), is_compared, "{before} {then} {after}: {proof:?}");
        }
    }

    /// Another program may write the same object.
    #[test]
    fn write_of_an_account_that_is_none_of_a_manager_is_not_what_was_predicted() {
        let [_, addresses, _] = products(&quiet().release);
        for (user, is_found) in [(addresses.user(), true), ("kubernetes-admin", false)] {
            let mut turn = quiet();
            let change = json!({ "verb": "patch status", "object": "IPPool metal/p", "interrupts": false });
            turn.first = First::of(&json!({ "dryRun": { "changes": [change] } }));
            turn.since_prediction.writes.push(Write {
                user: user.to_owned(),
                agent: "capm3/v1".to_owned(),
                verb: "patch".to_owned(),
                resource: "ippools/status".to_owned(),
                namespace: "metal".to_owned(),
                name: "p".to_owned(),
                at: 0,
            });
            assert_eq!(turn.first_changes().is_ok(), is_found, "{user}");
        }
    }

    #[test]
    fn object_is_hidden_when_its_last_revision_before_the_switch_has_two_contents() {
        let version = |revision, is_deleted, content: &str| Version {
            revision,
            is_deleted,
            object: json!({ "status": content }),
        };
        let table = [
            ("written", vec![version(5, false, "a"), version(6, false, "b")], false),
            ("same", vec![version(5, false, "a")], false),
            (
                "hidden",
                vec![version(4, false, "a"), version(5, false, "a"), version(5, false, "")],
                true,
            ),
            (
                "written-then",
                vec![version(5, false, "a"), version(5, false, ""), version(6, false, "b")],
                false,
            ),
            (
                "later",
                vec![version(5, false, "a"), version(25, false, "b"), version(25, false, "")],
                false,
            ),
            ("deleted", vec![version(5, false, "a"), version(5, true, "a")], false),
        ];
        for (name, versions, expected) in table {
            let mut turn = quiet();
            turn.versions.insert(("IPPool".to_owned(), name.to_owned()), versions);
            let object = ("ippools".to_owned(), name.to_owned());
            assert_eq!(turn.hidden().contains(&object), expected, "{name}");
        }
    }
}
