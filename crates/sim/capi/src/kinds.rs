//! Kinds that the stand-ins read and write, and minimal definitions of those that no product defines.

pub mod v1beta1;

use metal3_api::cluster::names::{CONTROL_PLANE_GROUP, GROUP};
use metal3_api::crd::{AGE, Column, Definition, Version};
use metal3_api::infrastructure::names::GROUP as INFRASTRUCTURE_GROUP;
use serde_json::json;

const BOOTSTRAP_GROUP: &str = "bootstrap.cluster.x-k8s.io";

/// A kind by its names. Each occurs once in [`ALL`]; its `kind` is unique.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// The version of requests.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Resource.
    pub plural: &'static str,
}

macro_rules! kinds {
    ($($name:ident = $group:expr, $version:literal, $kind:literal, $plural:literal, $text:literal;)*) => {
        $(#[doc = $text] pub const $name: &Kind = &Kind { group: $group, version: $version, kind: $kind, plural: $plural };)*
        /// Every watched kind, owners before the objects they own.
        pub const ALL: &[&Kind] = &[$($name),*];
    };
}

kinds! {
    CLUSTER = GROUP, "v1beta2", "Cluster", "clusters", "A workload cluster.";
    BYO_CLUSTER = INFRASTRUCTURE_GROUP, "v1beta1", "ByoCluster", "byoclusters", "Infrastructure of another provider.";
    OPENSTACK_CLUSTER = INFRASTRUCTURE_GROUP, "v1beta2", "OpenStackCluster", "openstackclusters", "Infrastructure of a cloud with machines.";
    METAL3_CLUSTER = INFRASTRUCTURE_GROUP, "v1beta2", "Metal3Cluster", "metal3clusters", "Infrastructure of a cluster.";
    CONTROL_PLANE = CONTROL_PLANE_GROUP, "v1beta2", "KubeadmControlPlane", "kubeadmcontrolplanes", "A control plane with machines.";
    HOSTED_CONTROL_PLANE = CONTROL_PLANE_GROUP, "v1beta2", "HostedControlPlane", "hostedcontrolplanes", "A control plane without machines.";
    MANAGED_CONTROL_PLANE = CONTROL_PLANE_GROUP, "v1beta2", "ManagedControlPlane", "managedcontrolplanes", "A control plane that a cloud runs.";
    KAMAJI_CONTROL_PLANE = CONTROL_PLANE_GROUP, "v1alpha2", "KamajiControlPlane", "kamajicontrolplanes", "A control plane in Pods of the management cluster.";
    TENANT = "kamaji.clastix.io", "v1alpha1", "TenantControlPlane", "tenantcontrolplanes", "The Pods of such a control plane.";
    DEPLOYMENT = GROUP, "v1beta2", "MachineDeployment", "machinedeployments", "Machines that are replaced a few at a time.";
    SET = GROUP, "v1beta2", "MachineSet", "machinesets", "Equal machines.";
    MACHINE = GROUP, "v1beta2", "Machine", "machines", "A machine.";
    CONFIG_TEMPLATE = BOOTSTRAP_GROUP, "v1beta2", "KubeadmConfigTemplate", "kubeadmconfigtemplates", "Template of configurations.";
    CONFIG = BOOTSTRAP_GROUP, "v1beta2", "KubeadmConfig", "kubeadmconfigs", "Bootstrap configuration of a machine.";
    MACHINE_TEMPLATE = INFRASTRUCTURE_GROUP, "v1beta2", "Metal3MachineTemplate", "metal3machinetemplates", "Template of machines.";
    METAL3_MACHINE = INFRASTRUCTURE_GROUP, "v1beta2", "Metal3Machine", "metal3machines", "A machine on a bare-metal host.";
    BYO_MACHINE_TEMPLATE = INFRASTRUCTURE_GROUP, "v1beta1", "ByoMachineTemplate", "byomachinetemplates", "Template of machines on bring-your-own hosts.";
    BYO_MACHINE = INFRASTRUCTURE_GROUP, "v1beta1", "ByoMachine", "byomachines", "A machine on a bring-your-own host.";
    BYO_HOST = INFRASTRUCTURE_GROUP, "v1beta1", "ByoHost", "byohosts", "A bring-your-own host, created by its user.";
    SECRET = "", "v1", "Secret", "secrets", "Bootstrap data and kubeconfigs.";
}

/// The kind of the objects that a template creates: the name of the template without `Template`.
#[must_use]
pub fn target_kind(template: &str) -> Option<&'static Kind> {
    find(template.strip_suffix("Template")?)
}

