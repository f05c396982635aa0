//! The Ironic under test, real or simulated.

mod nodes;
mod restart;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use metal3_domain::clock::{Clock, SystemClock};
use metal3_ironic::endpoint::{Ca, Endpoint, Login, Settings};
use metal3_ironic::transport::Transport as _;
use metal3_ironic::{Client, Error};
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use serde_json::{Map, Value, json};

pub(crate) use nodes::is_test_node;

use crate::pool::Pool;
use metal3_sim_ironic::Ironic;

/// Ten times the duration on an idle host.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);
/// Less than Ironic's idle timeout of connections.
const IDLE: Duration = Duration::from_secs(8);
const VERSION: &str = "x-openstack-ironic-api-version";
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The file name of the image.
const IMAGE: &str = "contract.raw";
/// The checksum of [`image`].
const IMAGE_SHA256: &str = "2ace43c264d666031ec3062db892307818d2de9770c856258d87d3738ee6a77f";

/// A boot sector with one partition, which Ironic accepts as an image.
fn image() -> Vec<u8> {
    const PARTITION: [u8; 16] = [0x80, 0, 2, 0, 0x83, 0, 0, 0, 1, 0, 0, 0, 0xff, 7, 0, 0];
    let mut bytes = vec![0; 446];
    bytes.extend(PARTITION);
    bytes.resize(510, 0);
    bytes.extend([0x55, 0xaa]);
    bytes.resize(1 << 20, 0);
    bytes
}

#[derive(Deserialize)]
struct Access {
    url: String,
    ca: PathBuf,
    username: String,
    password: String,
    /// The Python of this Ironic, when it runs on this host.
    python: Option<PathBuf>,
    /// The directory and URL of files for its machines.
    files_root: Option<PathBuf>,
    files_url: Option<String>,
}

pub(crate) enum Connection {
    Sockets(Box<Settings>),
    InProcess(Ironic),
}

/// A raw response.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    /// Null when empty.
    pub(crate) body: Value,
}

impl Raw {
    fn of(status: u16, headers: http::HeaderMap, body: &[u8]) -> anyhow::Result<Self> {
        let body = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(body)?
        };
        Ok(Self { status, headers, body })
    }
}

/// The Ironic under test.
pub struct Lab {
    pub(crate) client: Client,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) connection: Connection,
    url: String,
    python: Option<PathBuf>,
    files: Option<(PathBuf, String)>,
    pub(crate) machines: Option<Pool>,
    script: Option<PathBuf>,
    made: AtomicU32,
    pub(crate) taken: AtomicU32,
    /// The HTTP client of raw requests.
    sockets: OnceLock<reqwest::Client>,
}

fn sockets(settings: &Settings) -> anyhow::Result<reqwest::Client> {
    let pem = std::fs::read(settings.trust.ca.as_ref().and_then(Ca::file).context("no CA")?)?;
    let builder = reqwest::Client::builder().no_proxy();
    Ok(builder
        .pool_idle_timeout(IDLE)
        .tls_certs_only(reqwest::Certificate::from_pem_bundle(&pem)?)
        .build()?)
}

