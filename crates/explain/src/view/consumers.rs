//! Who uses which host, and machines without one.

use metal3_api::cluster::Machine;
use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use metal3_api::infrastructure::names::HOST_ANNOTATION;
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::kind::Kind as _;
use metal3_api::meta::ObjectReference;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde::Serialize;

use crate::snapshot::Read;
use crate::walk::conditions::first_bad;
use crate::walk::{MACHINE_ORDER, Walk, name, owner};

/// A host and who uses it, or a machine without a host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsumerRow {
    /// The namespace.
    pub namespace: String,
    /// The host; absent for a machine without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Kind and name of the consumer; absent for a free host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer: Option<String>,
    /// The Machine of the consumer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The Cluster of the consumer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// What is wrong between the two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

pub(super) fn rows(walk: &mut Walk<'_>) -> Vec<ConsumerRow> {
    let hosts: Option<Vec<BareMetalHost>> = walk.each(&Read::list::<BareMetalHost>(None));
    let machines: Option<Vec<Metal3Machine>> = walk.each(&Read::list::<Metal3Machine>(None));
    let hosts = hosts.as_deref();
    let mut rows: Vec<ConsumerRow> = hosts
        .unwrap_or_default()
        .iter()
        .map(|host| of_host(host, machines.as_deref()))
        .collect();
    let without_host = |machine: &&Metal3Machine| !has_host(machine, hosts);
    rows.extend(machines.iter().flatten().filter(without_host).map(of_machine));
    rows.sort_by_key(|row| (row.namespace.clone(), row.host.is_none(), row.clone()));
    rows
}

fn of_host(host: &BareMetalHost, machines: Option<&[Metal3Machine]>) -> ConsumerRow {
    let namespace = host.metadata.namespace.clone().unwrap_or_default();
    let consumer = host.spec.consumer_ref.as_ref();
    let is_machine = consumer.is_some_and(|one| one.kind.as_deref() == Some(Metal3Machine::KIND));
    let is_it = |machine: &&Metal3Machine| consumer.is_some_and(|consumer| is_consumer(consumer, machine, &namespace));
    let machine = machines.filter(|_| is_machine).and_then(|all| all.iter().find(is_it));
    let note = match (machine, machines) {
        _ if !is_machine => None,
        (None, None) => None,
        // Machines of another namespace need not be read.
        (None, Some(_))
            if consumer
                .and_then(|one| one.namespace.as_ref())
                .is_some_and(|one| *one != namespace) =>
        {
            None
        }
        (None, Some(_)) => Some("the consumer does not exist".to_owned()),
        (Some(machine), _) => annotated(machine)
            .filter(|named| *named != name(&host.metadata))
            .map(|named| format!("the consumer has another host: {named}")),
    };
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let label = host
        .metadata
        .labels
        .as_ref()
        .and_then(|all| all.get(CLUSTER_NAME_LABEL).cloned());
    ConsumerRow {
        host: Some(name(&host.metadata).to_owned()),
        consumer: consumer.map(|one| format!("{}/{}", text(&one.kind), text(&one.name))),
        machine: machine
            .and_then(|machine| owner::<Machine>(&machine.metadata))
            .map(ToOwned::to_owned),
        cluster: label.filter(|_| consumer.is_some()),
        note,
        namespace,
    }
}

fn of_machine(machine: &Metal3Machine) -> ConsumerRow {
    let meta = &machine.metadata;
    let reason = first_bad(&machine.status.conditions, &MACHINE_ORDER).map(|bad| bad.reason.clone());
    ConsumerRow {
        namespace: meta.namespace.clone().unwrap_or_default(),
        host: None,
        consumer: Some(format!("{}/{}", Metal3Machine::KIND, name(meta))),
        machine: owner::<Machine>(meta).map(ToOwned::to_owned),
        cluster: meta
            .labels
            .as_ref()
            .and_then(|all| all.get(CLUSTER_NAME_LABEL).cloned()),
        note: Some(reason.map_or("has no host".to_owned(), |reason| format!("has no host: {reason}"))),
    }
}

/// Whether a host names the machine. While hosts are not known, the annotation of the machine counts.
fn has_host(machine: &Metal3Machine, hosts: Option<&[BareMetalHost]>) -> bool {
    let Some(hosts) = hosts else {
        return annotated(machine).is_some();
    };
    hosts.iter().any(|host| {
        let namespace = host.metadata.namespace.as_deref().unwrap_or_default();
        let consumer = host.spec.consumer_ref.as_ref();
        consumer.is_some_and(|consumer| is_consumer(consumer, machine, namespace))
    })
}

/// Whether a reference in this namespace means the machine.
fn is_consumer(reference: &ObjectReference, machine: &Metal3Machine, namespace: &str) -> bool {
    let place = reference.namespace.as_deref().unwrap_or(namespace);
    reference.kind.as_deref() == Some(Metal3Machine::KIND)
        && reference.name.as_deref() == Some(name(&machine.metadata))
        && machine.metadata.namespace.as_deref().unwrap_or_default() == place
}

/// The host that a machine names.
fn annotated(machine: &Metal3Machine) -> Option<&str> {
    let key = machine.metadata.annotations.as_ref()?.get(HOST_ANNOTATION)?;
    key.rsplit('/').next()
}