/// The kind with this name.
#[must_use]
pub fn find(kind: &str) -> Option<&'static Kind> {
    ALL.iter().find(|known| known.kind == kind).copied()
}

impl Kind {
    /// `apiVersion` of its objects.
    #[must_use]
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }
}

/// An older served version, for manifests written for earlier releases.
fn earlier(kind: &Kind) -> Option<&'static str> {
    match kind.kind {
        "Cluster" | "KubeadmControlPlane" | "MachineDeployment" | "KubeadmConfigTemplate" => Some(v1beta1::V1BETA1),
        // Old releases of Kamaji serve it; current ones do not.
        "KamajiControlPlane" => Some("v1alpha1"),
        _ => None,
    }
}

/// Group and kind of the kinds whose objects differ between the two versions.
pub fn converted() -> impl Iterator<Item = (&'static str, &'static str)> {
    [CLUSTER, CONTROL_PLANE, DEPLOYMENT]
        .into_iter()
        .map(|kind| (kind.group, kind.kind))
}

/// Removes v1beta1 of Cluster API's own kinds, as its release 1.16 does.
pub fn remove_v1beta1(all: &mut [Definition]) {
    let own = [GROUP, CONTROL_PLANE_GROUP, BOOTSTRAP_GROUP];
    for definition in all.iter_mut().filter(|one| own.contains(&one.group)) {
        definition
            .versions
            .retain(|version| version.storage || version.name != v1beta1::V1BETA1);
    }
}

/// The contract label: which version of a kind implements which contract.
fn contract(kind: &Kind) -> &'static [(&'static str, &'static str)] {
    match kind.version {
        "v1beta1" => &[("cluster.x-k8s.io/v1beta1", "v1beta1")],
        "v1alpha2" => &[("cluster.x-k8s.io/v1beta2", "v1alpha2")],
        _ => &[("cluster.x-k8s.io/v1beta2", "v1beta2")],
    }
}

const OF_CLUSTER: Column = Column::string("Cluster", ".spec.clusterName");
const PHASE: Column = Column::string("Phase", ".status.phase");
const REPLICAS: Column = Column::typed("Desired", ".spec.replicas", "integer");
const CURRENT: Column = Column::typed("Current", ".status.replicas", "integer");
const READY: Column = Column::typed("Ready", ".status.readyReplicas", "integer");
const AVAILABLE: Column = Column::string("Available", ".status.conditions[?(@.type==\"Available\")].status");
const VERSION: Column = Column::string("Version", ".spec.version");

const CLUSTER_COLUMNS: &[Column] = &[AVAILABLE, PHASE, AGE];
const MACHINE_COLUMNS: &[Column] = &[
    OF_CLUSTER,
    Column::string("Node Name", ".status.nodeRef.name"),
    Column::string("Provider ID", ".spec.providerID").wide(),
    Column::string("Ready", ".status.conditions[?(@.type==\"Ready\")].status"),
    PHASE,
    AGE,
    VERSION,
];
const SET_COLUMNS: &[Column] = &[OF_CLUSTER, REPLICAS, CURRENT, READY, AGE];
const DEPLOYMENT_COLUMNS: &[Column] = &[OF_CLUSTER, AVAILABLE, REPLICAS, CURRENT, READY, PHASE, AGE];
const CONTROL_PLANE_COLUMNS: &[Column] = &[
    Column::string("Initialized", ".status.initialization.controlPlaneInitialized"),
    REPLICAS,
    CURRENT,
    READY,
    AGE,
    VERSION,
];
const HOSTED_COLUMNS: &[Column] = &[
    Column::string("Initialized", ".status.initialization.controlPlaneInitialized"),
    Column::string("Endpoint", ".spec.controlPlaneEndpoint.host"),
    AGE,
];
const CONFIG_COLUMNS: &[Column] = &[Column::string("Data Secret", ".status.dataSecretName"), AGE];
const BYO_MACHINE_COLUMNS: &[Column] = &[
    Column::string("ProviderID", ".spec.providerID"),
    Column::string("Ready", ".status.ready"),
    AGE,
];
const PLAIN: &[Column] = &[AGE];

