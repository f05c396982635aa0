//! Installation of each product: names, labels, arguments, and mounts.
//!
//! Names and selectors are those of the Go managers, so that a product replaces one in place.

use std::collections::BTreeSet;

use metal3_grants::{self as grants, Scope};
use metal3_runtime::access::Permission;
use metal3_runtime::guard;
use metal3_webhooks::certificates::CertificateScope;
use metal3_webhooks::table::{HOSTS as HOSTS_SUITE, INFRASTRUCTURE as INFRASTRUCTURE_SUITE, IPAM as IPAM_SUITE, Suite};
use serde_json::{Value, json};

/// Installation of a product.
pub(super) struct Layout {
    /// Prefix of its files.
    pub(super) name: &'static str,
    /// Namespace and prefix of names.
    pub(super) suite: Suite,
    /// Its webhooks.
    webhooks: &'static [Suite],
    /// Its service account.
    pub(super) account: &'static str,
    /// Whether no Go manager has an account of that name and namespace.
    pub(super) has_own_account: bool,
    /// Selector of its Pods, without the provider label. A selector cannot be changed later.
    selected_by: &'static [(&'static str, &'static str)],
    /// Further selector labels of its Service.
    served_by: &'static [(&'static str, &'static str)],
    /// Certificate Secret of cert-manager.
    pub(super) certificate_secret: &'static str,
    /// Name of the port of webhooks.
    pub(super) webhook_port: &'static str,
    /// Arguments; the installer substitutes variables.
    arguments: &'static [&'static str],
    /// ConfigMap of its environment, with initial content.
    environment: Option<(&'static str, &'static [(&'static str, &'static str)])>,
    /// Optionally mounted Secrets.
    pub(super) secrets: &'static [Mounted],
    /// Label of ClusterRoles of the administrator that extend its permissions.
    aggregated_by: Option<&'static str>,
    /// Permissions of its account, by product.
    parts: &'static [Part],
    /// The products that are left out, in the order of `webhooks`, `parts` and the argument `--controllers`.
    pub(super) left_out: [bool; 3],
    /// Whether the process watches one namespace only.
    pub(super) is_namespaced: bool,
    /// Whether the process writes nothing.
    pub(super) observes: bool,
}

/// No product is left out.
const WHOLE: [bool; 3] = [false; 3];

/// The name of the watched namespace, which the user replaces.
pub(super) const WATCHED: &str = "${WATCHED_NAMESPACE}";

/// The permissions of a product. A process of several products has a role for each, so that an administrator withdraws
/// the role of a product that is not enabled.
pub(super) struct Part {
    /// Name of the ClusterRole, without the prefix.
    pub(super) role: &'static str,
    /// The permissions.
    pub(super) grants: fn() -> Vec<(Scope, BTreeSet<Permission>)>,
    /// Whether it creates Secrets with data for machines.
    pub(super) creates_data: bool,
    /// Further permissions, for a flag that is off by default: a ClusterRole that is bound to no account.
    pub(super) unbound: Option<Unbound>,
}

