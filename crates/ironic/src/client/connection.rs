//! Where the client sends: settings with the files that they name, or the reason why there is no destination now.

use std::sync::Arc;
use std::time::Duration;

use metal3_domain::clock::Monotonic;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::{Mutex, watch};

use crate::credentials::{CredentialFiles, SetupError};
use crate::endpoint::{Endpoint, Settings};
use crate::transport::Transport;

/// How often the files are checked: a rotated certificate is in use within this time.
/// differs (`ironic-credentials-reread`): the Go manager reads the files that its environment names at its start only.
const FILES_CHECKED_EVERY: Duration = Duration::from_secs(10);

/// The destination of a client, and how it is reached.
#[derive(Debug)]
pub(super) struct Connection {
    /// `Err`: why there is none, and nothing is sent.
    destination: Mutex<Result<Destination, String>>,
    /// To a simulator in this process, without files or login.
    transport: Option<Arc<dyn Transport>>,
    changes: watch::Sender<At>,
}

/// Which destination a client has.
#[derive(Debug, Clone, Default)]
pub(crate) struct At {
    /// How often its endpoint has become another one.
    pub(crate) number: u64,
    /// Where it is. `None`: nowhere.
    pub(crate) endpoint: Option<Endpoint>,
    /// Where it was last.
    last: Option<Endpoint>,
}

impl At {
    fn first(endpoint: Option<Endpoint>) -> Self {
        Self {
            number: 0,
            last: endpoint.clone(),
            endpoint,
        }
    }

    /// The same endpoint, also after it was nowhere, has the same nodes.
    fn move_to(&mut self, endpoint: Option<Endpoint>) {
        if endpoint.is_some() && endpoint != self.last {
            self.number = self.number.saturating_add(1);
            self.last.clone_from(&endpoint);
        }
        self.endpoint = endpoint;
    }
}

#[derive(Debug)]
struct Destination {
    settings: Arc<Settings>,
    reached: Reached,
}

#[derive(Debug)]
enum Reached {
    Http(Http),
    Transport(Arc<dyn Transport>),
}

/// HTTP, with the current files.
#[derive(Debug)]
struct Http {
    client: reqwest::Client,
    files: CredentialFiles,
    checked: Monotonic,
}

/// What one request is sent with.
pub(super) struct Current {
    pub(super) settings: Arc<Settings>,
    pub(super) via: Via,
}

/// How one request is sent.
pub(super) enum Via {
    Http(reqwest::Client, Option<(String, SecretString)>),
    Transport(Arc<dyn Transport>),
}

impl Http {
    async fn read(settings: &Settings, now: Monotonic) -> Result<Self, SetupError> {
        let files = CredentialFiles::read(settings).await?;
        Ok(Self {
            client: files.client(settings)?,
            files,
            checked: now,
        })
    }

    /// Reads the files again when it is time. If one cannot be used, the last good client stays.
    async fn reread(&mut self, settings: &Settings, now: Monotonic) {
        if now.since(self.checked) < FILES_CHECKED_EVERY {
            return;
        }
        self.checked = now;
        let read = CredentialFiles::read(settings).await;
        let fresh = read.and_then(|files| {
            let changed = !files.is_equal(&self.files);
            let client = changed.then(|| files.client(settings)).transpose()?;
            Ok(client.map(|client| (client, files)))
        });
        match fresh {
            Ok(Some((client, files))) => (self.client, self.files) = (client, files),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "keeping the last good certificates and login for Ironic"),
        }
    }
}

impl Destination {
    async fn of(
        settings: Settings,
        transport: Option<&Arc<dyn Transport>>,
        now: Monotonic,
    ) -> Result<Self, SetupError> {
        let reached = match transport {
            Some(transport) => Reached::Transport(Arc::clone(transport)),
            None => Reached::Http(Http::read(&settings, now).await?),
        };
        Ok(Self {
            settings: Arc::new(settings),
            reached,
        })
    }
}

fn endpoint(destination: &Result<Destination, String>) -> Option<Endpoint> {
    let destination = destination.as_ref().ok()?;
    Some(destination.settings.endpoint.clone())
}

impl Connection {
    /// To the endpoint of the settings.
    pub(super) async fn http(settings: Settings, now: Monotonic) -> Result<Self, SetupError> {
        let destination = Destination::of(settings, None, now).await?;
        Ok(Self::of(Ok(destination), None))
    }

    /// To a simulator.
    pub(super) fn over(transport: Arc<dyn Transport>, settings: Settings) -> Self {
        let destination = Destination {
            settings: Arc::new(settings),
            reached: Reached::Transport(Arc::clone(&transport)),
        };
        Self::of(Ok(destination), Some(transport))
    }

    /// To nothing yet.
    pub(super) fn missing(why: String) -> Self {
        Self::of(Err(why), None)
    }

    fn of(destination: Result<Destination, String>, transport: Option<Arc<dyn Transport>>) -> Self {
        let at = At::first(endpoint(&destination));
        Self {
            destination: Mutex::new(destination),
            transport,
            changes: watch::Sender::new(at),
        }
    }

    /// Replaces the destination. The old one stays if the new one cannot be used.
    pub(super) async fn change(&self, to: Result<Settings, String>, now: Monotonic) -> Result<(), SetupError> {
        let to = match to {
            Ok(settings) => Ok(Destination::of(settings, self.transport.as_ref(), now).await?),
            Err(why) => Err(why),
        };
        let endpoint = endpoint(&to);
        let mut destination = self.destination.lock().await;
        *destination = to;
        self.changes.send_modify(|at| at.move_to(endpoint));
        Ok(())
    }

    /// Changes of the destination from now on.
    pub(super) fn changes(&self) -> watch::Receiver<At> {
        self.changes.subscribe()
    }

    /// The present destination.
    pub(super) fn at(&self) -> At {
        self.changes.borrow().clone()
    }

    /// What to send a request with now.
    pub(super) async fn current(&self, now: Monotonic) -> Result<Current, String> {
        let mut destination = self.destination.lock().await;
        let destination = destination.as_mut().map_err(|why| why.clone())?;
        let via = match &mut destination.reached {
            Reached::Transport(transport) => Via::Transport(Arc::clone(transport)),
            Reached::Http(http) => {
                http.reread(&destination.settings, now).await;
                Via::Http(http.client.clone(), http.files.login.clone())
            }
        };
        Ok(Current {
            settings: Arc::clone(&destination.settings),
            via,
        })
    }

    /// Whether a text contains the password in use.
    pub(super) async fn leaks_login(&self, text: &str) -> bool {
        match &*self.destination.lock().await {
            Ok(Destination {
                reached: Reached::Http(http),
                ..
            }) => {
                let password = http.files.login.as_ref().map(|(_, password)| password.expose_secret());
                password.is_some_and(|password| text.contains(password))
            }
            _ => false,
        }
    }
}