/// The kinds that no product defines. Their schema accepts any content.
#[must_use]
pub fn definitions() -> Vec<Definition> {
    [
        (CLUSTER, "cluster", &["cl"][..], CLUSTER_COLUMNS),
        (BYO_CLUSTER, "byocluster", &[], PLAIN),
        (BYO_MACHINE_TEMPLATE, "byomachinetemplate", &[], PLAIN),
        (BYO_MACHINE, "byomachine", &[], BYO_MACHINE_COLUMNS),
        (BYO_HOST, "byohost", &[], PLAIN),
        (OPENSTACK_CLUSTER, "openstackcluster", &[], PLAIN),
        (CONTROL_PLANE, "kubeadmcontrolplane", &["kcp"], CONTROL_PLANE_COLUMNS),
        (HOSTED_CONTROL_PLANE, "hostedcontrolplane", &["hcp"], HOSTED_COLUMNS),
        (MANAGED_CONTROL_PLANE, "managedcontrolplane", &[], HOSTED_COLUMNS),
        (KAMAJI_CONTROL_PLANE, "kamajicontrolplane", &["ktcp"], HOSTED_COLUMNS),
        (TENANT, "tenantcontrolplane", &["tcp"], PLAIN),
        (DEPLOYMENT, "machinedeployment", &["md"], DEPLOYMENT_COLUMNS),
        (SET, "machineset", &["ms"], SET_COLUMNS),
        (MACHINE, "machine", &["ma"], MACHINE_COLUMNS),
        (CONFIG_TEMPLATE, "kubeadmconfigtemplate", &[], PLAIN),
        (CONFIG, "kubeadmconfig", &[], CONFIG_COLUMNS),
    ]
    .into_iter()
    .map(|(kind, singular, short_names, columns)| define(kind, singular, short_names, columns))
    .collect()
}

/// The subset that belongs to providers other than Cluster API itself, for use next to the real one. The managed
/// control plane is left out: its endpoint is a host name that nothing resolves.
#[must_use]
pub fn other_providers() -> Vec<Definition> {
    let others = [
        BYO_CLUSTER,
        BYO_MACHINE_TEMPLATE,
        BYO_MACHINE,
        BYO_HOST,
        OPENSTACK_CLUSTER,
        HOSTED_CONTROL_PLANE,
        KAMAJI_CONTROL_PLANE,
        TENANT,
    ];
    let mut all = definitions();
    all.retain(|definition| others.iter().any(|kind| kind.kind == definition.kind));
    all
}

fn define(
    kind: &Kind,
    singular: &'static str,
    short_names: &'static [&'static str],
    columns: &'static [Column],
) -> Definition {
    Definition {
        group: kind.group,
        kind: kind.kind,
        plural: kind.plural,
        singular,
        short_names,
        categories: &["cluster-api"],
        labels: contract(kind),
        annotations: &[],
        conversion: None,
        versions: std::iter::once(version(kind, kind.version, columns))
            .chain(earlier(kind).map(|earlier| version(kind, earlier, columns)))
            .collect(),
    }
}

/// Kinds with replicas.
const SCALED: [&Kind; 3] = [CONTROL_PLANE, DEPLOYMENT, SET];

fn version(kind: &Kind, name: &'static str, columns: &'static [Column]) -> Version {
    Version {
        name,
        storage: name == kind.version,
        deprecated: false,
        status_subresource: true,
        scale_subresource: SCALED.contains(&kind),
        columns,
        schema: || json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
        reencode: |value| Ok(value.clone()),
    }
}
