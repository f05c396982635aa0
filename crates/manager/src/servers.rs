//! The three servers: probes, metrics, webhooks.

use std::path::Path;
use std::sync::Arc;

use metal3_runtime::admin::{self, ClusterReviewer, Finding, Gate, Health};
use metal3_runtime::tls::{Certificates, Files, Offer, OfferFault, Server};
use metal3_webhooks::certificates::{Keeper, Pair, Site};
use metal3_webhooks::neighbours::Neighbours;
use metal3_webhooks::router::{Witness, router};
use metal3_webhooks::table::Suite;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::run::RunFault;
use crate::session::Session;
use metal3_flags::{CertificateSource, Tls};
use metal3_grants::Gating;

/// Where servers run, and until when.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hall {
    pub(crate) tasks: TaskTracker,
    pub(crate) closing: CancellationToken,
}

impl Hall {
    fn open(&self, server: Server, what: &'static str) {
        if let Ok(address) = server.address() {
            tracing::info!(%address, what, "serving");
        }
        drop(self.tasks.spawn(server.run(self.closing.clone())));
    }

    /// Runs work that has no end of its own.
    pub(crate) fn keep(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.tasks.spawn(self.closing.clone().run_until_cancelled_owned(work)));
    }
}

/// Probes, from the first moment on.
pub(crate) async fn probes(session: &Session, hall: &Hall, alive: &Health, ready: &Health) -> Result<(), RunFault> {
    if let Some(address) = &session.options.health {
        let listener = listen(address, "--health-addr").await?;
        hall.open(Server::plain(listener, admin::health(alive, ready)), "probes");
    }
    Ok(())
}

/// Metrics and webhooks. Webhooks are for every replica; a process that only observes has none, because nothing refers
/// to it.
pub(crate) async fn rest(
    session: &Session,
    asked: &[(Suite, Arc<dyn Neighbours>)],
    hall: &Hall,
    ready: &Health,
) -> Result<(), RunFault> {
    let options = &session.options;
    if let (Some(address), true) = (&options.diagnostics, options.insecure_diagnostics) {
        let listener = listen(address, "--diagnostics-address").await?;
        hall.open(
            Server::plain(listener, admin::insecure_diagnostics(&session.metrics)),
            "metrics, to everybody",
        );
    }
    let diagnostics = options.diagnostics.as_ref().filter(|_| !options.insecure_diagnostics);
    let webhooks = options.webhook_port.filter(|_| !options.observe_only);
    if diagnostics.is_none() && webhooks.is_none() {
        return Ok(());
    }
    let offer = offer(&options.tls)?;
    let suites: Vec<Suite> = asked.iter().map(|(suite, _)| *suite).collect();
    let certificates = certificates(session, &suites, hall, ready).await?;
    if let Some(address) = diagnostics {
        let listener = listen(address, "--diagnostics-address").await?;
        let reviewer = Arc::new(ClusterReviewer::new::<Gating>(&session.client.0));
        let gate = Gate::new(reviewer, Arc::clone(&session.clock));
        let routes = match &session.verbosity {
            Some(verbosity) => admin::diagnostics(&session.metrics, verbosity, &gate),
            None => axum::Router::new(),
        };
        hall.open(
            Server::secure(listener, routes, &offer, certificates.clone())?,
            "metrics",
        );
    }
    if let Some(port) = webhooks {
        let listener = listen(&format!(":{port}"), "--webhook-port").await?;
        let witness = Witness {
            metrics: session.metrics.servers(),
            clock: Arc::clone(&session.clock),
        };
        let routes = router(asked, &witness);
        hall.open(Server::secure(listener, routes, &offer, certificates)?, "webhooks");
    }
    Ok(())
}

fn offer(tls: &Tls) -> Result<Offer, OfferFault> {
    let offer = Offer::of_flags(&tls.min_version, &tls.max_version, &tls.cipher_suites)?.preferring(&tls.curves)?;
    for name in offer.ignored() {
        tracing::warn!(
            name,
            "--tls-cipher-suites, --tls-curve-preferences: not offered, because the TLS library does not have it"
        );
    }
    Ok(offer)
}

/// The certificate of both TLS servers, which is kept fresh from here on.
async fn certificates(
    session: &Session,
    suites: &[Suite],
    hall: &Hall,
    ready: &Health,
) -> Result<Certificates, RunFault> {
    let metrics = session.metrics.servers().certificates();
    match session.options.certificates {
        CertificateSource::Mounted => {
            let folder: &Path = &session.options.webhook_folder;
            let certificates = Certificates::read(Files::mounted_at(folder), metrics).await?;
            hall.keep(certificates.clone().keep_fresh());
            Ok(certificates)
        }
        CertificateSource::SelfManaged => {
            let namespace = session.place.namespace.as_ref();
            let namespace = namespace.ok_or(RunFault::NoNamespace("--webhook-certificates=self-managed"))?;
            let site = Site::of(suites, namespace);
            let origin = format!("Secret {namespace}/{}", site.secret());
            let keeper = Keeper::new(session.client.0.clone(), site, Arc::clone(&session.clock));
            let mut serving = keeper.serving();
            let known = serving.clone();
            ready.add("webhook-certificate", move || {
                Finding::failing_unless(
                    known.borrow().is_some(),
                    "no certificate that the API server trusts yet; the log says what is in the way",
                )
            });
            hall.keep(async move { keeper.keep().await });
            let first = next(&mut serving).await;
            let certificates = Certificates::handed(&origin, first.certificate(), first.key(), metrics)?;
            hall.keep(follow(serving, certificates.clone()));
            Ok(certificates)
        }
    }
}

/// The pair as it is handed out, now or when there is one.
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
        if let Err(fault) = certificates.hand(pair.certificate(), pair.key()) {
            tracing::error!(%fault, "certificate not renewed: the one before stays in use");
        }
    }
}

/// Listens where a flag says, in Go's form: `:8443` is every address of the machine.
async fn listen(address: &str, flag: &'static str) -> Result<TcpListener, RunFault> {
    let fault = |source| RunFault::Listen {
        flag,
        address: address.to_owned(),
        source,
    };
    let Some(port) = address.strip_prefix(':') else {
        return TcpListener::bind(address).await.map_err(fault);
    };
    // Both families where the machine has both, else the older one.
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
    fn servers_offer_what_the_flags_prefer() {
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
            Some(OfferFault::Curve("Curve25519".to_owned()))
        );
    }
}
