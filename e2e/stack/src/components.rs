//! The servers of the stack and their flags.

use std::path::PathBuf;

use crate::families::{CERT_MANAGER, ETCD, Family, KUBERNETES};
use crate::pki;
use crate::places::{Places, SERVICE_SUBNET};

/// A server: its program and its flags.
#[derive(Debug)]
pub(crate) struct Component {
    pub(crate) name: &'static str,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
}

fn component(places: &Places, family: &Family, name: &'static str, arguments: Vec<String>) -> Component {
    Component {
        name,
        program: places.family(family).join(name),
        arguments,
    }
}

fn etcd_url(places: &Places) -> String {
    format!("http://{}:2379", places.node_address())
}

pub(crate) fn etcd(places: &Places) -> Component {
    let client = etcd_url(places);
    let peer = format!("http://{}:2380", places.node_address());
    let arguments = vec![
        format!("--data-dir={}", places.state_file("etcd").display()),
        "--unsafe-no-fsync".to_owned(), // the data does not outlive the stack
        "--log-level=warn".to_owned(),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
    ];
    component(places, &ETCD, "etcd", arguments)
}

/// Metadata of each request, except those of the Node, which are too many.
pub(crate) const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, users: ['system:node:stack-node']}
- {level: Metadata}
";

pub(crate) fn api_server(places: &Places) -> Component {
    let name = "kube-apiserver";
    let authority = places.certificate(pki::AUTHORITY);
    let (certificate, key) = (places.certificate(name), places.key(name));
    let node = places.node_address();
    let arguments = vec![
        format!("--etcd-servers={}", etcd_url(places)),
        format!("--bind-address={node}"),
        format!("--advertise-address={node}"), // there is no default route
        "--secure-port=6443".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        "--allow-privileged".to_owned(), // the kubelet rejects privileged Pods with a reason
        format!("--tls-cert-file={}", certificate.display()),
        format!("--tls-private-key-file={}", key.display()),
        format!("--client-ca-file={}", authority.display()),
        "--authorization-mode=Node,RBAC".to_owned(),
        // The second is off by default, and installations that switch it on must work as well.
        "--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement".to_owned(),
        format!("--service-cluster-ip-range={SERVICE_SUBNET}"),
        // Webhooks are reached through EndpointSlices: Service addresses are not routed.
        "--enable-aggregator-routing".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!(
            "--service-account-key-file={}",
            places.certificate(pki::SERVICE_ACCOUNTS).display()
        ),
        format!(
            "--service-account-signing-key-file={}",
            places.key(pki::SERVICE_ACCOUNTS).display()
        ),
        format!("--kubelet-certificate-authority={}", authority.display()),
        format!("--kubelet-client-certificate={}", certificate.display()),
        format!("--kubelet-client-key={}", key.display()),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        format!("--audit-policy-file={}", places.state_file("audit.yaml").display()),
        format!("--audit-log-path={}", places.log("audit").display()),
        "--audit-log-maxsize=500".to_owned(),
    ];
    component(places, &KUBERNETES, name, arguments)
}

/// The controllers of Deployments, Services, disruption budgets, namespaces, owner references and Nodes.
pub(crate) const CONTROLLERS: &[&str] = &[
    "clusterrole-aggregation-controller",
    "deployment-controller",
    "disruption-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "statefulset-controller",
    "taint-eviction-controller",
];

/// The controllers that finish deletions, and that which counts the objects of quotas.
pub(crate) const COLLECTORS: &[&str] = &[
    "garbage-collector-controller",
    "namespace-controller",
    "resourcequota-controller",
];

pub(crate) fn controller_manager(places: &Places, controllers: &[&str]) -> Component {
    let arguments = vec![
        format!("--kubeconfig={}", places.kubeconfig(pki::CONTROLLER_MANAGER).display()),
        format!("--bind-address={}", places.node_address()),
        "--leader-elect=false".to_owned(),
        "--use-service-account-credentials".to_owned(), // one user per controller in the audit log
        format!(
            "--service-account-private-key-file={}",
            places.key(pki::SERVICE_ACCOUNTS).display()
        ),
        format!("--root-ca-file={}", places.certificate(pki::AUTHORITY).display()),
        format!("--controllers={}", controllers.join(",")),
        // A kind that was installed seconds before a quota counts from the next look at all quotas on.
        "--resource-quota-sync-period=5s".to_owned(),
    ];
    component(places, &KUBERNETES, "kube-controller-manager", arguments)
}

pub(crate) fn scheduler(places: &Places) -> Component {
    let arguments = vec![
        format!("--kubeconfig={}", places.kubeconfig(pki::SCHEDULER).display()),
        format!("--bind-address={}", places.node_address()),
        "--leader-elect=false".to_owned(),
    ];
    component(places, &KUBERNETES, "kube-scheduler", arguments)
}

pub(crate) fn cert_manager(places: &Places) -> Component {
    let arguments = vec![format!(
        "--kubeconfig={}",
        places.kubeconfig(pki::CERT_MANAGER).display()
    )];
    component(places, &CERT_MANAGER, "cert-manager", arguments)
}

pub(crate) fn kubelet(places: &Places, program: PathBuf, flags: Vec<String>) -> Component {
    let mut arguments = vec![
        format!("--node-name={}", crate::places::NODE_NAME),
        format!("--address={}", places.node_address()),
        format!("--pod-subnet={}", places.pod_subnet()),
        format!("--bridge={}", crate::places::BRIDGE),
        format!("--kubeconfig={}", places.kubeconfig(pki::KUBELET).display()),
        format!("--certificate={}", places.certificate(pki::KUBELET).display()),
        format!("--key={}", places.key(pki::KUBELET).display()),
        format!("--authority={}", places.certificate(pki::AUTHORITY).display()),
        format!("--images={}", places.images().display()),
        format!("--state={}", places.state_file("pods").display()),
        format!("--logs={}", places.state().join("log/pods").display()),
    ];
    arguments.extend(flags);
    Component {
        name: pki::KUBELET,
        program,
        arguments,
    }
}
