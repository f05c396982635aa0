//! What the API servers of tenants, controllers of other projects and users' Secrets contain: watches and lists of Nodes,
//! objects with an endpoint, and maps in Secrets.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use metal3_capi::workload::WorkloadNode;
use metal3_capi::workload::join::SentConfig;
use metal3_capm3::cluster::sources::ForeignObject;
use metal3_hosts::node::AgentNetwork;
use metal3_runtime::cache::Item;
use metal3_runtime::watch::decode::{Event, event, page};
use serde_json::Value;

use crate::target::{Answer, Parse, Target, answers_alike, prints_what_it_reads, text};

/// A text that no error repeats.
const HIDDEN: &str = "hunter2";
/// Most Nodes of a list here.
const MOST: usize = 4;

static TARGETS: [Target; 6] = [
    Target::json(
        "workload-node",
        NODE,
        node,
        node_is_small,
        &["providerID", "metal3.io/uuid", "kubernetes.io/hostname"],
    ),
    Target::json(
        "watch-line",
        NODE,
        line,
        content_is_hidden,
        &["Applied", "Unreadable", "providerID"],
    ),
    Target::json(
        "watch-list",
        NODE,
        list,
        no_node_is_lost,
        &["Unreadable", "rest: Some", "kubernetes.io/hostname"],
    ),
    Target::json(
        "endpoint-source",
        SOURCE,
        |input| {
            Answer::of(serde_json::from_slice::<ForeignObject>(input), |object| {
                format!("{object:?}")
            })
        },
        answers_alike,
        &["idle: Some", "ingress: Some", "port: Some"],
    ),
    Target::json(
        "join-requisite",
        REQUISITE,
        requisite,
        requisite_is_small,
        &["kubeconfig true", "cluster true", "kubelet true"],
    ),
    Target::text(
        "secret-map",
        MAP,
        secret_map,
        map_is_read_back,
        &["true", "null", "\\n"],
    )
    .yaml(),
];

pub(super) fn targets() -> Vec<Target> {
    TARGETS.to_vec()
}

const NODE: &[&str] = &[
    "type",
    "object",
    "ADDED",
    "MODIFIED",
    "DELETED",
    "BOOKMARK",
    "ERROR",
    "items",
    "metadata",
    "name",
    "uid",
    "resourceVersion",
    "continue",
    "labels",
    "metal3.io/uuid",
    "kubernetes.io/hostname",
    "spec",
    "providerID",
    "metal3://a/b/c",
    "status",
    "code",
    "message",
    "410",
    "7",
    HIDDEN,
];

fn shown(node: &WorkloadNode) -> String {
    serde_json::to_string(node).unwrap_or_else(|error| format!("unwritable: {error}"))
}

fn node(input: &[u8]) -> Answer {
    Answer::of(serde_json::from_slice::<WorkloadNode>(input), |node| shown(&node))
}

/// Six texts are kept, and each is bounded.
fn node_is_small(input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    if let Ok(node) = serde_json::from_slice::<WorkloadNode>(input) {
        let kept = serde_json::to_value(&node).map_err(|error| error.to_string())?;
        let size = texts(&kept);
        if size > 6 * 1024 {
            return Err(format!("{size} bytes are kept"));
        }
    }
    prints_what_it_reads(input, answer, parse)
}

fn texts(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(texts).sum(),
        Value::Object(members) => members.values().map(texts).sum(),
        _ => 0,
    }
}

fn item(item: &Item<WorkloadNode>) -> String {
    match item {
        Item::Object(node) => shown(node),
        Item::Unreadable { identity, why } => format!("Unreadable {} {why}", identity.uid.len()),
    }
}

fn line(input: &[u8]) -> Answer {
    Answer::of(event::<WorkloadNode>(input), |event| match event {
        Event::Applied(one) => format!("Applied {}", item(&one)),
        Event::Deleted(last) => format!("Deleted {} {}", last.key, last.version.as_str()),
        Event::Bookmark(at) => format!("Bookmark {}", at.as_str()),
        Event::Ended { code, message } => format!("Ended {code} {}", message.len()),
    })
}

