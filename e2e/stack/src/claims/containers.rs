//! Claims about single Pods: the environment of a container, probes, restarts, logs, removal.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::stack::{
    Stack, TIMEOUT, about, address, ask, condition, fast_probes, file, is_ready, merge, pod, test_server,
};
use crate::claim::Proof;
use crate::instance;
use crate::namespaces::is_root;
use crate::wait::{Stopwatch, until};

pub(super) fn holds() -> Proof {
    Ok(String::new())
}

pub(super) fn waiting(pod: &Value) -> (&str, &str) {
    let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
    (
        waiting["reason"].as_str().unwrap_or_default(),
        waiting["message"].as_str().unwrap_or_default(),
    )
}

fn restarts(pod: &Value) -> i64 {
    pod["status"]["containerStatuses"][0]["restartCount"]
        .as_i64()
        .unwrap_or_default()
}

pub(super) fn a_pod_without_binary_waits_with_a_reason_and_starts_when_there_is_one(stack: &Stack) -> Proof {
    let namespace = stack.create_namespace("images")?;
    namespace.apply(&pod(
        "late",
        json!({"containers": [{"name": "late", "image": "example.org/suite/late:v1"}]}),
    ))?;
    let is_reported =
        |pod: &Value| waiting(pod) == ("NoBinaryForImage", "no binary for image example.org/suite/late:v1");
    namespace.until("pod/late", "without binary", is_reported)?;
    namespace.event("Failed", "no binary for image")?;
    instance::set_image(
        &stack.places,
        "late",
        &std::env::current_exe()?.with_file_name("test-server"),
    )?;
    namespace.until("pod/late", "ready", is_ready)?;
    holds()
}

