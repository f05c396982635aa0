//! What the files of [`Settings`] say now, and the HTTP client made of it.
//!
//! Files are read whole and compared, not watched: Kubernetes swaps a link under mounted files, which watchers miss.

use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Certificate, Identity};
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;

use crate::endpoint::{Login, Settings};

/// Ironic keeps ten connections alive; the rest are closed after each answer.
pub(crate) const CONNECTIONS: usize = 8;
/// It closes one that is idle for ten seconds: we let go first.
const IDLE: Duration = Duration::from_secs(8);
/// A host that does not take a connection by then is not there.
const CONNECT: Duration = Duration::from_secs(10);

/// Why there is no client.
#[derive(Debug, Error)]
pub enum SetupError {
    /// A file cannot be read.
    #[error("cannot read {}: {}", path.display(), source.kind())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file of the login is empty.
    #[error("{} is empty; write the login into it", .0.display())]
    Empty(PathBuf),
    /// A file holds no certificate or key that can be used. Its content is not shown.
    #[error("{} holds no usable {what} in PEM form", path.display())]
    Pem {
        /// Which.
        path: PathBuf,
        /// `certificate`, `certificate and key`.
        what: &'static str,
    },
    /// Certificate and key do not fit, or the like.
    #[error("TLS cannot be set up from these files; check that certificate and key belong together")]
    Tls,
}

/// The content of the files.
#[derive(Debug, Default)]
pub(crate) struct Material {
    ca: Option<Vec<u8>>,
    identity: Option<SecretString>,
    pub(crate) login: Option<(String, SecretString)>,
}

impl Material {
    pub(crate) async fn read(settings: &Settings) -> Result<Self, SetupError> {
        let trust = &settings.trust;
        let ca = match &trust.ca {
            Some(path) => Some(text(path).await?.expose_secret().as_bytes().to_vec()),
            None => None,
        };
        let identity = match &trust.client {
            Some(client) => {
                let (certificate, key) = (text(&client.certificate).await?, text(&client.key).await?);
                Some(format!("{}\n{}", certificate.expose_secret(), key.expose_secret()).into())
            }
            None => None,
        };
        let login = match &settings.login {
            Login::Open => None,
            Login::Basic { username, password } => Some((username.clone(), password.clone())),
            Login::Folder(folder) => {
                let username = trimmed(&folder.join("username")).await?;
                let password = trimmed(&folder.join("password")).await?;
                Some((username.expose_secret().to_owned(), password))
            }
        };
        Ok(Self { ca, identity, login })
    }

    pub(crate) fn is_as(&self, other: &Self) -> bool {
        let exposed = |secret: &Option<SecretString>| secret.as_ref().map(|secret| secret.expose_secret().to_owned());
        let login = |material: &Self| {
            let login = material.login.as_ref();
            login.map(|(name, password)| (name.clone(), password.expose_secret().to_owned()))
        };
        self.ca == other.ca && exposed(&self.identity) == exposed(&other.identity) && login(self) == login(other)
    }

    /// A client that trusts and shows what these files say, follows no redirect and no proxy of the environment.
    /// differs (`ironic-no-redirects`): whom the endpoint names gets the login, and nobody else.
    pub(crate) fn client(&self, settings: &Settings) -> Result<reqwest::Client, SetupError> {
        let trust = &settings.trust;
        let mut builder = reqwest::Client::builder()
            .redirect(Policy::none())
            .no_proxy()
            .http1_only()
            .pool_max_idle_per_host(CONNECTIONS)
            .pool_idle_timeout(IDLE)
            .connect_timeout(CONNECT)
            .timeout(settings.time_limit)
            .tls_danger_accept_invalid_certs(trust.insecure);
        if let (Some(pem), Some(path)) = (&self.ca, &trust.ca) {
            let bundle = Certificate::from_pem_bundle(pem).unwrap_or_default();
            if bundle.is_empty() {
                let (path, what) = (path.clone(), "certificate");
                return Err(SetupError::Pem { path, what });
            }
            builder = builder.tls_certs_only(bundle);
        }
        if let (Some(pem), Some(files)) = (&self.identity, &trust.client) {
            let identity = Identity::from_pem(pem.expose_secret().as_bytes()).map_err(|_| SetupError::Pem {
                path: files.certificate.clone(),
                what: "certificate and key",
            })?;
            builder = builder.identity(identity);
        }
        // The error of the builder could show what it read.
        builder.build().map_err(|_| SetupError::Tls)
    }
}

async fn text(path: &Path) -> Result<SecretString, SetupError> {
    match tokio::fs::read_to_string(path).await {
        Ok(text) => Ok(text.into()),
        Err(source) => {
            let path = path.to_owned();
            Err(SetupError::File { path, source })
        }
    }
}

async fn trimmed(path: &Path) -> Result<SecretString, SetupError> {
    let text = text(path).await?;
    let trimmed = text.expose_secret().trim();
    if trimmed.is_empty() {
        return Err(SetupError::Empty(path.to_owned()));
    }
    Ok(trimmed.to_owned().into())
}
