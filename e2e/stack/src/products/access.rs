//! The claims about permissions: of metrics readers, and of the manager.

use std::fs;

use anyhow::{Context, ensure};
use metal3_ledger::{Grants, Log, Target};
use serde_json::{Value, json};

use super::load::list;
use super::manager::{LONG, NAMESPACE, the_deployment};
use super::release::Candidate;
use crate::claim::Proof;
use crate::claims::stack::Stack;
use crate::wait::until;

pub(super) const ACCOUNT: &str = "system:serviceaccount:metal3-ipam-system:ipam-manager";

/// Subresources that the admission of other requests checks in roles. The audit log does not show their use.
const ADMISSION_ONLY: [&str; 2] = ["/finalizers", "/restore"];

/// Whether the target is such a subresource.
pub(super) fn is_admission_only(target: &Target) -> bool {
    ADMISSION_ONLY.iter().any(|name| target.resource.ends_with(name))
}

/// The namespace label admits the Pods of the release, and rejects Pods with a single relaxed field.
pub(super) fn restricted(stack: &Stack, _: &Candidate) -> Proof {
    let deployment = the_deployment(stack)?;
    let spec = deployment["spec"]["template"]["spec"].clone();
    let admit = |spec: &Value| {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": spec});
        let args = [
            "--namespace",
            NAMESPACE,
            "create",
            "--dry-run=server",
            "--filename",
            "-",
        ];
        stack.run("kubectl", &args, Some(&pod.to_string()))
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
            .with_context(|| format!("admitted with another {member}"))?;
        ensure!(
            format!("{refused:#}").contains("violates PodSecurity \"restricted"),
            "{member}: {refused:#}"
        );
    }
    Ok("4 relaxations refused".to_owned())
}

pub(super) fn metrics(stack: &Stack, _: &Candidate) -> Proof {
    let namespace = stack.create_namespace("metrics")?;
    namespace.kubectl(&["create", "serviceaccount", "reader"])?;
    let pod = list(stack, NAMESPACE, "pods")?.into_iter().next().context("no Pod")?;
    let address = pod["status"]["podIP"].as_str().context("the Pod has no address")?;
    let url = format!("https://{address}:8443/metrics");
    let token = namespace.kubectl(&["create", "token", "reader"])?;
    let ask = |with: &[&str]| -> anyhow::Result<(String, String)> {
        let mut args = vec![
            "--silent",
            "--insecure",
            "--max-time",
            "10",
            "--write-out",
            "\n%{http_code}",
        ];
        args.extend(with);
        args.push(&url);
        let output = stack.run("curl", &args, None)?;
        let (body, code) = output.rsplit_once('\n').context("no code")?;
        Ok((body.to_owned(), code.to_owned()))
    };
    let bearer = format!("Authorization: Bearer {}", token.trim());
    ensure!(ask(&[])?.1 == "401", "without a token: {:?}", ask(&[])?);
    ensure!(ask(&["--header", &bearer])?.1 == "403", "without a role");
    stack.kubectl(&[
        "create",
        "clusterrole",
        "metrics-reader",
        "--verb=get",
        "--non-resource-url=/metrics",
    ])?;
    let account = "--serviceaccount=metrics:reader";
    stack.kubectl(&[
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

/// Each grant was used on this stack. The audit log begins with the stack, so a variant that is installed later need not use
/// a grant again.
pub(super) fn grants_are_used(stack: &Stack, _: &Candidate) -> Proof {
    release_everything(stack)?;
    let text = fs::read_to_string(stack.places.log("audit"))?;
    let counts = Log::read(&text)?.counts_of(ACCOUNT);
    let mut granted = Grants::default();
    for role in Candidate::roles(stack)? {
        granted.add(&role)?;
    }
    let texts = |targets: Vec<&Target>| {
        let texts: Vec<String> = targets.iter().map(ToString::to_string).collect();
        texts.join(", ")
    };
    let (admission_only, unused): (Vec<&Target>, Vec<&Target>) =
        granted.unused(&counts).partition(|target| is_of_admission(target));
    let unused = texts(unused);
    let missing = texts(granted.missing(&counts).collect());
    let forbidden = texts(counts.forbidden.iter().collect());
    ensure!(
        unused.is_empty() && missing.is_empty() && forbidden.is_empty(),
        "granted and not used: [{unused}]; used and not granted: [{missing}]; forbidden: [{forbidden}]"
    );
    let requests: u64 = counts.requests.values().sum();
    Ok(format!(
        "{} grants, {} of them used by admission only, all others used; {requests} requests, none forbidden",
        granted.len(),
        admission_only.len()
    ))
}

/// Whether only admission checks a grant: with the permissions of owner references enforced, a Cluster becomes the owner of
/// a pool only for who may delete the pool.
fn is_of_admission(target: &Target) -> bool {
    is_admission_only(target) || target.to_string() == "delete ippools.ipam.metal3.io"
}

/// Deletes claims first, then pools: releasing addresses is the last use of a role.
fn release_everything(stack: &Stack) -> anyhow::Result<()> {
    for kind in [
        "ipclaims.ipam.metal3.io",
        "ipaddressclaims.ipam.cluster.x-k8s.io",
        "ippools.ipam.metal3.io",
    ] {
        // kubectl would wait for one object after another.
        stack.kubectl(&["delete", kind, "--all", "--all-namespaces", "--wait=false"])?;
        until(LONG, &format!("the end of all {kind}"), || {
            let left = stack.kubectl(&["get", kind, "--all-namespaces", "--output=name"])?;
            Ok(left.trim().is_empty().then_some(()))
        })?;
    }
    Ok(())
}
