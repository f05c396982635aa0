//! The controllers under fault injection: every write of their scenarios with every fault.

use std::collections::BTreeMap;
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3DataClaim, Metal3Machine};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::clock::Clock;
use metal3_harness::{Instance, State, TestEnv};
use metal3_sim_cluster::Cluster;
use tokio::task::JoinSet;

use super::program::start;
use super::steps::{Step, kinds};
use crate::data::reconciler::tests::invariants;
use crate::data::reconciler::tests::lab::address_management;

/// The steps by stage, and the final state.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) stages: &'static [&'static [Step]],
    /// The expected final state, in the format of [`end`].
    pub(super) end: &'static [&'static str],
    /// Whether the controllers of data and IPAM run. Otherwise a step serves the claims.
    pub(super) has_data: bool,
}

/// Hosts with consumer and image, machines with host and readiness, clusters.
pub(super) fn end(state: &State) -> Vec<String> {
    let mut lines = Vec::new();
    for host in state.of::<BareMetalHost>() {
        let user = host
            .spec
            .consumer_ref
            .and_then(|consumer| consumer.name)
            .unwrap_or_else(|| "no machine".to_owned());
        let runs = if host.spec.image.is_some() { "runs" } else { "idle" };
        lines.push(format!("{} {runs} for {user}", host.metadata.name.unwrap_or_default()));
    }
    for machine in state.of::<Metal3Machine>() {
        let done = machine.status.initialization.and_then(|done| done.provisioned) == Some(true);
        let id = machine
            .spec
            .provider_id
            .filter(|_| done)
            .unwrap_or_else(|| "waits".to_owned());
        lines.push(format!("{} {id}", machine.metadata.name.unwrap_or_default()));
    }
    let claims = state.of::<Metal3DataClaim>();
    lines.extend(
        claims
            .into_iter()
            .map(|claim| format!("claim {}", claim.metadata.name.unwrap_or_default())),
    );
    let clusters = state.of::<Metal3Cluster>();
    lines.extend(
        clusters
            .into_iter()
            .map(|one| format!("cluster {}", one.metadata.name.unwrap_or_default())),
    );
    lines
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
    let secrets: Vec<_> = state
        .of::<Secret>()
        .into_iter()
        .filter_map(|secret| secret.metadata.name)
        .collect();
    let hosts = state
        .of::<BareMetalHost>()
        .into_iter()
        .filter(|host| host.spec.image.is_some());
    let missing = |host: BareMetalHost| {
        let named = [host.spec.meta_data, host.spec.network_data].into_iter().flatten();
        let missing = named
            .filter_map(|secret| secret.name)
            .find(|name| !secrets.contains(name));
        missing.map(|name| {
            format!(
                "{} runs, and {name} is not there",
                host.metadata.name.unwrap_or_default()
            )
        })
    };
    hosts.filter_map(missing).collect()
}

impl TestEnv for Scenario {
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
            step.take(&user).await;
        }
    }

    fn background(&self, cluster: &Cluster, clock: &Arc<dyn Clock>) -> JoinSet<()> {
        if self.has_data {
            address_management(&cluster.client("addresses"), clock)
        } else {
            JoinSet::new()
        }
    }

    fn run(&self, instance: Instance) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let has_data = self.has_data;
        Box::pin(async move {
            let _tasks = start(&instance.client, &instance.clock, has_data);
            pending().await
        })
    }

    fn kinds(&self) -> Vec<String> {
        let mut kinds = vec![
            State::path::<BareMetalHost>(),
            State::path::<Metal3Machine>(),
            State::path::<Metal3DataClaim>(),
            State::path::<Metal3Cluster>(),
        ];
        if self.has_data {
            kinds.extend(invariants::paths());
        }
        kinds
    }

    fn violations(&self, state: &State) -> Vec<String> {
        let mut wrong = of_hosts(state);
        wrong.extend(of_machines(state));
        if self.has_data {
            wrong.extend(invariants::violations(state));
            wrong.extend(missing_secrets(state));
        }
        wrong
    }

    fn unfinished(&self, state: &State) -> Vec<String> {
        let found = end(state);
        if found == self.end {
            Vec::new()
        } else {
            vec![format!("ends with {found:?}")]
        }
    }
}
