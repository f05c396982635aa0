//! The claim about the webhook certificate: it is replaced under load, and no request fails.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Context, ensure};

use super::load::{list, name, pool};
use super::manager::{LONG, NAMESPACE};
use super::release::Candidate;
use crate::claim::Proof;
use crate::claims::stack::Stack;
use crate::wait::until;

const SECRET: &str = "ipam-webhook-service-cert";
/// The webhook port of each Pod.
const PORT: u16 = 9443;
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

pub(super) fn rotated(stack: &Stack, _: &Candidate) -> Proof {
    let namespace = stack.create_namespace("rotation")?;
    let old = stored(stack)?;
    let pods = until(LONG, "every Pod to serve the certificate", || {
        serve(stack, &old).map(Some)
    })?;
    ensure!(pods > 0, "no Pod serves webhooks");
    let load = Load::default();
    let new = std::thread::scope(|scope| {
        let client = scope.spawn(|| load.run(stack, &namespace.name));
        let new = rotate(stack, &old, &load);
        load.stopped.store(true, Ordering::Relaxed);
        client
            .join()
            .map_err(|_| anyhow::anyhow!("the client thread panicked"))??;
        new
    })?;
    ensure!(new != old, "the certificate is the old one");
    Ok(format!(
        "{pods} Pods serve the new one, {} requests during the rotation, none failed",
        load.answered()
    ))
}

/// Replaces the certificate and waits until each Pod serves the new one, with requests before and after.
fn rotate(stack: &Stack, old: &str, load: &Load) -> anyhow::Result<String> {
    load.wait_for_requests()?;
    stack.kubectl(&["delete", "secret", SECRET, "--namespace", NAMESPACE])?;
    let new = until(LONG, "a new certificate", || {
        Ok(stored(stack).ok().filter(|new| new != old))
    })?;
    until(LONG, "every Pod to serve the new certificate", || {
        serve(stack, &new).map(Some)
    })?;
    load.wait_for_requests()?;
    Ok(new)
}

/// Sends requests through the webhooks, one after another.
#[derive(Debug, Default)]
struct Load {
    answered: AtomicUsize,
    stopped: AtomicBool,
}

impl Load {
    /// Sends requests until stopped; fails with the first failed request.
    fn run(&self, stack: &Stack, namespace: &str) -> anyhow::Result<()> {
        while !self.stopped.load(Ordering::Relaxed) {
            let object = pool(&format!("dry-{}", self.answered()), "10.64.3.10", "10.64.3.20");
            let args = [
                "--namespace",
                namespace,
                "create",
                "--dry-run=server",
                "--filename",
                "-",
            ];
            stack.run("kubectl", &args, Some(&object.to_string()))?;
            self.answered.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn answered(&self) -> usize {
        self.answered.load(Ordering::Relaxed)
    }

    /// Waits until a request that was sent after this call is answered: the one in progress, and the next.
    fn wait_for_requests(&self) -> anyhow::Result<()> {
        let before = self.answered();
        until(LONG, "requests to be answered", || {
            Ok((self.answered() > before + 1).then_some(()))
        })
    }
}

/// The number of Pods; fails when one of them does not serve this certificate.
fn serve(stack: &Stack, certificate: &str) -> anyhow::Result<usize> {
    let pods = list(stack, NAMESPACE, "pods")?;
    for pod in &pods {
        let address = pod["status"]["podIP"].as_str().context("a Pod without address")?;
        let served = stack.run(
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

/// The certificate in the Secret.
fn stored(stack: &Stack) -> anyhow::Result<String> {
    let template = r#"--output=go-template={{index .data "tls.crt" | base64decode}}"#;
    leaf(&stack.kubectl(&["get", "secret", SECRET, "--namespace", NAMESPACE, template])?)
}

/// The first certificate of a text, without line breaks.
fn leaf(text: &str) -> anyhow::Result<String> {
    let (_, rest) = text.split_once(BEGIN).context("no certificate")?;
    let (body, _) = rest.split_once(END).context("half a certificate")?;
    Ok(body.split_whitespace().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_certificate_is_read_with_any_line_breaks() {
        let shown = format!("Subject:CN = a\nCert:{BEGIN}\nQUJD\nREVG\n{END}\nSubject:CN = ca\n{BEGIN}\nR0hJ\n{END}\n");
        let written = format!("{BEGIN}\r\nQUJDREVG\r\n{END}\r\n");
        assert_eq!(leaf(&shown).unwrap(), "QUJDREVG");
        assert_eq!(leaf(&shown).unwrap(), leaf(&written).unwrap());
        assert!(leaf("curl: (7)").is_err());
        assert!(leaf(BEGIN).is_err());
    }
}
