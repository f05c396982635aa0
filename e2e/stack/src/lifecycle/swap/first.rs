//! What the dry run of `preflight` saw, compared with what then happened. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::logs::{Order, Verb, Write};
use crate::products::machines::NAMESPACE;

/// The changes of a dry run, and what it could not see.
#[derive(Debug, Clone, Default)]
pub(super) struct First {
    changes: Vec<Change>,
    not_known: Vec<String>,
}

#[derive(Debug, Clone)]
struct Change {
    /// `patch`, `patch status`, or `order` with its name.
    verb: String,
    /// In lower case, as in URLs.
    resource: String,
    /// Empty for an object of the cluster.
    namespace: String,
    name: String,
}

/// What happened to objects and machines.
pub(super) struct Happened<'a> {
    /// Hosts of which nothing was asked.
    pub(super) at_rest: &'a BTreeSet<String>,
    /// Objects of which the dry run and a manager need not do the same: a machine takes any free host, and a failed host is tried again
    /// at a time of its own.
    pub(super) by_chance: &'a BTreeSet<String>,
    /// Resources and names of objects of which the API server shows more or less with another definition, without a write. The dry run
    /// sees what the definitions of the old managers show.
    pub(super) hidden: &'a BTreeSet<(String, String)>,
    /// Hosts that an old manager wrote after the prediction: what was to be written may be there.
    pub(super) written_before: &'a BTreeSet<String>,
    /// Writes of the new managers to hosts at rest.
    pub(super) to_hosts_at_rest: &'a [&'a Write],
    /// Orders to Ironic since the switch began.
    pub(super) orders_to_hosts_at_rest: &'a [Order],
    /// Writes of the accounts of all managers, and orders, since the prediction began.
    pub(super) writes: &'a [Write],
    pub(super) orders: &'a [Order],
}

/// With work in flight, controllers do not come to rest within the time of a dry run. What it then did not see is a difference of its own.
const CUT: &str = "what else this program would do:";

/// A verb and a resource, as requests have them.
type Kind = (String, String);

