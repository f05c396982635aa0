//! The claims about the variant of the release without cert-manager, under its roles.

use anyhow::{Context, ensure};
use serde_json::json;

use super::load::{claim, has_address, list, name, pool};
use super::manager::{LONG, NAMESPACE, answers, the_deployment};
use super::release::Candidate;
use crate::claim::Proof;
use crate::claims::stack::Stack;
use crate::wait::{Stopwatch, until};

const SECRET: &str = "ipam-webhook-certificates";

pub(super) fn installed(stack: &Stack, candidate: &Candidate) -> Proof {
    let watch = Stopwatch::start();
    candidate.install_self_managed(stack)?;
    until(LONG, "both replicas", || {
        let deployment = the_deployment(stack)?;
        Ok((deployment["status"]["availableReplicas"] == deployment["spec"]["replicas"]).then_some(()))
    })?;
    let took = watch.elapsed();
    let certificates = list(stack, NAMESPACE, "certificates.cert-manager.io")?;
    ensure!(
        certificates.is_empty(),
        "cert-manager issues {:?}",
        certificates.iter().map(name).collect::<Vec<_>>()
    );
    let namespace = stack.create_namespace("self-managed")?;
    answers(&namespace)?;
    // Through the webhooks, up to an address.
    namespace.apply(&pool("own", "10.64.8.10", "10.64.8.20"))?;
    namespace.apply(&claim("own", 0))?;
    namespace.until("ipclaim/own-claim-0", "granted", has_address)?;
    namespace.keep();
    Ok(format!("both replicas after {:.1} s", took.as_secs_f64()))
}

/// Empties the Secret: a new certificate authority is created, and each webhook configuration must contain it.
pub(super) fn spoiled(stack: &Stack, _: &Candidate) -> Proof {
    let stored = || -> anyhow::Result<serde_json::Value> {
        let text = stack.kubectl(&["get", "secret", SECRET, "--namespace", NAMESPACE, "--output=json"])?;
        let secret: serde_json::Value = serde_json::from_str(&text)?;
        Ok(secret["data"].clone())
    };
    let old = stored()?;
    let members = old.as_object().context("the Secret is empty")?.len();
    stack.kubectl(
        &[
            "patch",
            "secret",
            SECRET,
            "--namespace",
            NAMESPACE,
            "--type=merge",
            "--patch",
        ]
        .into_iter()
        .chain([json!({ "data": null }).to_string().as_str()])
        .collect::<Vec<_>>(),
    )?;
    let watch = Stopwatch::start();
    until(LONG, "new certificates", || {
        let new = stored()?;
        Ok(new
            .as_object()
            .is_some_and(|new| !new.is_empty())
            .then_some(())
            .filter(|()| new != old))
    })?;
    let namespace = stack.create_namespace("spoiled")?;
    until(LONG, "webhooks that are trusted", || {
        namespace.apply(&pool("trusted", "10.64.9.10", "10.64.9.20")).map(Some)
    })?;
    Ok(format!(
        "{members} files created again, trusted after {:.1} s",
        watch.elapsed().as_secs_f64()
    ))
}
