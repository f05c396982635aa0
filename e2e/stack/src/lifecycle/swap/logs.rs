//! Reads Ironic's log and the audit log. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::products::Product;
use crate::lifecycle::audit_log::{self, Request};
use crate::products::machines::NAMESPACE;

/// A change that a client with a login ordered in Ironic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::lifecycle) struct Order {
    pub(in crate::lifecycle) host: String,
    pub(in crate::lifecycle) what: Verb,
    /// The line of the log, for the error.
    pub(in crate::lifecycle) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::lifecycle) enum Verb {
    Power,
    /// Provision, rebuild, clean, inspect, manage.
    Provision,
    BootDevice,
    Delete,
    Create,
    /// A changed description, maintenance or wanted RAID, without an effect on the machine.
    Describe,
}

impl Verb {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Power => "power",
            Self::Provision => "provision",
            Self::BootDevice => "boot device",
            Self::Delete => "delete",
            Self::Create => "create",
            Self::Describe => "describe",
        }
    }

    /// Whether it may change the machine or what Ironic does with it.
    pub(in crate::lifecycle) fn acts(self) -> bool {
        self != Self::Describe
    }

    fn of(method: &str, rest: &[&str]) -> Option<Self> {
        match (method, rest) {
            ("GET" | "HEAD", _) => None,
            (_, ["states", "power"]) => Some(Self::Power),
            (_, ["states", "provision"]) => Some(Self::Provision),
            (_, ["management", "boot_device"] | ["management", "boot_mode"]) => Some(Self::BootDevice),
            ("DELETE", []) => Some(Self::Delete),
            ("POST", []) => Some(Self::Create),
            _ => Some(Self::Describe),
        }
    }
}

/// The orders of a log. Nodes are named by UUID, or by `namespace~host`.
pub(in crate::lifecycle) fn orders(log: &str, nodes: &BTreeMap<String, String>) -> Vec<Order> {
    log.lines().filter_map(|line| order(line, nodes)).collect()
}

fn order(line: &str, nodes: &BTreeMap<String, String>) -> Option<Order> {
    let (_, rest) = line.split_once(" INFO ironic.api [")?;
    let (context, rest) = rest.split_once("] ")?;
    if !context.contains(" admin ") {
        return None;
    }
    let mut words = rest.split(' ').skip(2);
    let (method, path) = (words.next()?, words.next()?.split('?').next()?);
    let parts: Vec<&str> = path
        .strip_prefix("/v1/nodes")?
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    let (node, rest) = parts.split_first().map_or(("", &[][..]), |(node, rest)| (*node, rest));
    let what = Verb::of(method, rest)?;
    let named = node.strip_prefix(NAMESPACE).and_then(|rest| rest.strip_prefix('~'));
    let host = nodes
        .get(node)
        .cloned()
        .unwrap_or_else(|| named.unwrap_or(node).to_owned());
    let text = format!("{method} {path}");
    Some(Order { host, what, text })
}

/// The states in which work begins, each with its number of times, by host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::lifecycle) struct Begun {
    pub(in crate::lifecycle) times: BTreeMap<(String, String), usize>,
    /// What a Go manager begins after it was begun, and how often. It cleans and services again until it has read the settings.
    pub(in crate::lifecycle) by_go_again: BTreeMap<(String, String), usize>,
}

/// The work that begins in a log. `go`: the addresses of Go managers.
pub(in crate::lifecycle) fn begun(log: &str, nodes: &BTreeMap<String, String>, go: &BTreeSet<String>) -> Begun {
    const BEGINS: [&str; 4] = ["deploying", "cleaning", "inspecting", "servicing"];
    // The state changes before the response is logged, both with the name of the request.
    let by_go: BTreeSet<&str> = log.lines().filter_map(|line| ordered(line, go)).collect();
    let mut begun = Begun::default();
    for line in log.lines() {
        let Some((before, rest)) = line.split_once(" moved to provision state \"") else {
            continue;
        };
        let state = rest.split('"').next().unwrap_or_default();
        let node = before.rsplit(' ').next().unwrap_or_default();
        let from = rest
            .split("from state \"")
            .nth(1)
            .and_then(|rest| rest.split('"').next());
        // A step that reboots the machine continues the same work.
        let continues = from.is_some_and(|from| from.ends_with(" wait") || from == "wait call-back");
        if let Some(host) = nodes.get(node).filter(|_| BEGINS.contains(&state) && !continues) {
            let work = (host.clone(), state.to_owned());
            let is_again =
                begun.times.contains_key(&work) && request_name(line).is_some_and(|name| by_go.contains(name));
            let times = if is_again {
                &mut begun.by_go_again
            } else {
                &mut begun.times
            };
            *times.entry(work).or_default() += 1;
        }
    }
    begun
}

