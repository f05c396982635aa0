//! The contract with the cluster autoscaler: what its clusterapi provider reads of a MachineDeployment at zero replicas and
//! of its template, and what it makes of it.
//!
//! A program of its own, written from the provider's behaviour. It reads documents, not types: a capacity with one value
//! that is no text counts as none.

use std::collections::BTreeMap;

use kube_core::Resource as _;
use metal3_api::infrastructure::Metal3MachineTemplateStatus;
use metal3_api::infrastructure::v1beta2::Metal3MachineTemplate;
use serde_json::{Value, json};

use super::*;
use crate::capacity::index::autoscaled_template;

const MIN: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size";
const MAX: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";
const CAPACITY: &str = "capacity.cluster-autoscaler.kubernetes.io";
/// Pods of a Node, unless an annotation says otherwise.
const PODS: i128 = 110;

/// The Node that the autoscaler expects of a group at zero.
#[derive(Debug, PartialEq)]
struct ExpectedNode {
    capacity: BTreeMap<String, i128>,
    architecture: String,
    labels: BTreeMap<String, String>,
    taints: Vec<Taint>,
}

/// Key, value and effect.
type Taint = [String; 3];

/// Taints as `key=value:effect`, separated by commas. What is no taint is left out.
fn taints(text: &str) -> Vec<Taint> {
    let taint = |text: &str| {
        let (pair, effect) = text.split_once(':')?;
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let is_known = ["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect);
        is_known.then(|| [key, value, effect].map(ToOwned::to_owned))
    };
    text.split(',').filter_map(taint).collect()
}

/// A number with a suffix, in units. `None` for what the autoscaler leaves out.
fn quantity(text: &str) -> Option<i128> {
    let at = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(at);
    let unit: i128 = match suffix {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => return None,
    };
    Some(number.parse::<i128>().ok()? * unit)
}

/// A map of texts. With any other value in it, it is not read.
fn texts(object: &Value, at: &str) -> BTreeMap<String, String> {
    let map = object.pointer(at).and_then(Value::as_object).into_iter().flatten();
    let read: Option<BTreeMap<_, _>> = map
        .map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect();
    read.unwrap_or_default()
}

/// The sizes of a group; absent is zero. `None` for sizes that are refused.
fn sizes(annotations: &BTreeMap<String, String>) -> Option<(u32, u32)> {
    let size = |name: &str| annotations.get(name).map_or(Some(0), |text| text.parse().ok());
    let (min, max) = (size(MIN)?, size(MAX)?);
    (min <= max).then_some((min, max))
}

/// What a group at zero replicas would get; `None` for one that the autoscaler leaves alone.
fn scaled_from_zero(deployment: &Value, template: &Value) -> Option<ExpectedNode> {
    let annotations = texts(deployment, "/metadata/annotations");
    let (min, max) = sizes(&annotations)?;
    if max - min < 1 {
        return None;
    }
    let stated = |name: &str| {
        annotations
            .get(&format!("{CAPACITY}/{name}"))
            .filter(|text| !text.is_empty())
    };
    let read = texts(template, "/status/capacity");
    let mut capacity: BTreeMap<String, i128> = read
        .iter()
        .filter_map(|(name, text)| Some((name.clone(), quantity(text)?)))
        .collect();
    capacity.insert("pods".to_owned(), PODS);
    for (annotation, resource) in [
        ("cpu", "cpu"),
        ("memory", "memory"),
        ("ephemeral-disk", "ephemeral-storage"),
        ("maxPods", "pods"),
    ] {
        if let Some(text) = stated(annotation) {
            capacity.insert(resource.to_owned(), quantity(text)?);
        }
    }
    if let Some((kind, count)) = stated("gpu-type").zip(stated("gpu-count")) {
        capacity.insert(kind.clone(), quantity(count)?);
    }
    let pairs = stated("labels").map(String::as_str).unwrap_or_default().split(',');
    let labels = pairs.filter_map(|pair| pair.split_once('='));
    let of_node = texts(template, "/status/nodeInfo");
    ["cpu", "memory"]
        .iter()
        .all(|name| capacity.contains_key(*name))
        .then(|| ExpectedNode {
            capacity,
            architecture: of_node.get("architecture").cloned().unwrap_or("amd64".to_owned()),
            labels: labels
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            taints: taints(stated("taints").map(String::as_str).unwrap_or_default()),
        })
}

/// A group at zero replicas with these annotations.
fn deployment(annotations: Value) -> Value {
    json!({
        "metadata": { "name": "d", "namespace": "a", "uid": "u", "annotations": annotations },
        "spec": { "clusterName": "c", "replicas": 0, "template": { "spec": { "infrastructureRef": {
            "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3MachineTemplate", "name": "t" } } } },
    })
}

/// The template as it is stored with the status of these hosts.
fn template(hosts: &[BareMetalHost]) -> Value {
    let status: Metal3MachineTemplateStatus = status_of(hosts);
    let template: Metal3MachineTemplate = serde_json::from_value(json!({
        "metadata": { "name": "t", "namespace": "a" }, "spec": { "template": { "spec": {} } },
    }))
    .unwrap();
    serde_json::to_value(Metal3MachineTemplate { status, ..template }).unwrap()
}

fn expected(capacity: &[(&str, i128)], architecture: &str) -> Option<ExpectedNode> {
    let mut all: BTreeMap<String, i128> = capacity
        .iter()
        .map(|(name, count)| ((*name).to_owned(), *count))
        .collect();
    all.entry("pods".to_owned()).or_insert(PODS);
    Some(ExpectedNode {
        capacity: all,
        architecture: architecture.to_owned(),
        labels: BTreeMap::new(),
        taints: Vec::new(),
    })
}

#[test]
fn autoscaler_expects_the_node_that_the_hosts_can_give() {
    let group = deployment(json!({ MIN: "0", MAX: "5" }));
    let usual = [
        ("cpu", 16),
        ("memory", 65_536 << 20),
        ("ephemeral-storage", 500_000_000_000),
    ];
    let of = |hosts: &[BareMetalHost]| scaled_from_zero(&group, &template(hosts));
    assert_eq!(of(&[host(json!({}))]), expected(&usual, "amd64"));
    let arm = hardware(json!({ "cpu": { "arch": "aarch64" } }));
    assert_eq!(of(std::slice::from_ref(&arm)), expected(&usual, "arm64"));
    // With two architectures none is named, and the autoscaler takes its default.
    assert_eq!(of(&[arm, host(json!({}))]), expected(&usual, "amd64"));
    let gpus = host(json!({ "metadata": { "labels": { "nvidia.com/gpu.count": "8" } } }));
    assert_eq!(
        of(&[gpus]),
        expected(&[&usual[..], &[("nvidia.com/gpu", 8)]].concat(), "amd64")
    );
    assert_eq!(of(&[]), None, "nothing to scale to");
    assert_eq!(
        of(&[hardware(json!({ "cpu": null }))]),
        None,
        "it needs processors and memory"
    );
}

#[test]
fn annotations_of_the_group_take_precedence_over_the_status() {
    let group = deployment(json!({
        MAX: "5", "capacity.cluster-autoscaler.kubernetes.io/memory": "60Gi",
        "capacity.cluster-autoscaler.kubernetes.io/ephemeral-disk": "400G",
        "capacity.cluster-autoscaler.kubernetes.io/maxPods": "250",
        "capacity.cluster-autoscaler.kubernetes.io/gpu-type": "nvidia.com/gpu",
        "capacity.cluster-autoscaler.kubernetes.io/gpu-count": "2",
        "capacity.cluster-autoscaler.kubernetes.io/labels": "rack=7,site=north",
        "capacity.cluster-autoscaler.kubernetes.io/taints": "gpu=yes:NoSchedule,own:NoExecute,odd",
    }));
    let found = scaled_from_zero(&group, &template(&[host(json!({}))])).unwrap();
    let capacity = [
        ("cpu", 16),
        ("memory", 60 << 30),
        ("ephemeral-storage", 400_000_000_000),
        ("nvidia.com/gpu", 2),
        ("pods", 250),
    ];
    let labels = [("rack", "7"), ("site", "north")];
    let labels: BTreeMap<_, _> = labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let taints = [["gpu", "yes", "NoSchedule"], ["own", "", "NoExecute"]];
    let taints = taints.map(|taint| taint.map(ToOwned::to_owned)).to_vec();
    assert_eq!(
        Some(found),
        expected(&capacity, "amd64").map(|node| ExpectedNode { labels, taints, ..node })
    );
}

/// A template whose group the autoscaler may scale has a status; any other costs no request.
#[test]
fn status_is_written_for_the_groups_that_the_autoscaler_may_scale() {
    for (annotations, is_reported, is_scaled) in [
        (json!({ MIN: "0", MAX: "5" }), true, true),
        (json!({ MAX: "1" }), true, true),
        (json!({}), false, false),
        (json!({ MIN: "1" }), false, false),
        // Reported, although no size is left to choose: the annotation may change at any time.
        (json!({ MIN: "3", MAX: "3" }), true, false),
        (json!({ MIN: "0", MAX: "many" }), true, false),
    ] {
        let group = deployment(annotations.clone());
        let typed: MachineDeployment = serde_json::from_value(group.clone()).unwrap();
        assert_eq!(autoscaled_template(&typed).is_some(), is_reported, "{annotations}");
        let found = scaled_from_zero(&group, &template(&[host(json!({}))]));
        assert_eq!(found.is_some(), is_scaled, "{annotations}");
        assert!(
            is_reported || !is_scaled,
            "{annotations}: the autoscaler would find no status"
        );
    }
}

/// The autoscaler makes the path of a template from its kind: in small letters, with an `s`.
#[test]
fn autoscaler_finds_the_template_by_its_kind() {
    let kind = Metal3MachineTemplate::kind(&()).to_lowercase();
    assert_eq!(Metal3MachineTemplate::plural(&()), format!("{kind}s"));
    let reference = texts(&deployment(json!({})), "/spec/template/spec/infrastructureRef");
    assert_eq!(reference.len(), 3, "each member is a text");
}
