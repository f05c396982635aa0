//! Who uses which host, and machines without one.

use metal3_api::cluster::Machine;
use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use metal3_api::infrastructure::names::HOST_ANNOTATION;
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::kind::Kind as _;
use metal3_api::meta::ObjectReference;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde::Serialize;

use crate::index::Index;
use crate::listed::Listed;
use crate::order;
use crate::read::Read;
use crate::values::name;
use crate::walk::conditions::first_bad;
use crate::walk::{MACHINE_ORDER, Walk, owner};

/// A host and who uses it, or a machine without a host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsumerRow {
    /// The namespace.
    pub namespace: String,
    /// The host; absent for a machine without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Kind and name of the consumer, with its namespace between them where that is another one; absent for a free host.
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
    let hosts = walk.each::<BareMetalHost>(&Read::list::<BareMetalHost>(None));
    let machines = walk.each::<Metal3Machine>(&Read::list::<Metal3Machine>(None));
    let of_hosts = hosts.iter().flat_map(|hosts| hosts.iter());
    let mut rows: Vec<ConsumerRow> = of_hosts.map(|host| of_host(host, machines.as_deref())).collect();
    // Of machines that hosts name. While hosts are not known, the annotation of the machine counts.
    let consumers: Option<Index<(String, String), ()>> = hosts.as_ref().map(|hosts| {
        let used = hosts.iter().filter_map(consumer_of);
        Index::of(used.map(|consumer| (consumer, ())))
    });
    let has_host = |machine: &&Metal3Machine| match &consumers {
        Some(consumers) => {
            let namespace = machine.metadata.namespace.clone().unwrap_or_default();
            let is_partial = hosts.as_ref().is_some_and(|hosts| !hosts.unreadable().is_empty());
            consumers
                .first(&(namespace, name(&machine.metadata).to_owned()))
                .is_some()
                || (is_partial && annotated(machine).is_some())
        }
        None => annotated(machine).is_some(),
    };
    let of_machines = machines.iter().flat_map(|machines| machines.iter());
    rows.extend(of_machines.filter(|machine| !has_host(machine)).map(of_machine));
    order::sort_by(&mut rows, |a, b| {
        (&a.namespace, a.host.is_none(), a).cmp(&(&b.namespace, b.host.is_none(), b))
    });
    rows
}

/// Namespace and name of the machine that uses a host.
fn consumer_of(host: &BareMetalHost) -> Option<(String, String)> {
    let reference = host.spec.consumer_ref.as_ref()?;
    let is_machine = reference.kind.as_deref() == Some(Metal3Machine::KIND);
    let namespace = reference.namespace.clone().or_else(|| host.metadata.namespace.clone());
    let consumer = (namespace.unwrap_or_default(), reference.name.clone()?);
    is_machine.then_some(consumer)
}

fn of_host(host: &BareMetalHost, machines: Option<&Listed<Metal3Machine>>) -> ConsumerRow {
    let namespace = host.metadata.namespace.clone().unwrap_or_default();
    let consumer = host.spec.consumer_ref.as_ref();
    let of_machine = consumer_of(host);
    let machine = machines
        .zip(of_machine.as_ref())
        .and_then(|(machines, (namespace, name))| machines.named(namespace, name));
    let note = match (machine, machines, &of_machine) {
        (_, _, None) | (None, None, _) => None,
        // Machines of another namespace need not be read.
        (None, Some(_), Some((place, _))) if *place != namespace => None,
        // One that cannot be decoded may be the consumer.
        (None, Some(machines), _) if !machines.unreadable().is_empty() => None,
        (None, Some(_), Some(_)) => Some("the consumer does not exist".to_owned()),
        (Some(machine), ..) => annotated(machine)
            .filter(|named| *named != name(&host.metadata))
            .map(|named| format!("the consumer has another host: {named}")),
    };
    let label = host
        .metadata
        .labels
        .as_ref()
        .and_then(|all| all.get(CLUSTER_NAME_LABEL).cloned());
    ConsumerRow {
        host: Some(name(&host.metadata).to_owned()),
        consumer: consumer.map(|one| named(one, &namespace)),
        machine: machine
            .and_then(|machine| owner::<Machine>(&machine.metadata))
            .map(ToOwned::to_owned),
        cluster: label.filter(|_| consumer.is_some()),
        note,
        namespace,
    }
}

/// Kind and name of a consumer, with its namespace if that is not the one of the host: names of tenants repeat.
fn named(consumer: &ObjectReference, of_host: &str) -> String {
    let place = consumer
        .namespace
        .as_deref()
        .filter(|place| !place.is_empty() && *place != of_host);
    let parts = [consumer.kind.as_deref(), place, consumer.name.as_deref()];
    let parts: Vec<&str> = parts.into_iter().flatten().collect();
    parts.join("/")
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

/// The host that a machine names.
fn annotated(machine: &Metal3Machine) -> Option<&str> {
    let key = machine.metadata.annotations.as_ref()?.get(HOST_ANNOTATION)?;
    key.rsplit('/').next()
}
