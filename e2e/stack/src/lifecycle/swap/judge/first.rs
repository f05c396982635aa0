//! Whether the dry run of `preflight` saw what the new managers then did.

use std::collections::BTreeSet;

use super::{Turn, none};
use crate::claim::Proof;
use crate::lifecycle::swap::Family;
use crate::lifecycle::swap::first::{Happened, plural};
use crate::lifecycle::swap::logs::Write;
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
        let of_cluster = OF_CLUSTER
            .iter()
            .flat_map(|number| [host(*number), format!("bmc-{number}")]);
        let failed = FAILED.iter().map(|(number, _)| host(*number));
        let by_chance = of_cluster.chain(failed).collect();
        let is_old =
            |one: &&Write| one.is_ours() != (self.to == Family::Ours) && one.resource.starts_with("baremetalhosts");
        let by_old = since.writes.iter().filter(is_old).map(|one| one.name.clone()).collect();
        let differences = first.compare(&Happened {
            at_rest: &at_rest,
            by_chance: &by_chance,
            hidden: &self.hidden(),
            written_before: &by_old,
            to_hosts_at_rest: &to_hosts,
            orders_to_hosts_at_rest: &self.orders,
            writes: &since.writes,
            orders: &since.orders,
        });
        none(differences, format!("{} changes seen before", first.len()))
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

    use super::super::tests::quiet;
    use super::*;

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
