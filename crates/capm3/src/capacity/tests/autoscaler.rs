//! The contract with the cluster autoscaler: what its clusterapi provider reads of a MachineDeployment at zero replicas and
//! of its template, and what it makes of it.
//!
//! A program of its own, written from the provider's behaviour at commit 35e8a280425c76a4040f57ae0fa232a952c02024 of
//! kubernetes/autoscaler, which is its release 1.36.1. It reads documents, not types: a capacity with one value that is no text
//! counts as none. Nodes that a group already has, from which the provider takes labels, are not modelled: here it has none.

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
    /// Without its hostname, which is made up.
    labels: BTreeMap<String, String>,
    taints: Vec<Taint>,
    /// Drivers of volumes, and how many volumes a Node takes of each; 0 is no limit.
    volumes: BTreeMap<String, i64>,
    /// The driver of devices, and their number.
    devices: Option<(String, i64)>,
}

/// Key, value and effect.
type Taint = [String; 3];

fn is_label_value(text: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric();
    text.len() <= 63
        && !text.starts_with(|letter| !is_plain(letter))
        && !text.ends_with(|letter| !is_plain(letter))
        && text.chars().all(|letter| is_plain(letter) || "-_.".contains(letter))
}

fn is_label_name(text: &str) -> bool {
    let (domain, name) = text.split_once('/').unwrap_or(("a", text));
    let is_domain = domain
        .split('.')
        .all(|part| !part.is_empty() && is_label_value(part) && *part == part.to_lowercase() && !part.contains('_'));
    is_domain && !name.is_empty() && is_label_value(name)
}

/// A taint as `key=value:effect`, `key:effect` or `key`, which then has no effect. Effects are not checked.
fn taint(text: &str) -> Option<Taint> {
    let parts: Vec<&str> = text.split(':').collect();
    let (pair, effect) = match parts[..] {
        [key] => (vec![key], ""),
        [pair, effect] => (pair.split('=').collect(), effect),
        _ => return None,
    };
    let (key, value) = match pair[..] {
        [key] => (key, ""),
        [key, value] => (key, value),
        _ => return None,
    };
    (is_label_name(key) && is_label_value(value)).then(|| [key, value, effect].map(ToOwned::to_owned))
}

/// The taints of the group's machines, and over them those of its annotation. What is no taint is left out.
fn taints(deployment: &Value, annotation: &str) -> Vec<Taint> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of_machines = deployment
        .pointer("/spec/template/spec/taints")
        .and_then(Value::as_array);
    let of_machines = of_machines.into_iter().flatten();
    let mut all: Vec<Taint> = of_machines
        .map(|taint| ["key", "value", "effect"].map(|member| text(&taint[member])))
        .collect();
    for one in annotation.split(',').filter_map(taint) {
        let mut places = all.iter_mut();
        match places.find(|known| known[0] == one[0] && known[2] == one[2]) {
            Some(known) => *known = one,
            None => all.push(one),
        }
    }
    all
}

/// Whether Cluster API copies a label of a Machine to its Node.
fn is_copied(label: &str) -> bool {
    let (domain, _) = label.split_once('/').unwrap_or((label, ""));
    let is_of = |wanted: &str| domain == wanted || domain.ends_with(&format!(".{wanted}"));
    domain == "node-role.kubernetes.io" || is_of("node-restriction.kubernetes.io") || is_of("node.cluster.x-k8s.io")
}

