//! What is reported of a template: pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use metal3_api::infrastructure::Metal3MachineTemplateStatus;
use metal3_api::infrastructure::v1beta2::{Metal3Machine, Metal3MachineTemplate};
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

/// A node group of the template, and whether its machines must be in their failure domain.
pub(super) struct Claimant {
    pub(super) group: NodeGroup,
    pub(super) is_domain_required: bool,
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
        let available = available(key, template, claimants, &near.hosts);
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
        let hosts = near.hosts.iter().map(|host| &**host);
        Self {
            status: Some(status_of(hosts.filter(|host| is_selected(&selector, host)))),
            available,
            next: Next::Done,
        }
    }
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

/// The number of hosts that new machines of the node groups could take.
fn available(
    key: &Key,
    template: &Metal3MachineTemplate,
    claimants: &[Claimant],
    hosts: &[Arc<BareMetalHost>],
) -> usize {
    let machines: Vec<(Metal3Machine, String)> = claimants
        .iter()
        // As the value in the label of a host that is kept for node reuse.
        .map(|one| {
            (
                new_machine(key, template, &one.group),
                format!("md-{}", one.group.deployment),
            )
        })
        .collect();
    let choosers: Vec<HostChooser<'_>> = machines
        .iter()
        .zip(claimants)
        .filter_map(|((machine, owner), one)| {
            let chooser = HostChooser::try_new(machine, Some(owner.as_str())).ok()?;
            Some(chooser.with_required_domain(one.is_domain_required))
        })
        .collect();
    let is_available = |host: &&Arc<BareMetalHost>| choosers.iter().any(|chooser| chooser.could_claim(host));
    hosts.iter().filter(is_available).count()
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
