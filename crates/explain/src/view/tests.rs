//! Reports as tables: the objects of a namespace, and the rows about them.

use serde_json::{Value, json};

use super::*;
use crate::offline;
use crate::order;
use crate::read::Unread;

fn at(text: &str) -> Time {
    serde_json::from_value(json!(format!("2026-01-01T{text}Z"))).unwrap()
}

fn object(api: &str, kind: &str, name: &str, change: Value) -> Value {
    let mut object = json!({ "apiVersion": api, "kind": kind, "metadata": { "name": name, "namespace": "lab" } });
    merge(&mut object, change);
    object
}

fn merge(into: &mut Value, change: Value) {
    match (into, change) {
        (Value::Object(into), Value::Object(change)) => {
            for (key, value) in change {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, change) => *into = change,
    }
}

fn host(name: &str, change: Value) -> Value {
    let mut host = object(
        "metal3.io/v1alpha1",
        "BareMetalHost",
        name,
        json!({ "spec": { "online": true },
        "status": { "operationalStatus": "OK", "errorCount": 0, "errorMessage": "", "poweredOn": true,
            "provisioning": { "state": "available", "ID": "", "image": { "url": "" } } } }),
    );
    merge(&mut host, change);
    host
}

fn machine(name: &str, host: Option<&str>) -> Value {
    let annotations = host.map(|host| json!({ "metal3.io/BareMetalHost": format!("lab/{host}") }));
    object(
        "infrastructure.cluster.x-k8s.io/v1beta2",
        "Metal3Machine",
        name,
        json!({
        "metadata": { "annotations": annotations },
        "status": { "conditions": [{ "type": "AssociateBareMetalHost", "status": if host.is_some() { "True" } else { "False" },
            "reason": "AssociateBareMetalHostFailed", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }] } }),
    )
}

fn text(view: &View, objects: &[Value]) -> Vec<String> {
    let report = offline::report(view, objects, at("01:00:00"));
    render(&report, Some("lab"), at("01:00:00"))
        .lines()
        .map(ToOwned::to_owned)
        .collect()
}

fn fleet() -> [Value; 3] {
    let consumer = json!({ "kind": "Metal3Machine", "name": "m0", "namespace": "lab" });
    [
        host(
            "h1",
            json!({ "metadata": { "labels": { "rack": "a", "cluster.x-k8s.io/cluster-name": "edge" } },
            "spec": { "consumerRef": consumer, "image": { "url": "http://i.example/os.raw?sig=canary" },
                "bmc": { "address": "redfish://root:canary@192.0.2.1/x", "credentialsName": "b" } },
            "status": { "provisioning": { "state": "provisioning" },
                "operationHistory": { "provision": { "start": "2026-01-01T00:50:00Z", "end": null } } } }),
        ),
        host(
            "h0",
            json!({ "metadata": { "labels": { "rack": "b" } }, "spec": { "bmc": { "address": "ipmi://192.0.2.2", "credentialsName": "b" } },
            "status": { "operationalStatus": "error", "errorType": "inspection error", "errorCount": 2, "poweredOn": false,
                "errorMessage": "no\u{1b}[2J agent", "provisioning": { "state": "inspecting" } } }),
        ),
        host(
            "h2",
            json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/paused": "" } } }),
        ),
    ]
}

#[test]
fn consumer_that_cannot_be_decoded_exists() {
    let consumer = json!({ "spec": { "consumerRef": { "kind": "Metal3Machine", "name": "m0" } } });
    let machine = json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Machine",
        "metadata": { "name": "m0", "namespace": "lab" }, "spec": 7 });
    let lines = text(&View::Consumers, &[host("h0", consumer), machine]).join("\n");
    assert!(
        lines.contains("Metal3Machine/m0") && !lines.contains("does not exist"),
        "{lines}"
    );
    let machine = json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Machine",
        "metadata": { "name": "m0", "namespace": "lab", "annotations": { "metal3.io/BareMetalHost": "lab/h0" } }, "spec": {} });
    let mut bad = host("h0", json!({}));
    bad["spec"] = json!(7);
    let lines = text(&View::Consumers, &[bad, machine]).join("\n");
    assert!(!lines.contains("has no host"), "{lines}");
}