/// Name of a ClusterRole, without the prefix, and its permissions.
pub(super) type Unbound = (&'static str, fn() -> Vec<(Scope, BTreeSet<Permission>)>);

const fn part(role: &'static str, grants: fn() -> Vec<(Scope, BTreeSet<Permission>)>) -> Part {
    Part {
        role,
        grants,
        creates_data: false,
        unbound: None,
    }
}

/// An optional Secret.
pub(super) struct Mounted {
    volume: &'static str,
    secret: &'static str,
    folder: &'static str,
}

/// IP address management.
pub(super) const IPAM: Layout = Layout {
    name: "ipam",
    suite: IPAM_SUITE,
    webhooks: &[IPAM_SUITE],
    account: "ipam-manager",
    has_own_account: false,
    selected_by: &[
        ("control-plane", "controller-manager"),
        ("controller-tools.k8s.io", "1.0"),
    ],
    served_by: &[],
    certificate_secret: "ipam-webhook-service-cert",
    webhook_port: "ipam-webhook",
    arguments: &[
        "--controllers=ipam",
        "--leader-elect",
        "--webhook-port=9443",
        "--diagnostics-address=${IPAM_DIAGNOSTICS_ADDRESS:=:8443}",
        "--insecure-diagnostics=${IPAM_INSECURE_DIAGNOSTICS:=false}",
    ],
    environment: None,
    secrets: &[],
    aggregated_by: None,
    parts: &[part("manager-role", grants::ipam)],
    left_out: WHOLE,
    is_namespaced: false,
    observes: false,
};

/// Clusters, machines and their data.
pub(super) const INFRASTRUCTURE: Layout = Layout {
    name: "infrastructure",
    suite: INFRASTRUCTURE_SUITE,
    webhooks: &[INFRASTRUCTURE_SUITE],
    account: "capm3-manager",
    has_own_account: false,
    selected_by: &[
        ("control-plane", "controller-manager"),
        ("controller-tools.k8s.io", "1.0"),
    ],
    served_by: &[],
    certificate_secret: "capm3-webhook-service-cert",
    webhook_port: "webhook-server",
    arguments: &[
        "--controllers=capm3",
        "--leader-elect",
        "--webhook-port=9443",
        "--enable-bmh-name-based-preallocation=${ENABLE_BMH_NAME_BASED_PREALLOCATION:=false}",
        "--diagnostics-address=${CAPM3_DIAGNOSTICS_ADDRESS:=:8443}",
        "--insecure-diagnostics=${CAPM3_INSECURE_DIAGNOSTICS:=false}",
    ],
    // Quoted in YAML, because the installer would produce a boolean.
    environment: Some((
        "capm3-capm3fasttrack-configmap",
        &[("CAPM3_FAST_TRACK", "${CAPM3_FAST_TRACK:='false'}")],
    )),
    secrets: &[],
    aggregated_by: Some(READERS),
    parts: &[Part {
        creates_data: true,
        ..part("manager-role", grants::capm3)
    }],
    left_out: WHOLE,
    is_namespaced: false,
    observes: false,
};

/// Hosts. Without a provider label, so that `clusterctl delete` does not delete them.
pub(super) const HOSTS: Layout = Layout {
    name: "hosts",
    suite: HOSTS_SUITE,
    webhooks: &[HOSTS_SUITE],
    account: "baremetal-operator-controller-manager",
    has_own_account: false,
    selected_by: &[("control-plane", "controller-manager")],
    served_by: &[
        ("control-plane", "controller-manager"),
        ("webhook", "metal3-io-v1alpha1-baremetalhost"),
    ],
    certificate_secret: "bmo-webhook-server-cert",
    webhook_port: "webhook-server",
    arguments: &[
        "--controllers=hosts",
        "--leader-elect",
        "--webhook-port=9443",
        "--diagnostics-address=:8443",
    ],
    environment: Some((
        "ironic",
        &[
            ("IRONIC_ENDPOINT", "https://ironic.baremetal-operator-system.svc:6385"),
            ("IRONIC_ENDPOINTS", ""),
            ("IRONIC_NAME", ""),
            ("IRONIC_NAMESPACE", ""),
        ],
    )),
    secrets: IRONIC_SECRETS,
    aggregated_by: None,
    parts: &[Part {
        unbound: Some(("hostclaims-role", grants::claims)),
        ..part("manager-role", grants::hosts)
    }],
    left_out: WHOLE,
    is_namespaced: false,
    observes: false,
};

/// All products in one process. Without a provider label, so that `clusterctl delete` does not delete hosts.
pub(super) const ALL_IN_ONE: Layout = Layout {
    name: "all-in-one",
    suite: {
        let mut suite = HOSTS_SUITE;
        suite.prefix = "metal3";
        suite.namespace = "metal3-system";
        suite
    },
    webhooks: &[IPAM_SUITE, INFRASTRUCTURE_SUITE, HOSTS_SUITE],
    account: "metal3-manager",
    has_own_account: true,
    selected_by: &[("control-plane", "metal3-controller-manager")],
    served_by: &[("control-plane", "metal3-controller-manager")],
    certificate_secret: "metal3-webhook-service-cert",
    webhook_port: "webhook-server",
    arguments: &[
        "--controllers=ipam,capm3,hosts",
        "--leader-elect",
        "--webhook-port=9443",
        "--diagnostics-address=:8443",
    ],
    environment: Some((
        "metal3",
        &[
            ("CAPM3_FAST_TRACK", "false"),
            ("IRONIC_ENDPOINT", "https://ironic.metal3-system.svc:6385"),
            ("IRONIC_ENDPOINTS", ""),
            ("IRONIC_NAME", ""),
            ("IRONIC_NAMESPACE", ""),
        ],
    )),
    secrets: IRONIC_SECRETS,
    aggregated_by: Some(READERS),
    parts: &[
        part("ipam-manager-role", grants::ipam),
        Part {
            creates_data: true,
            ..part("capm3-manager-role", grants::capm3)
        },
        Part {
            unbound: Some(("hostclaims-role", grants::claims)),
            ..part("hosts-manager-role", grants::hosts)
        },
    ],
    left_out: WHOLE,
    is_namespaced: false,
    observes: false,
};

/// Label of roles that permit reading endpoints from kinds of other providers.
const READERS: &str = "infrastructure.cluster.x-k8s.io/aggregate-to-capm3-endpoint-reader";

/// Credentials and certificates for Ironic.
const IRONIC_SECRETS: &[Mounted] = &[
    Mounted {
        volume: "ironic-credentials",
        secret: "ironic-credentials",
        folder: "/opt/metal3/auth/ironic",
    },
    Mounted {
        volume: "cacert",
        secret: "ironic-cacert",
        folder: "/opt/metal3/certs/ca",
    },
    Mounted {
        volume: "client-cert",
        secret: "ironic-client-cert",
        folder: "/opt/metal3/certs/client",
    },
];

impl Layout {
    /// Its webhooks, in its namespace and with its provider label.
    pub(super) fn webhooks(&self) -> Vec<Suite> {
        let all = self.kept(self.webhooks.iter().copied());
        all.map(|mut suite| {
            (suite.namespace, suite.provider) = (self.suite.namespace, self.suite.provider);
            suite
        })
        .collect()
    }

    /// The same without these products.
    pub(super) fn reduced(self, left_out: [bool; 3]) -> Self {
        Self { left_out, ..self }
    }

    /// Those of a list that belong to products which are not left out.
    fn kept<T>(&self, all: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
        let kept = all.zip(self.left_out).filter(|(_, is_left_out)| !is_left_out);
        kept.map(|(one, _)| one)
    }

    /// Permissions of its account, by product.
    pub(super) fn parts(&self) -> impl Iterator<Item = &'static Part> {
        self.kept(self.parts.iter())
    }

    /// Label of ClusterRoles that extend its permissions, if it has the product that reads other kinds.
    pub(super) fn aggregated_by(&self) -> Option<&'static str> {
        let reads_others = self.parts().any(|part| part.creates_data);
        self.aggregated_by.filter(|_| reads_others)
    }

    /// Arguments of the container.
    pub(super) fn arguments(&self) -> Vec<String> {
        let controllers = |names: &str| self.kept(names.split(',')).collect::<Vec<_>>().join(",");
        let own = self
            .arguments
            .iter()
            .map(|argument| match argument.split_once("--controllers=") {
                Some((_, names)) => format!("--controllers={}", controllers(names)),
                None => (*argument).to_owned(),
            });
        let namespace = self.is_namespaced.then(|| format!("--namespace={WATCHED}"));
        let observes = self.observes.then(|| "--observe-only".to_owned());
        own.chain(namespace).chain(observes).collect()
    }

    /// What a process that issues its own certificates writes.
    pub(super) fn certificate_scope(&self) -> CertificateScope {
        CertificateScope::of(&self.webhooks(), self.suite.namespace)
    }

    /// Reference to its webhook certificate for cert-manager.
    pub(super) fn certificate(&self) -> String {
        format!("{}/{}", self.suite.namespace, self.suite.named("serving-cert"))
    }

    /// Labels of every object.
    pub(super) fn labels(&self) -> Value {
        match self.suite.provider {
            Some(provider) => json!({ "cluster.x-k8s.io/provider": provider }),
            None => json!({}),
        }
    }

    /// Selector of its Pods.
    pub(super) fn selector(&self) -> Value {
        with(self.labels(), self.selected_by)
    }

    /// Selector of its Service.
    pub(super) fn served_by(&self) -> Value {
        with(self.labels(), self.served_by)
    }

    /// An object in the namespace with the labels of the layout, and the one by which `kubectl delete --selector` removes an
    /// installation. Definitions and the Namespace do not have that: with them go the hosts of the user.
    pub(super) fn object(&self, api_version: &str, kind: &str, name: &str, rest: Value) -> Value {
        let mut object = rest;
        let metadata = json!({
            "name": name, "namespace": self.suite.namespace, "labels": with(self.labels(), &[guard::PART_OF_LABEL]),
        });
        if let Value::Object(members) = &mut object {
            members.insert("apiVersion".into(), api_version.into());
            members.insert("kind".into(), kind.into());
            members.insert("metadata".into(), metadata);
        }
        object
    }

    /// The ConfigMap of the environment, for the administrator to edit.
    pub(super) fn settings(&self) -> Option<Value> {
        let (name, variables) = self.environment?;
        let data = with(json!({}), variables);
        Some(self.object("v1", "ConfigMap", name, json!({ "data": data })))
    }

    /// Reference to the ConfigMap in the container.
    pub(super) fn environment(&self) -> Value {
        match self.environment {
            Some((name, _)) => json!({ "envFrom": [{ "configMapRef": { "name": name } }] }),
            None => json!({}),
        }
    }
}

impl Mounted {
    /// As a volume of the Pod.
    pub(super) fn volume(&self) -> Value {
        json!({ "name": self.volume, "secret": { "defaultMode": 420, "optional": true, "secretName": self.secret } })
    }

    /// As a mount of the container.
    pub(super) fn mount(&self) -> Value {
        json!({ "mountPath": self.folder, "name": self.volume, "readOnly": true })
    }
}

fn with(mut object: Value, more: &[(&str, &str)]) -> Value {
    if let Value::Object(members) = &mut object {
        members.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())));
    }
    object
}
