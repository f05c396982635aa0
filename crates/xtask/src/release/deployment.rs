//! The Deployment of a manager and what keeps it up: two replicas on different Nodes where there are two, one of which
//! leads; never both gone by will.

use metal3_runtime::guard::OURS;
use metal3_webhooks::table::Suite;
use serde_json::{Map, Value, json};

use super::product::{Release, labels, named};

/// The port that webhooks are asked at, by name.
pub(super) const WEBHOOK_PORT_NAME: &str = "webhook";

const WEBHOOK_PORT: u16 = 9443;
const HEALTH_PORT: u16 = 9440;
const METRICS_PORT: u16 = 8443;
/// Nobody: the number that images without users know.
const USER: u32 = 65532;
const CERTIFICATES: &str = "/tmp/k8s-webhook-server/serving-certs";

/// Where cert-manager puts the certificate of the webhook server.
pub(super) fn certificate_secret(suite: &Suite) -> String {
    format!("{}-cert", suite.service())
}

/// The labels that choose the Pods: the Go manager's, since a Deployment of that name may exist and its selector cannot
/// be changed.
pub(super) fn selector(suite: &Suite) -> Map<String, Value> {
    let mut selector = labels(suite);
    selector.insert("control-plane".into(), json!("controller-manager"));
    selector.insert("controller-tools.k8s.io".into(), json!("1.0"));
    selector
}

/// The Deployment, its disruption budget, and who may reach it.
pub(super) fn documents(release: &Release, suite: &Suite, image: &str) -> [Value; 3] {
    let selector = json!({ "matchLabels": selector(suite) });
    let mut metadata = named(suite, "controller-manager");
    if let Some(members) = metadata.as_object_mut() {
        members.insert("labels".into(), pod_labels(suite));
    }
    [
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {
                "replicas": 2,
                "selector": selector,
                // The webhooks have to answer while Pods are replaced.
                "strategy": { "rollingUpdate": { "maxUnavailable": 0, "maxSurge": 1 }, "type": "RollingUpdate" },
                "template": {
                    "metadata": { "labels": pod_labels(suite) },
                    "spec": pod(release, suite, image),
                },
            },
        }),
        json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": named(suite, "controller-manager"),
            "spec": { "minAvailable": 1, "selector": selector },
        }),
        json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": named(suite, "controller-manager"),
            "spec": {
                "podSelector": selector,
                "policyTypes": ["Ingress"],
                // The API server and kubelets have no Pods to be named by; what they reach, everybody may ask for.
                "ingress": [{ "ports": [port(WEBHOOK_PORT), port(HEALTH_PORT), port(METRICS_PORT)] }],
            },
        }),
    ]
}

fn port(number: u16) -> Value {
    json!({ "port": number, "protocol": "TCP" })
}

fn pod_labels(suite: &Suite) -> Value {
    let mut labels = selector(suite);
    let (name, value) = OURS;
    labels.insert(name.into(), json!(value));
    Value::Object(labels)
}

fn pod(release: &Release, suite: &Suite, image: &str) -> Value {
    json!({
        "affinity": { "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{
            "weight": 100,
            "podAffinityTerm": {
                "labelSelector": { "matchLabels": selector(suite) },
                "topologyKey": "kubernetes.io/hostname",
            },
        }] } },
        "containers": [container(release, image)],
        "securityContext": {
            "runAsNonRoot": true,
            "seccompProfile": { "type": "RuntimeDefault" },
        },
        "serviceAccountName": suite.named("manager"),
        "terminationGracePeriodSeconds": 10,
        "tolerations": [{ "effect": "NoSchedule", "key": "node-role.kubernetes.io/control-plane" }],
        "volumes": [{ "name": "cert", "secret": { "defaultMode": 420, "secretName": certificate_secret(suite) } }],
    })
}

fn container(release: &Release, image: &str) -> Value {
    let variable = |name: &str, default: &str| format!("${{{}_{name}:={default}}}", release.variables);
    let own = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } });
    let probe = |path: &str| json!({ "httpGet": { "path": path, "port": "healthz" } });
    let listens = |number: u16, name: &str| json!({ "containerPort": number, "name": name, "protocol": "TCP" });
    json!({
        "name": "manager",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/capm3"],
        "args": [
            format!("--controllers={}", release.name),
            "--leader-elect",
            format!("--webhook-port={WEBHOOK_PORT}"),
            format!("--diagnostics-address={}", variable("DIAGNOSTICS_ADDRESS", &format!(":{METRICS_PORT}"))),
            format!("--insecure-diagnostics={}", variable("INSECURE_DIAGNOSTICS", "false")),
        ],
        "env": [own("POD_NAME", "metadata.name"), own("POD_NAMESPACE", "metadata.namespace")],
        "ports": [
            listens(WEBHOOK_PORT, WEBHOOK_PORT_NAME),
            listens(HEALTH_PORT, "healthz"),
            listens(METRICS_PORT, "metrics"),
        ],
        "livenessProbe": probe("/healthz"),
        "readinessProbe": probe("/readyz"),
        "resources": {
            "requests": { "cpu": "20m", "memory": "32Mi" },
            // No limit on the processor: throttled, a leader loses its lease.
            "limits": { "memory": "512Mi" },
        },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": { "drop": ["ALL"] },
            "privileged": false,
            "readOnlyRootFilesystem": true,
            "runAsGroup": USER,
            "runAsUser": USER,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{ "mountPath": CERTIFICATES, "name": "cert", "readOnly": true }],
    })
}