impl First {
    /// The dry run of a report; none of the way back.
    pub(super) fn of(report: &Value) -> Option<Self> {
        let dry_run = report.get("dryRun")?;
        let all = |member: &str| dry_run[member].as_array().cloned().unwrap_or_default();
        let text = |value: &Value, member: &str| value[member].as_str().unwrap_or_default().to_owned();
        let changes = all("changes").into_iter().map(|change| {
            let object = text(&change, "object");
            let (kind, name) = object.split_once(' ').unwrap_or_default();
            let (namespace, name) = name.split_once('/').unwrap_or(("", name));
            Change {
                verb: text(&change, "verb"),
                resource: plural(kind),
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            }
        });
        let not_known = all("notKnown");
        let not_known = not_known
            .iter()
            .map(|one| format!("{}: {}", text(one, "what"), text(one, "why")));
        Some(Self {
            changes: changes.collect(),
            not_known: not_known.collect(),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.changes.len()
    }

    /// Where prediction and events differ: in number and kind of writes for a host at rest, in the object for all others, whose work
    /// goes on.
    pub(super) fn compare(&self, happened: &Happened<'_>) -> Vec<String> {
        let not_known = self.not_known.iter().filter(|what| !what.starts_with(CUT));
        let mut differences: Vec<String> = not_known.map(|what| format!("not known: {what}")).collect();
        for host in happened.at_rest.difference(happened.by_chance) {
            differences.extend(self.host_at_rest(host, happened));
        }
        let is_at_rest = |change: &&Change| happened.at_rest.contains(&change.name) && change.is_of_host(&change.name);
        // The audit log has no request to a workload cluster.
        let is_compared = |change: &&Change| {
            let is_hidden = || {
                let object = (change.resource.clone(), change.name.clone());
                change.verb == "patch status" && happened.hidden.contains(&object)
            };
            let is_by_chance = || happened.by_chance.contains(&change.name);
            change.resource != "nodes" && !(change.is_own() && (is_by_chance() || is_hidden()))
        };
        let others = self.changes.iter().filter(|change| !is_at_rest(change));
        for change in others.filter(is_compared) {
            let (verb, resource) = (&change.verb, &change.resource);
            let is_found = match change.order() {
                // The request for a new node has no host in its path.
                Some(verb) => happened.orders.iter().any(|order| {
                    let is_named = (change.is_own() && order.host == change.name)
                        || (verb == Verb::Create && order.host.is_empty());
                    is_named && order.what == verb
                }),
                None => happened.writes.iter().any(|write| change.is_done_by(write)),
            };
            if !is_found {
                differences.push(format!(
                    "{verb} {resource} {}: predicted, and did not happen",
                    change.name
                ));
            }
        }
        differences
    }

    fn host_at_rest(&self, host: &str, happened: &Happened<'_>) -> Vec<String> {
        let (mut predicted, mut seen) = (BTreeMap::<Kind, usize>::new(), BTreeMap::<Kind, usize>::new());
        let mut orders: BTreeMap<Verb, bool> = BTreeMap::new();
        for change in self.changes.iter().filter(|change| change.is_of_host(host)) {
            match change.order() {
                Some(verb) => drop(orders.insert(verb, false)),
                None => *predicted.entry(change.request()).or_default() += 1,
            }
        }
        for write in happened.to_hosts_at_rest.iter().filter(|write| write.is_to_host(host)) {
            *seen.entry((write.verb.clone(), write.resource.clone())).or_default() += 1;
        }
        let mut differences = Vec::new();
        let kinds: BTreeSet<&Kind> = predicted.keys().chain(seen.keys()).collect();
        for kind in kinds {
            let [before, after] = [&predicted, &seen].map(|all| all.get(kind).copied().unwrap_or_default());
            let is_done = before > after && happened.written_before.contains(host);
            if before != after && !is_done {
                differences.push(format!(
                    "{host}: {} {}: {before} predicted, {after} happened",
                    kind.0, kind.1
                ));
            }
        }
        for order in happened
            .orders_to_hosts_at_rest
            .iter()
            .filter(|order| order.host == host)
        {
            match orders.get_mut(&order.what) {
                Some(is_seen) => *is_seen = true,
                None => differences.push(format!("{host}: {} was not predicted", order.text)),
            }
        }
        let missing = orders.iter().filter(|(_, is_seen)| !**is_seen);
        differences.extend(missing.map(|(verb, _)| format!("{host}: {}: predicted, and did not happen", verb.name())));
        differences
    }
}

impl Change {
    fn is_of_host(&self, name: &str) -> bool {
        self.resource == "baremetalhosts" && self.is_own() && self.name == name
    }

    /// Whether it is in the namespace of the objects whose names the facts have.
    fn is_own(&self) -> bool {
        self.namespace == NAMESPACE
    }

    /// The verb and the resource of the request.
    fn request(&self) -> Kind {
        match self.verb.split_once(' ') {
            Some((verb, subresource)) => (verb.to_owned(), format!("{}/{subresource}", self.resource)),
            None => (self.verb.clone(), self.resource.clone()),
        }
    }

    /// Whether a request is the change: of this program with the same verb, or of an old manager, which goes on until the switch, to the
    /// same part of the object.
    fn is_done_by(&self, write: &Write) -> bool {
        let (verb, resource) = self.request();
        let is_same_verb = match verb.as_str() {
            // A Go manager updates what this program patches.
            "patch" if !write.is_ours() => ["patch", "update"].contains(&write.verb.as_str()),
            verb => write.verb == verb,
        };
        let is_same_object = (&write.namespace, &write.name) == (&self.namespace, &self.name);
        write.resource == resource && is_same_object && is_same_verb
    }

    /// The kind of an order to Ironic.
    fn order(&self) -> Option<Verb> {
        Some(match self.verb.strip_prefix("order ")? {
            "power on" | "power off" | "soft power off" | "rebooting" | "soft rebooting" => Verb::Power,
            "create node" => Verb::Create,
            "delete node" => Verb::Delete,
            "change node"
            | "set RAID"
            | "set maintenance"
            | "clear maintenance"
            | "create port"
            | "insert disc"
            | "eject discs"
            | "create subscription"
            | "delete subscription" => Verb::Describe,
            _ => Verb::Provision,
        })
    }
}

/// The name of a kind in URLs.
pub(super) fn plural(kind: &str) -> String {
    let name = kind.to_lowercase();
    match name.as_str() {
        "hardwaredata" | "hostfirmwaresettings" | "hostfirmwarecomponents" => name,
        "ipaddress" => "ipaddresses".to_owned(),
        _ => format!("{}s", name.trim_end_matches('s')),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn first(changes: &[(&str, &str)], not_known: &[&str]) -> First {
        let change = |(verb, object): &(&str, &str)| json!({ "verb": verb, "object": object, "interrupts": false });
        let unknown = |what: &&str| json!({ "what": what, "why": "you may not" });
        let changes: Vec<Value> = changes.iter().map(change).collect();
        let not_known: Vec<Value> = not_known.iter().map(unknown).collect();
        First::of(&json!({ "dryRun": { "changes": changes, "notKnown": not_known } })).unwrap()
    }

    fn write(verb: &str, resource: &str, name: &str) -> Write {
        Write {
            user: "u".to_owned(),
            agent: "capm3/v1".to_owned(),
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            namespace: "metal".to_owned(),
            name: name.to_owned(),
            at: 0,
        }
    }

    fn order(host: &str, what: Verb) -> Order {
        Order {
            host: host.to_owned(),
            what,
            text: "PUT".to_owned(),
        }
    }

    /// `rest` is at rest.
    fn differences(first: &First, writes: &[Write], orders: &[Order]) -> Vec<String> {
        let at_rest = BTreeSet::from(["old".to_owned(), "rest".to_owned()]);
        let of_rest = |one: &&Write| at_rest.iter().any(|host| one.is_to_host(host));
        let to_rest: Vec<&Write> = writes.iter().filter(of_rest).collect();
        first.compare(&Happened {
            at_rest: &at_rest,
            by_chance: &BTreeSet::from(["any".to_owned()]),
            hidden: &BTreeSet::from([("ipclaims".to_owned(), "shown".to_owned())]),
            written_before: &BTreeSet::from(["old".to_owned()]),
            to_hosts_at_rest: &to_rest,
            orders_to_hosts_at_rest: orders,
            writes,
            orders,
        })
    }

    #[test]
    fn writes_of_a_host_at_rest_are_compared_by_number_and_kind_in_both_directions() {
        let (host, status) = (
            write("patch", "baremetalhosts", "rest"),
            write("patch", "baremetalhosts/status", "rest"),
        );
        let patch = ("patch", "BareMetalHost metal/rest");
        let of_status = ("patch status", "BareMetalHost metal/rest");
        type Row<'a> = (&'a [(&'a str, &'a str)], Vec<Write>, &'a [&'a str]);
        let table: [Row<'_>; 7] = [
            (&[], vec![], &[]),
            (&[patch, of_status], vec![status.clone(), host.clone()], &[]),
            (
                &[patch],
                vec![],
                &["rest: patch baremetalhosts: 1 predicted, 0 happened"],
            ),
            (
                &[],
                vec![host.clone()],
                &["rest: patch baremetalhosts: 0 predicted, 1 happened"],
            ),
            (
                &[patch],
                vec![host.clone(), host.clone()],
                &["rest: patch baremetalhosts: 1 predicted, 2 happened"],
            ),
            (&[patch, patch], vec![host.clone(), host.clone()], &[]),
            (
                &[patch],
                vec![status],
                &[
                    "rest: patch baremetalhosts: 1 predicted, 0 happened",
                    "rest: patch baremetalhosts/status: 0 predicted, 1 happened",
                ],
            ),
        ];
        for (predicted, writes, expected) in table {
            assert_eq!(
                differences(&first(predicted, &[]), &writes, &[]),
                expected,
                "{predicted:?} {writes:?}"
            );
        }
    }

    #[test]
    fn old_manager_may_have_written_what_was_predicted_and_nothing_more_may_follow() {
        let predicted = first(&[("patch status", "BareMetalHost metal/old")], &[]);
        let status = write("patch", "baremetalhosts/status", "old");
        assert_eq!(differences(&predicted, &[], &[]), [""; 0]);
        assert_eq!(differences(&predicted, &[status.clone(), status], &[]).len(), 1);
        assert_eq!(
            differences(&first(&[], &[]), &[write("patch", "baremetalhosts", "old")], &[]).len(),
            1
        );
    }

    #[test]
    fn orders_to_a_host_at_rest_are_compared_in_both_directions() {
        let predicted = first(&[("order power off", "BareMetalHost metal/rest")], &[]);
        let (power, provision) = (order("rest", Verb::Power), order("rest", Verb::Provision));
        assert_eq!(differences(&predicted, &[], std::slice::from_ref(&power)), [""; 0]);
        let both = [
            "rest: PUT was not predicted",
            "rest: power: predicted, and did not happen",
        ];
        assert_eq!(differences(&predicted, &[], &[provision]), both);
        assert_eq!(
            differences(&first(&[], &[]), &[], &[power]),
            ["rest: PUT was not predicted"]
        );
    }

    #[test]
    fn work_of_other_objects_may_go_on_and_what_was_predicted_must_happen() {
        let predicted = first(
            &[
                ("patch status", "Metal3Machine metal/m"),
                ("create", "IPAddress metal/a"),
                ("order create node", "BareMetalHost metal/busy"),
            ],
            &[],
        );
        let writes = [
            write("patch", "metal3machines/status", "m"),
            write("create", "ipaddresses", "a"),
            write("patch", "metal3machines", "another"),
        ];
        let orders = [order("", Verb::Create), order("busy", Verb::Provision)];
        assert_eq!(differences(&predicted, &writes, &orders), [""; 0]);
        let missing = differences(&predicted, &writes[1..], &orders[1..]);
        let expected = [
            "patch status metal3machines m: predicted",
            "order create node baremetalhosts busy: predicted",
        ];
        assert_eq!(missing.len(), expected.len(), "{missing:?}");
        assert!(
            missing.iter().zip(expected).all(|(line, part)| line.starts_with(part)),
            "{missing:?}"
        );
    }

    #[test]
    fn change_of_another_object_is_made_by_this_program_with_its_verb_or_by_the_old_manager() {
        let of_go = |verb: &str, resource: &str| Write {
            agent: "manager/v0".to_owned(),
            ..write(verb, resource, "m")
        };
        let of_status = ("patch status", "Metal3Machine metal/m");
        for (change, happened, is_found) in [
            (of_status, write("patch", "metal3machines/status", "m"), true),
            (of_status, write("patch", "metal3machines", "m"), false),
            (of_status, write("update", "metal3machines/status", "m"), false),
            (of_status, write("delete", "metal3machines", "m"), false),
            (of_status, write("patch", "metal3machines/status", "n"), false),
            (of_status, of_go("update", "metal3machines/status"), true),
            (of_status, of_go("update", "metal3machines"), false),
            (
                ("patch", "Metal3Machine metal/m"),
                of_go("patch", "metal3machines"),
                true,
            ),
            (
                ("delete", "Metal3Machine metal/m"),
                write("delete", "metal3machines", "m"),
                true,
            ),
            (
                ("delete", "Metal3Machine metal/m"),
                write("patch", "metal3machines", "m"),
                false,
            ),
            (
                ("create", "Metal3Machine metal/m"),
                of_go("update", "metal3machines"),
                false,
            ),
        ] {
            let found = differences(&first(&[change], &[]), std::slice::from_ref(&happened), &[]);
            assert_eq!(found.is_empty(), is_found, "{change:?} {happened:?}");
        }
    }

    /// Two objects of one name in two namespaces.
    #[test]
    fn change_is_made_by_a_write_to_the_object_of_its_namespace() {
        let elsewhere = |verb: &str, resource: &str, name: &str| Write {
            namespace: "other".to_owned(),
            ..write(verb, resource, name)
        };
        let status = "metal3machines/status";
        for (object, happened, is_found) in [
            ("Metal3Machine metal/m", write("patch", status, "m"), true),
            ("Metal3Machine metal/m", elsewhere("patch", status, "m"), false),
            ("Metal3Machine other/m", elsewhere("patch", status, "m"), true),
        ] {
            let found = differences(
                &first(&[("patch status", object)], &[]),
                std::slice::from_ref(&happened),
                &[],
            );
            assert_eq!(found.is_empty(), is_found, "{object} {happened:?}");
        }
        let of_other = [elsewhere("patch", "baremetalhosts", "rest")];
        assert_eq!(differences(&first(&[], &[]), &of_other, &[]), [""; 0]);
        let predicted = first(&[("patch", "BareMetalHost other/rest")], &[]);
        assert_eq!(differences(&predicted, &of_other, &[]), [""; 0]);
    }

    #[test]
    fn what_the_dry_run_could_not_see_is_a_difference_and_the_way_back_has_none() {
        let any = first(
            &[
                ("patch", "BareMetalHost metal/any"),
                ("order power on", "BareMetalHost metal/any"),
            ],
            &[],
        );
        assert_eq!(differences(&any, &[], &[]), [""; 0]);
        let elsewhere = first(&[("patch", "nodes edge-1")], &["what else this program would do"]);
        assert_eq!(differences(&elsewhere, &[], &[]), [""; 0]);
        let found = differences(&first(&[], &["what hosts would do"]), &[], &[]);
        assert_eq!(found, ["not known: what hosts would do: you may not"]);
        assert!(First::of(&json!({ "findings": [] })).is_none());
    }

    #[test]
    fn status_that_another_definition_shows_again_needs_no_write() {
        let of = |verb, object| differences(&first(&[(verb, object)], &[]), &[], &[]);
        assert_eq!(of("patch status", "IPClaim metal/shown"), [""; 0]);
        for (verb, object) in [
            ("patch", "IPClaim metal/shown"),
            ("patch status", "IPClaim metal/other"),
            ("patch status", "IPAddress metal/shown"),
        ] {
            assert_eq!(of(verb, object).len(), 1, "{verb} {object}");
        }
    }

    #[test]
    fn kinds_have_the_names_that_the_audit_log_has() {
        let table = [
            ("BareMetalHost", "baremetalhosts"),
            ("HardwareData", "hardwaredata"),
            ("HostFirmwareSettings", "hostfirmwaresettings"),
            ("IPAddress", "ipaddresses"),
            ("Metal3Data", "metal3datas"),
            ("Secret", "secrets"),
            ("leases", "leases"),
        ];
        for (kind, expected) in table {
            assert_eq!(plural(kind), expected);
        }
    }
}
