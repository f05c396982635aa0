//! The least that hosts have.

use std::collections::{BTreeMap, BTreeSet};

use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::infrastructure::{Metal3MachineTemplateStatus, NodeInfo};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareDetails};

use super::root_disk;
use crate::host_choice::is_of;

const CPU: &str = "cpu";
const MEMORY: &str = "memory";
const DISK: &str = "ephemeral-storage";
/// The resources of devices that labels of hosts count, as device plugins name them.
const DEVICES: [&str; 4] = [
    "amd.com/gpu",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
    "nvidia.com/gpu",
];
/// The end of such a label, as operators of devices label Nodes: `nvidia.com/gpu.count`.
const COUNT: &str = ".count";

/// Whether a selected host can run a machine of a template, now or later.
#[must_use]
pub fn is_counted(host: &BareMetalHost) -> bool {
    let is_used_otherwise = match &host.spec.consumer_ref {
        // A Cluster holds the hosts of node reuse.
        Some(consumer) => !is_of::<Metal3Machine>(consumer) && !is_of::<Cluster>(consumer),
        None => host.spec.image.is_some() || host.spec.custom_deploy.is_some(),
    };
    host.metadata.deletion_timestamp.is_none() && host.spec.externally_provisioned != Some(true) && !is_used_otherwise
}

/// What the figures of a host are read from, apart from its labels.
pub(super) fn fields(host: &BareMetalHost) -> impl PartialEq + '_ {
    let of_machine = host.status.hardware.as_ref().map(|hardware| {
        let cpu = hardware.cpu.as_ref().map(|cpu| (cpu.count, &cpu.arch));
        (cpu, hardware.ram_mebibytes)
    });
    (of_machine, root_disk::fields(host))
}

/// What each of these hosts has at least, and their architecture if it is one. Hosts that were not inspected are left out.
/// Empty without hosts, and when one does not report processors or memory: the autoscaler needs both.
#[must_use]
pub fn status_of<'a>(hosts: impl IntoIterator<Item = &'a BareMetalHost>) -> Metal3MachineTemplateStatus {
    let mut least: Option<BTreeMap<&'static str, u64>> = None;
    let mut architectures = BTreeSet::new();
    for (host, hardware) in hosts
        .into_iter()
        .filter_map(|host| Some((host, host.status.hardware.as_ref()?)))
    {
        let of_host = figures(host, hardware);
        least = Some(match least {
            None => of_host,
            Some(least) => least_of_both(least, &of_host),
        });
        // A host that does not report its own says nothing against that of the others.
        let reported = hardware.cpu.as_ref().and_then(|cpu| cpu.arch.as_deref());
        architectures.extend(reported.filter(|name| !name.is_empty()).map(architecture));
    }
    let least = least.unwrap_or_default();
    if ![CPU, MEMORY].iter().all(|name| least.contains_key(name)) {
        return Metal3MachineTemplateStatus::default();
    }
    let mut architectures = architectures.into_iter();
    let architecture = match (architectures.next(), architectures.next()) {
        (Some(only), None) => only,
        _ => None,
    };
    Metal3MachineTemplateStatus {
        capacity: least.into_iter().map(|(name, figure)| quantity(name, figure)).collect(),
        node_info: Some(NodeInfo {
            architecture: architecture.map(str::to_owned),
            operating_system: Some("linux".to_owned()),
        }),
    }
}

/// A resource that one of the two does not have is left out.
fn least_of_both(
    mut least: BTreeMap<&'static str, u64>,
    other: &BTreeMap<&'static str, u64>,
) -> BTreeMap<&'static str, u64> {
    least.retain(|name, figure| match other.get(name) {
        Some(other) => {
            *figure = (*figure).min(*other);
            true
        }
        None => false,
    });
    least
}

fn figures(host: &BareMetalHost, hardware: &HardwareDetails) -> BTreeMap<&'static str, u64> {
    let positive = |number: Option<i64>| {
        number
            .and_then(|number| u64::try_from(number).ok())
            .filter(|number| *number > 0)
    };
    let cpu = positive(hardware.cpu.as_ref().and_then(|cpu| cpu.count));
    let named = [
        (CPU, cpu),
        (MEMORY, positive(hardware.ram_mebibytes)),
        (DISK, root_disk::size(host, hardware)),
    ];
    let named = named.into_iter().filter_map(|(name, figure)| Some((name, figure?)));
    named.chain(devices(host)).collect()
}

/// The devices that labels of the host count, by the name of their resource.
fn devices(host: &BareMetalHost) -> impl Iterator<Item = (&'static str, u64)> + '_ {
    let labels = host.metadata.labels.iter().flatten();
    labels.filter_map(|(label, value)| {
        let named = label.strip_suffix(COUNT)?;
        let resource = DEVICES.into_iter().find(|resource| *resource == named)?;
        let count = value.parse().ok().filter(|count| *count > 0)?;
        Some((resource, count))
    })
}

/// As Kubernetes names it; `None` for one that the contract does not have.
fn architecture(reported: &str) -> Option<&'static str> {
    match reported {
        "x86_64" => Some("amd64"),
        "aarch64" => Some("arm64"),
        "s390x" => Some("s390x"),
        "ppc64le" => Some("ppc64le"),
        _ => None,
    }
}

fn quantity(name: &str, figure: u64) -> (String, String) {
    let text = match name {
        MEMORY => format!("{figure}Mi"),
        _ => figure.to_string(),
    };
    (name.to_owned(), text)
}
