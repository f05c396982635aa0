//! Claims about what the real controllers make of Pods: replicas, rollouts, budgets, leaders, the Node, the audit log.

use std::collections::BTreeSet;
use std::io::BufRead;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::world::{PATIENCE, Room, World, about, is_ready, witness};
use crate::wait::{Stopwatch, until};

type Proof = anyhow::Result<String>;

/// A Deployment of witnesses that are ready when they serve.
pub(super) fn deployment(name: &str, replicas: u32, arguments: &Value) -> Value {
    let template = json!({"metadata": {"labels": {"app": name}}, "spec": witness(json!({"args": arguments}))});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template,
            "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}}})
}

fn available(room: &Room<'_>, name: &str, count: u64) -> anyhow::Result<()> {
    let what = format!("deployment/{name}");
    room.until(&what, &format!("with {count} available"), |deployment| {
        deployment["status"]["availableReplicas"] == count
    })
    .map(drop)
}

pub(super) fn replicas_are_pods_with_addresses_of_their_own(world: &World) -> Proof {
    let room = world.room("replicas")?;
    room.apply(&deployment("web", 2, &json!([])))?;
    available(&room, "web", 2)?;
    room.kubectl(&["scale", "deployment/web", "--replicas=4"])?;
    available(&room, "web", 4)?;
    let pods = room.pods("web")?;
    let addresses: BTreeSet<&str> = pods.iter().filter_map(|pod| pod["status"]["podIP"].as_str()).collect();
    ensure!(pods.len() == 4 && addresses.len() == 4, "{addresses:?}");
    for pod in &pods {
        ensure!(
            pod["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet",
            "{}",
            pod["metadata"]
        );
        ensure!(
            about(pod)?["hostname"] == pod["metadata"]["name"],
            "a Pod answers for another one"
        );
    }
    room.event("Scheduled", "Successfully assigned")?;
    room.kubectl(&["scale", "deployment/web", "--replicas=1"])?;
    until(PATIENCE, "one Pod", || Ok((room.pods("web")?.len() == 1).then_some(())))?;
    Ok(String::new())
}

pub(super) fn a_rolling_update_keeps_all_replicas_available(world: &World) -> Proof {
    let room = world.room("rollout")?;
    room.apply(&deployment("web", 2, &json!(["--", "one"])))?;
    available(&room, "web", 2)?;
    let watch = Stopwatch::start();
    room.apply(&deployment("web", 2, &json!(["--", "two"])))?;
    let mut fewest = u64::MAX;
    until(PATIENCE, "the end of the rollout", || {
        let web = room.get("deployment/web")?;
        let count = |field: &str| web["status"][field].as_u64().unwrap_or_default();
        fewest = fewest.min(count("availableReplicas"));
        let seen = web["status"]["observedGeneration"] == web["metadata"]["generation"];
        Ok(
            (seen && count("updatedReplicas") == 2 && count("replicas") == 2 && count("availableReplicas") == 2)
                .then_some(()),
        )
    })?;
    ensure!(fewest >= 2, "{fewest} of 2 replicas were available at one moment");
    for pod in room.pods("web")? {
        ensure!(about(&pod)?["arguments"][2] == "two", "an old Pod is still there");
    }
    Ok(format!(
        "two replicas replaced in {:.1} s",
        watch.elapsed().as_secs_f64()
    ))
}

pub(super) fn a_disruption_budget_refuses_eviction(world: &World) -> Proof {
    let room = world.room("budget")?;
    room.apply(&deployment("web", 1, &json!([])))?;
    room.apply(
        &json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}),
    )?;
    available(&room, "web", 1)?;
    room.until("pdb/web", "counted", |budget| budget["status"]["currentHealthy"] == 1)?;
    let name = room
        .pods("web")?
        .first()
        .and_then(|pod| pod["metadata"]["name"].as_str())
        .context("no Pod")?
        .to_owned();
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "budget"}});
    let path = format!("/api/v1/namespaces/budget/pods/{name}/eviction");
    let evict = || {
        world.run(
            "kubectl",
            &["create", "--raw", &path, "--filename", "-"],
            Some(&eviction.to_string()),
        )
    };
    let refusal = evict().err().context("the eviction was allowed")?;
    ensure!(format!("{refusal:#}").contains("disruption budget"), "{refusal:#}");
    room.kubectl(&["scale", "deployment/web", "--replicas=2"])?;
    room.until("pdb/web", "generous", |budget| {
        budget["status"]["disruptionsAllowed"] == 1
    })?;
    evict().context("with a spare replica")?;
    Ok(String::new())
}