/// The name of the request for which Ironic wrote a line.
fn request_name(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(" req-")?;
    rest.split(' ').next()
}

/// The name of a request for a transition that one of these clients sent.
fn ordered<'a>(line: &'a str, clients: &BTreeSet<String>) -> Option<&'a str> {
    let (_, rest) = line.split_once("] ").filter(|_| line.contains("/states/provision"))?;
    let client = rest.split(' ').next()?;
    clients.contains(client).then(|| request_name(line)).flatten()
}

/// A successful request, mostly a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::lifecycle) struct Write {
    pub(in crate::lifecycle) user: String,
    pub(in crate::lifecycle) agent: String,
    pub(in crate::lifecycle) verb: String,
    /// With its subresource.
    pub(in crate::lifecycle) resource: String,
    /// Empty for an object of the cluster.
    pub(in crate::lifecycle) namespace: String,
    pub(in crate::lifecycle) name: String,
    /// Milliseconds of the day.
    pub(in crate::lifecycle) at: u64,
}

/// The successful writes in a part of the audit log.
pub(in crate::lifecycle) fn writes(log: &str) -> Vec<Write> {
    let writes = log.lines().filter_map(Request::read).filter(|one| !one.is_read());
    writes.filter_map(successful).collect()
}

/// Those for Leases.
pub(super) fn of_leases(requests: &[Write]) -> Vec<Write> {
    let leases = requests.iter().filter(|one| one.resource == "leases");
    leases.cloned().collect()
}

/// All successful requests. A watch is in it twice; it ends with its process, at the latest.
pub(super) fn requests(log: &str) -> Vec<Write> {
    log.lines().filter_map(Request::read).filter_map(successful).collect()
}

fn successful(request: Request) -> Option<Write> {
    // The beginning and the end of a watch are two events.
    if !request.has_succeeded() || !["ResponseStarted", "ResponseComplete"].contains(&request.stage.as_str()) {
        return None;
    }
    Some(Write {
        at: millis(&request.at)?,
        user: request.user,
        agent: request.agent,
        verb: request.verb,
        resource: request.resource,
        namespace: request.namespace,
        name: request.name,
    })
}

impl Write {
    /// Whether this program sent it: the name at the beginning of its user agent.
    pub(super) fn is_ours(&self) -> bool {
        audit_log::is_ours(&self.agent)
    }

    /// Whether it is to a host of this name, or to a part of it. All hosts that are judged are of one namespace.
    pub(super) fn is_to_host(&self, name: &str) -> bool {
        let is_host = self.resource.split('/').next() == Some("baremetalhosts");
        is_host && (self.namespace.as_str(), self.name.as_str()) == (NAMESPACE, name)
    }

    /// Whether it takes or renews a Lease.
    pub(super) fn renews(&self, lease: &str) -> bool {
        let is_write = ["create", "update", "patch"].contains(&self.verb.as_str());
        self.resource == "leases" && self.name == lease && is_write
    }
}

/// `2026-11-26T17:30:00.123456Z` as milliseconds of the day.
fn millis(timestamp: &str) -> Option<u64> {
    let time = timestamp.split_once('T')?.1.trim_end_matches('Z');
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut seconds = 0_u64;
    for part in clock.split(':') {
        seconds = seconds.checked_mul(60)?.checked_add(part.parse().ok()?)?;
    }
    let fraction: String = fraction.chars().chain("000".chars()).take(3).collect();
    seconds.checked_mul(1000)?.checked_add(fraction.parse().ok()?)
}