#[test]
fn hosts_are_a_table_without_logins_and_control_characters() {
    let lines = text(&View::Hosts(Filter::default()), &fleet());
    let cells = |line: &String| {
        line.split("  ")
            .filter(|cell| !cell.is_empty())
            .map(str::trim)
            .collect::<Vec<_>>()
            .join("|")
    };
    assert_eq!(
        lines.iter().map(cells).collect::<Vec<_>>(),
        [
            "NAME|STATE|STATUS|POWER|CONSUMER|CLUSTER|IMAGE|BMC|ERROR|FOR",
            "h0|inspecting|error|off, shall be on|-|-|-|ipmi://192.0.2.2|InspectionError|-",
            "h1|provisioning|OK|on|Metal3Machine/m0|edge|os.raw|redfish://***@192.0.2.1/x|-|10m0s",
            "h2|available|OK, paused|on|-|-|-|-|-|-",
        ]
    );
    assert!(
        lines
            .iter()
            .all(|line| line.find("OK") == lines[2].find("OK") || !line.contains("OK")),
        "{lines:?}"
    );
    let report = offline::report(&View::Hosts(Filter::default()), &fleet(), at("01:00:00"));
    assert!(!serde_json::to_string(&report).unwrap().contains("canary"));
}

#[test]
fn digest_of_an_image_is_shown_and_its_login_is_not() {
    let image = |url: &str| {
        let host = host("h0", json!({ "spec": { "image": { "url": url } } }));
        let report = offline::report(&View::Hosts(Filter::default()), &[host], at("01:00:00"));
        serde_json::to_string(&report).unwrap()
    };
    let by_digest = "oci://r.example:5000/os@sha256:00ff";
    assert!(image(by_digest).contains(by_digest), "{}", image(by_digest));
    let with_login = image("oci://u:canary@r.example/os@sha256:00ff");
    assert!(
        with_login.contains("***@r.example/os@sha256:00ff") && !with_login.contains("canary"),
        "{with_login}"
    );
}

#[test]
fn filters_select_the_hosts_that_match_all_of_them() {
    let some = |text: &str| Some(text.to_owned());
    let filter = |name: &str, value: &str| {
        let mut filter = Filter::default();
        match name {
            "labels" => filter.labels = value.to_owned(),
            "state" => filter.state = some(value),
            "error" => filter.error = some(value),
            "bmc" => filter.bmc = some(value),
            "image" => filter.image = some(value),
            "cluster" => filter.cluster = some(value),
            _ => {}
        }
        filter
    };
    let both = Filter {
        state: some("available"),
        ..filter("cluster", "edge")
    };
    for (filter, names) in [
        (filter("", ""), vec!["h0", "h1", "h2"]),
        (filter("labels", "rack in (a,b)"), vec!["h0", "h1"]),
        (filter("state", "available"), vec!["h2"]),
        (filter("error", ""), vec!["h0"]),
        (filter("error", "agent"), vec!["h0"]),
        (filter("error", "checksum"), vec![]),
        (filter("bmc", "192.0.2.1"), vec!["h1"]),
        (filter("image", "os.raw"), vec!["h1"]),
        (filter("cluster", "edge"), vec!["h1"]),
        (both, vec![]),
    ] {
        let shown = offline::report(&View::Hosts(filter.clone()), &fleet(), at("01:00:00"));
        let Content::Hosts(rows) = shown.content else {
            unreachable!("hosts")
        };
        let found: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(found, names, "{filter:?}");
    }
}

#[test]
fn consumers_show_lost_machines_and_machines_without_a_host() {
    let [used, failed, free] = fleet();
    let lost = json!({ "spec": { "consumerRef": { "kind": "Metal3Machine", "name": "gone" } } });
    let other = host("h3", lost);
    let objects = [
        used,
        failed,
        free,
        other,
        machine("m0", Some("h9")),
        machine("m1", None),
    ];
    assert_eq!(
        text(&View::Consumers, &objects),
        [
            "HOST  CONSUMER            MACHINE  CLUSTER  NOTE",
            "h0    -                   -        -        -",
            "h1    Metal3Machine/m0    -        edge     the consumer has another host: h9",
            "h2    -                   -        -        -",
            "h3    Metal3Machine/gone  -        -        the consumer does not exist",
            "-     Metal3Machine/m1    -        -        has no host: AssociateBareMetalHostFailed",
        ]
    );
}

/// Names of tenants repeat.
#[test]
fn consumer_of_another_namespace_is_named_with_it() {
    let of = |namespace: &str| json!({ "spec": { "consumerRef": { "kind": "HostClaim", "name": "web", "namespace": namespace } } });
    let objects = [host("h1", of("tenant-1")), host("h2", of("lab"))];
    let rows = text(&View::Consumers, &objects);
    assert!(
        rows.len() == 3 && rows[1].starts_with("h1    HostClaim/tenant-1/web  -"),
        "{rows:?}"
    );
    assert!(rows[2].starts_with("h2    HostClaim/web           -"), "{rows:?}");
}

