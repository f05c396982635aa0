//! Defaults of Pods and of what runs them, and what admission plugins add to a Pod.

use serde_json::{Map, Value, json};

use super::{default, items};
use crate::store::object::as_map;

/// Sets the defaults of a Deployment.
pub(super) fn deployment(body: &mut Value) {
    let Some(spec) = body.get_mut("spec") else { return };
    default(
        as_map(spec),
        &[
            ("replicas", json!(1)),
            ("strategy", json!({})),
            ("revisionHistoryLimit", json!(10)),
            ("progressDeadlineSeconds", json!(600)),
        ],
    );
    let strategy = as_map(as_map(spec).entry("strategy").or_insert(Value::Null));
    default(strategy, &[("type", json!("RollingUpdate"))]);
    if strategy.get("type") == Some(&json!("RollingUpdate")) {
        let update = as_map(strategy.entry("rollingUpdate").or_insert(Value::Null));
        default(update, &[("maxUnavailable", json!("25%")), ("maxSurge", json!("25%"))]);
    }
    template(spec);
}

/// Sets the defaults of a `ReplicaSet`.
pub(super) fn replica_set(body: &mut Value) {
    let Some(spec) = body.get_mut("spec") else { return };
    default(as_map(spec), &[("replicas", json!(1))]);
    template(spec);
}

/// Sets the defaults of the other kinds that run Pods.
pub(super) fn workload(kind: &str, body: &mut Value) {
    let Some(spec) = body.get_mut("spec").filter(|spec| spec.is_object()) else {
        return;
    };
    let values = match kind {
        "ReplicationController" => vec![("replicas", json!(1))],
        "DaemonSet" => {
            rolling(spec, &[("maxSurge", json!(0)), ("maxUnavailable", json!(1))]);
            vec![("revisionHistoryLimit", json!(10))]
        }
        "StatefulSet" => {
            rolling(spec, &[("partition", json!(0))]);
            let retained = as_map(spec).entry("persistentVolumeClaimRetentionPolicy");
            let retain = [("whenDeleted", json!("Retain")), ("whenScaled", json!("Retain"))];
            default(as_map(retained.or_insert(Value::Null)), &retain);
            vec![
                ("replicas", json!(1)),
                ("podManagementPolicy", json!("OrderedReady")),
                ("revisionHistoryLimit", json!(10)),
            ]
        }
        "Job" => job(spec),
        "CronJob" => vec![
            ("concurrencyPolicy", json!("Allow")),
            ("suspend", json!(false)),
            ("successfulJobsHistoryLimit", json!(3)),
            ("failedJobsHistoryLimit", json!(1)),
        ],
        "PersistentVolumeClaim" => vec![("volumeMode", json!("Filesystem"))],
        "PersistentVolume" => vec![
            ("volumeMode", json!("Filesystem")),
            ("persistentVolumeReclaimPolicy", json!("Retain")),
        ],
        _ => return,
    };
    default(as_map(spec), &values);
    match spec.pointer_mut("/jobTemplate/spec") {
        Some(inner) => template(inner),
        None => template(spec),
    }
}

/// The strategy of an update, and the members of a rolling one.
fn rolling(spec: &mut Value, members: &[(&str, Value)]) {
    let strategy = as_map(as_map(spec).entry("updateStrategy").or_insert(Value::Null));
    default(strategy, &[("type", json!("RollingUpdate"))]);
    if strategy.get("type") == Some(&json!("RollingUpdate")) {
        default(as_map(strategy.entry("rollingUpdate").or_insert(Value::Null)), members);
    }
}

fn job(spec: &mut Value) -> Vec<(&'static str, Value)> {
    // With a parallelism alone it is a queue, which ends by itself.
    if spec.get("parallelism").is_none() {
        default(as_map(spec), &[("completions", json!(1))]);
    }
    vec![
        ("parallelism", json!(1)),
        ("backoffLimit", json!(6)),
        ("completionMode", json!("NonIndexed")),
        ("suspend", json!(false)),
        ("podReplacementPolicy", json!("TerminatingOrFailed")),
    ]
}

fn template(spec: &mut Value) {
    if let Some(inner) = spec.pointer_mut("/template/spec") {
        pod_spec(inner);
    }
}

