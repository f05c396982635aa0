//! An Ironic that claims are held against, real or simulated.

mod nodes;
mod upheaval;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use metal3_domain::clock::{Clock, SystemClock};
use metal3_ironic::endpoint::{Endpoint, Login, Settings};
use metal3_ironic::transport::Transport as _;
use metal3_ironic::{Client, Error};
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use serde_json::{Map, Value, json};

pub(crate) use nodes::is_ours;

use crate::machine::{Machine, Pool};
use metal3_sim_ironic::Ironic;

/// Ten times what it takes on an idle machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Less than Ironic keeps a connection that nobody uses.
const IDLE: Duration = Duration::from_secs(8);
const VERSION: &str = "x-openstack-ironic-api-version";
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The file of an image.
const IMAGE: &str = "contract.raw";
/// Of [`image`].
const IMAGE_SHA256: &str = "2ace43c264d666031ec3062db892307818d2de9770c856258d87d3738ee6a77f";

/// A boot sector with one partition, as Ironic wants to see it, and nothing behind it.
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
    /// Its own, where it runs on this machine.
    python: Option<PathBuf>,
    /// What its machines may download, and where from.
    files_root: Option<PathBuf>,
    files_url: Option<String>,
}

#[derive(Debug)]
enum Door {
    Sockets(Box<Settings>),
    Within(Ironic),
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    /// Null where there is none.
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

/// An Ironic to make claims about.
#[derive(Debug)]
pub struct Lab {
    pub(crate) client: Client,
    pub(crate) clock: Arc<dyn Clock>,
    door: Door,
    url: String,
    python: Option<PathBuf>,
    files: Option<(PathBuf, String)>,
    machines: Option<Pool>,
    script: Option<PathBuf>,
    made: AtomicU32,
    taken: AtomicU32,
    /// For exchanges past the client: one connection, as it has one.
    sockets: OnceLock<reqwest::Client>,
}

fn sockets(settings: &Settings) -> anyhow::Result<reqwest::Client> {
    let pem = std::fs::read(settings.trust.ca.as_ref().context("no CA")?)?;
    let builder = reqwest::Client::builder().no_proxy();
    Ok(builder
        .pool_idle_timeout(IDLE)
        .tls_certs_only(reqwest::Certificate::from_pem_bundle(&pem)?)
        .build()?)
}

impl Lab {
    /// A running one, by the file that starting it wrote: url, ca, username, password.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub async fn open(credentials: &Path) -> anyhow::Result<Self> {
        let access: Access = serde_json::from_str(&std::fs::read_to_string(credentials)?)?;
        let mut settings = Settings::new(Endpoint::parse(&access.url)?);
        settings.trust.ca = Some(access.ca);
        settings.login = Login::Basic {
            username: access.username,
            password: access.password.into(),
        };
        let mut lab = Self::behind(settings, &access.url).await?;
        lab.python = access.python;
        lab.files = access.files_root.zip(access.files_url);
        Ok(lab)
    }

    /// The same with machines.
    #[must_use]
    pub fn with(self, machines: Pool) -> Self {
        Self {
            machines: Some(machines),
            ..self
        }
    }

    /// The same, where the script that started it can have it die and come back.
    #[must_use]
    pub fn started_by(self, script: PathBuf) -> Self {
        Self {
            script: Some(script),
            ..self
        }
    }

    /// A machine that no other claim has.
    pub(crate) fn machine(&self) -> anyhow::Result<Machine<'_>> {
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        match (&self.door, &self.machines) {
            (Door::Within(ironic), _) => Machine::within(self, ironic, number),
            (Door::Sockets(_), Some(pool)) => Machine::of_pool(self, pool, number),
            (Door::Sockets(_), None) => bail!("this Ironic has no machines"),
        }
    }

    /// What a machine is to run, as `instance_info`.
    pub(crate) fn image(&self) -> anyhow::Result<Value> {
        let source = match (&self.door, &self.files) {
            (Door::Within(_), _) => format!("http://images/{IMAGE}"),
            (Door::Sockets(_), Some((root, url))) => {
                // Machines of other claims may be reading it.
                let (file, bytes) = (root.join(IMAGE), image());
                if std::fs::read(&file).ok().as_ref() != Some(&bytes) {
                    let new = file.with_extension("new");
                    std::fs::write(&new, bytes)?;
                    std::fs::rename(new, file)?;
                }
                format!("{url}/{IMAGE}")
            }
            (Door::Sockets(_), None) => bail!("this Ironic has no files"),
        };
        Ok(
            json!({ "image_source": source, "image_os_hash_algo": "sha256", "image_os_hash_value": IMAGE_SHA256,
            "image_disk_format": "raw" }),
        )
    }

    /// The Python that this Ironic runs in, where that is known.
    #[must_use]
    pub fn python(&self) -> Option<&Path> {
        self.python.as_deref()
    }

    /// A running one at an address.
    ///
    /// # Errors
    /// When there is no client for these settings.
    pub async fn behind(settings: Settings, url: &str) -> anyhow::Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
        Ok(Self {
            client: Client::new(settings.clone(), Arc::clone(&clock)).await?,
            clock,
            door: Door::Sockets(Box::new(settings)),
            url: url.to_owned(),
            python: None,
            files: None,
            machines: None,
            script: None,
            made: AtomicU32::new(0),
            taken: AtomicU32::new(0),
            sockets: OnceLock::new(),
        })
    }

    /// One in this process, without sockets.
    ///
    /// # Errors
    /// Never in practice.
    pub fn within(ironic: Ironic, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        Ok(Self {
            client: ironic.client()?,
            clock,
            door: Door::Within(ironic),
            url: String::new(),
            python: None,
            files: None,
            machines: None,
            script: None,
            made: AtomicU32::new(0),
            taken: AtomicU32::new(0),
            sockets: OnceLock::new(),
        })
    }

    /// A client that has asked nothing yet.
    pub(crate) async fn another_client(&self) -> anyhow::Result<Client> {
        match &self.door {
            Door::Sockets(settings) => Ok(Client::new(settings.as_ref().clone(), Arc::clone(&self.clock)).await?),
            Door::Within(ironic) => Ok(ironic.client()?),
        }
    }

    /// One exchange in any dialect, past the client.
    pub(crate) async fn raw(
        &self,
        method: &str,
        path: &str,
        version: &str,
        body: Option<Value>,
    ) -> anyhow::Result<Raw> {
        let body = body.map(|body| body.to_string()).unwrap_or_default().into_bytes();
        match &self.door {
            Door::Within(ironic) => {
                let request = http::Request::builder().method(method).uri(path);
                let request = request.header(VERSION, version).body(body)?;
                let (head, body) = ironic.exchange(request).await?.into_parts();
                Raw::of(head.status.as_u16(), head.headers, &body)
            }
            Door::Sockets(settings) => {
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

    /// Its address, empty where there is none.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn settings(&self) -> anyhow::Result<Settings> {
        match &self.door {
            Door::Sockets(settings) => Ok(settings.as_ref().clone()),
            Door::Within(_) => bail!("this Ironic has no sockets"),
        }
    }
}

/// Checks the kind of a refusal.
pub(crate) fn refused<T>(answer: Result<T, Error>, category: &str) -> anyhow::Result<Error> {
    match answer {
        Ok(_) => bail!("it was taken"),
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
