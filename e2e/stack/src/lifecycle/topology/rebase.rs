//! The Cluster gets an equal class of another name, and its own class again.

use std::fs;

use anyhow::ensure;
use serde_json::{Value, json};

use super::super::cluster::{LONG, settled};
use super::super::env::TestEnv;
use super::super::install;
use super::changes::{copies, machines, members, of_others, quiet, since, writes};
use super::class::{self, CLASS};
use crate::claim::Proof;
use crate::claims::stack::{Stack, condition};
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::products::machines::template::CLUSTER;
use crate::wait::until;

/// The name of the copy of the class.
pub(super) const COPY: &str = "next-metal3";
const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
const CLONED_FROM: &str = "cluster.x-k8s.io/cloned-from-name";
/// Cluster, control plane, and the templates of its machines and of the workers.
const CLONES: (&str, usize) = ("metal3clusters,kubeadmcontrolplanes,metal3machinetemplates", 4);

/// No machine is replaced, and no manager of ours writes.
pub(in super::super) fn rebased(env: &TestEnv<'_>) -> Proof {
    let stack = env.stack;
    let copied = with_own_templates(copies(stack)?)?;
    install::apply(stack, NAMESPACE, &copied)?;
    env.while_simulated(|| {
        until_known(stack)?;
        settled(env)?;
        quiet(stack)
    })?;
    let (before, generations) = (machines(stack)?, of_others(members(stack, "generation")?));
    let mark = fs::metadata(stack.places.log("audit"))?.len();
    for class in [COPY, CLASS] {
        class::patch(stack, &json!({"classRef": {"name": class}}))?;
        env.while_simulated(|| {
            until_cloned_from(stack, class)?;
            settled(env)?;
            quiet(stack)
        })?;
        let after = machines(stack)?;
        ensure!(before == after, "class {class}: {before:?} became {after:?}");
        let after = of_others(members(stack, "generation")?);
        ensure!(generations == after, "class {class}: {generations:?} became {after:?}");
    }
    let writes = writes(&since(stack, mark)?)?;
    ensure!(writes.is_empty(), "managers wrote {writes:?}");
    remove(stack, &copied)?;
    Ok(format!(
        "{} machines stay, there and back, 0 writes of ours",
        before.len()
    ))
}

/// The class of the copies refers to the copied templates.
pub(super) fn with_own_templates(mut copies: Vec<Value>) -> anyhow::Result<Vec<Value>> {
    for class in copies.iter_mut().filter(|one| one["kind"] == "ClusterClass") {
        let (own, copied) = (format!("\"name\":\"{CLASS}-"), format!("\"name\":\"{COPY}-"));
        class["spec"] = serde_json::from_str(&class["spec"].to_string().replace(&own, &copied))?;
    }
    Ok(copies)
}

/// Waits until Cluster API has read the variables of the copied class.
pub(super) fn until_known(stack: &Stack) -> anyhow::Result<()> {
    until(LONG, "the variables of the copied class", || {
        let classes = list(stack, NAMESPACE, "clusterclasses")?;
        let mut copied = classes.iter().filter(|one| name(one) == COPY);
        Ok(copied
            .any(|one| condition(one, "VariablesReady") == Some("True"))
            .then_some(()))
    })
}

/// Waits until the topology controller has compared the objects of the Cluster with the templates of this class.
fn until_cloned_from(stack: &Stack, class: &str) -> anyhow::Result<()> {
    let (kinds, number) = CLONES;
    until(LONG, &format!("objects of the class {class}"), || {
        let mut clones = list(stack, NAMESPACE, kinds)?;
        clones.retain(|one| one["metadata"]["labels"][CLUSTER_NAME] == CLUSTER);
        let is_of_class = |one: &Value| {
            let template = one["metadata"]["annotations"][CLONED_FROM].as_str();
            template.is_some_and(|template| template.starts_with(&format!("{class}-")))
        };
        Ok((clones.len() == number && clones.iter().all(is_of_class)).then_some(()))
    })
}

/// Deletes the copies.
pub(super) fn remove(stack: &Stack, copies: &[Value]) -> anyhow::Result<()> {
    stack.send(&["--namespace", NAMESPACE, "delete", "--ignore-not-found"], copies)
}