impl Lab {
    /// Connects to a running Ironic with the endpoint file of its start script: url, ca, username, password.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub async fn open(credentials: &Path) -> anyhow::Result<Self> {
        let access: Access = serde_json::from_str(&std::fs::read_to_string(credentials)?)?;
        let mut settings = Settings::new(Endpoint::parse(&access.url)?);
        settings.trust.ca = Some(Ca::File(access.ca));
        settings.login = Login::Basic {
            username: access.username,
            password: access.password.into(),
        };
        let mut lab = Self::connect(settings, &access.url).await?;
        lab.python = access.python;
        lab.files = access.files_root.zip(access.files_url);
        Ok(lab)
    }

    /// Adds machines.
    #[must_use]
    pub fn with(self, machines: Pool) -> Self {
        let machines = Some(machines);
        Self { machines, ..self }
    }

    /// Adds the script that can restart it.
    #[must_use]
    pub fn started_by(self, script: PathBuf) -> Self {
        let script = Some(script);
        Self { script, ..self }
    }

    /// The `instance_info` of a deployment.
    pub(crate) fn image(&self) -> anyhow::Result<Value> {
        let source = match (&self.connection, &self.files) {
            (Connection::InProcess(_), _) => format!("http://images/{IMAGE}"),
            (Connection::Sockets(_), Some((root, url))) => {
                // Replaced atomically, because machines of other claims may read it.
                let (file, bytes) = (root.join(IMAGE), image());
                if std::fs::read(&file).ok().as_ref() != Some(&bytes) {
                    let new = file.with_extension("new");
                    std::fs::write(&new, bytes)?;
                    std::fs::rename(new, file)?;
                }
                format!("{url}/{IMAGE}")
            }
            (Connection::Sockets(_), None) => bail!("this Ironic has no files"),
        };
        Ok(
            json!({ "image_source": source, "image_os_hash_algo": "sha256", "image_os_hash_value": IMAGE_SHA256,
            "image_disk_format": "raw" }),
        )
    }

    /// The Python of this Ironic, if known.
    #[must_use]
    pub fn python(&self) -> Option<&Path> {
        self.python.as_deref()
    }

    /// Connects to a running Ironic.
    ///
    /// # Errors
    /// When the settings are invalid.
    pub async fn connect(settings: Settings, url: &str) -> anyhow::Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
        let client = Client::new(settings.clone(), Arc::clone(&clock)).await?;
        Ok(Self::of(client, clock, Connection::Sockets(Box::new(settings)), url))
    }

    /// Uses a simulated Ironic without sockets.
    ///
    /// # Errors
    /// Never in practice.
    pub fn in_process(ironic: Ironic, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        Ok(Self::of(ironic.client()?, clock, Connection::InProcess(ironic), ""))
    }

    fn of(client: Client, clock: Arc<dyn Clock>, connection: Connection, url: &str) -> Self {
        Self {
            client,
            clock,
            connection,
            url: url.to_owned(),
            python: None,
            files: None,
            machines: None,
            script: None,
            made: AtomicU32::new(0),
            taken: AtomicU32::new(0),
            sockets: OnceLock::new(),
        }
    }

    /// A new client.
    pub(crate) async fn another_client(&self) -> anyhow::Result<Client> {
        match &self.connection {
            Connection::Sockets(settings) => Ok(Client::new(settings.as_ref().clone(), Arc::clone(&self.clock)).await?),
            Connection::InProcess(ironic) => Ok(ironic.client()?),
        }
    }

    /// Sends a raw request with any microversion.
    pub(crate) async fn raw(
        &self,
        method: &str,
        path: &str,
        version: &str,
        body: Option<Value>,
    ) -> anyhow::Result<Raw> {
        let body = body.map(|body| body.to_string()).unwrap_or_default().into_bytes();
        match &self.connection {
            Connection::InProcess(ironic) => {
                let request = http::Request::builder().method(method).uri(path);
                let request = request.header(VERSION, version).body(body)?;
                let (head, body) = ironic.exchange(request).await?.into_parts();
                Raw::of(head.status.as_u16(), head.headers, &body)
            }
            Connection::Sockets(settings) => {
                let sockets = match self.sockets.get() {
                    Some(sockets) => sockets,
                    None => {
                        let made = sockets(settings)?;
                        self.sockets.get_or_init(|| made)
                    }
                };
                let url = format!("{}{path}", self.url.trim_end_matches('/'));
                let mut request = sockets.request(method.parse()?, url).header(VERSION, version);
                if let Login::Basic { username, password } = &settings.login {
                    request = request.basic_auth(username, Some(password.expose_secret()));
                }
                let request = request.header("content-type", "application/json").body(body);
                let answer = request.send().await?;
                let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
                Raw::of(status, headers, &answer.bytes().await?)
            }
        }
    }

    /// Its URL, empty without sockets.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn settings(&self) -> anyhow::Result<Settings> {
        match &self.connection {
            Connection::Sockets(settings) => Ok(settings.as_ref().clone()),
            Connection::InProcess(_) => bail!("this Ironic has no sockets"),
        }
    }
}

/// Expects an error of this category.
pub(crate) fn expect_error<T>(answer: Result<T, Error>, category: &str) -> anyhow::Result<Error> {
    match answer {
        Ok(_) => bail!("the request succeeded"),
        Err(error) => {
            ensure!(error.category() == category, "{}: {error}", error.category());
            Ok(error)
        }
    }
}

pub(crate) fn object<const N: usize>(entries: [(&str, Value); N]) -> Map<String, Value> {
    entries
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}
