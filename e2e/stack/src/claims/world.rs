//! The cluster as the suite sees it: kubectl, and HTTP to the witness. Waits end with a state or an error, never a time.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use crate::life::surroundings;
use crate::places::Places;
use crate::wait::until;

/// Longest wait for anything that takes seconds; a loaded machine needs several times the usual.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A management cluster. The suite runs inside its stack, or in one that reaches it.
pub(crate) struct World {
    pub(crate) places: Places,
    pub(crate) upstream: Option<PathBuf>,
}

/// A namespace that is deleted, without waiting, at the end of its claim.
pub(crate) struct Room<'a> {
    pub(crate) world: &'a World,
    pub(crate) name: String,
}

impl World {
    pub(crate) fn new(places: &Places, upstream: Option<PathBuf>) -> Self {
        Self {
            places: places.clone(),
            upstream,
        }
    }

    pub(crate) fn room(&self, name: &str) -> anyhow::Result<Room<'_>> {
        self.kubectl(&["create", "namespace", name])?;
        let room = Room {
            world: self,
            name: name.to_owned(),
        };
        // Pods are refused until the account is there.
        until(PATIENCE, "the default ServiceAccount", || {
            room.get("serviceaccount/default").map(Some)
        })?;
        Ok(room)
    }

    pub(crate) fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<String> {
        self.run("kubectl", arguments, None)
    }

    pub(crate) fn run(&self, program: &str, arguments: &[&str], input: Option<&str>) -> anyhow::Result<String> {
        let output = self.output(program, arguments, input)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("{program} {}: {}", arguments.join(" "), said.trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    pub(crate) fn output(&self, program: &str, arguments: &[&str], input: Option<&str>) -> anyhow::Result<Output> {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(surroundings(&self.places))
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
            // Both at once: a child that fills one pipe waits for its reader.
            scope.spawn(|| stderr.map(|mut stderr| stderr.read_to_end(&mut err)));
            stdout.map(|mut stdout| stdout.read_to_end(&mut out))
        });
        Ok(Output {
            status: child.wait()?,
            stdout: out,
            stderr: err,
        })
    }

    /// What a kubectl that does not end by itself prints: `after` is done once it has printed its first line.
    pub(crate) fn follow(
        &self,
        arguments: &[&str],
        after: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<String> {
        let mut command = Command::new("timeout");
        command
            .arg(PATIENCE.as_secs().to_string())
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

impl Room<'_> {
    /// Leaves the namespace to the claims that follow.
    pub(crate) fn stays(self) {
        std::mem::forget(self);
    }

    pub(crate) fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let mut all = vec!["--namespace", self.name.as_str()];
        all.extend(arguments);
        self.world.kubectl(&all)
    }

    pub(crate) fn apply(&self, object: &Value) -> anyhow::Result<()> {
        let arguments = ["--namespace", &self.name, "apply", "--filename", "-"];
        self.world
            .run("kubectl", &arguments, Some(&object.to_string()))
            .map(drop)
    }

    /// Many objects at once; none of them may be there yet.
    pub(crate) fn create_all(&self, list: &Value) -> anyhow::Result<()> {
        let arguments = ["--namespace", &self.name, "create", "--filename", "-"];
        self.world.run("kubectl", &arguments, Some(&list.to_string())).map(drop)
    }

    /// `pod/web`, `endpointslices`: what the API server says.
    pub(crate) fn get(&self, what: &str) -> anyhow::Result<Value> {
        Ok(serde_json::from_str(&self.kubectl(&["get", what, "--output=json"])?)?)
    }

    /// Pods of an app, those that are being deleted left out.
    pub(crate) fn pods(&self, app: &str) -> anyhow::Result<Vec<Value>> {
        let list = self.kubectl(&["get", "pods", "--selector", &format!("app={app}"), "--output=json"])?;
        let list: Value = serde_json::from_str(&list)?;
        let pods = list["items"].as_array().cloned().unwrap_or_default();
        Ok(pods
            .into_iter()
            .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
            .collect())
    }

    /// Waits until the object is as wanted, and returns it.
    pub(crate) fn until(&self, what: &str, wanted: &str, is: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        let mut last = Value::Null;
        let found = until(PATIENCE, &format!("{what} {wanted}"), || {
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

    /// Waits for an Event with the reason whose note contains the text.
    pub(crate) fn event(&self, reason: &str, text: &str) -> anyhow::Result<()> {
        until(PATIENCE, &format!("Event {reason} with {text:?}"), || {
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

impl Drop for Room<'_> {
    fn drop(&mut self) {
        // The stack goes at the end of the suite: this only keeps it small meanwhile.
        if let Err(error) = self.world.kubectl(&["delete", "namespace", &self.name, "--wait=false"]) {
            eprintln!("namespace {}: {error:#}", self.name);
        }
    }
}

pub(crate) const WITNESS_IMAGE: &str = "example.org/suite/witness:v1";

/// A Pod of one label, `app: NAME`.
pub(crate) fn pod(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": spec})
}

/// The spec of a Pod with one witness that is ready when it serves, changed as the claim needs it.
pub(crate) fn witness(change: Value) -> Value {
    let probe = json!({"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 1, "failureThreshold": 1});
    let mut container = json!({"name": "witness", "image": WITNESS_IMAGE, "readinessProbe": probe});
    merge(&mut container, change);
    json!({"containers": [container], "terminationGracePeriodSeconds": 5})
}

/// Sets the members of `change`; objects are merged, all else is replaced.
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

/// Probes of a witness that is restarted soon after it is made sick, and not while it starts.
pub(crate) fn lively() -> Value {
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

/// What the witness says of itself.
pub(crate) fn about(pod: &Value) -> anyhow::Result<Value> {
    Ok(serde_json::from_str(&ask("GET", &address(pod)?, "/self")?)?)
}

pub(crate) fn file(pod: &Value, path: &str) -> anyhow::Result<String> {
    ask("GET", &address(pod)?, &format!("/file?path={path}"))
}

/// One HTTP request to port 8080; an error unless the answer is 200.
pub(crate) fn ask(method: &str, host: &str, path: &str) -> anyhow::Result<String> {
    const LIMIT: Duration = Duration::from_secs(5);
    let address: SocketAddr = format!("{host}:8080")
        .parse()
        .with_context(|| format!("{host} is no address"))?;
    let mut stream = TcpStream::connect_timeout(&address, LIMIT).with_context(|| format!("connecting to {address}"))?;
    stream.set_read_timeout(Some(LIMIT))?;
    let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("the answer is cut short")?;
    ensure!(
        head.starts_with("HTTP/1.1 200"),
        "{method} {path}: {} {body}",
        head.lines().next().unwrap_or_default()
    );
    Ok(body.to_owned())
}