fn claim(name: &str, change: Value) -> Value {
    let mut claim = object(
        "metal3.io/v1alpha1",
        "HostClaim",
        name,
        json!({ "spec": { "poweredOn": true, "image": { "url": "http://i.example/os.raw?sig=canary" } } }),
    );
    merge(&mut claim, change);
    claim
}

fn ready(status: &str, reason: &str, message: &str) -> Value {
    json!({ "status": { "conditions": [{ "type": "Ready", "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-01-01T00:40:00Z" }] } })
}

#[test]
fn claims_show_hosts_and_what_they_wait_for_without_reading_any_host() {
    let mut bound = claim("c1", ready("True", "Ready", ""));
    merge(
        &mut bound,
        json!({ "status": { "poweredOn": true, "bareMetalHost": { "name": "h1", "namespace": "hosts" } } }),
    );
    let mut released = claim(
        "c2",
        ready("False", "HostClaimDeleting", "Associated: the host is cleaned"),
    );
    merge(
        &mut released,
        json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:50:00Z" },
            "status": { "bareMetalHost": { "name": "h2", "namespace": "hosts" } } }),
    );
    let objects = [
        claim("c3", ready("False", "NoBareMetalHost", "Associated: no host is free")),
        released,
        bound,
        claim("c4", json!({})),
    ];
    assert_eq!(
        text(&View::Claims, &objects),
        [
            "NAME  HOST      POWER             IMAGE   READY                       FOR    MESSAGE",
            "c1    hosts/h1  on                os.raw  Ready                       20m0s  -",
            "c2    hosts/h2  off, shall be on  os.raw  HostClaimDeleting, deleted  20m0s  Associated: the host is cleaned",
            "c3    -         -                 os.raw  NoBareMetalHost             20m0s  Associated: no host is free",
            "c4    -         -                 os.raw  -                           -      -",
        ]
    );
    let wanted = View::Claims.report(&Snapshot::default(), at("01:00:00")).unwrap_err();
    assert_eq!(
        order::set(wanted),
        order::set([Read::list::<metal3_api::metal3::v1alpha1::HostClaim>(None)])
    );
}

/// The report while a kind may not be read.
fn without(view: &View, objects: &[Value], kind: &str) -> Report {
    let mut snapshot = Snapshot::default();
    loop {
        let wanted = match view.report(&snapshot, at("01:00:00")) {
            Ok(report) => return report,
            Err(wanted) => wanted,
        };
        for read in wanted {
            let is_forbidden = matches!(&read, Read::List { kind: of, .. } if of.kind == kind);
            let refusal = || Unread::Forbidden {
                verb: "list".to_owned(),
                resource: kind.to_lowercase(),
            };
            let answer = if is_forbidden {
                Err(refusal())
            } else {
                Ok(offline::answer(objects, &read))
            };
            snapshot.insert(read, answer);
        }
    }
}

#[test]
fn machine_that_may_not_be_read_is_not_said_to_be_absent() {
    let report = without(&View::Consumers, &fleet(), "Metal3Machine");
    assert_eq!((report.state, report.not_read.len()), (State::Unknown, 1));
    let shown = render(&report, None, at("01:00:00"));
    assert!(!shown.contains("does not exist"), "{shown}");
    assert!(
        shown.contains("you may not list metal3machine in all namespaces"),
        "{shown}"
    );
    let pool = object(
        "ipam.metal3.io/v1alpha1",
        "IPPool",
        "lan",
        json!({ "spec": { "namePrefix": "lan" } }),
    );
    let report = without(&View::Pools(None), &[pool], "IPAddress");
    let Content::Pools(rows) = report.content else {
        unreachable!("pools")
    };
    assert_eq!((rows[0].used.as_deref(), rows[0].holders.as_deref()), (None, None));
}

