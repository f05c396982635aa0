//! Access to a cluster: kubectl, and HTTP to the test server. A wait ends with a state or an error, never after a fixed time.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use crate::instance::environment;
use crate::places::Places;
use crate::wait::until;

/// The timeout of operations that take seconds; a loaded machine needs several times the usual time.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// A management cluster. The suite runs inside its network, or in a connected one.
pub(crate) struct Stack {
    pub(crate) places: Places,
    pub(crate) upstream: Option<PathBuf>,
}

/// A namespace that is deleted, without waiting, at the end of its claim.
pub(crate) struct TestNamespace<'a> {
    pub(crate) stack: &'a Stack,
    pub(crate) name: String,
}

impl Stack {
    pub(crate) fn new(places: &Places, upstream: Option<PathBuf>) -> Self {
        Self {
            places: places.clone(),
            upstream,
        }
    }

    pub(crate) fn create_namespace(&self, name: &str) -> anyhow::Result<TestNamespace<'_>> {
        self.kubectl(&["create", "namespace", name])?;
        let namespace = TestNamespace {
            stack: self,
            name: name.to_owned(),
        };
        // Pods are rejected until the ServiceAccount exists.
        until(TIMEOUT, "the default ServiceAccount", || {
            namespace.get("serviceaccount/default").map(Some)
        })?;
        Ok(namespace)
    }

    pub(crate) fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<String> {
        self.run("kubectl", arguments, None)
    }

    /// kubectl with these objects as its input.
    pub(crate) fn send(&self, arguments: &[&str], items: &[Value]) -> anyhow::Result<()> {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
        let arguments = [arguments, &["--filename", "-"]].concat();
        self.run("kubectl", &arguments, Some(&list)).map(drop)
    }

    pub(crate) fn run(&self, program: &str, arguments: &[&str], input: Option<&str>) -> anyhow::Result<String> {
        let output = self.output(program, arguments, input)?;
        if !output.status.success() {
            let output = String::from_utf8_lossy(&output.stderr);
            bail!("{program} {}: {}", arguments.join(" "), output.trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    pub(crate) fn output(&self, program: &str, arguments: &[&str], input: Option<&str>) -> anyhow::Result<Output> {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(environment(&self.places))
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child
            .as_mut()
            .map_err(|error| anyhow::anyhow!("running {program}: {error}"))?;
        if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
            stdin.write_all(input.as_bytes())?;
        }
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        std::thread::scope(|scope| {
            // Concurrently: a child that fills one pipe waits for its reader.
            scope.spawn(|| stderr.map(|mut stderr| stderr.read_to_end(&mut err)));
            stdout.map(|mut stdout| stdout.read_to_end(&mut out))
        });
        Ok(Output {
            status: child.wait()?,
            stdout: out,
            stderr: err,
        })
    }

    /// The output of a kubectl that runs until `after`, which starts after the first line.
    pub(crate) fn follow(
        &self,
        arguments: &[&str],
        after: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<String> {
        let mut command = Command::new("timeout");
        command
            .arg(TIMEOUT.as_secs().to_string())
            .arg("kubectl")
            .args(arguments);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("running kubectl")?;
        let mut printed = String::new();
        let mut stdout = BufReader::new(child.stdout.take().context("kubectl has no output")?);
        let done = stdout
            .read_line(&mut printed)
            .map_err(anyhow::Error::from)
            .and_then(|_| after());
        stdout.read_to_string(&mut printed)?;
        let status = child.wait()?;
        done?;
        ensure!(
            status.success(),
            "kubectl {}: {status} after {printed:?}",
            arguments.join(" ")
        );
        Ok(printed)
    }
}

impl TestNamespace<'_> {
    /// Keeps the namespace for later claims.
    pub(crate) fn keep(self) {
        std::mem::forget(self);
    }

    pub(crate) fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let mut all = vec!["--namespace", self.name.as_str()];
        all.extend(arguments);
        self.stack.kubectl(&all)
    }

    pub(crate) fn apply(&self, object: &Value) -> anyhow::Result<()> {
        let arguments = ["--namespace", &self.name, "apply", "--filename", "-"];
        self.stack
            .run("kubectl", &arguments, Some(&object.to_string()))
            .map(drop)
    }

    /// Reads `pod/web` or `endpointslices`.
    pub(crate) fn get(&self, what: &str) -> anyhow::Result<Value> {
        Ok(serde_json::from_str(&self.kubectl(&["get", what, "--output=json"])?)?)
    }

    /// The Pods of an app, except those being deleted.
    pub(crate) fn pods(&self, app: &str) -> anyhow::Result<Vec<Value>> {
        let list = self.kubectl(&["get", "pods", "--selector", &format!("app={app}"), "--output=json"])?;
        let list: Value = serde_json::from_str(&list)?;
        let pods = list["items"].as_array().cloned().unwrap_or_default();
        Ok(pods
            .into_iter()
            .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
            .collect())
    }

    /// Waits until a condition on the object holds, and returns it.
    pub(crate) fn until(&self, what: &str, wanted: &str, is: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        let mut last = Value::Null;
        let found = until(TIMEOUT, &format!("{what} {wanted}"), || {
            last = self.get(what)?;
            Ok(is(&last).then(|| last.clone()))
        });
        found.with_context(|| format!("its status was {}", last["status"]))
    }

    /// Creates a Pod and waits until it is ready.
    pub(crate) fn ready_pod(&self, name: &str, spec: Value) -> anyhow::Result<Value> {
        self.apply(&pod(name, spec))?;
        self.until(&format!("pod/{name}"), "ready", is_ready)
    }

    /// Waits for an Event with this reason and text.
    pub(crate) fn event(&self, reason: &str, text: &str) -> anyhow::Result<()> {
        until(TIMEOUT, &format!("Event {reason} with {text:?}"), || {
            let events = self.get("events")?;
            let has = |event: &Value| {
                event["reason"] == reason && event["message"].as_str().is_some_and(|note| note.contains(text))
            };
            Ok(events["items"]
                .as_array()
                .is_some_and(|events| events.iter().any(has))
                .then_some(()))
        })
    }
}