fn list(input: &[u8]) -> Answer {
    Answer::of(page::<WorkloadNode>(&text(input), MOST), |page| {
        let items: Vec<String> = page.items.iter().map(item).collect();
        format!("{} rest: {:?} {}", page.at.as_str(), page.rest, items.join(" "))
    })
}

/// No error repeats a text of an object, except for its version. The type of an event belongs to no object.
fn content_is_hidden(input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    let message = match answer {
        Answer::Rejected(message) if message.contains("unknown type") || message.contains("resourceVersion") => "",
        Answer::Rejected(message) => message,
        Answer::Accepted(text) => text.split_once("Unreadable").map_or("", |(_, why)| why),
    };
    if message.contains(HIDDEN) {
        return Err(format!("an error repeats the object: {message}"));
    }
    answers_alike(input, answer, parse)
}

/// Each item of the list is a Node, or is unreadable, and there are no more than are kept.
fn no_node_is_lost(input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    if let Ok(page) = page::<WorkloadNode>(&text(input), MOST) {
        let list: Value = serde_json::from_str(&text(input)).map_err(|error| error.to_string())?;
        let sent = list.get("items").and_then(Value::as_array).map_or(0, Vec::len);
        if page.items.len() != sent || sent > MOST {
            return Err(format!("{} of {sent}", page.items.len()));
        }
    }
    answers_alike(input, answer, parse)
}

const SOURCE: &[&str] = &[
    "metadata",
    "name",
    "annotations",
    "infrastructure.cluster.x-k8s.io/endpoint-taken",
    "spec",
    "controlPlaneEndpoint",
    "host",
    "port",
    "6443",
    "ports",
    "status",
    "loadBalancer",
    "ingress",
    "ip",
    "hostname",
    "192.0.2.9",
    "conditions",
    "type",
    "InfrastructureClusterPatched",
    "False",
    "lastTransitionTime",
    "2026-01-31T12:00:00Z",
];

const REQUISITE: &[&str] = &[
    "metadata",
    "name",
    "cluster-info",
    "data",
    "kubeconfig",
    "ClusterConfiguration",
    "kubelet",
    " ",
    "x",
    HIDDEN,
];

/// What is read of a ConfigMap that a machine needs to join.
fn requisite(input: &[u8]) -> Answer {
    Answer::of(serde_json::from_slice::<SentConfig>(input), |sent| {
        let (kubeconfig, cluster, kubelet) = sent.has_keys();
        format!("kubeconfig {kubeconfig} cluster {cluster} kubelet {kubelet}")
    })
}

/// Of all that a server sends, a name and three bits are kept.
fn requisite_is_small(input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    if let Ok(sent) = serde_json::from_slice::<SentConfig>(input) {
        let size = texts(&serde_json::to_value(&sent).map_err(|error| error.to_string())?);
        if size > 253 {
            return Err(format!("{size} bytes are kept"));
        }
    }
    answers_alike(input, answer, parse)
}

const MAP: &[&str] = &[
    "a: b\n",
    "links:\n",
    "  - id: eth0\n",
    "|\n",
    "yes",
    "010",
    "~",
    "0x1f",
    "1e3",
    ".inf",
    "&x ",
    "*x",
    "<<: *x\n",
    "!!binary ",
    "? ",
    "---\n",
    "{",
    "}",
    HIDDEN,
];

/// The map in a Secret, as JSON.
fn secret_map(input: &[u8]) -> Answer {
    let values = BTreeMap::from([("networkData".to_owned(), ByteString(input.to_vec()))]);
    Answer::of(AgentNetwork::of(&values), |network| match network {
        AgentNetwork::Data(map) => Value::Object(map).to_string(),
        AgentNetwork::None | AgentNetwork::Unread => "{}".to_owned(),
    })
}

/// What is read is read again from JSON, and no error repeats a value.
fn map_is_read_back(input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    match answer {
        Answer::Rejected(message) if message.contains(HIDDEN) => Err(format!("an error repeats a value: {message}")),
        Answer::Rejected(_) => answers_alike(input, answer, parse),
        Answer::Accepted(_) => prints_what_it_reads(input, answer, parse),
    }
}
