//! The controllers under fault injection: every write of their scenarios with every fault.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube_core::Resource;
use metal3_api::infrastructure::CleaningMode;
use metal3_api::infrastructure::names::NODE_REUSE_LABEL;
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3DataClaim, Metal3Machine, Metal3MachineTemplate};
use metal3_api::metal3::v1alpha1::{AutomatedCleaningMode, BareMetalHost};
use metal3_domain::clock::Clock;
use metal3_harness::{Instance, State, TestEnv};
use metal3_sim_cluster::Cluster;
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use super::program;
use super::steps::{Step, kinds};
use crate::data::reconciler::tests::invariants;
use crate::data::reconciler::tests::lab::address_management;
use crate::machine::facts::template_of;

/// The controllers besides those of clusters and machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    None,
    /// Address management.
    Addresses,
    /// Address management and the controllers of data.
    Data,
}

/// A step of a user or another program, and the checks of scenarios with such steps.
pub(super) trait ScenarioStep: Copy + Send + Sync + 'static {
    fn perform(self, user: &kube::Client) -> impl Future<Output = ()> + Send;

    /// The kinds that the checks read.
    fn kinds(others: Others) -> Vec<String>;

    /// Violated invariants.
    fn violations(state: &State, others: Others) -> Vec<String>;

    /// The final state, in words.
    fn end(state: &State) -> Vec<String>;
}

/// The steps by stage, and the final state.
pub(super) struct Scenario<S: 'static> {
    pub(super) name: &'static str,
    pub(super) stages: &'static [&'static [S]],
    pub(super) end: &'static [&'static str],
    pub(super) others: Others,
}

impl<S: ScenarioStep> TestEnv for Scenario<S> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn install(&self, cluster: &Cluster) {
        cluster.install(&kinds()).unwrap();
    }

    fn stages(&self) -> usize {
        self.stages.len()
    }

    async fn stage(&self, stage: usize, user: kube::Client) {
        for step in self.stages[stage] {
            step.perform(&user).await;
        }
    }

    fn background(&self, cluster: &Cluster, clock: &Arc<dyn Clock>) -> JoinSet<()> {
        if self.others == Others::None {
            JoinSet::new()
        } else {
            address_management(&cluster.client("addresses"), clock)
        }
    }

    fn run(&self, instance: Instance) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        program::run(instance, self.others == Others::Data)
    }

    fn kinds(&self) -> Vec<String> {
        S::kinds(self.others)
    }

    fn violations(&self, state: &State) -> Vec<String> {
        S::violations(state, self.others)
    }

    fn unfinished(&self, state: &State) -> Vec<String> {
        let found = S::end(state);
        if found == self.end {
            Vec::new()
        } else {
            vec![format!("ends with {found:?}")]
        }
    }
}

impl ScenarioStep for Step {
    async fn perform(self, user: &kube::Client) {
        self.take(user).await;
    }

    fn kinds(others: Others) -> Vec<String> {
        let mut kinds = vec![
            State::path::<BareMetalHost>(),
            State::path::<Metal3Machine>(),
            State::path::<Metal3MachineTemplate>(),
            State::path::<Metal3DataClaim>(),
            State::path::<Metal3Cluster>(),
        ];
        if others == Others::Data {
            kinds.extend(invariants::paths());
        }
        kinds
    }

    fn violations(state: &State, others: Others) -> Vec<String> {
        let mut wrong = of_hosts(state);
        wrong.extend(of_machines(state));
        wrong.extend(cleaned_disks(state));
        if others == Others::Data {
            wrong.extend(invariants::violations(state));
            wrong.extend(missing_secrets(state));
        }
        wrong
    }

    /// Hosts with consumer and image, machines with host and readiness, claims, clusters.
    fn end(state: &State) -> Vec<String> {
        let mut lines = Vec::new();
        for host in state.of::<BareMetalHost>() {
            let user = host.spec.consumer_ref.and_then(|consumer| consumer.name);
            let user = user.unwrap_or_else(|| "no machine".to_owned());
            let labels = host.metadata.labels.unwrap_or_default();
            let user = labels
                .get(NODE_REUSE_LABEL)
                .map_or_else(|| user.clone(), |set| format!("{user} and {set}"));
            let runs = if host.spec.image.is_some() { "runs" } else { "idle" };
            let kept = match host.spec.automated_cleaning_mode {
                Some(AutomatedCleaningMode::Disabled) => ", disks kept",
                _ => "",
            };
            lines.push(format!(
                "{} {runs} for {user}{kept}",
                host.metadata.name.unwrap_or_default()
            ));
        }
        for machine in state.of::<Metal3Machine>() {
            let done = machine.status.initialization.and_then(|done| done.provisioned) == Some(true);
            let id = machine.spec.provider_id.filter(|_| done);
            let id = id.unwrap_or_else(|| "waits".to_owned());
            lines.push(format!("{} {id}", machine.metadata.name.unwrap_or_default()));
        }
        lines.extend(names::<Metal3DataClaim>(state).map(|name| format!("claim {name}")));
        lines.extend(names::<Metal3Cluster>(state).map(|name| format!("cluster {name}")));
        lines
    }
}