pub(super) fn a_container_gets_the_arguments_and_variables_of_its_manifest(stack: &Stack) -> Proof {
    let namespace = stack.create_namespace("variables")?;
    namespace.apply(
        &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "p"}}),
    )?;
    namespace.apply(
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"MODE": "fast"}}),
    )?;
    let spec = test_server(json!({
        "command": ["/manager"], "args": ["--", "--name=$(WHO)", "$$(WHO)"], "workingDir": "/work",
        "resources": {"limits": {"memory": "64Mi"}},
        "envFrom": [{"configMapRef": {"name": "c"}}],
        "env": [
            {"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}},
            {"name": "ABSENT", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "k", "optional": true}}},
            {"name": "LIMIT", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
            {"name": "ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
    }));
    let pod = namespace.ready_pod("teller", spec)?;
    let report = about(&pod)?;
    ensure!(
        report["arguments"] == json!(["/manager", "--", "--name=teller", "$(WHO)"]),
        "arguments {}",
        report["arguments"]
    );
    ensure!(
        report["folder"] == "/work" && report["hostname"] == "teller",
        "{report}"
    );
    let address = address(&pod)?;
    let expected = [
        ("MODE", "fast"),
        ("PASSWORD", "p"),
        ("LIMIT", "64"),
        ("ADDRESS", address.as_str()),
        ("KUBERNETES_SERVICE_PORT", "6443"),
    ];
    for (name, value) in expected {
        ensure!(
            report["variables"][name] == value,
            "{name} is {}",
            report["variables"][name]
        );
    }
    ensure!(
        report["variables"]["ABSENT"].is_null()
            && report["variables"]["PWD"].is_null()
            && report["variables"]["HOME"] == "/",
        "{report}"
    );
    holds()
}

pub(super) fn a_container_runs_as_the_user_of_its_manifest(stack: &Stack) -> Proof {
    let namespace = stack.create_namespace("users")?;
    let mut spec = test_server(json!({"securityContext": {
        "runAsUser": 65532, "runAsGroup": 65533, "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}}));
    let report = about(&namespace.ready_pod("plain", spec.clone())?)?;
    ensure!(
        report["user"] == "65532" && report["group"] == "65533" && report["no_new_privileges"] == "1",
        "{report}"
    );
    ensure!(report["capabilities"] == "0000000000000000", "{report}");
    spec["securityContext"] = json!({"fsGroup": 2000});
    namespace.apply(&pod("grouped", spec))?;
    if has_single_user(stack)? {
        namespace.until("pod/grouped", "refused", |pod| waiting(pod).0 == "Refused")?;
        namespace.event("Refused", "fsGroup")?;
        return Ok("as an ordinary user: one user, groups are refused".to_owned());
    }
    let report = about(&namespace.until("pod/grouped", "ready", is_ready)?)?;
    ensure!(report["groups"] == "2000", "{report}");
    holds()
}

/// Whether the stack's user namespace has a single user.
fn has_single_user(_: &Stack) -> anyhow::Result<bool> {
    let map = std::fs::read_to_string("/proc/self/uid_map")?;
    Ok(!is_root() || map.split_whitespace().nth(2) == Some("1"))
}

pub(super) fn a_read_only_root_cannot_be_written(stack: &Stack) -> Proof {
    let namespace = stack.create_namespace("read-only")?;
    let mut spec = test_server(json!({"securityContext": {"readOnlyRootFilesystem": true},
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]}));
    spec["volumes"] = json!([{"name": "tmp", "emptyDir": {}}]);
    let sealed = address(&namespace.ready_pod("sealed", spec)?)?;
    ensure!(
        ask("POST", &sealed, "/file?path=/etc/new").is_err(),
        "a read-only root was written to"
    );
    ask("POST", &sealed, "/file?path=/tmp/new").context("a volume in it can be written")?;
    let open = address(&namespace.ready_pod("open", test_server(json!({})))?)?;
    ask("POST", &open, "/file?path=/new").context("a writable root can be written")?;
    ensure!(
        ask("POST", &open, "/file?path=/usr/new").is_err(),
        "the machine was written to"
    );
    holds()
}

pub(super) fn a_container_sees_no_other_processes_and_networks(stack: &Stack) -> Proof {
    let namespace = stack.create_namespace("alone")?;
    let one = namespace.ready_pod("one", test_server(json!({})))?;
    let other = namespace.ready_pod("other", test_server(json!({})))?;
    ensure!(address(&one)? != address(&other)?, "two Pods listen on one address");
    ensure!(about(&one)?["process"] == 1, "{}", about(&one)?);
    let interfaces = file(&one, "/proc/net/dev")?;
    let names: Vec<&str> = interfaces
        .lines()
        .skip(2)
        .filter_map(|line| Some(line.split_once(':')?.0.trim()))
        .collect();
    ensure!(
        names.iter().all(|name| ["lo", "eth0"].contains(name)) && names.len() == 2,
        "{names:?}"
    );
    ensure!(file(&one, "/etc/shadow").is_err(), "the machine's own /etc is visible");
    holds()
}

pub(super) fn unsupported_features_are_refused_by_event_and_status(stack: &Stack) -> Proof {
    let namespace = stack.create_namespace("refusals")?;
    let mut spec = test_server(json!({"securityContext": {"privileged": true}}));
    spec["initContainers"] = json!([{"name": "first", "image": "example.org/suite/test-server:v1"}]);
    spec["hostNetwork"] = json!(true);
    namespace.apply(&pod("demanding", spec))?;
    let refused = |pod: &Value| {
        let (reason, message) = waiting(pod);
        reason == "Refused"
            && ["init containers", "hostNetwork", "privileged"]
                .iter()
                .all(|what| message.contains(what))
    };
    let found = namespace.until("pod/demanding", "refused", refused)?;
    ensure!(
        condition(&found, "ContainersReady") == Some("False"),
        "{}",
        found["status"]
    );
    namespace.event("Refused", "init containers")?;
    namespace.kubectl(&["delete", "pod", "demanding", "--timeout=30s"])?;
    holds()
}

pub(super) fn an_unready_pod_is_removed_from_its_service_until_it_is_ready(stack: &Stack) -> Proof {
    let namespace = stack.create_namespace("readiness")?;
    let probe = json!({"httpGet": {"port": "web"}});
    let spec = test_server(json!({"readinessProbe": probe, "ports": [{"name": "web", "containerPort": 8080}]}));
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 443, "targetPort": "web"}]}});
    namespace.apply(&service)?;
    let pod = namespace.ready_pod("web", spec)?;
    let serves = |list: &Value, ready: bool| {
        let endpoint = &list["items"][0]["endpoints"][0];
        endpoint["addresses"][0] == pod["status"]["podIP"] && endpoint["conditions"]["ready"] == ready
    };
    let list = namespace.until("endpointslices", "ready", |list| serves(list, true))?;
    ensure!(
        list["items"][0]["ports"][0]["port"] == 8080,
        "the port's name is resolved: {list}"
    );
    ask("POST", &address(&pod)?, "/health?unready=true")?;
    namespace.until("pod/web", "not ready", |pod| !is_ready(pod))?;
    namespace.until("endpointslices", "not ready", |list| serves(list, false))?;
    namespace.event("Unhealthy", "Readiness probe failed: HTTP probe failed with status 503")?;
    ask("POST", &address(&pod)?, "/health?unready=false")?;
    let again = namespace.until("pod/web", "ready", is_ready)?;
    ensure!(restarts(&again) == 0, "readiness restarts nothing");
    holds()
}

