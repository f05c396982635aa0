//! The three servers: probes, metrics, webhooks.

use std::path::Path;
use std::sync::Arc;

use metal3_runtime::admin::{self, CheckResult, ClusterReviewer, Gate, Health};
use metal3_runtime::tls::{Certificates, KeyPairFiles, Server, TlsOptions, TlsOptionsError};
use metal3_webhooks::certificates::{CertificateController, CertificateScope, Pair};
use metal3_webhooks::related_objects::RelatedObjects;
use metal3_webhooks::router::{Callers, Instrumentation, router};
use metal3_webhooks::table::Suite;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::RunError;
use crate::session::Session;
use metal3_flags::{CertificateSource, Options, Tls};
use metal3_grants::MetricsAccess;

/// The tasks of servers and watches, and their shutdown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Servers {
    pub(crate) tasks: TaskTracker,
    pub(crate) closing: CancellationToken,
}

impl Servers {
    fn open(&self, server: Server, what: &'static str) {
        if let Ok(address) = server.address() {
            tracing::info!(%address, what, "serving");
        }
        drop(self.tasks.spawn(server.run(self.closing.clone())));
    }

    /// Runs work until shutdown.
    pub(crate) fn keep(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.tasks.spawn(self.closing.clone().run_until_cancelled_owned(work)));
    }
}

/// Serves probes.
pub(crate) async fn probes(
    session: &Session,
    servers: &Servers,
    alive: &Health,
    ready: &Health,
) -> Result<(), RunError> {
    if let Some(address) = &session.options.health {
        let listener = listen(address, "--health-addr").await?;
        servers.open(Server::plain(listener, admin::health(alive, ready)), "probes");
    }
    Ok(())
}

/// Serves metrics and webhooks on every replica. With `--observe-only` there are no webhooks, because no configuration
/// refers to the process.
pub(crate) async fn metrics_and_webhooks(
    session: &Session,
    products: &[(Suite, Arc<dyn RelatedObjects>)],
    servers: &Servers,
    ready: &Health,
) -> Result<(), RunError> {
    let options = &session.options;
    if let (Some(address), true) = (&options.diagnostics, options.insecure_diagnostics) {
        let listener = listen(address, "--diagnostics-address").await?;
        servers.open(
            Server::plain(listener, admin::insecure_diagnostics(&session.metrics)),
            "metrics without authentication",
        );
    }
    let diagnostics = options.diagnostics.as_ref().filter(|_| !options.insecure_diagnostics);
    let webhooks = options.webhook_port.filter(|_| !options.observe_only);
    if diagnostics.is_none() && webhooks.is_none() {
        return Ok(());
    }
    let offer = offer(&options.tls)?;
    let suites: Vec<Suite> = products.iter().map(|(suite, _)| *suite).collect();
    let certificates = certificates(session, &suites, servers, ready).await?;
    if let Some(address) = diagnostics {
        let listener = listen(address, "--diagnostics-address").await?;
        let reviewer = Arc::new(ClusterReviewer::new::<MetricsAccess>(&session.client));
        let gate = Gate::new(reviewer, Arc::clone(&session.clock));
        let routes = match &session.verbosity {
            Some(verbosity) => admin::diagnostics(&session.metrics, verbosity, &gate),
            None => axum::Router::new(),
        };
        servers.open(
            Server::secure(listener, routes, &offer, certificates.clone())?,
            "metrics",
        );
    }
    if let Some(port) = webhooks {
        let listener = listen(&format!(":{port}"), "--webhook-port").await?;
        let instrumentation = Instrumentation {
            metrics: session.metrics.servers(),
            clock: Arc::clone(&session.clock),
        };
        let (offer, callers) = callers(options, offer).await?;
        let routes = router(products, &instrumentation, &callers);
        servers.open(Server::secure(listener, routes, &offer, certificates)?, "webhooks");
    }
    Ok(())
}

/// Who may send admission reviews, and the TLS options to find out.
async fn callers(options: &Options, offer: TlsOptions) -> Result<(TlsOptions, Callers), RunError> {
    let Some(path) = &options.webhook_client_ca else {
        return Ok((offer, Callers::Any));
    };
    let read = tokio::fs::read(path).await;
    let pem = read.map_err(|error| TlsOptionsError::ClientCa(format!("{}: {error}", path.display())))?;
    let names = options.webhook_client_names.iter().cloned().collect();
    Ok((offer.with_client_ca(&pem)?, Callers::Certified { names }))
}

