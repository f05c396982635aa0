//! Write faults while machines get hosts, networks and sites by their zones.

use metal3_api::cluster::{Cluster, Machine};
use metal3_api::infrastructure::names::FAILURE_DOMAIN_LABEL;
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3DataTemplate, Metal3Machine};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::owner::label;
use metal3_harness::State;
use serde_json::{Value, json};

use super::faults::{Others, Scenario, ScenarioStep, of_hosts, of_machines};
use super::steps::{self, CLUSTER, annotated_machine, edit, host, make, owned};
use crate::tests::sweep;

/// A step of a user or another program.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A Cluster whose infrastructure is its own Metal3Cluster, with these zones, of which one is required.
    Zoned(&'static [&'static str]),
    /// A Cluster with the infrastructure of another provider.
    Elsewhere,
    /// A Metal3Cluster of this name that joins the Cluster, with a zone of the same name.
    Site(&'static str),
    /// A free host in this zone.
    Host(&'static str, &'static str),
    /// The data template of this zone.
    Template(&'static str),
    /// A Machine in this failure domain, whose Metal3Machine has no data of its own.
    Machine(&'static str, &'static str),
    /// The Metal3Cluster has these zones from now on.
    Edit(&'static [&'static str]),
    /// A Metal3Cluster is deleted.
    DeleteSite(&'static str),
    /// What other actors do.
    Other(steps::Step),
}

fn spec_of(zones: &[&str]) -> Value {
    let zone = |name: &&str| json!({ "name": name, "dataTemplate": { "name": format!("net-{name}") } });
    let zones: Vec<Value> = zones.iter().map(zone).collect();
    let endpoint = json!({ "host": "192.0.2.1", "port": 6443 });
    json!({ "controlPlaneEndpoint": endpoint, "failureDomainPolicy": "Required", "deploymentZones": zones })
}

async fn cluster_with(client: &kube::Client, kind: &str) -> Cluster {
    let reference = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": CLUSTER });
    let status = json!({ "initialization": { "infrastructureProvisioned": true } });
    let spec = json!({ "infrastructureRef": reference });
    make(client, CLUSTER, json!({ "spec": spec, "status": status })).await
}

impl ScenarioStep for Step {
    async fn perform(self, client: &kube::Client) {
        match self {
            Self::Zoned(zones) => {
                let cluster = cluster_with(client, "Metal3Cluster").await;
                let meta = json!({ "ownerReferences": owned(&cluster) });
                make::<Metal3Cluster>(client, CLUSTER, json!({ "metadata": meta, "spec": spec_of(zones) })).await;
            }
            Self::Elsewhere => {
                cluster_with(client, "ByoCluster").await;
            }
            Self::Site(name) => {
                let mut spec = spec_of(&[name]);
                spec["clusterName"] = json!(CLUSTER);
                make::<Metal3Cluster>(client, name, json!({ "spec": spec })).await;
            }
            Self::Host(name, zone) => {
                host(client, name).await;
                let labels = json!({ "metadata": { "labels": { FAILURE_DOMAIN_LABEL: zone } } });
                edit::<BareMetalHost>(client, name, labels).await;
            }
            Self::Template(zone) => {
                let name = format!("net-{zone}");
                make::<Metal3DataTemplate>(client, &name, json!({ "spec": { "clusterName": CLUSTER } })).await;
            }
            Self::Machine(name, domain) => {
                let owner = json!({ "spec": { "failureDomain": domain } });
                annotated_machine(client, name, json!({}), json!({}), owner).await;
            }
            Self::Edit(zones) => edit::<Metal3Cluster>(client, CLUSTER, json!({ "spec": spec_of(zones) })).await,
            Self::DeleteSite(name) => steps::delete::<Metal3Cluster>(client, name).await,
            Self::Other(step) => step.take(client).await,
        }
    }

    fn kinds(others: Others) -> Vec<String> {
        let mut kinds = <steps::Step as ScenarioStep>::kinds(others);
        kinds.push(State::path::<Machine>());
        kinds
    }

    fn violations(state: &State, _: Others) -> Vec<String> {
        let mut wrong = of_hosts(state);
        wrong.extend(of_machines(state));
        wrong.extend(misplaced(state));
        wrong
    }

    fn end(state: &State) -> Vec<String> {
        <steps::Step as ScenarioStep>::end(state)
    }
}

/// Violations: a machine on a host outside of its failure domain, or with the network of another zone or site.
fn misplaced(state: &State) -> Vec<String> {
    let (machines, owners) = (state.of::<Metal3Machine>(), state.of::<Machine>());
    let mut wrong = Vec::new();
    for host in state.of::<BareMetalHost>() {
        let user = host
            .spec
            .consumer_ref
            .as_ref()
            .and_then(|consumer| consumer.name.clone());
        let Some(machine) = machines.iter().find(|one| one.metadata.name == user && user.is_some()) else {
            continue;
        };
        let owner = owners.iter().find(|one| one.metadata.name == user);
        let (zone, user) = (
            label(&host.metadata, FAILURE_DOMAIN_LABEL).unwrap_or_default(),
            user.unwrap_or_default(),
        );
        let domain = owner.and_then(|owner| owner.spec.failure_domain.as_deref());
        if domain.is_some_and(|domain| domain != zone) {
            wrong.push(format!("{user} left {domain:?} for {zone}"));
        }
        let template = machine.spec.data_template.as_ref().and_then(|one| one.name.as_deref());
        let is_due = host.spec.image.is_some() || template.is_some();
        if is_due && template != Some(&format!("net-{zone}")) {
            wrong.push(format!("{user} in {zone} has the network {template:?}"));
        }
        let site = machine.status.metal3_cluster.as_deref();
        if site.is_some_and(|site| site != CLUSTER && site != zone) {
            wrong.push(format!("{user} in {zone} is of the site {site:?}"));
        }
    }
    wrong
}

/// The template of its zone is created while the machine waits for it, and the zone is removed while it waits for its data.
#[tokio::test(start_paused = true)]
async fn machine_gets_the_network_of_its_zone_with_every_fault_in_every_write() {
    let report = sweep(Scenario {
        name: "a machine waits for the template of its zone, and its zone is removed",
        stages: &[
            &[
                Step::Zoned(&["a", "b"]),
                Step::Host("h0", "a"),
                Step::Host("h1", "b"),
                Step::Template("b"),
                Step::Machine("m0", "a"),
            ],
            &[Step::Template("a")],
            &[Step::Edit(&["b"]), Step::Other(steps::Step::Data("m0"))],
            &[Step::Other(steps::Step::State("h0", "provisioned"))],
            &[Step::Other(steps::Step::Delete("m0"))],
            &[Step::Other(steps::Step::State("h0", "deprovisioning"))],
            &[
                Step::Other(steps::Step::State("h0", "available")),
                Step::Other(steps::Step::DataGoes("m0")),
            ],
        ],
        end: &["h0 idle for no machine", "h1 idle for no machine", "cluster edge"],
        others: Others::None,
    })
    .await;
    assert!(report.effects.len() > 12, "{:#?}", report.effects);
}

/// The failure domain alone says of which site a machine is, and each site waits for its own machines.
#[tokio::test(start_paused = true)]
async fn machines_of_two_sites_survive_every_fault_in_every_write() {
    let report = sweep(Scenario {
        name: "two sites have a machine each, and one site goes",
        stages: &[
            &[
                Step::Elsewhere,
                Step::Site("n"),
                Step::Site("s"),
                Step::Template("n"),
                Step::Template("s"),
                Step::Host("h0", "n"),
                Step::Host("h1", "s"),
                Step::Machine("m0", "s"),
                Step::Machine("m1", "n"),
            ],
            &[
                Step::Other(steps::Step::Data("m0")),
                Step::Other(steps::Step::Data("m1")),
            ],
            &[
                Step::Other(steps::Step::State("h0", "provisioned")),
                Step::Other(steps::Step::State("h1", "provisioned")),
            ],
            &[Step::DeleteSite("s"), Step::Other(steps::Step::Delete("m0"))],
            &[Step::Other(steps::Step::State("h1", "deprovisioning"))],
            &[
                Step::Other(steps::Step::State("h1", "available")),
                Step::Other(steps::Step::DataGoes("m0")),
            ],
        ],
        end: &[
            "h0 runs for m1",
            "h1 idle for no machine",
            "m1 metal3://default/h0/m1",
            "claim m1",
            "cluster n",
        ],
        others: Others::None,
    })
    .await;
    assert!(report.effects.len() > 20, "{:#?}", report.effects);
}
