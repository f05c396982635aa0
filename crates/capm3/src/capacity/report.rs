//! What is reported of a template: pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use metal3_api::infrastructure::Metal3MachineTemplateStatus;
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3Machine, Metal3MachineTemplate};
use metal3_api::kind::Kind as _;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::selector::{Selector, SelectorError};
use metal3_runtime::cache::Key;
use metal3_runtime::work::Next;

use super::figures::{is_counted, status_of};
use super::index::NodeGroup;
use crate::host_choice::HostChooser;
use crate::reasons::template as reasons;

/// For hosts without labels.
static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();

/// The hosts of a namespace.
#[derive(Default)]
pub(super) struct NearHosts {
    pub(super) hosts: Vec<Arc<BareMetalHost>>,
    /// One that cannot be decoded, if any. It may be the smallest.
    pub(super) unreadable: Option<Key>,
}

/// A node group of the template, and the Metal3Cluster of its machines.
pub(super) struct Claimant {
    pub(super) group: NodeGroup,
    pub(super) metal3_cluster: Serving,
}

/// The Metal3Cluster of the machines of a node group.
pub(super) enum Serving {
    One {
        own: Arc<Metal3Cluster>,
        /// The others of the Cluster, whose hosts the machines do not get.
        others: Vec<Arc<Metal3Cluster>>,
    },
    /// Which one it is, or what it has, is not known, for this reason.
    Unknown(String),
    /// The machines get no host, for this reason.
    Refused(String),
}

/// The report of one template.
pub(super) struct Report {
    /// The status. `None` when it is not known, so that the last one stays.
    pub(super) status: Option<Metal3MachineTemplateStatus>,
    /// How many hosts a machine could take now.
    pub(super) available: usize,
    /// What is to do afterwards.
    pub(super) next: Next,
}

impl Report {
    pub(super) fn of(key: &Key, template: &Metal3MachineTemplate, claimants: &[Claimant], near: &NearHosts) -> Self {
        let selector = match selector(template) {
            Ok(selector) => selector,
            // No host is selected, so no machine gets one.
            Err(error) => {
                let kind = Metal3MachineTemplate::KIND;
                let message = format!("{kind} {key}: spec.template.spec.hostSelector: {error}; correct it");
                return Self {
                    status: Some(Metal3MachineTemplateStatus::default()),
                    available: 0,
                    next: Next::waiting(reasons::INVALID_SELECTOR, message),
                };
            }
        };
        let machines = new_machines(key, template, claimants);
        let choosers = choosers(&machines, claimants);
        let is_available = |host: &&Arc<BareMetalHost>| choosers.iter().any(|chooser| chooser.could_claim(host));
        let available = near.hosts.iter().filter(is_available).count();
        if let Some(host) = &near.unreadable {
            let message = format!(
                "BareMetalHost {host} cannot be read, and the capacity of {} {key} is that of the smallest host; correct the host",
                Metal3MachineTemplate::KIND
            );
            return Self {
                status: None,
                available,
                next: Next::waiting(reasons::HOST_UNREADABLE, message),
            };
        }
        // A host in the wrong place is not chosen, so it says nothing of a new Node.
        let is_placed = |host: &BareMetalHost| {
            claimants.is_empty() || choosers.iter().any(|chooser| chooser.misplaced(host).is_none())
        };
        let hosts = near.hosts.iter().map(|host| &**host);
        let hosts = hosts.filter(|host| is_selected(&selector, host) && is_placed(host));
        let (is_known, next) = without_cluster(key, claimants);
        Self {
            status: is_known.then(|| status_of(hosts)),
            available,
            next,
        }
    }
}

/// Whether the hosts of all node groups are known, and what those wait for whose Metal3Cluster serves no machine.
fn without_cluster(key: &Key, claimants: &[Claimant]) -> (bool, Next) {
    let mut is_known = true;
    let mut first = None;
    for one in claimants {
        let why = match &one.metal3_cluster {
            Serving::One { .. } => continue,
            Serving::Unknown(why) => why,
            Serving::Refused(why) => why,
        };
        is_known &= matches!(one.metal3_cluster, Serving::Refused(_));
        first = first.or(Some((&one.group.deployment, why)));
    }
    let next = first.map(|(deployment, why)| {
        let kind = Metal3MachineTemplate::KIND;
        let message = format!("{kind} {key}: machines of MachineDeployment {deployment} get no host: {why}");
        Next::waiting(reasons::CLUSTER_UNUSABLE, message)
    });
    (is_known, next.unwrap_or(Next::Done))
}

fn selector(template: &Metal3MachineTemplate) -> Result<Selector, SelectorError> {
    match &template.spec.template.spec.host_selector {
        None => Ok(Selector::default()),
        Some(selector) => selector.labels(),
    }
}

fn is_selected(selector: &Selector, host: &BareMetalHost) -> bool {
    let labels = host.metadata.labels.as_ref().unwrap_or(&NO_LABELS);
    selector.mismatch(labels).is_none() && is_counted(host)
}

/// A machine of each node group, and the value in the label of a host that is kept for its reuse.
fn new_machines(key: &Key, template: &Metal3MachineTemplate, claimants: &[Claimant]) -> Vec<(Metal3Machine, String)> {
    let machine = |one: &Claimant| {
        let owner = format!("md-{}", one.group.deployment);
        (new_machine(key, template, &one.group), owner)
    };
    claimants.iter().map(machine).collect()
}

/// The rules by which the machines choose their hosts. Those whose Metal3Cluster is not known choose none.
fn choosers<'a>(machines: &'a [(Metal3Machine, String)], claimants: &'a [Claimant]) -> Vec<HostChooser<'a>> {
    let both = machines.iter().zip(claimants);
    let chooser = |((machine, owner), one): (&'a (Metal3Machine, String), &'a Claimant)| {
        let Serving::One { own, others } = &one.metal3_cluster else {
            return None;
        };
        let chooser = HostChooser::try_new(machine, Some(owner.as_str())).ok()?;
        Some(chooser.with_sites(own, others.iter().map(AsRef::as_ref)))
    };
    both.filter_map(chooser).collect()
}

/// A machine of the node group, before it has a name and a Machine.
pub(super) fn new_machine(key: &Key, template: &Metal3MachineTemplate, group: &NodeGroup) -> Metal3Machine {
    let mut machine = Metal3Machine {
        spec: template.spec.template.spec.clone(),
        ..Metal3Machine::default()
    };
    machine.spec.failure_domain.clone_from(&group.failure_domain);
    machine.metadata.namespace = Some(key.namespace.clone());
    let labels = machine.metadata.labels.get_or_insert_default();
    labels.insert(CLUSTER_NAME_LABEL.to_owned(), group.cluster.clone());
    machine
}