fn offer(tls: &Tls) -> Result<TlsOptions, TlsOptionsError> {
    let offer =
        TlsOptions::from_flags(&tls.min_version, &tls.max_version, &tls.cipher_suites)?.with_curves(&tls.curves)?;
    for name in offer.ignored() {
        tracing::warn!(
            name,
            "--tls-cipher-suites, --tls-curve-preferences: ignored, because the TLS library lacks it"
        );
    }
    Ok(offer)
}

/// The certificate of both TLS servers, which is renewed in the background.
async fn certificates(
    session: &Session,
    suites: &[Suite],
    servers: &Servers,
    ready: &Health,
) -> Result<Certificates, RunError> {
    let metrics = session.metrics.servers().certificates();
    match session.options.certificates {
        CertificateSource::Mounted => {
            let folder: &Path = &session.options.webhook_folder;
            let certificates = Certificates::read(KeyPairFiles::mounted_at(folder), metrics).await?;
            servers.keep(certificates.clone().reload_periodically());
            Ok(certificates)
        }
        CertificateSource::SelfManaged => {
            let namespace = session.pod.namespace.as_ref();
            let namespace = namespace.ok_or(RunError::NoNamespace("--webhook-certificates=self-managed"))?;
            let site = CertificateScope::of(suites, namespace);
            let origin = format!("Secret {namespace}/{}", site.secret());
            let certificates = CertificateController::new(session.client.clone(), site, Arc::clone(&session.clock));
            let mut serving = certificates.serving();
            let known = serving.clone();
            ready.add("webhook-certificate", move || {
                CheckResult::failed_unless(
                    known.borrow().is_some(),
                    "no certificate that the API server trusts yet; see the log for the reason",
                )
            });
            servers.keep(async move { certificates.run().await });
            let first = next(&mut serving).await;
            let certificates = Certificates::from_pem(&origin, first.certificate(), first.key(), metrics)?;
            servers.keep(follow(serving, certificates.clone()));
            Ok(certificates)
        }
    }
}

/// The current key pair, once there is one.
async fn next(serving: &mut watch::Receiver<Option<Pair>>) -> Pair {
    loop {
        if let Some(pair) = serving.borrow_and_update().clone() {
            return pair;
        }
        if serving.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

async fn follow(mut serving: watch::Receiver<Option<Pair>>, certificates: Certificates) {
    while serving.changed().await.is_ok() {
        let pair = next(&mut serving).await;
        if let Err(fault) = certificates.replace(pair.certificate(), pair.key()) {
            tracing::error!(%fault, "certificate not renewed: the previous one stays in use");
        }
    }
}

/// Listens on a flag's address in Go's form: `:8443` means every address of the machine.
async fn listen(address: &str, flag: &'static str) -> Result<TcpListener, RunError> {
    let fault = |source| RunError::Listen {
        flag,
        address: address.to_owned(),
        source,
    };
    let Some(port) = address.strip_prefix(':') else {
        return TcpListener::bind(address).await.map_err(fault);
    };
    // Both address families if the machine has both, else IPv4.
    match TcpListener::bind(format!("[::]:{port}")).await {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Err(fault(error)),
        Err(_) => TcpListener::bind(format!("0.0.0.0:{port}")).await.map_err(fault),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_use_the_curves_of_the_flags() {
        let offered = |curves: &str| {
            offer(&Tls {
                min_version: String::new(),
                max_version: String::new(),
                cipher_suites: Vec::new(),
                curves: curves.split(',').map(str::to_owned).collect(),
            })
        };
        let ignored = offered("CurveP384,X25519MLKEM768").map(|offer| offer.ignored().to_vec());
        assert_eq!(ignored, Ok(vec!["X25519MLKEM768".to_owned()]));
        assert_eq!(
            offered("Curve25519").err(),
            Some(TlsOptionsError::Curve("Curve25519".to_owned()))
        );
    }
}
