//! Claims about volumes and tokens.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::stack::{Stack, TIMEOUT, address, ask, fast_probes, file, is_ready, test_server};
use crate::claim::Proof;
use crate::pki;
use crate::wait::{Stopwatch, until};

fn secret(text: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"key": text, "other": "o"}})
}

pub(super) fn each_kind_of_volume_has_the_content_of_its_source(stack: &Stack) -> Proof {
    let namespace = stack.create_namespace("volumes")?;
    namespace.apply(&secret("one"))?;
    namespace.apply(
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"},
        "data": {"text": "t"}, "binaryData": {"binary": "Yg=="}}),
    )?;
    let mount = |name: &str| json!({"name": name, "mountPath": format!("/v/{name}")});
    let names = ["secret", "config", "projected", "downward", "scratch"];
    let mut mounts: Vec<Value> = names.iter().map(|name| mount(name)).collect();
    mounts.push(json!({"name": "config", "mountPath": "/single/file", "subPath": "text", "readOnly": true}));
    let mut spec = test_server(json!({"volumeMounts": mounts}));
    spec["volumes"] = json!([
        {"name": "secret", "secret": {"secretName": "s", "items": [{"key": "key", "path": "deep/key"}]}},
        {"name": "config", "configMap": {"name": "c"}},
        {"name": "projected", "projected": {"sources": [{"secret": {"name": "s"}}, {"configMap": {"name": "none", "optional": true}}]}},
        {"name": "downward", "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"name": "scratch", "emptyDir": {}},
    ]);
    let pod = namespace.ready_pod("reader", spec)?;
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
        "a key that is not in the items is there"
    );
    ask("POST", &address(&pod)?, "/file?path=/v/scratch/new")?;
    Ok(String::new())
}

pub(super) fn volumes_follow_their_sources(stack: &Stack) -> Proof {
    let namespace = stack.create_namespace("refresh")?;
    namespace.apply(&secret("old"))?;
    let mut spec = test_server(json!({"volumeMounts": [{"name": "s", "mountPath": "/s"}]}));
    spec["volumes"] = json!([{"name": "s", "secret": {"secretName": "s"}}]);
    let pod = namespace.ready_pod("reader", spec)?;
    ensure!(file(&pod, "/s/key")? == "old", "the first content");
    let watch = Stopwatch::start();
    namespace.apply(&secret("new"))?;
    until(TIMEOUT, "the new content", || {
        Ok((file(&pod, "/s/key")? == "new").then_some(()))
    })?;
    Ok(format!("after {:.1} s", watch.elapsed().as_secs_f64()))
}

pub(super) fn containers_share_an_empty_dir_that_survives_restarts(stack: &Stack) -> Proof {
    let namespace = stack.create_namespace("scratch")?;
    let mounts = json!([{"name": "shared", "mountPath": "/shared"}]);
    let mut spec = test_server(fast_probes());
    spec["containers"][0]["volumeMounts"] = mounts.clone();
    let second = json!({"name": "second", "image": "example.org/suite/test-server:v1", "volumeMounts": mounts,
        "command": ["/bin/sh", "-c", "echo second >/shared/second; exec sleep 1000"]});
    spec["containers"].as_array_mut().context("no containers")?.push(second);
    spec["volumes"] = json!([{"name": "shared", "emptyDir": {}}]);
    let pod = namespace.ready_pod("pair", spec)?;
    until(TIMEOUT, "the other container's file", || {
        Ok((file(&pod, "/shared/second")? == "second\n").then_some(()))
    })?;
    ask("POST", &address(&pod)?, "/file?path=/shared/own")?;
    ask("POST", &address(&pod)?, "/health?unhealthy=true")?;
    let restarted = |pod: &Value| {
        let statuses = pod["status"]["containerStatuses"].as_array();
        statuses.is_some_and(|statuses| statuses.iter().any(|status| status["restartCount"] == 1)) && is_ready(pod)
    };
    let again = namespace.until("pod/pair", "restarted", restarted)?;
    file(&again, "/shared/own").context("the file survives the restart")?;
    Ok(String::new())
}

pub(super) fn a_token_belongs_to_the_service_account_and_is_renewed(stack: &Stack) -> Proof {
    const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
    let namespace = stack.create_namespace("tokens")?;
    namespace.kubectl(&["create", "serviceaccount", "robot"])?;
    let mut spec = test_server(json!({}));
    spec["serviceAccountName"] = json!("robot");
    let pod = namespace.ready_pod("bearer", spec)?;
    let first = file(&pod, TOKEN)?;
    ensure!(
        who(stack, &first)? == "system:serviceaccount:tokens:robot",
        "another account's token"
    );
    let watch = Stopwatch::start();
    let second = until(TIMEOUT, "another token", || {
        Ok(Some(file(&pod, TOKEN)?).filter(|token| *token != first))
    })?;
    let renewed = watch.elapsed();
    ensure!(
        who(stack, &second)? == "system:serviceaccount:tokens:robot",
        "another account's second token"
    );
    namespace.kubectl(&["delete", "pod", "bearer", "--timeout=30s"])?;
    // The API server caches valid tokens for some seconds.
    until(TIMEOUT, "the token to become invalid", || {
        Ok(who(stack, &second).is_err().then_some(()))
    })?;
    Ok(format!("renewed after {:.0} s", renewed.as_secs_f64()))
}

/// The user of a token according to the API server.
fn who(stack: &Stack, token: &str) -> anyhow::Result<String> {
    let server = format!("--server=https://{}:6443", stack.places.node_address());
    let authority = format!(
        "--certificate-authority={}",
        stack.places.certificate(pki::AUTHORITY).display()
    );
    let token = format!("--token={token}");
    // Without a kubeconfig, whose certificate would take precedence over the token.
    let arguments = [
        "--kubeconfig=/dev/null",
        &server,
        &authority,
        &token,
        "auth",
        "whoami",
        "--output=json",
    ];
    let output = stack.output("kubectl", &arguments, None)?;
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
