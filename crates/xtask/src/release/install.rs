//! Objects of a product other than CRDs and webhook configurations.

use std::collections::{BTreeMap, BTreeSet};

use metal3_flags::CertificateSource;
use metal3_grants::{self as grants, Scope};
use metal3_runtime::access::Permission;
use metal3_runtime::guard;
use metal3_webhooks::guarded;
use metal3_webhooks::table::{HOSTS, Suite};
use serde_json::{Value, json};

use super::layout::{Layout, Mounted};
use super::policies;
use super::rules::{reading, rules};

/// Folder of the certificate: the default of `--webhook-cert-dir`.
const CERTIFICATE_FOLDER: &str = "/tmp/k8s-webhook-server/serving-certs";

pub(super) const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// The objects of a product.
pub(super) fn objects(layout: &Layout, image: &str, certificates: CertificateSource) -> Vec<Value> {
    let mut documents = vec![namespace(layout), account(layout), role_binding(layout)];
    documents.extend(roles(layout, certificates));
    documents.extend(endpoint_reader(layout));
    documents.extend(host_restorer(layout));
    documents.extend(layout.settings());
    documents.extend(layout.webhooks().iter().map(|suite| service(layout, suite)));
    documents.extend([
        deployment(layout, image, certificates),
        budget(layout),
        network_policy(layout),
    ]);
    match certificates {
        CertificateSource::Mounted => documents.extend([certificate(layout), issuer(layout)]),
        CertificateSource::SelfManaged => {}
    }
    documents.extend(policies::documents(layout, certificates));
    documents
}

pub(super) fn cluster_object(layout: &Layout, api_version: &str, kind: &str, name: &str, rest: Value) -> Value {
    let mut object = layout.object(api_version, kind, name, rest);
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("namespace");
    }
    object
}

fn namespace(layout: &Layout) -> Value {
    let mut labels = json!({
        "control-plane": "controller-manager",
        "pod-security.kubernetes.io/enforce": "restricted",
    });
    add(&mut labels, layout.labels());
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": layout.suite.namespace, "labels": labels },
    })
}

/// Adds members to an object.
fn add(object: &mut Value, more: Value) {
    if let (Value::Object(members), Value::Object(more)) = (object, more) {
        members.extend(more);
    }
}

fn account(layout: &Layout) -> Value {
    layout.object("v1", "ServiceAccount", layout.account, json!({}))
}

/// A role that is granted for all namespaces, with its permissions.
pub(super) struct ClusterGrant {
    /// Name of the role.
    pub(super) role: String,
    /// The permissions; with names, for objects of these names.
    pub(super) needs: Vec<(BTreeSet<Permission>, Vec<String>)>,
}

/// Permissions of the service account.
#[cfg(test)]
pub(super) fn granted(layout: &Layout, certificates: CertificateSource) -> Vec<(Scope, BTreeSet<Permission>)> {
    let parts = layout.parts().flat_map(|part| (part.grants)());
    parts.chain(certificate_grants(layout, certificates)).collect()
}

fn certificate_grants(layout: &Layout, certificates: CertificateSource) -> Vec<(Scope, BTreeSet<Permission>)> {
    match certificates {
        CertificateSource::Mounted => Vec::new(),
        CertificateSource::SelfManaged => grants::self_managed(&layout.certificate_scope()),
    }
}

/// The permissions of a process of this layout: one that observes writes nothing.
fn limited(layout: &Layout, all: Vec<(Scope, BTreeSet<Permission>)>) -> Vec<(Scope, BTreeSet<Permission>)> {
    match layout.observes {
        true => all.into_iter().map(|(scope, needs)| (scope, reading(needs))).collect(),
        false => all,
    }
}

/// The roles for all namespaces, and the rules for the namespace of the process.
pub(super) fn grants_of(layout: &Layout, certificates: CertificateSource) -> (Vec<ClusterGrant>, Vec<Value>) {
    let mut parts: Vec<_> = layout
        .parts()
        .map(|part| (layout.suite.named(part.role), limited(layout, (part.grants)())))
        .collect();
    let more = certificate_grants(layout, certificates);
    match parts.as_mut_slice() {
        [(_, only)] => only.extend(more),
        _ if more.is_empty() => {}
        _ => parts.push((layout.suite.named("certificates-role"), more)),
    }
    let (mut roles, mut own) = (Vec::new(), BTreeMap::<Vec<String>, BTreeSet<Permission>>::new());
    for (role, granted) in parts {
        let mut needs = Vec::new();
        for (scope, permissions) in granted {
            match scope {
                Scope::Cluster => needs.push((permissions, Vec::new())),
                Scope::Named(names) => needs.push((permissions, names)),
                Scope::Namespace => own.entry(Vec::new()).or_default().extend(permissions),
                Scope::NamespaceNamed(names) => own.entry(names).or_default().extend(permissions),
            }
        }
        roles.push(ClusterGrant { role, needs });
    }
    let own = own.iter().flat_map(|(names, needs)| rules(needs, names)).collect();
    (roles, own)
}

