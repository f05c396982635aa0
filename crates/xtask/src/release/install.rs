//! Everything that is installed besides definitions and webhook configurations.

use std::collections::BTreeSet;

use metal3_manager::flags::CertificateSource;
use metal3_manager::grants::{self, Reach};
use metal3_runtime::access::Need;
use metal3_runtime::guard;
use metal3_webhooks::certificates::Site;
use metal3_webhooks::table::{IPAM, Suite};
use serde_json::{Value, json};

use super::rules::rules;

/// Secret with the certificate, as cert-manager keeps it.
const CERTIFICATE_SECRET: &str = "ipam-webhook-service-cert";
/// Folder it is mounted at: the default of `--webhook-cert-dir`.
const CERTIFICATE_FOLDER: &str = "/tmp/k8s-webhook-server/serving-certs";
const ACCOUNT: &str = "ipam-manager";

/// The objects of IP address management.
pub(super) fn ipam(image: &str, certificates: CertificateSource) -> Vec<Value> {
    let mut documents = vec![namespace(&IPAM), account(), role_binding(), cluster_role_binding()];
    documents.extend(roles(certificates));
    documents.extend([service(), deployment(image, certificates), budget(), network_policy()]);
    match certificates {
        CertificateSource::Mounted => documents.extend([certificate(), issuer()]),
        CertificateSource::SelfManaged => {}
    }
    documents
}

/// An object in the namespace, with the label by which the installer knows it.
fn object(api_version: &str, kind: &str, name: &str, rest: Value) -> Value {
    let mut object = rest;
    if let Value::Object(members) = &mut object {
        members.insert("apiVersion".into(), api_version.into());
        members.insert("kind".into(), kind.into());
        members.insert(
            "metadata".into(),
            json!({ "name": name, "namespace": IPAM.namespace, "labels": provider() }),
        );
    }
    object
}

fn cluster_object(api_version: &str, kind: &str, name: &str, rest: Value) -> Value {
    let mut object = object(api_version, kind, name, rest);
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("namespace");
    }
    object
}

fn provider() -> Value {
    json!({ "cluster.x-k8s.io/provider": "ipam-metal3" })
}

/// What selects the Pods: the Go manager's labels, because a selector cannot be changed later.
fn selector() -> Value {
    json!({
        "cluster.x-k8s.io/provider": "ipam-metal3",
        "control-plane": "controller-manager",
        "controller-tools.k8s.io": "1.0",
    })
}

fn namespace(suite: &Suite) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": suite.namespace,
            "labels": {
                "cluster.x-k8s.io/provider": "ipam-metal3",
                "control-plane": "controller-manager",
                "pod-security.kubernetes.io/enforce": "restricted",
            },
        },
    })
}

fn account() -> Value {
    object("v1", "ServiceAccount", ACCOUNT, json!({}))
}

/// What the account is granted.
pub(super) fn granted(certificates: CertificateSource) -> Vec<(Reach, BTreeSet<Need>)> {
    let mut granted = grants::ipam();
    match certificates {
        CertificateSource::Mounted => {}
        CertificateSource::SelfManaged => granted.extend(grants::self_managed(&Site::of(&[IPAM], IPAM.namespace))),
    }
    granted
}

fn roles(certificates: CertificateSource) -> Vec<Value> {
    let (mut everywhere, mut own) = (Vec::new(), Vec::new());
    for (reach, needs) in granted(certificates) {
        match reach {
            Reach::Cluster => everywhere.extend(rules(&needs, &[])),
            Reach::Named(names) => everywhere.extend(rules(&needs, &names)),
            Reach::Own => own.extend(rules(&needs, &[])),
            Reach::OwnNamed(names) => own.extend(rules(&needs, &names)),
        }
    }
    vec![
        object(
            "rbac.authorization.k8s.io/v1",
            "Role",
            "ipam-leader-election-role",
            json!({ "rules": own }),
        ),
        cluster_object(
            "rbac.authorization.k8s.io/v1",
            "ClusterRole",
            "ipam-manager-role",
            json!({ "rules": everywhere }),
        ),
    ]
}