/// Milliseconds from the last renewal of the old manager of a product to the first one of the new one: the writes of its Lease, or all
/// requests of one that elects no leader. A standby, and a process that was started again, only read the Lease.
pub(super) fn without_manager(requests: &[Vec<Write>; 2], product: &Product, to_ours: bool) -> Option<u64> {
    const DAY: u64 = 24 * 60 * 60 * 1000;
    let [before, after] = requests;
    let is_of = |one: &&Write| product.has(&one.user);
    let is_new = |one: &&Write| is_of(one) && one.is_ours() == to_ours;
    let renews = |one: &&Write| one.renews(product.lease);
    let mut new = after.iter().filter(is_new);
    let begin = new.clone().find(renews).or_else(|| new.next())?;
    let old = before.iter().chain(after).filter(|one| is_of(one) && !is_new(one));
    let is_elected = old.clone().any(|one| renews(&one));
    let mut old = old.filter(|one| !is_elected || renews(one));
    // In the order of time, also past midnight.
    let since = |one: &Write| (begin.at + DAY).saturating_sub(one.at) % DAY;
    let end = old.clone().filter(|one| since(one) < DAY / 2).map(since).min();
    // One that overlaps has ended later.
    let overlaps = old.any(|one| since(one) >= DAY / 2);
    if overlaps { Some(0) } else { end }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes() -> BTreeMap<String, String> {
        BTreeMap::from([("306475c3".to_owned(), "host-7".to_owned())])
    }

    fn request(method: &str, path: &str) -> String {
        format!(
            "2026-11-22 02:01:29.877 643 INFO ironic.api [None req-1 admin - - - - -] 10.244.0.3 - {method} {path} - 202 (1ms)"
        )
    }

    #[test]
    fn orders_have_a_host_and_a_verb() {
        let table = [
            ("PUT", "/v1/nodes/306475c3/states/power", Some(("host-7", Verb::Power))),
            (
                "PUT",
                "/v1/nodes/metal~host-8/states/provision?x=1",
                Some(("host-8", Verb::Provision)),
            ),
            (
                "PUT",
                "/v1/nodes/306475c3/management/boot_device",
                Some(("host-7", Verb::BootDevice)),
            ),
            ("PATCH", "/v1/nodes/306475c3", Some(("host-7", Verb::Describe))),
            ("DELETE", "/v1/nodes/306475c3", Some(("host-7", Verb::Delete))),
            ("POST", "/v1/nodes", Some(("", Verb::Create))),
            ("GET", "/v1/nodes/306475c3", None),
            ("POST", "/v1/ports", None),
        ];
        for (method, path, wanted) in table {
            let found = orders(&request(method, path), &nodes());
            let found = found.first().map(|order| (order.host.as_str(), order.what));
            assert_eq!(found, wanted, "{method} {path}");
        }
        let agent = request("POST", "/v1/nodes").replace(" admin ", " - ");
        assert!(orders(&agent, &nodes()).is_empty());
    }

    #[test]
    fn work_begins_once_also_when_a_step_reboots_the_machine() {
        let line = |from: &str, to: &str| {
            format!(
                "x Node 306475c3 moved to provision state \"{to}\" from state \"{from}\"; target provision state is \"a\"\n"
            )
        };
        let log = [
            line("available", "deploying"),
            line("deploying", "wait call-back"),
            line("wait call-back", "deploying"),
        ];
        let begun = begun(&log.concat(), &nodes(), &BTreeSet::new());
        assert_eq!(
            begun.times,
            BTreeMap::from([(("host-7".to_owned(), "deploying".to_owned()), 1)])
        );
    }

    /// The first order is one of any manager; later ones of a Go manager are apart.
    #[test]
    fn what_a_go_manager_begins_again_is_counted_apart() {
        let order = |request: &str, client: &str| {
            format!(
                "x INFO ironic [None req-{request} admin - - - - -] Node 306475c3 moved to provision state \"cleaning\" from state \
                 \"manageable\"; target provision state is \"a\"\nx INFO ironic.api [None req-{request} admin - - - - -] {client} - PUT \
                 /v1/nodes/306475c3/states/provision - 202 (1ms)\n"
            )
        };
        let go = BTreeSet::from(["10.0.0.9".to_owned()]);
        for (clients, times, again) in [
            (["10.0.0.9", "10.0.0.9", "10.0.0.9"], 1, 2),
            (["10.0.0.9", "10.0.0.9", "10.0.0.7"], 2, 1),
            (["10.0.0.7", "10.0.0.9", "10.0.0.9"], 1, 2),
            (["10.0.0.7", "10.0.0.7", "10.0.0.7"], 3, 0),
        ] {
            let log: String = ["a", "b", "c"]
                .iter()
                .zip(clients)
                .map(|(name, client)| order(name, client))
                .collect();
            let begun = begun(&log, &nodes(), &go);
            let count = |all: &BTreeMap<(String, String), usize>| all.values().sum::<usize>();
            assert_eq!(
                (count(&begun.times), count(&begun.by_go_again)),
                (times, again),
                "{clients:?}"
            );
        }
    }

    fn event(agent: &str, time: &str, resource: &str, code: u16) -> String {
        format!(
            r#"{{"verb":"update","user":{{"username":"u"}},"userAgent":"{agent}","objectRef":{{"resource":"{resource}","name":"n"}},"responseStatus":{{"code":{code}}},"stage":"ResponseComplete","stageTimestamp":"2026-11-26T{time}Z"}}"#
        )
    }

    #[test]
    fn rejected_writes_are_no_writes() {
        let log = [
            event("a", "00:00:01.5", "leases", 200),
            event("a", "00:00:02.5", "leases", 409),
        ]
        .join("\n");
        let found = writes(&log);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].at, 1500);
    }

    /// Requests of `VERB AGENT TIME RESOURCE`, all successful.
    fn sent(lines: &[&str]) -> Vec<Write> {
        let line = |line: &&str| {
            let words: Vec<&str> = line.split(' ').collect();
            event(words[1], words[2], words[3], 200).replace(r#""verb":"update""#, &format!(r#""verb":"{}""#, words[0]))
        };
        requests(&lines.iter().map(line).collect::<Vec<_>>().join("\n"))
    }

    /// What is given, the requests of the old and of the new manager, and the milliseconds between them.
    type Row<'a> = (&'a str, &'a [&'a str], &'a [&'a str], Option<u64>);

    #[test]
    #[expect(clippy::too_many_lines, reason = "it is a table")]
    fn time_without_manager_is_from_the_last_old_renewal_to_the_first_new_one() {
        let product = Product::for_test("u", "n");
        let rows: [Row<'_>; 10] = [
            (
                "a request before the Lease is none of a leader",
                &["update manager/v0 23:59:50.0 leases"],
                &[
                    "update capm3/v1 00:00:01.0 ippools",
                    "update capm3/v1 00:00:05.250 leases",
                ],
                Some(15_250),
            ),
            (
                "a standby that reads the Lease does not lead",
                &["update manager/v0 23:59:50.0 leases"],
                &[
                    "get capm3/v1 00:00:01.0 leases",
                    "watch capm3/v1 00:00:02.0 leases",
                    "create capm3/v1 00:00:05.0 leases",
                ],
                Some(15_000),
            ),
            (
                "nor does one of the old manager that reads it until it ends",
                &["patch manager/v0 23:59:50.0 leases", "get manager/v0 23:59:58.0 leases"],
                &[
                    "watch manager/v0 00:00:04.0 leases",
                    "list manager/v0 00:00:04.5 leases",
                    "patch capm3/v1 00:00:05.0 leases",
                ],
                Some(15_000),
            ),
            (
                "a killed one that was started again does not lead",
                &["update manager/v0 23:59:50.0 leases"],
                &[
                    "update manager/v0 00:00:02.0 ippools",
                    "update capm3/v1 00:00:05.0 leases",
                ],
                Some(15_000),
            ),
            (
                "an old one that renews later overlaps",
                &["update manager/v0 23:59:50.0 leases"],
                &[
                    "update capm3/v1 00:00:01.0 leases",
                    "update manager/v0 00:00:02.0 leases",
                ],
                Some(0),
            ),
            (
                "all requests of an old one without a Lease count, and a watch ends with its process",
                &["list manager/v0 23:59:50.0 ippools"],
                &[
                    "watch manager/v0 23:59:58.0 ippools",
                    "update capm3/v1 00:00:01.0 leases",
                ],
                Some(3_000),
            ),
            (
                "and overlap",
                &["list manager/v0 23:59:50.0 ippools"],
                &[
                    "update capm3/v1 00:00:01.0 leases",
                    "watch manager/v0 00:00:02.0 ippools",
                ],
                Some(0),
            ),
            (
                "a new one without a Lease begins with its first request",
                &["update manager/v0 00:00:01.0 leases"],
                &[
                    "watch capm3/v1 00:00:04.0 ippools",
                    "update capm3/v1 00:00:06.0 ippools",
                ],
                Some(3_000),
            ),
            ("without a new one", &["update manager/v0 23:59:50.0 leases"], &[], None),
            ("without an old one", &[], &["update capm3/v1 00:00:01.0 leases"], None),
        ];
        for (what, before, after, expected) in rows {
            let requests = [sent(before), sent(after)];
            assert_eq!(without_manager(&requests, &product, true), expected, "{what}");
        }
        let line = event("manager/v0", "00:00:02.0", "ippools", 200);
        let begins = requests(&line.replace("ResponseComplete", "ResponseStarted"));
        assert_eq!(begins.len(), 1, "the begin of a watch");
    }

    /// A Lease that another one has is no leadership.
    #[test]
    fn refused_renewal_is_no_renewal() {
        let product = Product::for_test("u", "n");
        let refused = event("capm3/v1", "00:00:01.0", "leases", 409);
        let after = requests(&[refused, event("capm3/v1", "00:00:09.0", "leases", 200)].join("\n"));
        let before = sent(&["update manager/v0 00:00:00.0 leases"]);
        assert_eq!(without_manager(&[before, after], &product, true), Some(9_000));
    }
}
