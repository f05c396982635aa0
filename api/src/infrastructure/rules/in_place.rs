//! Warnings about changed members that machines do not take over.

use crate::cluster::names::UPDATE_IN_PROGRESS_ANNOTATION;
use crate::infrastructure::names::HOST_ANNOTATION;
use crate::infrastructure::v1beta2::{Metal3Machine, Metal3MachineSpec, Metal3MachineTemplate};
use crate::rules::{FieldPath, Findings, WriteRequest};

pub(super) const OF_TEMPLATE: &str = "A warning is returned for each changed member that applies to new machines only: `image`, \
    `customDeploy`, `hostSelector`, `dataTemplate`, `metaData`, `networkData` and `metal3ClusterRef`.";
pub(super) const OF_MACHINE: &str = "A warning is returned for each changed member of a machine with a host that the host does not \
    take over, or may not before it is provisioned: `image`, `customDeploy`, `hostSelector`, `dataTemplate`, `metaData` and \
    `networkData`. Not while Cluster API updates the machine in place.";
pub(super) const DIFFERS: &str = "change-in-place-warned";

/// The members that a machine takes over from its template, or a host from its machine, only once, if they differ.
fn changed(old: &Metal3MachineSpec, new: &Metal3MachineSpec) -> impl Iterator<Item = &'static str> {
    let name = |spec: &Metal3MachineSpec| spec.data_template.as_ref().and_then(|template| template.name.clone());
    [
        ("image", old.image != new.image),
        ("customDeploy", old.custom_deploy != new.custom_deploy),
        ("hostSelector", old.host_selector != new.host_selector),
        // The controller adds the namespace.
        ("dataTemplate", name(old) != name(new)),
        ("metaData", old.meta_data != new.meta_data),
        ("networkData", old.network_data != new.network_data),
    ]
    .into_iter()
    .filter_map(|(member, is_changed)| is_changed.then_some(member))
}

/// differs: `change-in-place-warned`. The Go manager says nothing.
pub(super) fn warn_of_template(template: &WriteRequest<'_, Metal3MachineTemplate>, findings: &mut Findings) {
    let Some(old) = template.old else { return };
    let (old, new) = (&old.spec.template.spec, &template.new.spec.template.spec);
    let others = [("metal3ClusterRef", old.metal3_cluster_ref != new.metal3_cluster_ref)];
    let others = others
        .into_iter()
        .filter_map(|(member, is_changed)| is_changed.then_some(member));
    let path = FieldPath::new("spec.template.spec");
    for member in changed(old, new).chain(others) {
        findings.warn(
            path.child(member),
            format!("{path}.{member} is changed for new machines only: those that exist keep theirs"),
            "to replace machines, create another template, and name it in their control plane or MachineDeployment",
        );
    }
}

/// differs: `change-in-place-warned`. The Go manager says nothing.
pub(super) fn warn_of_machine(machine: &WriteRequest<'_, Metal3Machine>, findings: &mut Findings) {
    let Some(old) = machine.old else { return };
    let status = old.status.initialization.as_ref();
    let is_provisioned = status.is_some_and(|status| status.provisioned == Some(true));
    let annotations = machine.new.metadata.annotations.as_ref();
    let has = |key: &str| annotations.is_some_and(|all| all.contains_key(key));
    let is_begun = is_provisioned || has(HOST_ANNOTATION);
    if !is_begun || has(UPDATE_IN_PROGRESS_ANNOTATION) {
        return;
    }
    let path = FieldPath::new("spec");
    for member in changed(&old.spec, &machine.new.spec) {
        let message = if is_provisioned {
            format!("{path}.{member} of a provisioned machine is not changed in place: its host keeps what it has")
        } else {
            format!(
                "{path}.{member} of a machine with a host may not be applied any more: its deployment may have begun"
            )
        };
        findings.warn(
            path.child(member),
            message,
            "replace the machine: delete it, or roll its control plane or MachineDeployment out",
        );
    }
}
