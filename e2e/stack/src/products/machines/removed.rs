//! What is left of a release: after `clusterctl delete`, and after the real helm installed and uninstalled the charts.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::{Candidate, NAMESPACE};
use crate::claim::Proof;
use crate::claims::stack::Stack;
use crate::helm::{self, Helm};
use crate::products::load::{claim, has_address, left_in_namespace, list, name, pool};
use crate::products::written::{delete_roles, labelled};
use crate::wait::{Stopwatch, until};

const COMPONENTS: [&str; 2] = ["infrastructure-components.yaml", "ipam-components.yaml"];
const PROVIDERS: [&str; 2] = ["infrastructure-metal3", "ipam-metal3"];
const MANAGERS: [&str; 2] = ["capm3-system", "metal3-ipam-system"];
/// A manager that stops writes its last status.
const LONG: std::time::Duration = std::time::Duration::from_secs(180);

fn is_kept(name: &str) -> bool {
    name.starts_with("customresourcedefinition.") || name.starts_with("namespace/")
}

/// The hosts, pools and Secrets of users.
fn of_users(stack: &Stack) -> anyhow::Result<BTreeMap<String, Value>> {
    let mut all = BTreeMap::new();
    for object in list(stack, NAMESPACE, "baremetalhosts,ippools,secrets")? {
        let key = format!("{}/{}", object["kind"].as_str().unwrap_or_default(), name(&object));
        all.insert(key, json!([object["metadata"]["uid"], object["spec"], object["data"]]));
    }
    ensure!(!all.is_empty(), "there is no object of users");
    Ok(all)
}

/// Without `--include-crd` and `--include-namespace`.
pub(super) fn by_clusterctl(stack: &Stack, candidate: &Candidate<'_>) -> Proof {
    let written = &candidate.written;
    let users = of_users(stack)?;
    let existing = || -> anyhow::Result<Vec<String>> {
        let of_files = COMPONENTS.iter().map(|file| written.existing(stack, file));
        Ok(of_files.collect::<Result<Vec<_>, _>>()?.concat())
    };
    let before = existing()?;
    let args = ["delete", "--infrastructure", "metal3", "--ipam", "metal3"];
    written.clusterctl(stack, &[], &args)?;
    for namespace in MANAGERS {
        until(LONG, "the end of the managers", || {
            Ok(list(stack, namespace, "pods")?.is_empty().then_some(()))
        })?;
    }
    let mut roles = 0;
    for provider in PROVIDERS {
        let others: Vec<String> = labelled(stack, provider)?
            .into_iter()
            .filter(|name| !is_kept(name))
            .collect();
        let is_role = |name: &String| name.starts_with("clusterrole.") || name.starts_with("clusterrolebinding.");
        ensure!(others.iter().all(is_role), "of {provider} clusterctl left {others:?}");
        let deleted = delete_roles(stack, provider)?;
        ensure!(deleted == others.len(), "{deleted} of {others:?} are deleted");
        roles += deleted;
    }
    let left = existing()?;
    let wanted: Vec<String> = before.iter().filter(|name| is_kept(name)).cloned().collect();
    ensure!(
        left == wanted && left.len() < before.len(),
        "of the components clusterctl left {left:?}"
    );
    // Created by processes: Leases by the program, and the Secrets of certificates by cert-manager.
    let mut created = Vec::new();
    for namespace in MANAGERS {
        created.extend(left_in_namespace(stack, namespace)?);
    }
    let is_created = |own: &String| own.starts_with("Lease/") || (own.starts_with("Secret/") && own.ends_with("-cert"));
    ensure!(
        created.iter().all(is_created),
        "in the namespaces clusterctl left {created:?}"
    );
    ensure!(of_users(stack)? == users, "objects of users are missing or changed");
    Ok(format!(
        "of {} objects {} definitions and namespaces are left, {roles} roles of the cluster until their command, {} Leases and Secrets, \
         and {} objects of users",
        before.len(),
        left.len(),
        created.len(),
        users.len()
    ))
}

/// All products in one process, from the charts, where clusterctl left the definitions.
pub(super) fn installed_by_helm(stack: &Stack, candidate: &Candidate<'_>) -> Proof {
    let watch = Stopwatch::start();
    let users = of_users(stack)?;
    let helm = Helm {
        stack,
        helm: candidate.helm,
        charts: candidate.charts,
    };
    let values = json!({ "ironic": { "endpoint": "https://192.0.2.1:6385" } });
    let owned = ["--create-namespace", "--take-ownership"];
    helm.apply("install", helm::DEFINITIONS, &owned, None)?;
    let ready = ["--wait", "--timeout=180s"];
    helm.apply("install", helm::PROGRAM, &ready, Some(&values))?;
    let installed = watch.elapsed();
    let deployments = list(stack, helm::NAMESPACE, "deployments")?;
    let deployment = deployments.first().context("no Deployment")?;
    let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
    ensure!(
        image.as_str().is_some_and(|image| image.contains("@sha256:")),
        "{image}"
    );
    let namespace = stack.create_namespace("helm")?;
    namespace.apply(&pool("charted", "10.64.30.10", "10.64.30.20"))?;
    namespace.apply(&claim("charted", 0))?;
    namespace.until("ipclaim/charted-claim-0", "granted", has_address)?;
    namespace.kubectl(&["delete", "ipclaim", "charted-claim-0", "--timeout=60s"])?;
    let manifest = helm.manifest(helm::PROGRAM)?;
    let objects = helm.existing(&manifest)?.len();
    helm.run(&["uninstall", helm::PROGRAM, "--wait", "--timeout=180s"], None)?;
    let left = helm.existing(&manifest)?;
    ensure!(
        objects > 0 && left.is_empty(),
        "of {objects} objects helm left {left:?}"
    );
    ensure!(of_users(stack)? == users, "objects of users are missing or changed");
    Ok(format!(
        "installed in {:.1} s, {objects} objects, none left",
        installed.as_secs_f64()
    ))
}