impl Drop for TestNamespace<'_> {
    fn drop(&mut self) {
        // The stack is stopped at the end of the suite: this keeps it small until then.
        if let Err(error) = self.stack.kubectl(&["delete", "namespace", &self.name, "--wait=false"]) {
            eprintln!("namespace {}: {error:#}", self.name);
        }
    }
}

pub(crate) const TEST_SERVER_IMAGE: &str = "example.org/suite/test-server:v1";

/// A Pod with the label `app: NAME`.
pub(crate) fn pod(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": spec})
}

/// The spec of a Pod with one test server and a readiness probe, merged with `change`.
pub(crate) fn test_server(change: Value) -> Value {
    let probe = json!({"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 1, "failureThreshold": 1});
    let mut container = json!({"name": "test-server", "image": TEST_SERVER_IMAGE, "readinessProbe": probe});
    merge(&mut container, change);
    json!({"containers": [container], "terminationGracePeriodSeconds": 5})
}

/// Merges `change` into the target, like a merge patch without deletions.
pub(crate) fn merge(target: &mut Value, change: Value) {
    match (target, change) {
        (Value::Object(target), Value::Object(change)) => {
            for (key, value) in change {
                merge(target.entry(key).or_insert(Value::Null), value);
            }
        }
        (target, change) => *target = change,
    }
}

/// Probes that restart the test server soon after it becomes unhealthy, and not while it starts.
pub(crate) fn fast_probes() -> Value {
    let probe = |failures: u32| json!({"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 1, "failureThreshold": failures});
    json!({"startupProbe": probe(30), "livenessProbe": probe(1)})
}

pub(crate) fn is_ready(object: &Value) -> bool {
    condition(object, "Ready") == Some("True")
}

pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind)?["status"].as_str()
}

pub(crate) fn address(pod: &Value) -> anyhow::Result<String> {
    pod["status"]["podIP"]
        .as_str()
        .map(str::to_owned)
        .context("the Pod has no address")
}

pub(crate) fn about(pod: &Value) -> anyhow::Result<Value> {
    Ok(serde_json::from_str(&ask("GET", &address(pod)?, "/self")?)?)
}

pub(crate) fn file(pod: &Value, path: &str) -> anyhow::Result<String> {
    ask("GET", &address(pod)?, &format!("/file?path={path}"))
}

/// Sends an HTTP request to port 8080; fails unless the status is 200.
pub(crate) fn ask(method: &str, host: &str, path: &str) -> anyhow::Result<String> {
    const LIMIT: Duration = Duration::from_secs(5);
    let address: SocketAddr = format!("{host}:8080")
        .parse()
        .with_context(|| format!("{host} is not an IP address"))?;
    let mut stream = TcpStream::connect_timeout(&address, LIMIT).with_context(|| format!("connecting to {address}"))?;
    stream.set_read_timeout(Some(LIMIT))?;
    let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("the response is truncated")?;
    ensure!(
        head.starts_with("HTTP/1.1 200"),
        "{method} {path}: {} {body}",
        head.lines().next().unwrap_or_default()
    );
    Ok(body.to_owned())
}