pub(super) fn a_failed_liveness_probe_restarts_the_container(stack: &Stack) -> Proof {
    let namespace = stack.create_namespace("liveness")?;
    let pod = namespace.ready_pod("patient", test_server(fast_probes()))?;
    ask("POST", &address(&pod)?, "/health?unhealthy=true")?;
    let again = namespace.until("pod/patient", "restarted", |pod| restarts(pod) == 1 && is_ready(pod))?;
    ensure!(
        again["status"]["podIP"] == pod["status"]["podIP"],
        "a restart keeps the address"
    );
    let last = &again["status"]["containerStatuses"][0]["lastState"]["terminated"];
    ensure!(last["exitCode"] == 0, "the test server handles SIGTERM: {last}");
    namespace.event("Unhealthy", "Liveness probe failed")?;
    holds()
}

pub(super) fn exec_tcp_and_startup_probes_are_run(stack: &Stack) -> Proof {
    let namespace = stack.create_namespace("probes")?;
    let bad = |probe: Value| {
        let mut spec = test_server(json!({}));
        spec["containers"][0]["readinessProbe"] = probe;
        spec
    };
    let mut good = bad(json!({"tcpSocket": {"port": 8080}, "periodSeconds": 1}));
    merge(
        &mut good["containers"][0],
        json!({"startupProbe": {"exec": {"command": ["test", "-e", "/entrypoint"]}, "timeoutSeconds": 10}}),
    );
    namespace.ready_pod("good", good)?;
    namespace.apply(&pod(
        "closed",
        bad(json!({"tcpSocket": {"port": 9}, "periodSeconds": 1, "failureThreshold": 1})),
    ))?;
    namespace.apply(&pod(
        "absent",
        bad(json!({"exec": {"command": ["test", "-e", "/none"]}, "timeoutSeconds": 10, "periodSeconds": 1, "failureThreshold": 1})),
    ))?;
    namespace.event("Unhealthy", "connect to")?;
    namespace.event("Unhealthy", "command exited with 1")?;
    for name in ["pod/closed", "pod/absent"] {
        ensure!(!is_ready(&namespace.get(name)?), "{name} is ready");
    }
    holds()
}

pub(super) fn a_crashing_container_is_restarted_with_back_off(stack: &Stack) -> Proof {
    let namespace = stack.create_namespace("crashes")?;
    namespace.apply(&pod("crasher", test_server(json!({"args": ["--exit=3"]}))))?;
    let looping = |pod: &Value| waiting(pod).0 == "CrashLoopBackOff" && restarts(pod) >= 2;
    let pod = namespace.until("pod/crasher", "in back-off", looping)?;
    let last = &pod["status"]["containerStatuses"][0]["lastState"]["terminated"];
    ensure!(last["exitCode"] == 3 && last["reason"] == "Error", "{last}");
    namespace.event("BackOff", "back-off")?;
    holds()
}

