//! Machines and remediations of which a Go manager does with a host what this program does not.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::names::PAUSED_ANNOTATION;
use metal3_api::infrastructure::conditions::machine::REASON_REUSE_UNDECIDED;
use metal3_api::infrastructure::conditions::remediation::PAUSED;
use metal3_api::infrastructure::names::{HOST_ANNOTATION, NODE_REUSE_LABEL};
use metal3_api::infrastructure::v1beta2::{Metal3Machine, Metal3Remediation};
use metal3_api::kind::Kind as _;
use metal3_api::meta::{ConditionStatus, ObjectReference, SecretReference};
use metal3_api::metal3::v1alpha1::BareMetalHost;

use crate::finding::{Decision, Finding};
use crate::hosts::stays_paused;
use crate::machines::has_reason;
use crate::managers::Series;
use crate::objects::Objects;

/// The first series of which all releases read the name of a recorded host alone, and look for it in the namespace of the machine. So do
/// 1.11.7 and 1.12.4.
const IGNORES_NAMESPACE: Series = Series::new(1, 13);

pub(super) fn findings(objects: &Objects, to: Series) -> Vec<Finding> {
    let mut findings = undecided(objects);
    findings.extend(strangers(objects, to));
    let paused = paused_machines(objects);
    findings.extend(objects.of::<Metal3Remediation>().map(|one| remediation(one, &paused)));
    findings
}

/// A Go manager deprovisions the host of such a machine, and cleans its disks.
fn undecided(objects: &Objects) -> Vec<Finding> {
    let waits = |machine: &Metal3Machine| has_reason(machine, &[REASON_REUSE_UNDECIDED]);
    let machines = objects.of::<Metal3Machine>().filter(|(_, machine)| waits(machine));
    let finding = |(name, _)| {
        let what = "waits for a decision about its disks; a Go manager cleans them without one";
        let cure = "set automatedCleaningMode: disabled on its template if they are to stay";
        Finding::new(Decision::No, name, what, cure).row("reuse-without-cleaning")
    };
    machines.map(finding).collect()
}

/// Machines that record a host which is not theirs any more, or is of another namespace: a Go manager claims it, gives it the spec of the
/// machine, and erases it with the machine.
fn strangers(objects: &Objects, to: Series) -> Vec<Finding> {
    let hosts = objects.of::<BareMetalHost>().map(|(_, host)| {
        let meta = &host.metadata;
        ((meta.namespace.clone(), meta.name.clone()), host)
    });
    let hosts: BTreeMap<_, _> = hosts.collect();
    let mut findings = Vec::new();
    for (name, machine) in objects.of::<Metal3Machine>() {
        let Some((namespace, host)) = recorded(&machine) else {
            continue;
        };
        if is_paused(machine.metadata.annotations.as_ref()) {
            continue;
        }
        let found = hosts.get(&(machine.metadata.namespace.clone(), Some(host.to_owned())));
        if machine.metadata.namespace.as_deref() != Some(namespace) {
            let (decision, then) = if to < IGNORES_NAMESPACE {
                let what = "a Go manager before 1.11.7 and 1.12.4 claims it, or releases and erases it";
                (Decision::No, what)
            } else {
                of_own_namespace(&machine, found)
            };
            let what = format!("records host {host} of namespace {namespace}; {then}");
            let cure = match decision {
                Decision::No => {
                    "remove the annotation metal3.io/BareMetalHost, or pause the machine, before the switch"
                }
                _ => "",
            };
            findings.push(Finding::new(decision, name, what, cure).row("host-annotation-checked"));
        } else if let Some(why) = found
            .filter(|host| !stays_paused(host))
            .and_then(|host| given_away(&machine, host))
        {
            let what =
                format!("records host {host}, which {why}; a Go manager claims it, and erases it with the machine");
            let cure = "delete the machine before the switch, or pause the host: kubectl annotate bmh HOST \
                        baremetalhost.metal3.io/paused=user";
            findings.push(Finding::new(Decision::No, name, what, cure).row("host-given-away"));
        }
    }
    findings
}

/// What a Go manager that ignores the recorded namespace does with the host of that name in the namespace of the machine.
fn of_own_namespace(machine: &Metal3Machine, found: Option<&BareMetalHost>) -> (Decision, &'static str) {
    let is_deleted = machine.metadata.deletion_timestamp.is_some();
    let Some(host) = found else {
        let what = "a Go manager looks for a host of that name in the namespace of the machine, and finds none";
        return (Decision::Go, what);
    };
    let is_own = host
        .spec
        .consumer_ref
        .as_ref()
        .is_some_and(|consumer| is_consumer(machine, consumer));
    match (is_deleted, is_own) {
        _ if stays_paused(host) => {
            let what = "a Go manager takes the paused host of that name in the namespace of the machine for it";
            (Decision::Go, what)
        }
        (true, true) => {
            let what = "a Go manager releases the host of that name in the namespace of the machine, and erases it";
            (Decision::No, what)
        }
        (true, false) => (Decision::Go, "a Go manager ends the machine and releases no host"),
        (false, true) => {
            let what = "a Go manager goes on with the host of that name in the namespace of the machine, which it has";
            (Decision::Go, what)
        }
        (false, false) => {
            let what = "a Go manager claims the host of that name in the namespace of the machine, whatever that serves, and erases it with \
                        the machine";
            (Decision::No, what)
        }
    }
}

