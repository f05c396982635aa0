//! Claims about the real controllers: replicas, rollouts, budgets, leader election, the Node, the audit log.

use std::collections::BTreeSet;
use std::io::BufRead;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::stack::{Stack, TIMEOUT, TestNamespace, about, is_ready, test_server};
use crate::claim::Proof;
use crate::wait::{Stopwatch, until};

/// A Deployment of test servers with a readiness probe.
pub(super) fn deployment(name: &str, replicas: u32, arguments: &Value) -> Value {
    let template = json!({"metadata": {"labels": {"app": name}}, "spec": test_server(json!({"args": arguments}))});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template,
            "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}}})
}

fn available(namespace: &TestNamespace<'_>, name: &str, count: u64) -> anyhow::Result<()> {
    let what = format!("deployment/{name}");
    namespace
        .until(&what, &format!("with {count} available"), |deployment| {
            deployment["status"]["availableReplicas"] == count
        })
        .map(drop)
}

pub(super) fn replicas_are_pods_with_unique_addresses(stack: &Stack) -> Proof {
    let namespace = stack.create_namespace("replicas")?;
    namespace.apply(&deployment("web", 2, &json!([])))?;
    available(&namespace, "web", 2)?;
    namespace.kubectl(&["scale", "deployment/web", "--replicas=4"])?;
    available(&namespace, "web", 4)?;
    let pods = namespace.pods("web")?;
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
            "the address belongs to another Pod"
        );
    }
    namespace.event("Scheduled", "Successfully assigned")?;
    namespace.kubectl(&["scale", "deployment/web", "--replicas=1"])?;
    until(TIMEOUT, "one Pod", || {
        Ok((namespace.pods("web")?.len() == 1).then_some(()))
    })?;
    Ok(String::new())
}

pub(super) fn a_rolling_update_keeps_all_replicas_available(stack: &Stack) -> Proof {
    let namespace = stack.create_namespace("rollout")?;
    namespace.apply(&deployment("web", 2, &json!(["--", "one"])))?;
    available(&namespace, "web", 2)?;
    let watch = Stopwatch::start();
    namespace.apply(&deployment("web", 2, &json!(["--", "two"])))?;
    let mut fewest = u64::MAX;
    until(TIMEOUT, "the end of the rollout", || {
        let web = namespace.get("deployment/web")?;
        let count = |field: &str| web["status"][field].as_u64().unwrap_or_default();
        fewest = fewest.min(count("availableReplicas"));
        let seen = web["status"]["observedGeneration"] == web["metadata"]["generation"];
        Ok(
            (seen && count("updatedReplicas") == 2 && count("replicas") == 2 && count("availableReplicas") == 2)
                .then_some(()),
        )
    })?;
    ensure!(fewest >= 2, "only {fewest} of 2 replicas were available");
    for pod in namespace.pods("web")? {
        ensure!(about(&pod)?["arguments"][2] == "two", "an old Pod is still there");
    }
    Ok(format!(
        "two replicas replaced in {:.1} s",
        watch.elapsed().as_secs_f64()
    ))
}

pub(super) fn a_disruption_budget_refuses_eviction(stack: &Stack) -> Proof {
    let namespace = stack.create_namespace("budget")?;
    namespace.apply(&deployment("web", 1, &json!([])))?;
    namespace.apply(
        &json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}),
    )?;
    available(&namespace, "web", 1)?;
    namespace.until("pdb/web", "counted", |budget| budget["status"]["currentHealthy"] == 1)?;
    let name = namespace
        .pods("web")?
        .first()
        .and_then(|pod| pod["metadata"]["name"].as_str())
        .context("no Pod")?
        .to_owned();
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "budget"}});
    let path = format!("/api/v1/namespaces/budget/pods/{name}/eviction");
    let evict = || {
        stack.run(
            "kubectl",
            &["create", "--raw", &path, "--filename", "-"],
            Some(&eviction.to_string()),
        )
    };
    let refusal = evict().err().context("the eviction was allowed")?;
    ensure!(format!("{refusal:#}").contains("disruption budget"), "{refusal:#}");
    namespace.kubectl(&["scale", "deployment/web", "--replicas=2"])?;
    namespace.until("pdb/web", "with a disruption allowed", |budget| {
        budget["status"]["disruptionsAllowed"] == 1
    })?;
    evict().context("with a spare replica")?;
    Ok(String::new())
}

