//! What a switch back to an older release needs besides: objects stored in its version, and nothing on them that no Go manager
//! would remove.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;

use super::managers::Installer;
use crate::claims::stack::Stack;
use crate::pki::ADMIN;
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;

const OLDER: &str = "v1beta1";
/// The API server uses another storage version a moment after its definition has changed.
const ADOPTED: Duration = Duration::from_secs(5);
/// They go on watching a version that is served no more.
const WATCHERS: [(&str, &str); 2] = [
    ("capi-system", "capi-controller-manager"),
    (
        "capi-kubeadm-control-plane-system",
        "capi-kubeadm-control-plane-controller-manager",
    ),
];
/// A manager may write an object between two passes.
const PASSES: usize = 6;

impl Installer<'_> {
    /// Stores objects in the version of the older release, while this program still converts them. Nothing to do for a
    /// release that has the newer one.
    pub(super) fn store_as_older(&self) -> anyhow::Result<()> {
        let kinds = self.upstream.release.older();
        for kind in kinds {
            let patch = format!("--patch={}", store_older(&read(self.stack(), kind)?)?);
            let words = ["kubectl", "patch", "crd", kind, "--type=json", &patch];
            self.session.must(self.stack(), &words)?;
        }
        self.rewrite_all(kinds)?;
        for kind in kinds {
            let stored = format!(r#"--patch={{"status":{{"storedVersions":["{OLDER}"]}}}}"#);
            let words = ["kubectl", "patch", "crd", kind, "--subresource=status", "--type=merge"];
            self.session.must(self.stack(), &[&words[..], &[&stored]].concat())?;
        }
        Ok(())
    }

    /// Writes all objects again until none of them changes any more. An empty patch writes an object only if it is stored
    /// otherwise, and then it has another version.
    fn rewrite_all(&self, kinds: &BTreeSet<String>) -> anyhow::Result<()> {
        for _ in 0..PASSES {
            std::thread::sleep(ADOPTED);
            if self.rewrite_once(kinds)? == 0 {
                std::thread::sleep(ADOPTED);
                if self.rewrite_once(kinds)? == 0 {
                    return Ok(());
                }
            }
        }
        anyhow::bail!("objects are still not stored as {OLDER} after {PASSES} passes")
    }

    /// Returns how many objects were stored otherwise.
    fn rewrite_once(&self, kinds: &BTreeSet<String>) -> anyhow::Result<usize> {
        let mut rewritten = 0_usize;
        for kind in kinds {
            for object in list(self.stack(), NAMESPACE, kind)? {
                let (name, before) = (name(&object), &object["metadata"]["resourceVersion"]);
                let named = [kind.as_str(), name.as_str()];
                let patch = [
                    "patch",
                    "--type=merge",
                    "--patch={}",
                    "--output=jsonpath={.metadata.resourceVersion}",
                ];
                match self.of_namespace(&named, &patch) {
                    Ok(now) => rewritten += usize::from(*before != now),
                    // Work is in flight: an object may end between the list and its patch.
                    Err(error) => {
                        let found = self.of_namespace(&named, &["get", "--ignore-not-found", "--output=name"])?;
                        anyhow::ensure!(found.trim().is_empty(), error);
                        rewritten += 1;
                    }
                }
            }
        }
        Ok(rewritten)
    }

    fn of_namespace(&self, named: &[&str], words: &[&str]) -> anyhow::Result<String> {
        let (verb, options) = words.split_first().context("no verb")?;
        let args = [&["--namespace", NAMESPACE, verb][..], named, options].concat();
        self.stack().kubectl(&args)
    }

    /// Removes from objects what the older release would leave on them for ever. Nothing answers the webhooks of addresses any
    /// more, as those of hosts, which are gone already; those of machines are in the way only where their objects are changed.
    pub(super) fn hand_back(&self) -> anyhow::Result<()> {
        let is_older = !self.upstream.release.older().is_empty();
        let products: &[&str] = if is_older { &["ipam", "capm3"] } else { &["ipam"] };
        for product in products {
            for task in ["validating", "mutating"] {
                let (kind, name) = (
                    format!("{task}webhookconfiguration"),
                    format!("{product}-{task}-webhook-configuration"),
                );
                let delete = ["kubectl", "delete", "--ignore-not-found", &kind, &name];
                self.session.must(self.stack(), &delete)?;
            }
        }
        let program = self.program.to_str().context("the program's name is not text")?;
        let kubeconfig = format!("--kubeconfig={}", self.stack().places.kubeconfig(ADMIN).display());
        self.session.must(self.stack(), &[program, "hand-back", &kubeconfig])
    }

    /// Restarts the controllers of Cluster API that watch objects of machines in the newer version. Nothing to do for a release that
    /// serves it.
    pub(super) fn restart_watchers(&self) -> anyhow::Result<()> {
        if self.upstream.release.older().is_empty() {
            return Ok(());
        }
        for (namespace, deployment) in WATCHERS {
            for action in ["restart", "status"] {
                let words = ["kubectl", "-n", namespace, "rollout", action, "deployment", deployment];
                self.session.must(self.stack(), &words)?;
            }
        }
        Ok(())
    }
}

fn read(stack: &Stack, crd: &str) -> anyhow::Result<Value> {
    Ok(serde_json::from_str(&stack.kubectl(&[
        "get",
        "crd",
        crd,
        "--output=json",
    ])?)?)
}

/// The JSON patch that makes `v1beta1` the storage version, wherever it is in the list.
fn store_older(crd: &Value) -> anyhow::Result<Value> {
    let mut operations = Vec::new();
    let mut is_there = false;
    for (index, version) in crd["spec"]["versions"].as_array().into_iter().flatten().enumerate() {
        let (path, is_older) = (format!("/spec/versions/{index}"), version["name"] == OLDER);
        is_there |= is_older;
        operations.push(serde_json::json!({"op": "test", "path": format!("{path}/name"), "value": version["name"]}));
        operations.push(serde_json::json!({"op": "replace", "path": format!("{path}/storage"), "value": is_older}));
    }
    anyhow::ensure!(is_there, "{} has no version {OLDER}", name(crd));
    Ok(operations.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn older_version_becomes_the_only_one_that_is_stored() {
        let crd = json!({"metadata": {"name": "a"}, "spec": {"versions": [
            {"name": "v1beta2", "storage": true}, {"name": "v1beta1", "storage": false}]}});
        let patch = store_older(&crd).unwrap();
        assert_eq!(
            patch,
            json!([
                {"op": "test", "path": "/spec/versions/0/name", "value": "v1beta2"},
                {"op": "replace", "path": "/spec/versions/0/storage", "value": false},
                {"op": "test", "path": "/spec/versions/1/name", "value": "v1beta1"},
                {"op": "replace", "path": "/spec/versions/1/storage", "value": true},
            ])
        );
        assert!(store_older(&json!({"spec": {"versions": []}})).is_err());
    }
}