/// Sets the defaults of a Pod.
pub(super) fn pod(body: &mut Value) {
    if let Some(spec) = body.get_mut("spec") {
        default(as_map(spec), &[("enableServiceLinks", json!(true))]);
        pod_spec(spec);
        for list in ["containers", "initContainers"] {
            items(spec, list).for_each(requests);
        }
    }
}

fn pod_spec(spec: &mut Value) {
    default(
        as_map(spec),
        &[
            ("restartPolicy", json!("Always")),
            ("terminationGracePeriodSeconds", json!(30)),
            ("dnsPolicy", json!("ClusterFirst")),
            ("securityContext", json!({})),
            ("schedulerName", json!("default-scheduler")),
        ],
    );
    // The former name of the field has the same value.
    if let Some(name) = spec.get("serviceAccountName").cloned() {
        default(as_map(spec), &[("serviceAccount", name)]);
    }
    for volume in items(spec, "volumes") {
        for source in ["secret", "configMap", "downwardAPI", "projected"] {
            if let Some(source) = volume.get_mut(source) {
                default(as_map(source), &[("defaultMode", json!(420))]);
            }
        }
        if let Some(path) = volume.get_mut("hostPath") {
            default(as_map(path), &[("type", json!(""))]);
        }
    }
    for list in ["containers", "initContainers"] {
        items(spec, list).for_each(container);
    }
}

fn container(container: &mut Value) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = if is_moving(image) { "Always" } else { "IfNotPresent" };
    default(
        as_map(container),
        &[
            ("imagePullPolicy", json!(policy)),
            ("resources", json!({})),
            ("terminationMessagePath", json!("/dev/termination-log")),
            ("terminationMessagePolicy", json!("File")),
        ],
    );
    for variable in items(container, "env") {
        if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef") {
            default(as_map(field), &[("apiVersion", json!("v1"))]);
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(name) {
            self::probe(as_map(probe));
        }
    }
}

/// A container of a Pod requests what it is limited to.
fn requests(container: &mut Value) {
    let limits = container
        .pointer("/resources/limits")
        .and_then(Value::as_object)
        .cloned();
    let Some(limits) = limits.filter(|limits| !limits.is_empty()) else {
        return;
    };
    let resources = as_map(as_map(container).entry("resources").or_insert(Value::Null));
    let requests = as_map(resources.entry("requests").or_insert(Value::Null));
    for (name, value) in limits {
        requests.entry(name).or_insert(value);
    }
}

fn probe(probe: &mut Map<String, Value>) {
    default(
        probe,
        &[
            ("timeoutSeconds", json!(1)),
            ("periodSeconds", json!(10)),
            ("successThreshold", json!(1)),
            ("failureThreshold", json!(3)),
        ],
    );
    if let Some(get) = probe.get_mut("httpGet") {
        default(as_map(get), &[("path", json!("/")), ("scheme", json!("HTTP"))]);
    }
}

/// Whether an image has no tag and no digest, or the tag that moves.
fn is_moving(image: &str) -> bool {
    let last = image.rsplit('/').next().unwrap_or_default();
    !last.contains('@') && last.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

/// What admission plugins add to a new Pod: its `ServiceAccount`, its priority and the usual tolerations.
pub(super) fn admit(pod: &mut Value) {
    let quality = quality(pod);
    let spec = as_map(as_map(pod).entry("spec").or_insert(Value::Null));
    default(spec, &[("serviceAccountName", json!("default"))]);
    let name = spec.get("serviceAccountName").cloned().unwrap_or_default();
    default(
        spec,
        &[
            ("serviceAccount", name),
            ("preemptionPolicy", json!("PreemptLowerPriority")),
            ("priority", json!(0)),
            ("tolerations", json!([])),
        ],
    );
    if let Some(Value::Array(tolerations)) = spec.get_mut("tolerations") {
        for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
            let has = |one: &Value| one.get("key").is_none_or(|found| found == key);
            if !tolerations.iter().any(has) {
                let usual = json!({
                    "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
                });
                tolerations.push(usual);
            }
        }
    }
    let status = json!({ "phase": "Pending", "qosClass": quality });
    as_map(pod).insert("status".to_owned(), status);
}