fn roles(layout: &Layout, certificates: CertificateSource) -> Vec<Value> {
    let (roles, own) = grants_of(layout, certificates);
    let name = layout.suite.named("leader-election-role");
    let mut documents = vec![layout.object(RBAC, "Role", &name, json!({ "rules": own }))];
    for ClusterGrant { role, needs } in roles {
        let rules: Vec<Value> = needs.iter().flat_map(|(needs, names)| rules(needs, names)).collect();
        documents.extend([
            cluster_object(layout, RBAC, "ClusterRole", &role, json!({ "rules": rules })),
            cluster_object(
                layout,
                RBAC,
                "ClusterRoleBinding",
                &format!("{role}binding"),
                binding(layout, "ClusterRole", &role),
            ),
        ]);
    }
    documents.extend(
        layout
            .parts()
            .filter_map(|part| part.unbound)
            .map(|(role, grants)| unbound(layout, role, &limited(layout, grants()))),
    );
    documents
}

/// A role that the administrator binds with the flag that needs it.
fn unbound(layout: &Layout, role: &str, grants: &[(Scope, BTreeSet<Permission>)]) -> Value {
    let rules: Vec<Value> = grants.iter().flat_map(|(_, needs)| rules(needs, &[])).collect();
    cluster_object(
        layout,
        RBAC,
        "ClusterRole",
        &layout.suite.named(role),
        json!({ "rules": rules }),
    )
}

pub(super) fn binding(layout: &Layout, role_kind: &str, role: &str) -> Value {
    json!({
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role },
        "subjects": [{ "kind": "ServiceAccount", "name": layout.account, "namespace": layout.suite.namespace }],
    })
}

fn role_binding(layout: &Layout) -> Value {
    let binding = binding(layout, "Role", &layout.suite.named("leader-election-role"));
    layout.object(
        RBAC,
        "RoleBinding",
        &layout.suite.named("leader-election-rolebinding"),
        binding,
    )
}

/// An aggregated role of the cluster administrator and its binding, for products that read endpoints of other kinds.
///
/// The API server adds the rules of every ClusterRole with the label of [`Layout::aggregated_by`], so that no binding
/// has to name the account.
pub(super) fn endpoint_reader(layout: &Layout) -> Vec<Value> {
    let Some(label) = layout.aggregated_by() else {
        return Vec::new();
    };
    let name = layout.suite.named("endpoint-reader");
    // The API server fills in the rules.
    let role = json!({
        "aggregationRule": { "clusterRoleSelectors": [{ "matchLabels": { label: "true" } }] },
        "rules": [],
    });
    vec![
        cluster_object(layout, RBAC, "ClusterRole", &name, role),
        cluster_object(
            layout,
            RBAC,
            "ClusterRoleBinding",
            &name,
            binding(layout, "ClusterRole", &name),
        ),
    ]
}

/// The role of users who move hosts to this cluster: they set the annotations that restore a host. It is not aggregated to
/// `admin`, which the users of one namespace usually have; `cluster-admin` includes it.
fn host_restorer(layout: &Layout) -> Option<Value> {
    let serves_hosts = layout.webhooks().iter().any(|suite| suite.group == HOSTS.group);
    let role = json!({ "rules": [{
        "apiGroups": [HOSTS.group], "resources": [format!("baremetalhosts/{}", guarded::SUBRESOURCE)],
        "verbs": [guarded::VERB],
    }] });
    serves_hosts.then(|| cluster_object(layout, RBAC, "ClusterRole", &HOSTS.named("host-restore"), role))
}

fn service(layout: &Layout, suite: &Suite) -> Value {
    let spec = json!({ "ports": [{ "port": 443, "targetPort": layout.webhook_port }], "selector": layout.served_by() });
    layout.object("v1", "Service", &suite.service(), json!({ "spec": spec }))
}

fn deployment(layout: &Layout, image: &str, certificates: CertificateSource) -> Value {
    let mut labels = layout.selector();
    let (label, value) = guard::PART_OF_LABEL;
    add(&mut labels, layout.served_by());
    add(&mut labels, json!({ label: value }));
    let spec = json!({
        "replicas": 2,
        "selector": { "matchLabels": layout.selector() },
        "template": { "metadata": { "labels": labels }, "spec": pod(layout, image, certificates) },
    });
    layout.object(
        "apps/v1",
        "Deployment",
        &layout.suite.named("controller-manager"),
        json!({ "spec": spec }),
    )
}