#[test]
fn pool_shows_numbers_and_holders() {
    let api = "ipam.metal3.io/v1alpha1";
    let address = |name: &str, address: &str| {
        object(
            api,
            "IPAddress",
            name,
            json!({ "spec": { "address": address, "claim": { "name": format!("c-{name}") }, "pool": { "name": "lan" } } }),
        )
    };
    let owner = json!([{ "apiVersion": "v1", "kind": "Metal3Data", "name": "t-0", "uid": "u" }]);
    let claim = object(
        api,
        "IPClaim",
        "c-a",
        json!({ "metadata": { "ownerReferences": owner }, "spec": { "pool": { "name": "lan" } } }),
    );
    let full = json!([{ "type": "Exhausted", "status": "True", "reason": "NoFreeAddress", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    let pool = object(
        api,
        "IPPool",
        "lan",
        json!({ "spec": { "namePrefix": "lan" },
        "status": { "capacity": "2", "allocated": "2", "available": "0", "conditions": full } }),
    );
    let objects = [address("b", "192.0.2.10"), address("a", "192.0.2.9"), claim, pool];
    assert_eq!(
        text(&View::Pools(None), &objects),
        [
            "NAME  TOTAL  USED  FREE  RESERVED  REASON",
            "lan   2      2     0     -         NoFreeAddress",
            "",
            "POOL  ADDRESS     CLAIM  OWNER",
            "lan   192.0.2.9   c-a    Metal3Data/t-0",
            "lan   192.0.2.10  c-b    -",
        ]
    );
    let absent = offline::report(&View::Pools(Some("x".to_owned())), &objects, at("01:00:00"));
    assert_eq!(absent.state, State::Absent);
}

/// The alert about claims without address leads here.
#[test]
fn pool_shows_the_claims_that_wait_for_an_address() {
    let ready = json!([{ "type": "Ready", "status": "False", "reason": "AllocationFailed", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    let owner = json!([{ "apiVersion": "v1", "kind": "Metal3Data", "name": "t-0", "uid": "u" }]);
    let claim = |api: &str, kind: &str, spec: Value| {
        let change =
            json!({ "metadata": { "ownerReferences": owner }, "spec": spec, "status": { "conditions": ready } });
        object(api, kind, "c", change)
    };
    let general =
        json!({ "poolRef": { "apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "far" } });
    let objects = [
        object(
            "ipam.metal3.io/v1alpha1",
            "IPPool",
            "lan",
            json!({ "spec": { "namePrefix": "lan" }, "status": {} }),
        ),
        claim(
            "ipam.metal3.io/v1alpha1",
            "IPClaim",
            json!({ "pool": { "name": "lan" } }),
        ),
        claim("ipam.cluster.x-k8s.io/v1beta2", "IPAddressClaim", general),
    ];
    let lines = text(&View::Pools(None), &objects);
    assert_eq!(
        lines[4..],
        [
            "POOL                 WAITING CLAIM     OWNER           REASON",
            "InClusterIPPool/far  IPAddressClaim/c  Metal3Data/t-0  AllocationFailed",
            "lan                  c                 Metal3Data/t-0  AllocationFailed",
        ]
    );
}

/// The owner of such an address was not shown, and the pool of another provider was not there at all.
#[test]
fn addresses_of_general_claims_have_their_holders() {
    let address = |name: &str, group: &str, kind: &str, address: &str| {
        object(
            "ipam.cluster.x-k8s.io/v1beta2",
            "IPAddress",
            name,
            json!({ "spec": { "claimRef": { "name": name }, "address": address,
                "poolRef": { "apiGroup": group, "kind": kind, "name": "lan" } } }),
        )
    };
    let owner = json!([{ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Data", "name": "d0", "uid": "u" }]);
    let claim = object(
        "ipam.cluster.x-k8s.io/v1beta2",
        "IPAddressClaim",
        "own",
        json!({ "metadata": { "ownerReferences": owner }, "spec": { "poolRef": { "kind": "IPPool", "name": "lan" } } }),
    );
    let pool = object(
        "ipam.metal3.io/v1alpha1",
        "IPPool",
        "lan",
        json!({ "status": { "capacity": "10" } }),
    );
    let objects = [
        pool,
        claim,
        address("own", "ipam.metal3.io", "IPPool", "192.0.2.9"),
        address("far", "ipam.cluster.x-k8s.io", "InClusterIPPool", "192.0.2.8"),
    ];
    assert_eq!(
        text(&View::Pools(Some("lan".to_owned())), &objects),
        [
            "NAME                 TOTAL  USED  FREE  RESERVED  REASON",
            "InClusterIPPool/lan  -      1     -     -         -",
            "lan                  10     1     -     -         -",
            "",
            "POOL                 ADDRESS    CLAIM               OWNER",
            "InClusterIPPool/lan  192.0.2.8  IPAddressClaim/far  -",
            "lan                  192.0.2.9  IPAddressClaim/own  Metal3Data/d0",
        ]
    );
}

#[test]
fn timeline_is_sorted_and_has_no_login() {
    let event = object(
        "v1",
        "Event",
        "e",
        json!({ "involvedObject": { "kind": "BareMetalHost", "name": "h1" }, "reason": "ProvisioningStarted",
        "count": 2, "eventTime": "2026-01-01T00:50:01.123456Z", "message": "from https://u:canary@h", "source": { "component": "hosts" } }),
    );
    let condition = json!([{ "type": "Progressing", "status": "True", "reason": "Provisioning", "message": "", "lastTransitionTime": "2026-01-01T00:49:59Z" }]);
    let mut one = fleet()[0].clone();
    merge(
        &mut one,
        json!({ "status": { "conditions": condition,
        "operationHistory": { "inspect": { "start": "2026-01-01T00:10:00Z", "end": "2026-01-01T00:15:30Z" } } } }),
    );
    let of_ironic = r#"[{"created_at": "2026-01-01T00:50:02+00:00", "severity": "ERROR", "event_type": "provisioning",
        "event": "no lease, token=canary", "conductor": "c1"}]"#;
    let history = crate::history::parse(of_ironic).unwrap();
    assert_eq!(
        text(&View::Timeline("h1".to_owned(), history), &[one, event]),
        [
            "TIME                  STEP                 STATE                TOOK          ACTOR       CAUSE",
            "2026-01-01T00:10:00Z  inspect              done                 5m30s         system      -",
            "2026-01-01T00:49:59Z  Progressing          True (Provisioning)  -             system      -",
            "2026-01-01T00:50:00Z  provision            running              10m0s so far  system      -",
            "2026-01-01T00:50:01Z  ProvisioningStarted  event, 2 times       -             hosts       from https://***@h",
            "2026-01-01T00:50:02Z  provisioning         failed in Ironic     -             Ironic, c1  no lease, token=***",
        ]
    );
    let absent = offline::report(&View::Timeline("x".to_owned(), Vec::new()), &[], at("01:00:00"));
    assert_eq!(absent.state, State::Absent);
}

#[test]
fn top_has_the_slowest_steps_the_errors_and_the_oldest_waits() {
    let done = |name: &str, end: &str| {
        host(
            name,
            json!({ "status": { "operationHistory": { "inspect": { "start": "2026-01-01T00:00:00Z", "end": format!("2026-01-01T{end}Z") } } } }),
        )
    };
    let [running, failed, _] = fleet();
    let objects = [
        done("a", "00:05:00"),
        done("b", "00:09:00"),
        done("c", "00:06:00"),
        running,
        failed,
        machine("m1", None),
    ];
    let lines = text(&View::Top, &objects);
    for line in [
        "inspect      3      0        6m0s    9m0s     b",
        "provision    0      1        -       -        -",
        "h0    InspectionError  2         no\u{fffd}[2J agent",
        "Metal3Machine/m1  AssociateBareMetalHostFailed  1h0m",
        "BareMetalHost/h1  provisioning                  10m0s",
    ] {
        assert!(lines.iter().any(|one| one == line), "{line}: {lines:#?}");
    }
}

#[test]
fn tree_of_an_absent_cluster_says_so() {
    let report = offline::report(&View::Tree("x".to_owned()), &[], at("01:00:00"));
    assert_eq!((report.state, report.content), (State::Absent, Content::Tree(None)));
}

#[test]
fn host_that_is_prepared_again_is_in_that_state_since_then() {
    let status = json!({ "status": { "provisioning": { "state": "preparing" },
        "conditions": [{ "type": "Progressing", "status": "True", "reason": "Preparing", "message": "",
            "lastTransitionTime": "2026-01-01T00:59:00Z" }],
        "operationHistory": { "inspect": { "start": "2025-01-01T00:00:00Z", "end": "2025-01-01T00:05:00Z" } } } });
    let lines = text(&View::Hosts(Filter::default()), &[host("a", status)]);
    assert!(lines.iter().any(|line| line.ends_with("1m0s")), "{lines:?}");
}

#[test]
fn host_that_no_controller_looked_at_waits_since_its_creation() {
    let created = json!({ "metadata": { "creationTimestamp": "2026-01-01T00:58:00Z" },
        "status": { "provisioning": { "state": "" } } });
    let lines = text(&View::Top, &[host("a", created)]);
    let line = lines.iter().find(|line| line.starts_with("BareMetalHost/a"));
    assert!(line.is_some_and(|line| line.ends_with("2m0s")), "{lines:?}");
}
