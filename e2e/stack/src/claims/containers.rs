//! Claims about single Pods: what a container sees, how it is probed, restarted, logged and removed.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::world::{PATIENCE, World, about, address, ask, condition, file, is_ready, lively, merge, pod, witness};
use crate::life;
use crate::namespaces::is_root;
use crate::wait::{Stopwatch, until};

type Proof = anyhow::Result<String>;

fn holds() -> Proof {
    Ok(String::new())
}

fn waiting(pod: &Value) -> (&str, &str) {
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

pub(super) fn a_pod_without_binary_says_so_and_starts_when_there_is_one(world: &World) -> Proof {
    let room = world.room("images")?;
    room.apply(&pod(
        "late",
        json!({"containers": [{"name": "late", "image": "example.org/suite/late:v1"}]}),
    ))?;
    let told = |pod: &Value| waiting(pod) == ("NoBinaryForImage", "no binary for image example.org/suite/late:v1");
    room.until("pod/late", "without binary", told)?;
    room.event("Failed", "no binary for image")?;
    life::set_image(
        &world.places,
        "late",
        &std::env::current_exe()?.with_file_name("witness"),
    )?;
    room.until("pod/late", "ready", is_ready)?;
    holds()
}

pub(super) fn a_container_gets_the_arguments_and_variables_of_its_manifest(world: &World) -> Proof {
    let room = world.room("variables")?;
    room.apply(
        &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "p"}}),
    )?;
    room.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"MODE": "fast"}}))?;
    let spec = witness(json!({
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
    let pod = room.ready_pod("teller", spec)?;
    let said = about(&pod)?;
    ensure!(
        said["arguments"] == json!(["/manager", "--", "--name=teller", "$(WHO)"]),
        "arguments {}",
        said["arguments"]
    );
    ensure!(said["folder"] == "/work" && said["hostname"] == "teller", "{said}");
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
            said["variables"][name] == value,
            "{name} is {}",
            said["variables"][name]
        );
    }
    ensure!(
        said["variables"]["ABSENT"].is_null() && said["variables"]["PWD"].is_null() && said["variables"]["HOME"] == "/",
        "{said}"
    );
    holds()
}

pub(super) fn a_container_runs_as_the_user_of_its_manifest(world: &World) -> Proof {
    let room = world.room("users")?;
    let mut spec = witness(json!({"securityContext": {
        "runAsUser": 65532, "runAsGroup": 65533, "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}}));
    let said = about(&room.ready_pod("plain", spec.clone())?)?;
    ensure!(
        said["user"] == "65532" && said["group"] == "65533" && said["no_new_privileges"] == "1",
        "{said}"
    );
    ensure!(said["capabilities"] == "0000000000000000", "{said}");
    spec["securityContext"] = json!({"fsGroup": 2000});
    room.apply(&pod("grouped", spec))?;
    if is_alone(world)? {
        room.until("pod/grouped", "refused", |pod| waiting(pod).0 == "Refused")?;
        room.event("Refused", "fsGroup")?;
        return Ok("as an ordinary user: one user, groups are refused".to_owned());
    }
    let said = about(&room.until("pod/grouped", "ready", is_ready)?)?;
    ensure!(said["groups"] == "2000", "{said}");
    holds()
}

/// Whether the stack's namespace has a single user.
fn is_alone(_: &World) -> anyhow::Result<bool> {
    let map = std::fs::read_to_string("/proc/self/uid_map")?;
    Ok(!is_root() || map.split_whitespace().nth(2) == Some("1"))
}

pub(super) fn a_read_only_root_takes_no_file(world: &World) -> Proof {
    let room = world.room("read-only")?;
    let mut spec = witness(json!({"securityContext": {"readOnlyRootFilesystem": true},
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]}));
    spec["volumes"] = json!([{"name": "tmp", "emptyDir": {}}]);
    let sealed = address(&room.ready_pod("sealed", spec)?)?;
    ensure!(
        ask("POST", &sealed, "/file?path=/etc/new").is_err(),
        "a read-only root was written to"
    );
    ask("POST", &sealed, "/file?path=/tmp/new").context("a volume in it takes files")?;
    let open = address(&room.ready_pod("open", witness(json!({})))?)?;
    ask("POST", &open, "/file?path=/new").context("another root takes files")?;
    ensure!(
        ask("POST", &open, "/file?path=/usr/new").is_err(),
        "the machine was written to"
    );
    holds()
}

pub(super) fn a_container_sees_neither_other_processes_nor_other_networks(world: &World) -> Proof {
    let room = world.room("alone")?;
    let one = room.ready_pod("one", witness(json!({})))?;
    let other = room.ready_pod("other", witness(json!({})))?;
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

pub(super) fn what_the_kubelet_cannot_do_is_refused_by_event_and_status(world: &World) -> Proof {
    let room = world.room("refusals")?;
    let mut spec = witness(json!({"securityContext": {"privileged": true}}));
    spec["initContainers"] = json!([{"name": "first", "image": "example.org/suite/witness:v1"}]);
    spec["hostNetwork"] = json!(true);
    room.apply(&pod("demanding", spec))?;
    let refused = |pod: &Value| {
        let (reason, message) = waiting(pod);
        reason == "Refused"
            && ["init containers", "hostNetwork", "privileged"]
                .iter()
                .all(|what| message.contains(what))
    };
    let found = room.until("pod/demanding", "refused", refused)?;
    ensure!(
        condition(&found, "ContainersReady") == Some("False"),
        "{}",
        found["status"]
    );
    room.event("Refused", "init containers")?;
    room.kubectl(&["delete", "pod", "demanding", "--timeout=30s"])?;
    holds()
}

pub(super) fn an_unready_pod_leaves_its_service_and_comes_back(world: &World) -> Proof {
    let room = world.room("readiness")?;
    let probe = json!({"httpGet": {"port": "web"}});
    let spec = witness(json!({"readinessProbe": probe, "ports": [{"name": "web", "containerPort": 8080}]}));
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 443, "targetPort": "web"}]}});
    room.apply(&service)?;
    let pod = room.ready_pod("web", spec)?;
    let serves = |list: &Value, ready: bool| {
        let endpoint = &list["items"][0]["endpoints"][0];
        endpoint["addresses"][0] == pod["status"]["podIP"] && endpoint["conditions"]["ready"] == ready
    };
    let list = room.until("endpointslices", "ready", |list| serves(list, true))?;
    ensure!(
        list["items"][0]["ports"][0]["port"] == 8080,
        "the port's name is resolved: {list}"
    );
    ask("POST", &address(&pod)?, "/mood?busy=true")?;
    room.until("pod/web", "not ready", |pod| !is_ready(pod))?;
    room.until("endpointslices", "not ready", |list| serves(list, false))?;
    room.event("Unhealthy", "Readiness probe failed: HTTP probe failed with status 503")?;
    ask("POST", &address(&pod)?, "/mood?busy=false")?;
    let again = room.until("pod/web", "ready", is_ready)?;
    ensure!(restarts(&again) == 0, "readiness restarts nothing");
    holds()
}