fn pod(layout: &Layout, image: &str, certificates: CertificateSource) -> Value {
    let mounted = certificates == CertificateSource::Mounted;
    let volume = json!({
        "name": "cert", "secret": { "defaultMode": 420, "secretName": layout.certificate_secret },
    });
    let mut volumes: Vec<Value> = mounted.then_some(volume).into_iter().collect();
    volumes.extend(layout.secrets.iter().map(Mounted::volume));
    json!({
        "affinity": { "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{
            "weight": 100,
            "podAffinityTerm": {
                "labelSelector": { "matchLabels": layout.selector() },
                "topologyKey": "kubernetes.io/hostname",
            },
        }] } },
        "containers": [container(layout, image, certificates)],
        "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
        "serviceAccountName": layout.account,
        // Running reconciles get ten seconds, pending events three, the release of the lease ten, and requests five.
        "terminationGracePeriodSeconds": 30,
        "tolerations": [{ "effect": "NoSchedule", "key": "node-role.kubernetes.io/control-plane" }],
        "volumes": volumes,
    })
}

fn container(layout: &Layout, image: &str, certificates: CertificateSource) -> Value {
    let mut arguments = layout.arguments();
    let mut mounts: Vec<Value> = layout.secrets.iter().map(Mounted::mount).collect();
    match certificates {
        CertificateSource::Mounted => {
            mounts.push(json!({ "mountPath": CERTIFICATE_FOLDER, "name": "cert", "readOnly": true }));
        }
        CertificateSource::SelfManaged => arguments.push("--webhook-certificates=self-managed".to_owned()),
    }
    let field = |path: &str| json!({ "fieldRef": { "fieldPath": path } });
    let port = |name: &str, number: u16| json!({ "containerPort": number, "name": name, "protocol": "TCP" });
    let probe = |path: &str| json!({ "httpGet": { "path": path, "port": "healthz" } });
    let mut container = json!({
        // Installers find the container by this name.
        "name": "manager",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/capm3"],
        "args": arguments,
        "env": [
            { "name": "POD_NAME", "valueFrom": field("metadata.name") },
            { "name": "POD_NAMESPACE", "valueFrom": field("metadata.namespace") },
        ],
        "ports": [port(layout.webhook_port, 9443), port("healthz", 9440), port("metrics", 8443)],
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
    });
    add(&mut container, layout.environment());
    container
}

fn budget(layout: &Layout) -> Value {
    let spec = json!({ "maxUnavailable": 1, "selector": { "matchLabels": layout.selector() } });
    layout.object(
        "policy/v1",
        "PodDisruptionBudget",
        &layout.suite.named("controller-manager"),
        json!({ "spec": spec }),
    )
}

/// All Pods of the cluster, and nothing outside of it.
pub(super) fn metrics_from() -> Value {
    json!([{ "namespaceSelector": {} }])
}

/// Permitted ingress: webhooks from everywhere, because the address from which the API server calls them differs between clusters,
/// and metrics from Pods. Probes need no rule: the Node of a Pod always reaches it. Egress is unrestricted, because the address
/// of the API server differs, too.
fn network_policy(layout: &Layout) -> Value {
    let ports = |port: &str| json!([{ "port": port, "protocol": "TCP" }]);
    let spec = json!({
        "podSelector": { "matchLabels": layout.selector() },
        "policyTypes": ["Ingress"],
        "ingress": [
            { "ports": ports(layout.webhook_port) },
            { "from": metrics_from(), "ports": ports("metrics") },
        ],
    });
    layout.object(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        &layout.suite.named("controller-manager"),
        json!({ "spec": spec }),
    )
}

fn certificate(layout: &Layout) -> Value {
    let hosts = layout.webhooks().into_iter().flat_map(|suite| {
        let host = format!("{}.{}.svc", suite.service(), suite.namespace);
        [host.clone(), format!("{host}.cluster.local")]
    });
    let spec = json!({
        "dnsNames": hosts.collect::<Vec<String>>(),
        "issuerRef": { "kind": "Issuer", "name": layout.suite.named("selfsigned-issuer") },
        "secretName": layout.certificate_secret,
    });
    layout.object(
        "cert-manager.io/v1",
        "Certificate",
        &layout.suite.named("serving-cert"),
        json!({ "spec": spec }),
    )
}

fn issuer(layout: &Layout) -> Value {
    let spec = json!({ "selfSigned": {} });
    layout.object(
        "cert-manager.io/v1",
        "Issuer",
        &layout.suite.named("selfsigned-issuer"),
        json!({ "spec": spec }),
    )
}
