//! Claims about volumes and tokens.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::world::{PATIENCE, World, address, ask, file, is_ready, lively, witness};
use crate::pki;
use crate::wait::{Stopwatch, until};

type Proof = anyhow::Result<String>;

fn secret(text: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"key": text, "other": "o"}})
}

pub(super) fn every_kind_of_volume_holds_what_it_should(world: &World) -> Proof {
    let room = world.room("volumes")?;
    room.apply(&secret("one"))?;
    room.apply(
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"},
        "data": {"text": "t"}, "binaryData": {"binary": "Yg=="}}),
    )?;
    let mount = |name: &str| json!({"name": name, "mountPath": format!("/v/{name}")});
    let names = ["secret", "config", "projected", "downward", "scratch"];
    let mut mounts: Vec<Value> = names.iter().map(|name| mount(name)).collect();
    mounts.push(json!({"name": "config", "mountPath": "/single/file", "subPath": "text", "readOnly": true}));
    let mut spec = witness(json!({"volumeMounts": mounts}));
    spec["volumes"] = json!([
        {"name": "secret", "secret": {"secretName": "s", "items": [{"key": "key", "path": "deep/key"}]}},
        {"name": "config", "configMap": {"name": "c"}},
        {"name": "projected", "projected": {"sources": [{"secret": {"name": "s"}}, {"configMap": {"name": "none", "optional": true}}]}},
        {"name": "downward", "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"name": "scratch", "emptyDir": {}},
    ]);
    let pod = room.ready_pod("reader", spec)?;
    let expected = [
        ("/v/secret/deep/key", "one"),
        ("/v/config/text", "t"),
        ("/v/config/binary", "b"),
        ("/single/file", "t"),
        ("/v/projected/other", "o"),
        ("/v/downward/labels", "app=\"reader\""),
        ("/var/run/secrets/kubernetes.io/serviceaccount/namespace", "volumes"),
    ];
    for (path, text) in expected {
        let found = file(&pod, path)?;
        ensure!(found == text, "{path} holds {found:?}");
    }
    ensure!(
        file(&pod, "/v/secret/other").is_err(),
        "a key that was not asked for is there"
    );
    ask("POST", &address(&pod)?, "/file?path=/v/scratch/new")?;
    Ok(String::new())
}

pub(super) fn volumes_follow_their_sources(world: &World) -> Proof {
    let room = world.room("refresh")?;
    room.apply(&secret("old"))?;
    let mut spec = witness(json!({"volumeMounts": [{"name": "s", "mountPath": "/s"}]}));
    spec["volumes"] = json!([{"name": "s", "secret": {"secretName": "s"}}]);
    let pod = room.ready_pod("reader", spec)?;
    ensure!(file(&pod, "/s/key")? == "old", "the first content");
    let watch = Stopwatch::start();
    room.apply(&secret("new"))?;
    until(PATIENCE, "the new content", || {
        Ok((file(&pod, "/s/key")? == "new").then_some(()))
    })?;
    Ok(format!("after {:.1} s", watch.elapsed().as_secs_f64()))
}

pub(super) fn containers_share_an_empty_folder_that_outlives_restarts(world: &World) -> Proof {
    let room = world.room("scratch")?;
    let mounts = json!([{"name": "shared", "mountPath": "/shared"}]);
    let mut spec = witness(lively());
    spec["containers"][0]["volumeMounts"] = mounts.clone();
    let second = json!({"name": "second", "image": "example.org/suite/witness:v1", "volumeMounts": mounts,
        "command": ["/bin/sh", "-c", "echo second >/shared/second; exec sleep 1000"]});
    spec["containers"].as_array_mut().context("no containers")?.push(second);
    spec["volumes"] = json!([{"name": "shared", "emptyDir": {}}]);
    let pod = room.ready_pod("pair", spec)?;
    until(PATIENCE, "the other container's file", || {
        Ok((file(&pod, "/shared/second")? == "second\n").then_some(()))
    })?;
    ask("POST", &address(&pod)?, "/file?path=/shared/own")?;
    ask("POST", &address(&pod)?, "/mood?sick=true")?;
    let restarted = |pod: &Value| {
        let statuses = pod["status"]["containerStatuses"].as_array();
        statuses.is_some_and(|statuses| statuses.iter().any(|status| status["restartCount"] == 1)) && is_ready(pod)
    };
    let again = room.until("pod/pair", "restarted", restarted)?;
    file(&again, "/shared/own").context("the file outlives the container")?;
    Ok(String::new())
}

pub(super) fn a_token_is_its_service_accounts_and_is_renewed(world: &World) -> Proof {
    const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
    let room = world.room("tokens")?;
    room.kubectl(&["create", "serviceaccount", "robot"])?;
    let mut spec = witness(json!({}));
    spec["serviceAccountName"] = json!("robot");
    let pod = room.ready_pod("bearer", spec)?;
    let first = file(&pod, TOKEN)?;
    ensure!(
        who(world, &first)? == "system:serviceaccount:tokens:robot",
        "another account's token"
    );
    let watch = Stopwatch::start();
    let second = until(PATIENCE, "another token", || {
        Ok(Some(file(&pod, TOKEN)?).filter(|token| *token != first))
    })?;
    let renewed = watch.elapsed();
    ensure!(
        who(world, &second)? == "system:serviceaccount:tokens:robot",
        "another account's second token"
    );
    room.kubectl(&["delete", "pod", "bearer", "--timeout=30s"])?;
    // The API server remembers good tokens for some seconds.
    until(PATIENCE, "the token to end with its Pod", || {
        Ok(who(world, &second).is_err().then_some(()))
    })?;
    Ok(format!("renewed after {:.0} s", renewed.as_secs_f64()))
}

/// The user that the API server takes the bearer for.
fn who(world: &World, token: &str) -> anyhow::Result<String> {
    let server = format!("--server=https://{}:6443", world.places.node_address());
    let authority = format!(
        "--certificate-authority={}",
        world.places.certificate(pki::AUTHORITY).display()
    );
    let token = format!("--token={token}");
    // No kubeconfig: its certificate would win over the token.
    let arguments = [
        "--kubeconfig=/dev/null",
        &server,
        &authority,
        &token,
        "auth",
        "whoami",
        "--output=json",
    ];
    let output = world.output("kubectl", &arguments, None)?;
    ensure!(
        output.status.success(),
        "kubectl auth whoami: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    answer["status"]["userInfo"]["username"]
        .as_str()
        .map(str::to_owned)
        .context("no user name")
}