fn quality(pod: &Value) -> &'static str {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array);
    let given = |container: &Value, name: &str| container.pointer(&format!("/resources/{name}")).cloned();
    let all = || containers.into_iter().flatten();
    if all().all(|one| given(one, "limits").is_none() && given(one, "requests").is_none()) {
        return "BestEffort";
    }
    let is_fixed = |one: &Value| {
        let limits = given(one, "limits").unwrap_or_default();
        let both = limits.get("cpu").is_some() && limits.get("memory").is_some();
        both && given(one, "requests").is_none_or(|requests| requests == limits)
    };
    if all().all(is_fixed) { "Guaranteed" } else { "Burstable" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_has_the_defaults_of_its_pods() {
        let container = json!({ "name": "a", "image": "b:1", "livenessProbe": { "httpGet": { "port": 80 } } });
        let mut body = json!({ "spec": { "template": { "spec": { "containers": [container], "volumes": [
            { "name": "v", "configMap": { "name": "c" } },
        ] } } } });
        deployment(&mut body);
        let at = |pointer: &str| body.pointer(pointer).cloned().unwrap_or_default();
        assert_eq!(at("/spec/strategy/rollingUpdate/maxSurge"), "25%");
        assert_eq!(at("/spec/template/spec/containers/0/imagePullPolicy"), "IfNotPresent");
        assert_eq!(
            at("/spec/template/spec/containers/0/livenessProbe/httpGet/scheme"),
            "HTTP"
        );
        assert_eq!(at("/spec/template/spec/volumes/0/configMap/defaultMode"), 420);
        assert_eq!(at("/spec/template/spec/priority"), Value::Null);
    }

    #[test]
    fn a_part_that_is_given_gets_its_other_members() {
        for (kind, spec, at, expected) in [
            (
                "DaemonSet",
                json!({ "updateStrategy": { "type": "RollingUpdate" } }),
                "/spec/updateStrategy/rollingUpdate",
                json!({ "maxSurge": 0, "maxUnavailable": 1 }),
            ),
            (
                "DaemonSet",
                json!({ "updateStrategy": { "type": "OnDelete" } }),
                "/spec/updateStrategy",
                json!({ "type": "OnDelete" }),
            ),
            (
                "StatefulSet",
                json!({ "updateStrategy": { "rollingUpdate": {} } }),
                "/spec/updateStrategy",
                json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": 0 } }),
            ),
            (
                "StatefulSet",
                json!({ "persistentVolumeClaimRetentionPolicy": { "whenScaled": "Delete" } }),
                "/spec/persistentVolumeClaimRetentionPolicy",
                json!({ "whenDeleted": "Retain", "whenScaled": "Delete" }),
            ),
            ("Job", json!({}), "/spec/completions", json!(1)),
            ("Job", json!({ "parallelism": 3 }), "/spec/completions", Value::Null),
        ] {
            let mut body = json!({ "spec": spec });
            workload(kind, &mut body);
            let found = body.pointer(at).cloned().unwrap_or_default();
            assert_eq!(found, expected, "{kind} {at}");
        }
    }

    #[test]
    fn images_without_a_fixed_tag_are_pulled_again() {
        for (image, moving) in [
            ("a", true),
            ("h:5000/a", true),
            ("a:latest", true),
            ("a:1", false),
            ("a@sha256:0", false),
        ] {
            assert_eq!(is_moving(image), moving, "{image}");
        }
    }

    #[test]
    fn a_new_pod_has_a_quality_and_tolerations_once() {
        let pod = |resources: Value, tolerations: Value| {
            let mut pod = json!({ "spec": { "containers": [{ "name": "a", "resources": resources }], "tolerations": tolerations } });
            admit(&mut pod);
            let count = pod["spec"]["tolerations"].as_array().map_or(0, Vec::len);
            (pod["status"]["qosClass"].clone(), count)
        };
        let both = json!({ "cpu": "1", "memory": "1Gi" });
        assert_eq!(pod(json!({}), json!([])), (json!("BestEffort"), 2));
        assert_eq!(
            pod(json!({ "limits": both }), json!([{ "operator": "Exists" }])),
            (json!("Guaranteed"), 1)
        );
        assert_eq!(
            pod(json!({ "requests": both }), json!([{ "key": "x" }])),
            (json!("Burstable"), 3)
        );
    }
}