pub(super) fn a_killed_leader_is_followed_by_the_other_replica(world: &World) -> Proof {
    let room = world.room("leaders")?;
    room.apply(&json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "elect"},
        "rules": [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "patch"]}]}))?;
    room.apply(
        &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "elect"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "elect"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "leaders"}]}),
    )?;
    room.apply(&deployment("crew", 2, &json!(["--lease=crew"])))?;
    available(&room, "crew", 2)?;
    let leader = until(PATIENCE, "a leader", || Ok(leaders(&room)?.pop()))?;
    let id = leader["status"]["containerStatuses"][0]["containerID"]
        .as_str()
        .unwrap_or_default();
    let process = id
        .strip_prefix("process://")
        .context("no process in the container's id")?;
    let watch = Stopwatch::start();
    world.run("kill", &["-9", process], None)?;
    let name = leader["metadata"]["name"].clone();
    let next = until(PATIENCE, "the next leader", || {
        Ok(leaders(&room)?.into_iter().find(|pod| pod["metadata"]["name"] != name))
    })?;
    let took = watch.elapsed();
    let lease = room.get("lease/crew")?;
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
    ensure!(
        next["metadata"]["name"]
            .as_str()
            .is_some_and(|name| holder.starts_with(name)),
        "{holder} holds the Lease"
    );
    let what = format!("pod/{}", name.as_str().unwrap_or_default());
    let again = room.until(&what, "back", |pod| {
        pod["status"]["containerStatuses"][0]["restartCount"] == 1 && is_ready(pod)
    })?;
    ensure!(about(&again)?["leads"] == false, "two lead");
    let back = watch.elapsed();
    Ok(format!(
        "a Lease of 4 s; the other led after {:.1} s, the killed one was ready again after {:.1} s",
        took.as_secs_f64(),
        back.as_secs_f64()
    ))
}

/// Pods that say they lead. A Pod that does not answer does not.
fn leaders(room: &Room<'_>) -> anyhow::Result<Vec<Value>> {
    let pods = room.pods("crew")?;
    Ok(pods
        .into_iter()
        .filter(|pod| about(pod).is_ok_and(|said| said["leads"] == true))
        .collect())
}

pub(super) fn the_node_keeps_its_lease(world: &World) -> Proof {
    let renewed = || {
        world.kubectl(&[
            "get",
            "lease",
            "stack-node",
            "--namespace=kube-node-lease",
            "--output=jsonpath={.spec.renewTime}",
        ])
    };
    let first = renewed()?;
    let watch = Stopwatch::start();
    until(Duration::from_secs(30), "the next heartbeat", || {
        Ok((renewed()? != first).then_some(()))
    })?;
    let ready = world.kubectl(&[
        "get",
        "node",
        "stack-node",
        "--output=jsonpath={.status.conditions[?(@.type=='Ready')].status}",
    ])?;
    ensure!(ready == "True", "the Node is {ready}");
    Ok(format!("renewed within {:.0} s", watch.elapsed().as_secs_f64()))
}

pub(super) fn the_audit_log_knows_one_user_per_manager(world: &World) -> Proof {
    let log = world.places.log("audit");
    let file = std::fs::File::open(&log).with_context(|| format!("opening {}", log.display()))?;
    let mut users = BTreeSet::new();
    for line in std::io::BufReader::new(file).lines() {
        // The last line may be half written.
        let Ok(entry) = serde_json::from_str::<Value>(&line?) else {
            continue;
        };
        users.extend(entry["user"]["username"].as_str().map(str::to_owned));
    }
    let expected = [
        "stack-admin",
        "cert-manager",
        "system:kube-scheduler",
        "system:serviceaccount:kube-system:deployment-controller",
        "system:serviceaccount:kube-system:endpointslice-controller",
    ];
    for user in expected {
        ensure!(users.contains(user), "{user} is not in the log; there are {users:?}");
    }
    ensure!(
        !users.contains("system:node:stack-node"),
        "the Node's own traffic is left out"
    );
    Ok(format!("{} users", users.len()))
}
