//! The claims about the form of the release that needs no cert-manager, under the roles that it brings.

use anyhow::{Context, ensure};
use serde_json::json;

use super::Proof;
use super::ipam::{LONG, NAMESPACE, answers, has_address, the_deployment};
use super::load::{claim, list, name, pool};
use super::release::Candidate;
use crate::claims::world::World;
use crate::wait::{Stopwatch, until};

const SECRET: &str = "ipam-webhook-certificates";

pub(super) fn installed(world: &World, candidate: &Candidate) -> Proof {
    let watch = Stopwatch::start();
    candidate.install_self_managed(world)?;
    until(LONG, "both replicas", || {
        let deployment = the_deployment(world)?;
        Ok((deployment["status"]["availableReplicas"] == deployment["spec"]["replicas"]).then_some(()))
    })?;
    let took = watch.elapsed();
    let certificates = list(world, NAMESPACE, "certificates.cert-manager.io")?;
    ensure!(
        certificates.is_empty(),
        "cert-manager makes {:?}",
        certificates.iter().map(name).collect::<Vec<_>>()
    );
    let room = world.room("self-managed")?;
    answers(&room)?;
    // Through the webhooks, and on to an address.
    room.apply(&pool("own", "10.64.8.10", "10.64.8.20"))?;
    room.apply(&claim("own", 0))?;
    room.until("ipclaim/own-claim-0", "granted", has_address)?;
    room.stays();
    Ok(format!("both replicas after {:.1} s", took.as_secs_f64()))
}

/// Somebody empties the Secret: there is a new authority, which every configuration has to carry.
pub(super) fn spoiled(world: &World, _: &Candidate) -> Proof {
    let stored = || -> anyhow::Result<serde_json::Value> {
        let text = world.kubectl(&["get", "secret", SECRET, "--namespace", NAMESPACE, "--output=json"])?;
        let secret: serde_json::Value = serde_json::from_str(&text)?;
        Ok(secret["data"].clone())
    };
    let old = stored()?;
    let members = old.as_object().context("the Secret is empty")?.len();
    world.kubectl(
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
    let room = world.room("spoiled")?;
    until(LONG, "webhooks that are trusted", || {
        room.apply(&pool("trusted", "10.64.9.10", "10.64.9.20")).map(Some)
    })?;
    Ok(format!(
        "{members} files made anew, trusted after {:.1} s",
        watch.elapsed().as_secs_f64()
    ))
}
