//! The controllers on trial: every write of their stories is struck by every fault there is.

use std::collections::BTreeMap;
use std::future::pending;
use std::pin::Pin;

use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3DataClaim, Metal3Machine};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_harness::{Blow, Instance, Report, State, Trial, World};
use metal3_simcluster::Cluster;

use super::program::start;
use super::site::{Step, kinds};

/// Acts of steps, and how they end.
pub(super) struct Story {
    pub(super) name: &'static str,
    pub(super) acts: &'static [&'static [Step]],
    /// How it must end, as [`end`] tells it.
    pub(super) end: &'static [&'static str],
}

/// Hosts with their consumer and what they run, machines with their host and whether they are ready, clusters.
fn end(state: &State) -> Vec<String> {
    let mut lines = Vec::new();
    for host in state.of::<BareMetalHost>() {
        let user = host
            .spec
            .consumer_ref
            .and_then(|consumer| consumer.name)
            .unwrap_or_else(|| "nobody".to_owned());
        let runs = if host.spec.image.is_some() { "runs" } else { "rests" };
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

impl World for Story {
    fn name(&self) -> &'static str {
        self.name
    }

    fn install(&self, cluster: &Cluster) {
        cluster.install(&kinds()).unwrap();
    }

    fn acts(&self) -> usize {
        self.acts.len()
    }

    async fn act(&self, act: usize, user: kube::Client) {
        for step in self.acts[act] {
            step.take(&user).await;
        }
    }

    fn run(&self, instance: Instance) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let _tasks = start(&instance.client, &instance.clock);
            pending().await
        })
    }

    fn kinds(&self) -> Vec<String> {
        vec![
            State::path::<BareMetalHost>(),
            State::path::<Metal3Machine>(),
            State::path::<Metal3DataClaim>(),
            State::path::<Metal3Cluster>(),
        ]
    }

    fn violations(&self, state: &State) -> Vec<String> {
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
        for machine in state.of::<Metal3Machine>() {
            let done = machine.status.initialization.and_then(|done| done.provisioned) == Some(true);
            if done && machine.spec.provider_id.is_none() {
                wrong.push("a machine is provisioned and has no provider ID".to_owned());
            }
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

/// Schedules of two programs at once. More of them are in the histories of the decision alone.
const INTERLEAVINGS: u64 = 6;

/// Each write of the story with each fault, counted.
pub(super) async fn survives(story: Story) -> Report {
    let report = Trial::of(story).interleavings(INTERLEAVINGS).run().await;
    assert_eq!(report.cases, report.effects.len() * Blow::ALL.len());
    report
}
