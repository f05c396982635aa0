//! The content of the files of [`Settings`], and the HTTP client made from it.
//!
//! Files are read and compared, not watched: Kubernetes swaps a link above mounted files, which watchers miss.

use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Certificate, ClientBuilder, Identity};
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;

use crate::endpoint::{Ca, Login, Settings, Trust};
use crate::pinned::{self, Unusable};

/// Ironic keeps ten connections open; others are closed after each response.
pub(crate) const CONNECTIONS: usize = 8;
/// Ironic closes a connection that is idle for ten seconds: the client closes it first.
const IDLE: Duration = Duration::from_secs(8);
/// The connect timeout.
const CONNECT: Duration = Duration::from_secs(10);

/// Why there is no client.
#[derive(Debug, Error)]
pub enum SetupError {
    /// A file cannot be read.
    #[error("cannot read {}: {}", path.display(), source.kind())]
    File {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file of the login is empty.
    #[error("{} is empty; write the login into it", .0.display())]
    Empty(PathBuf),
    /// A file holds no certificate or key that can be used. Its content is not shown.
    #[error("{from} holds no usable {what} in PEM form")]
    Pem {
        /// Its path, or the object that holds it.
        from: String,
        /// `certificate`, `certificate and key`.
        what: &'static str,
    },
    /// Certificate and key do not match, or the like.
    #[error("TLS cannot be set up from these files; check that certificate and key belong together")]
    Tls,
}

/// The content of the files.
#[derive(Debug, Default)]
pub(crate) struct CredentialFiles {
    ca: Option<Vec<u8>>,
    identity: Option<SecretString>,
    pub(crate) login: Option<(String, SecretString)>,
}

impl CredentialFiles {
    pub(crate) async fn read(settings: &Settings) -> Result<Self, SetupError> {
        let trust = &settings.trust;
        let ca = match &trust.ca {
            Some(Ca::File(path)) => Some(text(path).await?.expose_secret().as_bytes().to_vec()),
            Some(Ca::Pem { pem, .. }) => Some(pem.as_bytes().to_vec()),
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

    pub(crate) fn is_equal(&self, other: &Self) -> bool {
        let exposed = |secret: &Option<SecretString>| secret.as_ref().map(|secret| secret.expose_secret().to_owned());
        let login = |files: &Self| {
            let login = files.login.as_ref();
            login.map(|(name, password)| (name.clone(), password.expose_secret().to_owned()))
        };
        self.ca == other.ca && exposed(&self.identity) == exposed(&other.identity) && login(self) == login(other)
    }

    /// With the certificate of the client, if there is one.
    fn identified(&self, builder: ClientBuilder, trust: &Trust) -> Result<ClientBuilder, SetupError> {
        let Some(pem) = &self.identity else {
            return Ok(builder);
        };
        let identity = Identity::from_pem(pem.expose_secret().as_bytes());
        Ok(builder.identity(identity.map_err(|_| identity_error(trust))?))
    }

    /// A client with this trust and identity, which follows no redirect and no proxy of the environment.
    /// differs (`ironic-no-redirects`): only the configured endpoint receives the login.
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
        builder = match (&self.ca, &trust.ca) {
            (Some(pem), Some(Ca::Pem { from, .. })) if !trust.insecure => {
                let identity = self
                    .identity
                    .as_ref()
                    .map(|identity| identity.expose_secret().as_bytes());
                let config = pinned::config(pem, identity).map_err(|unusable| match unusable {
                    Unusable::Bundle => SetupError::Pem {
                        from: from.clone(),
                        what: "certificate",
                    },
                    Unusable::Identity => identity_error(trust),
                })?;
                builder.tls_backend_preconfigured(config)
            }
            (Some(pem), Some(ca)) => self.identified(builder.tls_certs_only(bundle(pem, ca)?), trust)?,
            _ => self.identified(builder, trust)?,
        };
        // The builder's error could show file content.
        builder.build().map_err(|_| SetupError::Tls)
    }
}

/// The certificate of the client cannot be used, or not with its key.
fn identity_error(trust: &Trust) -> SetupError {
    let certificate = trust
        .client
        .as_ref()
        .map(|files| files.certificate.display().to_string());
    SetupError::Pem {
        from: certificate.unwrap_or_default(),
        what: "certificate and key",
    }
}

/// The certificates of a bundle.
fn bundle(pem: &[u8], ca: &Ca) -> Result<Vec<Certificate>, SetupError> {
    let bundle = Certificate::from_pem_bundle(pem).unwrap_or_default();
    if !bundle.is_empty() {
        return Ok(bundle);
    }
    let from = match ca {
        Ca::File(path) => path.display().to_string(),
        Ca::Pem { from, .. } => from.clone(),
    };
    let what = "certificate";
    Err(SetupError::Pem { from, what })
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
