//! Where the products differ when they are installed: names, labels, arguments, and what is mounted.
//!
//! Names and selectors are the Go managers', so that one replaces the other in place.

use std::collections::BTreeSet;

use metal3_grants::{self as grants, Reach};
use metal3_runtime::access::Permission;
use metal3_webhooks::table::{HOSTS as HOSTS_SUITE, INFRASTRUCTURE as INFRASTRUCTURE_SUITE, IPAM as IPAM_SUITE, Suite};
use serde_json::{Value, json};

/// A product as it is installed.
pub(super) struct Layout {
    /// What its files are called, before `-components.yaml`.
    pub(super) name: &'static str,
    /// Whose namespace and names it has.
    pub(super) suite: Suite,
    /// The webhooks that it serves.
    webhooks: &'static [Suite],
    /// Its account.
    pub(super) account: &'static str,
    /// The labels that select its Pods, those of a provider apart. A selector cannot be changed later.
    selected_by: &'static [(&'static str, &'static str)],
    /// The labels by which the Service finds them, where those of the provider are not enough.
    served_by: &'static [(&'static str, &'static str)],
    /// Secret with the certificate, as cert-manager keeps it.
    pub(super) certificate_secret: &'static str,
    /// Name of the port of webhooks.
    pub(super) webhook_port: &'static str,
    /// Arguments of the program; the installer fills in variables.
    pub(super) arguments: &'static [&'static str],
    /// ConfigMap of its environment, and what stands in it at first.
    environment: Option<(&'static str, &'static [(&'static str, &'static str)])>,
    /// Secrets that are mounted where they are.
    pub(super) secrets: &'static [Mounted],
    /// The label of ClusterRoles that grant it more: who runs the cluster makes them.
    pub(super) gathers: Option<&'static str>,
    /// What its account is granted.
    pub(super) grants: fn() -> Vec<(Reach, BTreeSet<Permission>)>,
}

/// A Secret that need not be there.
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
    gathers: None,
    grants: grants::ipam,
};

/// Clusters, machines and their data.
pub(super) const INFRASTRUCTURE: Layout = Layout {
    name: "infrastructure",
    suite: INFRASTRUCTURE_SUITE,
    webhooks: &[INFRASTRUCTURE_SUITE],
    account: "capm3-manager",
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
    // In the quotes of YAML, or the installer would make a truth value of the word.
    environment: Some((
        "capm3-capm3fasttrack-configmap",
        &[("CAPM3_FAST_TRACK", "${CAPM3_FAST_TRACK:='false'}")],
    )),
    secrets: &[],
    gathers: Some(READERS),
    grants: grants::capm3,
};

/// Hosts. They carry no label of a provider: `clusterctl delete` must never take them with it.
pub(super) const HOSTS: Layout = Layout {
    name: "hosts",
    suite: HOSTS_SUITE,
    webhooks: &[HOSTS_SUITE],
    account: "baremetal-operator-controller-manager",
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
        &[("IRONIC_ENDPOINT", "https://ironic.baremetal-operator-system.svc:6385")],
    )),
    secrets: OF_IRONIC,
    gathers: None,
    grants: grants::hosts,
};

/// Everything in one process. No installer of providers knows it: `clusterctl delete` must never take hosts away.
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
        ],
    )),
    secrets: OF_IRONIC,
    gathers: Some(READERS),
    grants: grants::everything,
};

/// Of roles that let endpoints be read from kinds of other providers.
const READERS: &str = "infrastructure.cluster.x-k8s.io/aggregate-to-capm3-endpoint-reader";

/// The way to Ironic.
const OF_IRONIC: &[Mounted] = &[
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
    /// The webhooks that it serves, in its namespace and under its label.
    pub(super) fn webhooks(&self) -> Vec<Suite> {
        let all = self.webhooks.iter().copied();
        all.map(|mut suite| {
            (suite.namespace, suite.provider) = (self.suite.namespace, self.suite.provider);
            suite
        })
        .collect()
    }

    /// The certificate of its webhooks, as cert-manager is told of it.
    pub(super) fn certificate(&self) -> String {
        format!("{}/{}", self.suite.namespace, self.suite.named("serving-cert"))
    }

    /// The labels of every object: the provider's, where there is one.
    pub(super) fn labels(&self) -> Value {
        match self.suite.provider {
            Some(provider) => json!({ "cluster.x-k8s.io/provider": provider }),
            None => json!({}),
        }
    }

    /// What selects the Pods.
    pub(super) fn selector(&self) -> Value {
        with(self.labels(), self.selected_by)
    }

    /// By what the Service finds them.
    pub(super) fn served_by(&self) -> Value {
        with(self.labels(), self.served_by)
    }

    /// An object in the namespace, with the label by which an installer knows it.
    pub(super) fn object(&self, api_version: &str, kind: &str, name: &str, rest: Value) -> Value {
        let mut object = rest;
        let mut metadata = json!({ "name": name, "namespace": self.suite.namespace });
        if let (Value::Object(members), false) = (&mut metadata, self.labels() == json!({})) {
            members.insert("labels".into(), self.labels());
        }
        if let Value::Object(members) = &mut object {
            members.insert("apiVersion".into(), api_version.into());
            members.insert("kind".into(), kind.into());
            members.insert("metadata".into(), metadata);
        }
        object
    }

    /// The ConfigMap of the environment, to be edited by whoever installs it.
    pub(super) fn settings(&self) -> Option<Value> {
        let (name, variables) = self.environment?;
        let data = with(json!({}), variables);
        Some(self.object("v1", "ConfigMap", name, json!({ "data": data })))
    }

    /// Members of the container that let it see the ConfigMap.
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
