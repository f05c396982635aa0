//! The least that hosts have.

use std::collections::{BTreeMap, BTreeSet};

use metal3_api::infrastructure::{Metal3MachineTemplateStatus, NodeInfo};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareDetails};

const CPU: &str = "cpu";
const MEMORY: &str = "memory";
const DISK: &str = "ephemeral-storage";
/// The end of a label with the number of devices of a host, as GPU operators label Nodes: `nvidia.com/gpu.count`.
const COUNT: &str = ".count";
/// Ironic chooses the smallest disk that is not smaller than this, unless it has hints.
const SMALLEST_ROOT: u64 = 4 << 30;

/// Whether a selected host can run a machine of a template, now or later.
#[must_use]
pub fn is_counted(host: &BareMetalHost) -> bool {
    host.metadata.deletion_timestamp.is_none() && host.spec.externally_provisioned != Some(true)
}

/// What each of these hosts has at least, and their architecture if it is one. Hosts that were not inspected are left out.
/// Empty without hosts, and when one does not report processors or memory: the autoscaler needs both.
#[must_use]
pub fn status_of<'a>(hosts: impl IntoIterator<Item = &'a BareMetalHost>) -> Metal3MachineTemplateStatus {
    let mut least: Option<BTreeMap<String, u64>> = None;
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
        architectures.insert(architecture(hardware));
    }
    let least = least.unwrap_or_default();
    if ![CPU, MEMORY].iter().all(|name| least.contains_key(*name)) {
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
fn least_of_both(mut least: BTreeMap<String, u64>, other: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    least.retain(|name, figure| match other.get(name) {
        Some(other) => {
            *figure = (*figure).min(*other);
            true
        }
        None => false,
    });
    least
}

fn figures(host: &BareMetalHost, hardware: &HardwareDetails) -> BTreeMap<String, u64> {
    let positive = |number: Option<i64>| {
        number
            .and_then(|number| u64::try_from(number).ok())
            .filter(|number| *number > 0)
    };
    let cpu = positive(hardware.cpu.as_ref().and_then(|cpu| cpu.count));
    let named = [
        (CPU, cpu),
        (MEMORY, positive(hardware.ram_mebibytes)),
        (DISK, root_disk(host, hardware)),
    ];
    let named = named
        .into_iter()
        .filter_map(|(name, figure)| Some((name.to_owned(), figure?)));
    named.chain(devices(host)).collect()
}

/// The size of the disk that Ironic chooses without hints.
fn root_disk(host: &BareMetalHost, hardware: &HardwareDetails) -> Option<u64> {
    if host.spec.root_device_hints.is_some() || host.spec.raid.is_some() {
        return None;
    }
    let sizes = hardware
        .storage
        .iter()
        .filter_map(|disk| u64::try_from(disk.size_bytes?).ok());
    sizes.filter(|size| *size >= SMALLEST_ROOT).min()
}

/// The devices that labels of the host count, by the name of their resource.
fn devices(host: &BareMetalHost) -> impl Iterator<Item = (String, u64)> + '_ {
    let labels = host.metadata.labels.iter().flatten();
    labels.filter_map(|(label, value)| {
        let resource = label.strip_suffix(COUNT).filter(|resource| resource.contains('/'))?;
        let count = value.parse().ok().filter(|count| *count > 0)?;
        Some((resource.to_owned(), count))
    })
}

/// As Kubernetes names it; `None` for one that the contract does not have.
fn architecture(hardware: &HardwareDetails) -> Option<&'static str> {
    match hardware.cpu.as_ref()?.arch.as_deref()? {
        "x86_64" => Some("amd64"),
        "aarch64" => Some("arm64"),
        "s390x" => Some("s390x"),
        "ppc64le" => Some("ppc64le"),
        _ => None,
    }
}

fn quantity(name: String, figure: u64) -> (String, String) {
    let text = match name.as_str() {
        MEMORY => format!("{figure}Mi"),
        _ => figure.to_string(),
    };
    (name, text)
}