/// Namespace and name of the host that the machine records.
fn recorded(machine: &Metal3Machine) -> Option<(&str, &str)> {
    let annotations = machine.metadata.annotations.as_ref()?;
    annotations.get(HOST_ANNOTATION)?.split_once('/')
}

fn is_paused(annotations: Option<&BTreeMap<String, String>>) -> bool {
    annotations.is_some_and(|all| all.contains_key(PAUSED_ANNOTATION))
}

/// What a host serves other than the machine that records it. One without a consumer and without a system is claimed again by either. A Go
/// manager writes the consumer without reading it, and releases the host of a deleted machine only if that is its consumer.
fn given_away(machine: &Metal3Machine, host: &BareMetalHost) -> Option<&'static str> {
    let spec = &host.spec;
    if machine.metadata.deletion_timestamp.is_some() {
        return None;
    }
    if let Some(consumer) = &spec.consumer_ref {
        return (!is_consumer(machine, consumer)).then_some("has another consumer");
    }
    let name = |secret: &Option<SecretReference>| secret.as_ref().and_then(|secret| secret.name.clone());
    let user_data = name(&spec.user_data);
    if user_data.is_some() && user_data == name(&machine.status.user_data) {
        return None;
    }
    let url = machine.spec.image.as_ref().map(|image| image.url.as_str());
    let image = spec.image.as_ref().map(|image| image.url.as_str());
    let has_system = image.is_some() || spec.custom_deploy.is_some();
    if has_system && (user_data.is_some() || image != url) {
        Some("has no consumer and a system that is not of the machine")
    } else if spec.externally_provisioned == Some(true) {
        Some("has no consumer and is externally provisioned")
    } else if host.label(NODE_REUSE_LABEL).is_some() {
        Some("has no consumer and is kept for a set of machines")
    } else {
        None
    }
}

fn is_consumer(machine: &Metal3Machine, consumer: &ObjectReference) -> bool {
    let group = consumer
        .api_version
        .as_deref()
        .and_then(|version| version.split('/').next());
    group.is_none_or(|group| group == Metal3Machine::GROUP)
        && consumer.kind.as_deref() == Some(Metal3Machine::KIND)
        && consumer.namespace == machine.metadata.namespace
        && consumer.name == machine.metadata.name
}

/// Namespace and name.
type Key = (Option<String>, Option<String>);

/// The Machines whose hosts are paused, by whatever program: no manager changes their power.
fn paused_machines(objects: &Objects) -> BTreeSet<Key> {
    let hosts = objects.of::<BareMetalHost>().filter(|(_, host)| host.is_paused());
    let hosts: BTreeSet<Key> = hosts
        .map(|(_, host)| (host.metadata.namespace, host.metadata.name))
        .collect();
    let mut paused = BTreeSet::new();
    for (_, machine) in objects.of::<Metal3Machine>() {
        let host = recorded(&machine).map(|(namespace, host)| (Some(namespace.to_owned()), Some(host.to_owned())));
        if host.is_some_and(|host| hosts.contains(&host)) {
            paused.extend(machine_of(&machine.metadata));
        }
    }
    paused
}

/// The Machine that owns an object.
fn machine_of(meta: &ObjectMeta) -> Option<Key> {
    let mut owners = meta.owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.kind == "Machine")?;
    Some((meta.namespace.clone(), Some(owner.name.clone())))
}

/// The Go manager knows no pause of them.
fn remediation((name, remediation): (String, Metal3Remediation), paused: &BTreeSet<Key>) -> Finding {
    let mut conditions = remediation.status.conditions.iter();
    let is_reported = conditions.any(|one| one.type_ == PAUSED && one.status == ConditionStatus::True);
    let is_paused = is_reported || is_paused(remediation.metadata.annotations.as_ref());
    let is_host_paused = machine_of(&remediation.metadata).is_some_and(|machine| paused.contains(&machine));
    if is_paused && !is_host_paused {
        let what = "is paused, and its host is not; a Go manager ignores that, and powers the host off and on";
        let cure = "let it go on and end before the switch, or pause its host too";
        return Finding::new(Decision::No, name, what, cure).row("remediation-pause");
    }
    if remediation.metadata.deletion_timestamp.is_some() && !is_host_paused {
        let what = "is being deleted; a Go manager continues its power cycle";
        let cure = "wait until it is gone";
        return Finding::new(Decision::Wait, name, what, cure).row("remediation-released");
    }
    let what = "is in progress; a Go manager continues it, also while it or its Cluster is paused, and powers the host when it is deleted";
    let cure = "wait for its end, if it or its Cluster is going to be paused";
    Finding::new(Decision::Go, name, what, cure).row("remediation-pause")
}