fn binding(role_kind: &str, role: &str) -> Value {
    json!({
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role },
        "subjects": [{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": IPAM.namespace }],
    })
}

fn role_binding() -> Value {
    let binding = binding("Role", "ipam-leader-election-role");
    object(
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        "ipam-leader-election-rolebinding",
        binding,
    )
}

fn cluster_role_binding() -> Value {
    let binding = binding("ClusterRole", "ipam-manager-role");
    cluster_object(
        "rbac.authorization.k8s.io/v1",
        "ClusterRoleBinding",
        "ipam-manager-rolebinding",
        binding,
    )
}

fn service() -> Value {
    let spec = json!({ "ports": [{ "port": 443, "targetPort": "ipam-webhook" }], "selector": provider() });
    object("v1", "Service", &IPAM.service(), json!({ "spec": spec }))
}

fn deployment(image: &str, certificates: CertificateSource) -> Value {
    let mut labels = selector();
    let (ours, value) = guard::OURS;
    if let Value::Object(members) = &mut labels {
        members.insert(ours.into(), value.into());
    }
    let spec = json!({
        "replicas": 2,
        "selector": { "matchLabels": selector() },
        "template": { "metadata": { "labels": labels }, "spec": pod(image, certificates) },
    });
    object(
        "apps/v1",
        "Deployment",
        "ipam-controller-manager",
        json!({ "spec": spec }),
    )
}

fn pod(image: &str, certificates: CertificateSource) -> Value {
    let mounted = certificates == CertificateSource::Mounted;
    let volume = json!({ "name": "cert", "secret": { "defaultMode": 420, "secretName": CERTIFICATE_SECRET } });
    let volumes: Vec<Value> = mounted.then_some(volume).into_iter().collect();
    json!({
        "affinity": { "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{
            "weight": 100,
            "podAffinityTerm": {
                "labelSelector": { "matchLabels": selector() },
                "topologyKey": "kubernetes.io/hostname",
            },
        }] } },
        "containers": [container(image, certificates)],
        "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
        "serviceAccountName": ACCOUNT,
        // Passes under way get ten seconds, what is left to tell of them three, the lease ten to be given up in, and
        // requests five.
        "terminationGracePeriodSeconds": 30,
        "tolerations": [{ "effect": "NoSchedule", "key": "node-role.kubernetes.io/control-plane" }],
        "volumes": volumes,
    })
}

fn container(image: &str, certificates: CertificateSource) -> Value {
    let mut arguments = vec![
        "--controllers=ipam",
        "--leader-elect",
        "--webhook-port=9443",
        "--diagnostics-address=${IPAM_DIAGNOSTICS_ADDRESS:=:8443}",
        "--insecure-diagnostics=${IPAM_INSECURE_DIAGNOSTICS:=false}",
    ];
    let mut mounts = Vec::new();
    match certificates {
        CertificateSource::Mounted => {
            mounts.push(json!({ "mountPath": CERTIFICATE_FOLDER, "name": "cert", "readOnly": true }));
        }
        CertificateSource::SelfManaged => arguments.push("--webhook-certificates=self-managed"),
    }
    let field = |path: &str| json!({ "fieldRef": { "fieldPath": path } });
    let port = |name: &str, number: u16| json!({ "containerPort": number, "name": name, "protocol": "TCP" });
    let probe = |path: &str| json!({ "httpGet": { "path": path, "port": "healthz" } });
    json!({
        // The installer finds it by this name.
        "name": "manager",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/capm3"],
        "args": arguments,
        "env": [
            { "name": "POD_NAME", "valueFrom": field("metadata.name") },
            { "name": "POD_NAMESPACE", "valueFrom": field("metadata.namespace") },
        ],
        "ports": [port("ipam-webhook", 9443), port("healthz", 9440), port("metrics", 8443)],
        "livenessProbe": probe("/healthz"),
        "readinessProbe": probe("/readyz"),
        "resources": {
            "requests": { "cpu": "50m", "memory": "64Mi" },
            "limits": { "memory": "512Mi" },
        },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": { "drop": ["ALL"] },
            "privileged": false,
            "readOnlyRootFilesystem": true,
            "runAsGroup": 65532,
            "runAsUser": 65532,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    })
}

fn budget() -> Value {
    let spec = json!({ "maxUnavailable": 1, "selector": { "matchLabels": selector() } });
    object(
        "policy/v1",
        "PodDisruptionBudget",
        "ipam-controller-manager",
        json!({ "spec": spec }),
    )
}

/// What may come in: reviews, probes, scrapes. Where the API server is differs from cluster to cluster, so nothing is
/// said of what goes out.
fn network_policy() -> Value {
    let ports = ["ipam-webhook", "healthz", "metrics"].map(|port| json!({ "port": port, "protocol": "TCP" }));
    let spec = json!({
        "podSelector": { "matchLabels": selector() },
        "policyTypes": ["Ingress"],
        "ingress": [{ "ports": ports }],
    });
    object(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        "ipam-controller-manager",
        json!({ "spec": spec }),
    )
}

fn certificate() -> Value {
    let host = format!("{}.{}.svc", IPAM.service(), IPAM.namespace);
    let spec = json!({
        "dnsNames": [host, format!("{host}.cluster.local")],
        "issuerRef": { "kind": "Issuer", "name": "ipam-selfsigned-issuer" },
        "secretName": CERTIFICATE_SECRET,
    });
    object(
        "cert-manager.io/v1",
        "Certificate",
        "ipam-serving-cert",
        json!({ "spec": spec }),
    )
}

fn issuer() -> Value {
    let spec = json!({ "selfSigned": {} });
    object(
        "cert-manager.io/v1",
        "Issuer",
        "ipam-selfsigned-issuer",
        json!({ "spec": spec }),
    )
}
