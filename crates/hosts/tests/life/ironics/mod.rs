//! Several Ironics in one process: which one serves a host, and what one that is away or lost its database means to the hosts of
//! another.

mod apart;
mod choices;
mod edits;
mod exchanged;
mod sweep;

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_ironic::calls::{NodeRef, node};
use metal3_ironic::model::node::Node;
use metal3_sim_ironic::{Ironic, MachineCounts};
use serde_json::{Value, json};

use crate::env::{NAMESPACE, Setup, TestEnv, Wiring, address, name};
use crate::phases::{Phase, runs};

/// The other Ironic.
pub(crate) const B: &str = "site-b";
/// The first one.
pub(crate) const A: &str = metal3_hosts::ironics::USUAL_NAME;

/// Names the Ironic of a host.
pub(crate) const LABEL: &str = "baremetalhost.metal3.io/ironic";
const RECORD: &str = "baremetalhost.metal3.io/registered-in";

pub(super) fn two() -> Setup {
    Setup {
        others: vec![B],
        ..Setup::default()
    }
}

fn labels(ironic: &str) -> Value {
    let label = Some(ironic).filter(|ironic| !ironic.is_empty());
    json!({ "metadata": { "labels": { LABEL: label } } })
}

/// Creates a host that names this Ironic; none if it is empty.
async fn host_in(env: &TestEnv, number: u32, ironic: &str) {
    env.login(number).await;
    let mut document = env.document(number, &json!({}));
    if !ironic.is_empty() {
        metal3_runtime::patch::apply(&labels(ironic), &mut document);
    }
    env.make::<BareMetalHost>(document).await;
}

/// Changes the label.
async fn label(env: &TestEnv, number: u32, ironic: &str) {
    env.edit(number, labels(ironic)).await;
}

/// Sets or removes the annotation that detaches host 1.
async fn detach(env: &TestEnv, value: Option<&str>) {
    env.edit(
        1,
        json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/detached": value } } }),
    )
    .await;
}

fn ironic<'a>(env: &'a TestEnv, name: &str) -> &'a Ironic {
    let other = env.others.iter().find(|other| other.name == name);
    other.map_or(&env.ironic, |other| &other.ironic)
}

/// The node of a host in this Ironic.
async fn node_in(env: &TestEnv, of: &str, number: u32) -> Option<Node> {
    let named = NodeRef::Name(format!("{NAMESPACE}~{}", name(number)));
    let client = ironic(env, of).client().unwrap();
    client.send(&node::get(&named)).await.ok().map(|found| found.value)
}

/// In which of the two the host has a node.
async fn nodes(env: &TestEnv, number: u32) -> Vec<&'static str> {
    let mut found = Vec::new();
    for name in [A, B] {
        if node_in(env, name, number).await.is_some() {
            found.push(name);
        }
    }
    found
}

/// What happened to the machine at the address of a host, as this Ironic sees it.
fn counts(env: &TestEnv, of: &str, number: u32) -> MachineCounts {
    ironic(env, of)
        .machine_at(&address(number), |machine| machine.counts)
        .unwrap()
}

fn recorded(host: Option<&BareMetalHost>) -> Option<String> {
    host?.annotation(RECORD).map(str::to_owned)
}

/// The reason and the message of the condition `Held`.
fn held(host: Option<&BareMetalHost>) -> Option<(String, String)> {
    let mut conditions = host?.status.conditions.iter();
    let held = conditions.find(|condition| condition.type_ == "Held")?;
    Some((held.reason.clone(), held.message.clone()))
}

/// Starts the controller again with these Ironics.
fn configure(env: &TestEnv, names: &[&'static str]) {
    *env.configured.lock() = names.to_vec();
    env.interceptor.kill();
}

/// Starts the controller again; the names lead elsewhere.
fn wire(env: &TestEnv, wiring: Wiring) {
    *env.wiring.lock() = wiring;
    env.interceptor.kill();
}

/// What happened to the machine of host 1, and its node.
async fn state(env: &TestEnv, of: &str) -> Value {
    json!({ "counts": format!("{:?}", counts(env, of, 1)), "node": node_in(env, of, 1).await.unwrap().uuid.to_string() })
}

async fn provisioned(env: &TestEnv, ironic: &str) {
    host_in(env, 1, ironic).await;
    env.until_state(1, "available").await;
    Phase::Provision.begin(env, 1).await;
    env.until(1, "provisioned host that runs", runs).await;
}

async fn until_held(env: &TestEnv, number: u32, reason: &str) {
    let is_held = |host: Option<&BareMetalHost>| held(host).is_some_and(|(found, _)| found == reason);
    env.until(number, reason, is_held).await;
}