pub(super) fn a_failed_liveness_probe_restarts_the_container(world: &World) -> Proof {
    let room = world.room("liveness")?;
    let pod = room.ready_pod("patient", witness(lively()))?;
    ask("POST", &address(&pod)?, "/mood?sick=true")?;
    let again = room.until("pod/patient", "restarted", |pod| restarts(pod) == 1 && is_ready(pod))?;
    ensure!(
        again["status"]["podIP"] == pod["status"]["podIP"],
        "a restart keeps the address"
    );
    let last = &again["status"]["containerStatuses"][0]["lastState"]["terminated"];
    ensure!(last["exitCode"] == 0, "the witness ends in order when asked: {last}");
    room.event("Unhealthy", "Liveness probe failed")?;
    holds()
}

pub(super) fn exec_and_tcp_and_startup_probes_are_asked(world: &World) -> Proof {
    let room = world.room("probes")?;
    let bad = |probe: Value| {
        let mut spec = witness(json!({}));
        spec["containers"][0]["readinessProbe"] = probe;
        spec
    };
    let mut good = bad(json!({"tcpSocket": {"port": 8080}, "periodSeconds": 1}));
    merge(
        &mut good["containers"][0],
        json!({"startupProbe": {"exec": {"command": ["test", "-e", "/entrypoint"]}, "timeoutSeconds": 10}}),
    );
    room.ready_pod("good", good)?;
    room.apply(&pod(
        "closed",
        bad(json!({"tcpSocket": {"port": 9}, "periodSeconds": 1, "failureThreshold": 1})),
    ))?;
    room.apply(&pod(
        "absent",
        bad(json!({"exec": {"command": ["test", "-e", "/none"]}, "timeoutSeconds": 10, "periodSeconds": 1, "failureThreshold": 1})),
    ))?;
    room.event("Unhealthy", "connect to")?;
    room.event("Unhealthy", "command exited with 1")?;
    for name in ["pod/closed", "pod/absent"] {
        ensure!(!is_ready(&room.get(name)?), "{name} is ready");
    }
    holds()
}

