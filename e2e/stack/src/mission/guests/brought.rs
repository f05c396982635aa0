//! The agents on hosts that are brought along: what such a host is to run, and its clearing when its machine goes.

use std::collections::BTreeMap;

use anyhow::Context;
use k8s_openapi::ByteString;
use metal3_sim_capi::byoh;
use metal3_sim_capi::view::Object;
use serde_json::Value;

use crate::claims::world::World;
use crate::mission::drive::{self, Boot};

const RESOURCE: &str = "byohosts.infrastructure.cluster.x-k8s.io";

/// A host by namespace and name.
pub(in crate::mission) type Host = (String, String);

/// The hosts that are to run something: the Secret with it. And those whose machine goes.
pub(in crate::mission) fn look(world: &World) -> anyhow::Result<(BTreeMap<Host, String>, Vec<Host>)> {
    let listed = world.kubectl(&["get", RESOURCE, "--all-namespaces", "--output=json"])?;
    let listed: Value = serde_json::from_str(&listed)?;
    let (mut runs, mut leaves) = (BTreeMap::new(), Vec::new());
    for host in listed["items"].as_array().into_iter().flatten() {
        let host = Object(host.clone());
        let key = (host.namespace().to_owned(), host.name().to_owned());
        match byoh::errand(&host) {
            byoh::Errand::Leave => leaves.push(key),
            byoh::Errand::Run(secret) => drop(runs.insert(key, secret.to_owned())),
            byoh::Errand::Nothing => {}
        }
    }
    Ok((runs, leaves))
}

/// What a host runs, by the Secret that it is told.
pub(in crate::mission) fn read(world: &World, (namespace, name): &Host, secret: &str) -> anyhow::Result<Boot> {
    let words = ["--namespace", namespace, "get", "secret", secret, "--output=json"];
    let found: Value = serde_json::from_str(&world.kubectl(&words)?)?;
    let ByteString(bytes) = serde_json::from_value(found["data"]["value"].clone()).context("no bootstrap data")?;
    drive::read(&String::from_utf8(bytes)?, &Value::Object(byoh::known_of(name)))
}

/// Makes a host as it was before it had a machine.
pub(in crate::mission) fn clear(world: &World, (namespace, name): &Host) -> anyhow::Result<()> {
    let [status, rest] = byoh::cleared();
    let patch = |change: &Value, more: &[&str]| {
        let change = change.to_string();
        let words = [
            "--namespace",
            namespace,
            "patch",
            RESOURCE,
            name,
            "--type=merge",
            "--patch",
            &change,
        ];
        world.kubectl(&[&words, more].concat())
    };
    patch(&status, &["--subresource=status"])?;
    patch(&rest, &[]).map(drop)
}