/// The names of all objects of a kind.
pub(super) fn names<K: Resource<DynamicType = ()> + DeserializeOwned>(state: &State) -> impl Iterator<Item = String> {
    let all = state.of::<K>().into_iter();
    all.map(|object| object.meta().name.clone().unwrap_or_default())
}

/// Violations: a host with image and without data, or a machine with two hosts.
pub(super) fn of_hosts(state: &State) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut hosts_of: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for host in state.of::<BareMetalHost>() {
        let name = host.metadata.name.unwrap_or_default();
        let is_whole =
            host.spec.user_data.is_some() && host.spec.meta_data.is_some() && host.spec.network_data.is_some();
        if host.spec.image.is_some() && !is_whole {
            wrong.push(format!("{name} has an image without its data"));
        }
        if let Some(user) = host.spec.consumer_ref.and_then(|consumer| consumer.name) {
            hosts_of.entry(user).or_default().push(name);
        }
    }
    let many = hosts_of.into_iter().filter(|(_, hosts)| hosts.len() > 1);
    wrong.extend(many.map(|(user, hosts)| format!("{user} has {hosts:?}")));
    wrong
}

/// Violations: a host without image that will be cleaned, while the template of its consumer forbids it, or keeps it. The scenarios
/// change templates before machines are deleted.
fn cleaned_disks(state: &State) -> Vec<String> {
    let (machines, templates) = (state.of::<Metal3Machine>(), state.of::<Metal3MachineTemplate>());
    let forbids = |host: &BareMetalHost| {
        let user = host.spec.consumer_ref.as_ref()?.name.as_ref();
        let machine = machines.iter().find(|machine| machine.metadata.name.as_ref() == user)?;
        machine.metadata.deletion_timestamp.as_ref()?;
        let named = template_of(machine)?;
        let template = templates
            .iter()
            .find(|one| one.metadata.name.as_deref() == Some(named))?;
        let is_kept = template.spec.node_reuse == Some(true);
        Some(is_kept || template.spec.template.spec.automated_cleaning_mode == Some(CleaningMode::Disabled))
    };
    let hosts = state.of::<BareMetalHost>().into_iter();
    let wiped = hosts.filter(|host| {
        let is_kept = host.spec.automated_cleaning_mode == Some(AutomatedCleaningMode::Disabled);
        host.spec.image.is_none() && !is_kept && forbids(host) == Some(true)
    });
    wiped
        .map(|host| {
            format!(
                "{} is cleaned against its template",
                host.metadata.name.unwrap_or_default()
            )
        })
        .collect()
}

/// Violations: a provisioned machine that does not run on the host of its provider ID.
pub(super) fn of_machines(state: &State) -> Vec<String> {
    let hosts = state.of::<BareMetalHost>();
    let is_done = |machine: &Metal3Machine| {
        let done = machine.status.initialization.as_ref().and_then(|done| done.provisioned);
        done == Some(true) && machine.metadata.deletion_timestamp.is_none()
    };
    let missing = |machine: Metal3Machine| {
        let name = machine.metadata.name.unwrap_or_default();
        let Some(id) = machine.spec.provider_id else {
            return Some(format!("{name} is provisioned and has no provider ID"));
        };
        let host = hosts.iter().find(|host| {
            let consumer = host
                .spec
                .consumer_ref
                .as_ref()
                .and_then(|consumer| consumer.name.as_deref());
            consumer == Some(&name) && id.split('/').nth(3) == host.metadata.name.as_deref()
        });
        let runs = host.is_some_and(|host| host.spec.image.is_some());
        (!runs).then(|| format!("{name} lives as {id}, and its host was taken from it or deprovisioned"))
    };
    state
        .of::<Metal3Machine>()
        .into_iter()
        .filter(is_done)
        .filter_map(missing)
        .collect()
}

/// Hosts that run with missing Secrets.
fn missing_secrets(state: &State) -> Vec<String> {
    let secrets: Vec<String> = names::<Secret>(state).collect();
    let missing = |host: BareMetalHost| {
        let mut named = [host.spec.meta_data, host.spec.network_data].into_iter().flatten();
        let name = named.find_map(|secret| secret.name.filter(|name| !secrets.contains(name)))?;
        let host = host.metadata.name.unwrap_or_default();
        Some(format!("{host} runs, and {name} is not there"))
    };
    let running = |host: &BareMetalHost| host.spec.image.is_some();
    state
        .of::<BareMetalHost>()
        .into_iter()
        .filter(running)
        .filter_map(missing)
        .collect()
}
