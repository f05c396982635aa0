//! The claims about who may do what: those who read metrics, and the manager itself.

use std::fs;

use anyhow::{Context, ensure};
use metal3_ledger::{Grants, Log, Target};
use serde_json::{Value, json};

use super::Proof;
use super::ipam::{LONG, NAMESPACE, the_deployment};
use super::load::list;
use super::release::Candidate;
use crate::claims::world::World;
use crate::wait::until;

const ACCOUNT: &str = "system:serviceaccount:metal3-ipam-system:ipam-manager";

/// What the API server looks up in roles by itself, while it admits a request for another resource. No audit log shows
/// it being used.
pub(super) const LOOKED_UP: &str = "/finalizers";

/// The API server admits Pods by the level that the namespace is labelled with: those of the release were, and one that
/// differs from them in a single member is not.
pub(super) fn restricted(world: &World, _: &Candidate) -> Proof {
    let deployment = the_deployment(world)?;
    let spec = deployment["spec"]["template"]["spec"].clone();
    let admit = |spec: &Value| {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": spec});
        let words = [
            "--namespace",
            NAMESPACE,
            "create",
            "--dry-run=server",
            "--filename",
            "-",
        ];
        world.run("kubectl", &words, Some(&pod.to_string()))
    };
    admit(&spec).context("a Pod of the release")?;
    for (member, value) in [
        ("/containers/0/securityContext/allowPrivilegeEscalation", json!(true)),
        ("/containers/0/securityContext/capabilities/drop", json!([])),
        ("/securityContext/runAsNonRoot", json!(false)),
        ("/securityContext/seccompProfile/type", json!("Unconfined")),
    ] {
        let mut other = spec.clone();
        *other.pointer_mut(member).with_context(|| format!("no {member}"))? = value;
        let refused = admit(&other)
            .err()
            .with_context(|| format!("admitted without {member}"))?;
        ensure!(
            format!("{refused:#}").contains("violates PodSecurity \"restricted"),
            "{member}: {refused:#}"
        );
    }
    Ok("4 relaxations refused".to_owned())
}

pub(super) fn metrics(world: &World, _: &Candidate) -> Proof {
    let room = world.room("metrics")?;
    room.kubectl(&["create", "serviceaccount", "reader"])?;
    let pod = list(world, NAMESPACE, "pods")?.into_iter().next().context("no Pod")?;
    let address = pod["status"]["podIP"].as_str().context("the Pod has no address")?;
    let url = format!("https://{address}:8443/metrics");
    let token = room.kubectl(&["create", "token", "reader"])?;
    let ask = |with: &[&str]| -> anyhow::Result<(String, String)> {
        let mut words = vec![
            "--silent",
            "--insecure",
            "--max-time",
            "10",
            "--write-out",
            "\n%{http_code}",
        ];
        words.extend(with);
        words.push(&url);
        let said = world.run("curl", &words, None)?;
        let (body, code) = said.rsplit_once('\n').context("no code")?;
        Ok((body.to_owned(), code.to_owned()))
    };
    let bearer = format!("Authorization: Bearer {}", token.trim());
    ensure!(ask(&[])?.1 == "401", "without a token: {:?}", ask(&[])?);
    ensure!(ask(&["--header", &bearer])?.1 == "403", "without a role");
    world.kubectl(&[
        "create",
        "clusterrole",
        "metrics-reader",
        "--verb=get",
        "--non-resource-url=/metrics",
    ])?;
    let account = "--serviceaccount=metrics:reader";
    world.kubectl(&[
        "create",
        "clusterrolebinding",
        "metrics-reader",
        "--clusterrole=metrics-reader",
        account,
    ])?;
    let body = until(LONG, "the metrics", || {
        let (body, code) = ask(&["--header", &bearer])?;
        Ok((code == "200").then_some(body))
    })?;
    ensure!(body.contains("workqueue_depth"), "{body}");
    Ok(format!("401, 403, then {} lines", body.lines().count()))
}

/// Every grant was used on this stack. The log begins with the stack, so that a form which is installed after another need
/// not use again what the other has used; what only it is granted, only it can have used.
pub(super) fn granted_is_used(world: &World, _: &Candidate) -> Proof {
    release_everything(world)?;
    let text = fs::read_to_string(world.places.log("audit"))?;
    let tally = Log::read(&text)?.of(ACCOUNT);
    let mut granted = Grants::default();
    for role in Candidate::roles(world)? {
        granted.add(&role)?;
    }
    let texts = |targets: Vec<&Target>| {
        let texts: Vec<String> = targets.iter().map(ToString::to_string).collect();
        texts.join(", ")
    };
    let (looked_up, unused): (Vec<&Target>, Vec<&Target>) = granted
        .unused(&tally)
        .partition(|target| target.resource.ends_with(LOOKED_UP));
    let unused = texts(unused);
    let missing = texts(granted.missing(&tally).collect());
    let forbidden = texts(tally.forbidden.iter().collect());
    ensure!(
        unused.is_empty() && missing.is_empty() && forbidden.is_empty(),
        "granted and not used: [{unused}]; used and not granted: [{missing}]; forbidden: [{forbidden}]"
    );
    let requests: u64 = tally.asked.values().sum();
    Ok(format!(
        "{} grants, {} of them looked up by admission alone, all others used; {requests} requests, none forbidden",
        granted.len(),
        looked_up.len()
    ))
}

/// Claims first, then pools: the release of an address is the last thing that a role is needed for.
fn release_everything(world: &World) -> anyhow::Result<()> {
    for kind in [
        "ipclaims.ipam.metal3.io",
        "ipaddressclaims.ipam.cluster.x-k8s.io",
        "ippools.ipam.metal3.io",
    ] {
        // kubectl waits for one after another; we look at all.
        world.kubectl(&["delete", kind, "--all", "--all-namespaces", "--wait=false"])?;
        until(LONG, &format!("the end of all {kind}"), || {
            let left = world.kubectl(&["get", kind, "--all-namespaces", "--output=name"])?;
            Ok(left.trim().is_empty().then_some(()))
        })?;
    }
    Ok(())
}
