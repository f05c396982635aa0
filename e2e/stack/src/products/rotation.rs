//! The claim about the certificate of the webhooks: it is replaced while requests are admitted, and none of them notices.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Context, ensure};

use super::Proof;
use super::ipam::{LONG, NAMESPACE};
use super::load::{list, name, pool};
use super::release::Candidate;
use crate::claims::world::World;
use crate::wait::until;

const SECRET: &str = "ipam-webhook-service-cert";
/// Where each Pod serves its webhooks.
const PORT: u16 = 9443;
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

pub(super) fn rotated(world: &World, _: &Candidate) -> Proof {
    let room = world.room("rotation")?;
    let old = stored(world)?;
    let pods = until(LONG, "every Pod to serve the certificate", || {
        serve(world, &old).map(Some)
    })?;
    ensure!(pods > 0, "no Pod serves webhooks");
    let load = Load::default();
    let new = std::thread::scope(|scope| {
        let asking = scope.spawn(|| load.ask(world, &room.name));
        let new = rotate(world, &old, &load);
        load.is_over.store(true, Ordering::Relaxed);
        asking.join().map_err(|_| anyhow::anyhow!("asking panicked"))??;
        new
    })?;
    ensure!(new != old, "the certificate is the old one");
    Ok(format!(
        "{pods} Pods serve the new one, {} requests meanwhile, none failed",
        load.answered()
    ))
}

/// Has the certificate replaced and waits until every Pod serves the new one, with requests before and after.
fn rotate(world: &World, old: &str, load: &Load) -> anyhow::Result<String> {
    load.goes_on()?;
    world.kubectl(&["delete", "secret", SECRET, "--namespace", NAMESPACE])?;
    let new = until(LONG, "a new certificate", || {
        Ok(stored(world).ok().filter(|new| new != old))
    })?;
    until(LONG, "every Pod to serve the new certificate", || {
        serve(world, &new).map(Some)
    })?;
    load.goes_on()?;
    Ok(new)
}

/// Requests that the webhooks admit, one after the other.
#[derive(Debug, Default)]
struct Load {
    answered: AtomicUsize,
    is_over: AtomicBool,
}

impl Load {
    /// Asks until it is over; the first request that fails is the error.
    fn ask(&self, world: &World, namespace: &str) -> anyhow::Result<()> {
        while !self.is_over.load(Ordering::Relaxed) {
            let object = pool(&format!("dry-{}", self.answered()), "10.64.3.10", "10.64.3.20");
            let words = [
                "--namespace",
                namespace,
                "create",
                "--dry-run=server",
                "--filename",
                "-",
            ];
            world.run("kubectl", &words, Some(&object.to_string()))?;
            self.answered.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn answered(&self) -> usize {
        self.answered.load(Ordering::Relaxed)
    }

    /// Waits until a request was answered that was sent after now: the one under way, and the next.
    fn goes_on(&self) -> anyhow::Result<()> {
        let before = self.answered();
        until(LONG, "requests to be answered", || {
            Ok((self.answered() > before + 1).then_some(()))
        })
    }
}

/// How many Pods there are; fails when one of them does not serve this certificate.
fn serve(world: &World, certificate: &str) -> anyhow::Result<usize> {
    let pods = list(world, NAMESPACE, "pods")?;
    for pod in &pods {
        let address = pod["status"]["podIP"].as_str().context("a Pod without address")?;
        let served = world.run(
            "curl",
            &[
                "--silent",
                "--insecure",
                "--max-time",
                "10",
                "--output",
                "/dev/null",
                "--write-out",
                "%{certs}",
                &format!("https://{address}:{PORT}/"),
            ],
            None,
        )?;
        ensure!(leaf(&served)? == certificate, "{} serves another", name(pod));
    }
    Ok(pods.len())
}

/// The certificate that is to be served.
fn stored(world: &World) -> anyhow::Result<String> {
    let template = r#"--output=go-template={{index .data "tls.crt" | base64decode}}"#;
    leaf(&world.kubectl(&["get", "secret", SECRET, "--namespace", NAMESPACE, template])?)
}

/// The first certificate in a text, without the breaks of its lines.
fn leaf(text: &str) -> anyhow::Result<String> {
    let (_, rest) = text.split_once(BEGIN).context("no certificate")?;
    let (body, _) = rest.split_once(END).context("half a certificate")?;
    Ok(body.split_whitespace().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_certificate_counts_however_its_lines_are_broken() {
        let shown = format!("Subject:CN = a\nCert:{BEGIN}\nQUJD\nREVG\n{END}\nSubject:CN = ca\n{BEGIN}\nR0hJ\n{END}\n");
        let written = format!("{BEGIN}\r\nQUJDREVG\r\n{END}\r\n");
        assert_eq!(leaf(&shown).unwrap(), "QUJDREVG");
        assert_eq!(leaf(&shown).unwrap(), leaf(&written).unwrap());
        assert!(leaf("curl: (7)").is_err());
        assert!(leaf(BEGIN).is_err());
    }
}