pub(super) fn a_finished_pod_is_not_restarted(stack: &Stack) -> Proof {
    let namespace = stack.create_namespace("endings")?;
    for (name, code, phase) in [("good", "0", "Succeeded"), ("bad", "4", "Failed")] {
        let mut spec = test_server(json!({"args": [format!("--exit={code}")]}));
        spec["restartPolicy"] = json!("Never");
        namespace.apply(&pod(name, spec))?;
        let pod = namespace.until(&format!("pod/{name}"), phase, |pod| pod["status"]["phase"] == phase)?;
        ensure!(restarts(&pod) == 0, "{name} was restarted");
    }
    let mut spec = test_server(json!({"args": ["--exit=5"]}));
    spec["restartPolicy"] = json!("OnFailure");
    namespace.apply(&pod("again", spec))?;
    namespace.until("pod/again", "restarted", |pod| restarts(pod) >= 1)?;
    holds()
}

pub(super) fn logs_are_kept_per_container_run_and_can_be_followed(stack: &Stack) -> Proof {
    let namespace = stack.create_namespace("logs")?;
    let pod = namespace.ready_pod("writer", test_server(fast_probes()))?;
    ensure!(
        namespace.kubectl(&["logs", "writer"])? == "test-server starts\n",
        "the log is not what was written"
    );
    let followed = stack.follow(&["--namespace", "logs", "logs", "--follow", "writer"], || {
        ask("POST", &address(&pod)?, "/health?unhealthy=true").map(drop)
    })?;
    ensure!(
        followed == "test-server starts\ntest-server received SIGTERM\n",
        "followed: {followed:?}"
    );
    namespace.until("pod/writer", "restarted", |pod| restarts(pod) == 1 && is_ready(pod))?;
    let previous = namespace.kubectl(&["logs", "--previous", "--tail=1", "writer"])?;
    ensure!(previous == "test-server received SIGTERM\n", "previous: {previous:?}");
    ensure!(
        namespace.kubectl(&["logs", "writer"])? == "test-server starts\n",
        "runs are kept apart"
    );
    ensure!(
        namespace.kubectl(&["logs", "--timestamps", "writer"]).is_err(),
        "times are refused"
    );
    holds()
}

pub(super) fn a_container_that_ignores_sigterm_is_killed_after_its_grace_period(stack: &Stack) -> Proof {
    let namespace = stack.create_namespace("grace")?;
    namespace.ready_pod(
        "deaf",
        json!({"terminationGracePeriodSeconds": 2,
        "containers": [{"name": "deaf", "image": "example.org/suite/test-server:v1", "command": ["sleep", "1000"]}]}),
    )?;
    let watch = Stopwatch::start();
    namespace.kubectl(&["delete", "pod", "deaf", "--timeout=30s"])?;
    let took = watch.elapsed();
    ensure!(
        took >= Duration::from_secs(2),
        "killed after {took:?}, before its grace period was over"
    );
    Ok(format!("deleted after {:.1} s of 2 s grace", took.as_secs_f64()))
}

pub(super) fn a_removed_pod_leaves_nothing(stack: &Stack) -> Proof {
    let namespace = stack.create_namespace("removal")?;
    let pod = namespace.ready_pod("guest", test_server(json!({})))?;
    let uid = pod["metadata"]["uid"].as_str().context("a Pod without uid")?;
    let folder = stack.places.state_file("pods").join(uid);
    ensure!(folder.is_dir(), "{} is not there while the Pod runs", folder.display());
    let host = address(&pod)?
        .rsplit('.')
        .next()
        .map(|host| format!("pod{host}"))
        .unwrap_or_default();
    let veth = || stack.run("ip", &["link", "show", &host], None);
    veth().context("the Pod's cable")?;
    let id = pod["status"]["containerStatuses"][0]["containerID"]
        .as_str()
        .unwrap_or_default();
    let process = id
        .strip_prefix("process://")
        .context("no process in the container's id")?
        .to_owned();
    let alive = || stack.run("kill", &["-0", &process], None);
    alive().context("the container's process")?;
    namespace.kubectl(&["delete", "pod", "guest", "--timeout=30s"])?;
    ensure!(alive().is_err(), "process {process} is still there");
    ensure!(!folder.exists(), "{} is still there", folder.display());
    until(TIMEOUT, "the end of the Pod's cable", || {
        Ok(veth().is_err().then_some(()))
    })?;
    ensure!(
        namespace.kubectl(&["get", "pod", "guest"]).is_err(),
        "the Pod is still there"
    );
    holds()
}
