//! The life of the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use metal3_runtime::admin::{Finding, Health};
use metal3_runtime::guard::{Guard, Standing};
use metal3_runtime::lease::LeaseTimingsError;
use metal3_runtime::tls::{OfferFault, PairFault};
use tokio_util::sync::CancellationToken;

use crate::lead::{Left, Turn};
use crate::product::{Product, Running, Task};
use crate::served::{Kind, Missing};
use crate::servers::{self, Hall};
use crate::session::Session;

/// How the process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// As asked.
    Stopped,
    /// Somebody else leads, or the Go manager is back: whoever starts us again lets us wait for our turn.
    TurnOver,
}

/// Why the process cannot run. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum RunFault {
    /// An address cannot be listened on.
    #[error("{flag}: listen on {address}")]
    Listen {
        /// The flag that names it.
        flag: &'static str,
        /// The address.
        address: String,
        /// Why not.
        source: std::io::Error,
    },
    /// The namespace we run in is not known.
    #[error("{0}: needs to know the namespace it runs in; set the environment variable POD_NAMESPACE")]
    NoNamespace(&'static str),
    /// The flags of the election contradict each other.
    #[error(transparent)]
    LeaseTimings(#[from] LeaseTimingsError),
    /// The flags of TLS contradict each other.
    #[error(transparent)]
    Offer(#[from] OfferFault),
    /// There is no certificate.
    #[error(
        "find a certificate for webhooks and metrics; mount one, or write --webhook-certificates=self-managed (with \
         --observe-only: --insecure-diagnostics or --diagnostics-address=0)"
    )]
    Certificate(#[from] PairFault),
    /// The credentials for the API server cannot be used.
    #[error("use the credentials for the API server")]
    Client(#[source] Box<kube::Error>),
    /// Nobody said where Ironic is.
    #[error("--controllers: hosts need Ironic; set the environment variable IRONIC_ENDPOINT")]
    NoIronic,
    /// TLS cannot be set up.
    #[error("set up TLS")]
    Tls(#[from] rustls::Error),
}

/// A process before it runs.
#[derive(Debug)]
pub struct Process {
    session: Session,
    products: Vec<Product>,
    /// What `/healthz` says.
    pub alive: Health,
    /// What `/readyz` says.
    pub ready: Health,
    /// Which kinds are waited for.
    missing: Missing,
    /// Whether every server is open.
    serving: Arc<AtomicBool>,
}

impl Process {
    /// A process that runs these products.
    #[must_use]
    pub fn new(session: Session, products: Vec<Product>) -> Self {
        let process = Self {
            session,
            products,
            alive: Health::default(),
            ready: Health::default(),
            missing: Missing::default(),
            serving: Arc::default(),
        };
        // A probe may come before anything has begun.
        let (missing, serving) = (process.missing.clone(), Arc::clone(&process.serving));
        process.ready.add("kinds", move || missing.finding());
        process.ready.add("webhook", move || {
            Finding::failing_unless(
                serving.load(Ordering::Acquire),
                "webhooks and metrics are not served yet",
            )
        });
        process
    }

    /// Runs until `stop`, or until it must not go on.
    ///
    /// # Errors
    /// When it cannot begin.
    pub async fn run(self, stop: CancellationToken) -> Result<Ended, RunFault> {
        let hall = Hall::default();
        let ended = self.live(&hall, &stop).await;
        // Last, so that probes and webhooks answer while passes are finished and leases given up.
        hall.closing.cancel();
        hall.tasks.close();
        hall.tasks.wait().await;
        ended
    }

    async fn live(&self, hall: &Hall, stop: &CancellationToken) -> Result<Ended, RunFault> {
        let session = &self.session;
        let kinds: Vec<Kind> = self
            .products
            .iter()
            .flat_map(|product| product.kinds)
            .copied()
            .collect();
        servers::probes(session, hall, &self.alive, &self.ready).await?;
        if stop
            .run_until_cancelled(self.missing.wait(&session.client.0, &kinds))
            .await
            .is_none()
        {
            return Ok(Ended::Stopped);
        }
        let (mut turns, mut asked) = (Vec::new(), Vec::new());
        for product in &self.products {
            let turn = Turn::prepare(session, *product, hall)?;
            let running = (product.begin)(session, turn.mandate()?)?;
            self.watch_over(product, &running);
            for task in running.watches {
                drop(hall.tasks.spawn(task(hall.closing.clone())));
            }
            asked.push((product.suite, running.neighbours));
            self.tell_of(product, turn.guard());
            turns.push((turn, running.controllers));
        }
        match stop
            .run_until_cancelled(servers::rest(session, &asked, hall, &self.ready))
            .await
        {
            Some(served) => served?,
            None => return Ok(Ended::Stopped),
        }
        self.serving.store(true, Ordering::Release);
        Ok(lead(turns, hall, stop).await)
    }

    /// Adds what watches tell of themselves to the probes.
    fn watch_over(&self, product: &Product, running: &Running) {
        let name = product.owner.name();
        let synced = Arc::clone(&running.synced);
        self.ready.add(format!("caches-{name}"), move || {
            Finding::failing_unless(synced(), "not all that decisions read has been listed yet")
        });
        for pulse in &running.pulses {
            let pulse = pulse.clone();
            self.alive.add(format!("watch-{name}-{}", pulse.kind()), move || {
                let seconds = pulse.silent_for().as_secs();
                let why = format!("nothing heard for {seconds} s: {}", pulse.trouble().unwrap_or_default());
                Finding::failing_unless(pulse.alive(), why)
            });
        }
    }

    /// A group that is idle is ready, or its webhooks would be taken away from those who write its objects.
    fn tell_of(&self, product: &Product, guard: Guard) {
        self.ready.add(format!("guard-{}", product.owner.name()), move || {
            match guard.standing() {
                Standing::Clear => Finding::Fine,
                standing @ (Standing::Forced | Standing::Present { .. } | Standing::Unknown { .. }) => {
                    Finding::Note(standing.to_string())
                }
            }
        });
    }
}

/// Runs the controllers of every product, each in its turn. When one has to go, all go: the process starts anew.
async fn lead(turns: Vec<(Turn, Task)>, hall: &Hall, stop: &CancellationToken) -> Ended {
    let working = stop.child_token();
    let mut taken: FuturesUnordered<_> = turns
        .into_iter()
        .map(|(turn, controllers)| turn.take(controllers, hall.tasks.clone(), working.clone()))
        .collect();
    let mut ended = Ended::Stopped;
    while let Some(left) = taken.next().await {
        match left {
            Left::Stopped => {}
            Left::LeaseLost | Left::Displaced => {
                tracing::error!(?left, "controllers may not go on; the process ends, to be started anew");
                ended = Ended::TurnOver;
            }
        }
        working.cancel();
    }
    ended
}