pub(super) fn a_crashing_container_is_restarted_with_back_off(world: &World) -> Proof {
    let room = world.room("crashes")?;
    room.apply(&pod("crasher", witness(json!({"args": ["--exit=3"]}))))?;
    let looping = |pod: &Value| waiting(pod).0 == "CrashLoopBackOff" && restarts(pod) >= 2;
    let pod = room.until("pod/crasher", "in back-off", looping)?;
    let last = &pod["status"]["containerStatuses"][0]["lastState"]["terminated"];
    ensure!(last["exitCode"] == 3 && last["reason"] == "Error", "{last}");
    room.event("BackOff", "back-off")?;
    holds()
}

pub(super) fn a_finished_pod_is_not_restarted(world: &World) -> Proof {
    let room = world.room("endings")?;
    for (name, code, phase) in [("good", "0", "Succeeded"), ("bad", "4", "Failed")] {
        let mut spec = witness(json!({"args": [format!("--exit={code}")]}));
        spec["restartPolicy"] = json!("Never");
        room.apply(&pod(name, spec))?;
        let pod = room.until(&format!("pod/{name}"), phase, |pod| pod["status"]["phase"] == phase)?;
        ensure!(restarts(&pod) == 0, "{name} was restarted");
    }
    let mut spec = witness(json!({"args": ["--exit=5"]}));
    spec["restartPolicy"] = json!("OnFailure");
    room.apply(&pod("again", spec))?;
    room.until("pod/again", "restarted", |pod| restarts(pod) >= 1)?;
    holds()
}

pub(super) fn logs_are_kept_per_run_and_can_be_followed(world: &World) -> Proof {
    let room = world.room("logs")?;
    let pod = room.ready_pod("writer", witness(lively()))?;
    ensure!(
        room.kubectl(&["logs", "writer"])? == "witness starts\n",
        "the log is not what was written"
    );
    let followed = world.follow(&["--namespace", "logs", "logs", "--follow", "writer"], || {
        ask("POST", &address(&pod)?, "/mood?sick=true").map(drop)
    })?;
    ensure!(
        followed == "witness starts\nwitness was asked to end\n",
        "followed: {followed:?}"
    );
    room.until("pod/writer", "restarted", |pod| restarts(pod) == 1 && is_ready(pod))?;
    let previous = room.kubectl(&["logs", "--previous", "--tail=1", "writer"])?;
    ensure!(previous == "witness was asked to end\n", "previous: {previous:?}");
    ensure!(
        room.kubectl(&["logs", "writer"])? == "witness starts\n",
        "runs are kept apart"
    );
    ensure!(
        room.kubectl(&["logs", "--timestamps", "writer"]).is_err(),
        "times are refused"
    );
    holds()
}

pub(super) fn a_deaf_container_is_killed_after_its_grace_period(world: &World) -> Proof {
    let room = world.room("grace")?;
    room.ready_pod(
        "deaf",
        json!({"terminationGracePeriodSeconds": 2,
        "containers": [{"name": "deaf", "image": "example.org/suite/witness:v1", "command": ["sleep", "1000"]}]}),
    )?;
    let watch = Stopwatch::start();
    room.kubectl(&["delete", "pod", "deaf", "--timeout=30s"])?;
    let took = watch.elapsed();
    ensure!(
        took >= Duration::from_secs(2),
        "killed after {took:?}, before its grace period was over"
    );
    Ok(format!("gone after {:.1} s of 2 s grace", took.as_secs_f64()))
}

pub(super) fn a_removed_pod_leaves_nothing(world: &World) -> Proof {
    let room = world.room("removal")?;
    let pod = room.ready_pod("guest", witness(json!({})))?;
    let uid = pod["metadata"]["uid"].as_str().context("a Pod without uid")?;
    let folder = world.places.state_file("pods").join(uid);
    ensure!(folder.is_dir(), "{} is not there while the Pod runs", folder.display());
    let host = address(&pod)?
        .rsplit('.')
        .next()
        .map(|host| format!("pod{host}"))
        .unwrap_or_default();
    let cable = || world.run("ip", &["link", "show", &host], None);
    cable().context("the Pod's cable")?;
    let id = pod["status"]["containerStatuses"][0]["containerID"]
        .as_str()
        .unwrap_or_default();
    let process = id
        .strip_prefix("process://")
        .context("no process in the container's id")?
        .to_owned();
    let alive = || world.run("kill", &["-0", &process], None);
    alive().context("the container's process")?;
    room.kubectl(&["delete", "pod", "guest", "--timeout=30s"])?;
    ensure!(alive().is_err(), "process {process} is still there");
    ensure!(!folder.exists(), "{} is still there", folder.display());
    until(PATIENCE, "the end of the Pod's cable", || {
        Ok(cable().is_err().then_some(()))
    })?;
    ensure!(
        room.kubectl(&["get", "pod", "guest"]).is_err(),
        "the Pod is still there"
    );
    holds()
}