pub(super) fn the_other_replica_replaces_a_killed_leader(stack: &Stack) -> Proof {
    let namespace = stack.create_namespace("leaders")?;
    namespace.apply(&json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "elect"},
        "rules": [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "patch"]}]}))?;
    namespace.apply(
        &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "elect"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "elect"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "leaders"}]}),
    )?;
    namespace.apply(&deployment("crew", 2, &json!(["--lease=crew"])))?;
    available(&namespace, "crew", 2)?;
    let leader = until(TIMEOUT, "a leader", || Ok(leaders(&namespace)?.pop()))?;
    let id = leader["status"]["containerStatuses"][0]["containerID"]
        .as_str()
        .unwrap_or_default();
    let process = id
        .strip_prefix("process://")
        .context("no process in the container's id")?;
    let watch = Stopwatch::start();
    stack.run("kill", &["-9", process], None)?;
    let name = leader["metadata"]["name"].clone();
    let next = until(TIMEOUT, "the next leader", || {
        Ok(leaders(&namespace)?
            .into_iter()
            .find(|pod| pod["metadata"]["name"] != name))
    })?;
    let took = watch.elapsed();
    let lease = namespace.get("lease/crew")?;
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
    ensure!(
        next["metadata"]["name"]
            .as_str()
            .is_some_and(|name| holder.starts_with(name)),
        "{holder} holds the Lease"
    );
    let what = format!("pod/{}", name.as_str().unwrap_or_default());
    // The port of the killed process may be in use for a moment, and then the first restart fails.
    let again = namespace.until(&what, "back", |pod| {
        let restarts = pod["status"]["containerStatuses"][0]["restartCount"].as_u64();
        restarts.is_some_and(|restarts| restarts > 0) && is_ready(pod)
    })?;
    ensure!(about(&again)?["leads"] == false, "there are two leaders");
    let back = watch.elapsed();
    Ok(format!(
        "a Lease of 4 s; the other led after {:.1} s, the killed one was ready again after {:.1} s",
        took.as_secs_f64(),
        back.as_secs_f64()
    ))
}

fn leaders(namespace: &TestNamespace<'_>) -> anyhow::Result<Vec<Value>> {
    let pods = namespace.pods("crew")?;
    Ok(pods
        .into_iter()
        .filter(|pod| about(pod).is_ok_and(|report| report["leads"] == true))
        .collect())
}

pub(super) fn the_node_keeps_its_lease(stack: &Stack) -> Proof {
    let renewed = || {
        stack.kubectl(&[
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
    let ready = stack.kubectl(&[
        "get",
        "node",
        "stack-node",
        "--output=jsonpath={.status.conditions[?(@.type=='Ready')].status}",
    ])?;
    ensure!(ready == "True", "the Node is {ready}");
    Ok(format!("renewed within {:.0} s", watch.elapsed().as_secs_f64()))
}

pub(super) fn the_audit_log_has_one_user_per_manager(stack: &Stack) -> Proof {
    let log = stack.places.log("audit");
    let file = std::fs::File::open(&log).with_context(|| format!("opening {}", log.display()))?;
    let mut users = BTreeSet::new();
    for line in std::io::BufReader::new(file).lines() {
        // The last line may be incomplete.
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
        "the Node's requests are in the log"
    );
    Ok(format!("{} users", users.len()))
}

/// The admission plugin `OwnerReferencesPermissionEnforcement` is on, also for the suites about the release.
pub(super) fn an_owner_is_set_only_by_a_user_who_may_delete_the_object(stack: &Stack) -> Proof {
    let namespace = stack.create_namespace("owners")?;
    let account = format!("system:serviceaccount:{}:editor", namespace.name);
    namespace.kubectl(&["create", "serviceaccount", "editor"])?;
    for (role, verbs) in [("editor", "get,patch"), ("deleter", "delete")] {
        let verbs = format!("--verb={verbs}");
        namespace.kubectl(&["create", "role", role, &verbs, "--resource=configmaps"])?;
    }
    let bind = |role: &str| {
        let (role_of, account) = (
            format!("--role={role}"),
            format!("--serviceaccount={}:editor", namespace.name),
        );
        namespace.kubectl(&["create", "rolebinding", role, &role_of, &account])
    };
    bind("editor")?;
    namespace.kubectl(&["create", "configmap", "owner"])?;
    namespace.kubectl(&["create", "configmap", "owned"])?;
    let uid = namespace.get("configmap/owner")?["metadata"]["uid"].clone();
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid});
    let patch = json!({"metadata": {"ownerReferences": [owner]}}).to_string();
    let adopt = || {
        namespace.kubectl(&[
            "patch",
            "configmap",
            "owned",
            "--type=merge",
            "--patch",
            &patch,
            "--as",
            &account,
        ])
    };
    let denied = |refused: &anyhow::Error| format!("{refused:#}").contains("ownerRef");
    until(TIMEOUT, "the right to patch", || {
        Ok(adopt().err().filter(denied).map(drop))
    })?;
    bind("deleter")?;
    until(TIMEOUT, "an owner", || Ok(adopt().ok()))?;
    Ok(String::new())
}