/// The labels of a Node: what the autoscaler assumes, over it what the template names, if only by an empty text, and over
/// that those of machines and of the annotation.
fn labels(deployment: &Value, template: Option<&Value>, annotation: &str) -> BTreeMap<String, String> {
    let assumed = [("kubernetes.io/arch", "amd64"), ("kubernetes.io/os", "linux")];
    let mut labels = assumed
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into_iter()
        .collect::<BTreeMap<_, _>>();
    if let Some(template) = template {
        let info = texts(template, "/status/nodeInfo");
        for (label, member) in [
            ("kubernetes.io/arch", "architecture"),
            ("kubernetes.io/os", "operatingSystem"),
        ] {
            labels.insert(label.to_owned(), info.get(member).cloned().unwrap_or_default());
        }
    }
    let of_machines = texts(deployment, "/spec/template/spec/metadata/labels");
    labels.extend(of_machines.into_iter().filter(|(name, _)| is_copied(name)));
    let pairs = annotation.split(',').filter_map(|pair| pair.split_once('='));
    labels.extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
    labels
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

/// What a group at zero replicas would get; `None` for one that the autoscaler leaves alone. The template may be one that it
/// cannot read.
fn scaled_from_zero(deployment: &Value, template: Option<&Value>) -> Option<ExpectedNode> {
    let annotations = texts(deployment, "/metadata/annotations");
    let (_, max) = sizes(&annotations)?;
    if max == 0 {
        return None;
    }
    let stated = |name: &str| {
        let text = annotations.get(&format!("{CAPACITY}/{name}"));
        text.map(String::as_str).unwrap_or_default()
    };
    // A value that is no number refuses the group; zero is as none.
    let number = |name: &str, read: fn(&str) -> Option<i128>| match stated(name) {
        "" => Some(None),
        text => read(text).map(|number| Some(number).filter(|number| *number != 0)),
    };
    let whole = |text: &str| text.parse::<i64>().ok().map(i128::from);
    let read = template
        .map(|template| texts(template, "/status/capacity"))
        .unwrap_or_default();
    let mut capacity: BTreeMap<String, i128> = read
        .iter()
        .filter_map(|(name, text)| Some((name.clone(), quantity(text)?)))
        .collect();
    for (annotation, resource) in [
        ("cpu", "cpu"),
        ("memory", "memory"),
        ("ephemeral-disk", "ephemeral-storage"),
    ] {
        if let Some(number) = number(annotation, quantity)? {
            capacity.insert(resource.to_owned(), number);
        }
    }
    capacity.insert("pods".to_owned(), number("maxPods", whole)?.unwrap_or(PODS));
    let gpus = number("gpu-count", whole)?;
    let (kind, driver) = (stated("gpu-type"), stated("dra-driver"));
    if let Some(gpus) = gpus.filter(|_| !kind.is_empty()) {
        capacity.insert(kind.to_owned(), gpus);
    }
    let volumes = stated("csi-driver").split(',').filter_map(|one| one.split_once('='));
    let volumes = volumes.map(|(driver, limit)| (driver.trim(), limit.trim().parse().ok()));
    let volumes = volumes.filter(|(driver, limit)| !driver.is_empty() && limit.is_some_and(|limit: i64| limit >= 0));
    ["cpu", "memory"]
        .iter()
        .all(|name| capacity.contains_key(*name))
        .then(|| ExpectedNode {
            capacity,
            labels: labels(deployment, template, stated("labels")),
            taints: taints(deployment, stated("taints")),
            volumes: volumes
                .filter_map(|(driver, limit)| Some((driver.to_owned(), limit?)))
                .collect(),
            devices: gpus
                .filter(|_| !driver.is_empty())
                .and_then(|gpus| Some((driver.to_owned(), i64::try_from(gpus).ok()?))),
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

/// A Node of this architecture, with what every Node has.
fn expected(capacity: &[(&str, i128)], architecture: &str) -> ExpectedNode {
    let named = capacity.iter().map(|(name, count)| ((*name).to_owned(), *count));
    let mut all: BTreeMap<String, i128> = named.collect();
    all.entry("pods".to_owned()).or_insert(PODS);
    let labels = [("kubernetes.io/arch", architecture), ("kubernetes.io/os", "linux")];
    ExpectedNode {
        capacity: all,
        labels: pairs(&labels),
        taints: Vec::new(),
        volumes: BTreeMap::new(),
        devices: None,
    }
}

fn pairs(all: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = all
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    owned.collect()
}

const USUAL: [(&str, i128); 3] = [
    ("cpu", 16),
    ("memory", 65_536 << 20),
    ("ephemeral-storage", 500_000_000_000),
];

#[test]
fn autoscaler_expects_the_node_that_the_hosts_can_give() {
    let group = deployment(json!({ MIN: "0", MAX: "5" }));
    let of = |hosts: &[BareMetalHost]| scaled_from_zero(&group, Some(&template(hosts)));
    assert_eq!(of(&[host(json!({}))]), Some(expected(&USUAL, "amd64")));
    let arm = hardware(json!({ "cpu": { "arch": "aarch64" } }));
    assert_eq!(of(std::slice::from_ref(&arm)), Some(expected(&USUAL, "arm64")));
    let unnamed = hardware(json!({ "cpu": { "arch": null } }));
    assert_eq!(of(&[unnamed, arm.clone()]), Some(expected(&USUAL, "arm64")));
    let gpus = host(json!({ "metadata": { "labels": { "nvidia.com/gpu.count": "8" } } }));
    assert_eq!(
        of(&[gpus]),
        Some(expected(&[&USUAL[..], &[("nvidia.com/gpu", 8)]].concat(), "amd64"))
    );
    assert_eq!(of(&[]), None, "nothing to scale to");
    assert_eq!(
        of(&[hardware(json!({ "cpu": null }))]),
        None,
        "it needs processors and memory"
    );
}

/// With two architectures none is named, and Pods that select one do not fit, unless the group names it.
#[test]
fn unnamed_architecture_is_an_empty_label_unless_the_group_names_it() {
    let both = template(&[host(json!({})), hardware(json!({ "cpu": { "arch": "aarch64" } }))]);
    for (annotations, architecture) in [
        (json!({ MAX: "5" }), ""),
        (
            json!({ MAX: "5", "capacity.cluster-autoscaler.kubernetes.io/labels": "kubernetes.io/arch=arm64" }),
            "arm64",
        ),
    ] {
        let found = scaled_from_zero(&deployment(annotations), Some(&both));
        assert_eq!(found, Some(expected(&USUAL, architecture)));
    }
}

#[test]
fn annotations_of_the_group_take_precedence_over_the_status() {
    let mut group = deployment(json!({
        MAX: "5", "capacity.cluster-autoscaler.kubernetes.io/memory": "60Gi",
        "capacity.cluster-autoscaler.kubernetes.io/cpu": "0",
        "capacity.cluster-autoscaler.kubernetes.io/ephemeral-disk": "400G",
        "capacity.cluster-autoscaler.kubernetes.io/maxPods": "250",
        "capacity.cluster-autoscaler.kubernetes.io/gpu-type": "nvidia.com/gpu",
        "capacity.cluster-autoscaler.kubernetes.io/gpu-count": "2",
        "capacity.cluster-autoscaler.kubernetes.io/dra-driver": "gpu.nvidia.com",
        "capacity.cluster-autoscaler.kubernetes.io/csi-driver": "disks.example.org=25, files.example.org = 0,odd",
        "capacity.cluster-autoscaler.kubernetes.io/labels": "rack=7,node-role.kubernetes.io/own=a=b",
        "capacity.cluster-autoscaler.kubernetes.io/taints": "gpu=yes:NoSchedule,own:Other,odd,a=b,c=d=e:f,g:h:i,j=k!:NoExecute",
    }));
    let machines = &mut group["spec"]["template"]["spec"];
    machines["metadata"] = json!({ "labels": {
        "node-role.kubernetes.io/own": "", "a.node.cluster.x-k8s.io/zone": "z", "site": "north",
    } });
    machines["taints"] = json!([
        { "key": "gpu", "value": "no", "effect": "NoSchedule", "propagation": "Always" },
        { "key": "gpu", "effect": "NoExecute", "propagation": "Always" },
    ]);
    let found = scaled_from_zero(&group, Some(&template(&[host(json!({}))])));
    let capacity = [
        ("cpu", 16),
        ("memory", 60 << 30),
        ("ephemeral-storage", 400_000_000_000),
        ("nvidia.com/gpu", 2),
        ("pods", 250),
    ];
    let mut node = expected(&capacity, "amd64");
    node.labels.extend(pairs(&[
        ("rack", "7"),
        ("node-role.kubernetes.io/own", "a=b"),
        ("a.node.cluster.x-k8s.io/zone", "z"),
    ]));
    // One without effect is kept, and effects are not checked.
    node.taints = [
        ["gpu", "yes", "NoSchedule"],
        ["gpu", "", "NoExecute"],
        ["own", "", "Other"],
        ["odd", "", ""],
    ]
    .map(|taint| taint.map(ToOwned::to_owned))
    .to_vec();
    node.volumes = BTreeMap::from([
        ("disks.example.org".to_owned(), 25),
        ("files.example.org".to_owned(), 0),
    ]);
    node.devices = Some(("gpu.nvidia.com".to_owned(), 2));
    assert_eq!(found, Some(node));
}

#[test]
fn annotations_suffice_without_a_readable_template_and_wrong_ones_refuse_the_group() {
    let with = |cpu: &str, pods: &str, gpus: &str| {
        deployment(json!({
            MAX: "5", "capacity.cluster-autoscaler.kubernetes.io/cpu": cpu,
            "capacity.cluster-autoscaler.kubernetes.io/memory": "1Gi",
            "capacity.cluster-autoscaler.kubernetes.io/maxPods": pods,
            "capacity.cluster-autoscaler.kubernetes.io/gpu-count": gpus,
        }))
    };
    let node = expected(&[("cpu", 4), ("memory", 1 << 30)], "amd64");
    assert_eq!(scaled_from_zero(&with("4", "", ""), None), Some(node));
    assert_eq!(scaled_from_zero(&deployment(json!({ MAX: "5" })), None), None);
    let full = template(&[host(json!({}))]);
    assert!(scaled_from_zero(&with("4", "0", "1"), Some(&full)).is_some());
    for (cpu, pods, gpus) in [("four", "", ""), ("4", "2k", ""), ("4", "", "2k")] {
        let group = with(cpu, pods, gpus);
        assert_eq!(scaled_from_zero(&group, Some(&full)), None, "{group}");
    }
}

/// A template whose group the autoscaler may scale has a status; any other costs no request.
#[test]
fn status_is_written_for_the_groups_that_the_autoscaler_may_scale() {
    for (annotations, is_reported, is_scaled) in [
        (json!({ MIN: "0", MAX: "5" }), true, true),
        (json!({ MAX: "1" }), true, true),
        (json!({}), false, false),
        (json!({ MIN: "1" }), false, false),
        (json!({ MIN: "3", MAX: "3" }), true, true),
        // Reported, although there is no size to choose: the annotation may change at any time.
        (json!({ MIN: "0", MAX: "0" }), true, false),
        (json!({ MIN: "4", MAX: "3" }), true, false),
        (json!({ MIN: "-1", MAX: "3" }), true, false),
        (json!({ MIN: "0", MAX: "many" }), true, false),
    ] {
        let group = deployment(annotations.clone());
        let typed: MachineDeployment = serde_json::from_value(group.clone()).unwrap();
        assert_eq!(autoscaled_template(&typed).is_some(), is_reported, "{annotations}");
        let found = scaled_from_zero(&group, Some(&template(&[host(json!({}))])));
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
