//! A plain client of Ironic's REST API: JSON in, JSON out, patience with what Ironic says while it is busy.

use std::{
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use anyhow::{Context as _, bail};
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use tokio::{sync::Semaphore, time::sleep};

/// Rebuild with a config-drive, inventory, node history and unbroken clean steps are all in it.
const API_VERSION: &str = "1.95";
/// Ironic keeps at most ten connections alive.
const CONNECTIONS: usize = 8;
/// A locked node (409) and a full conductor (503) are normal; this is 60 pauses of up to 2 s.
const ATTEMPTS: u32 = 60;

/// The file that `make ironic` writes.
#[derive(Deserialize)]
pub struct Endpoint {
    /// Its API.
    pub url: String,
    /// The authority that signed its certificate.
    pub ca: String,
    /// Who may ask.
    pub username: String,
    /// And with what.
    pub password: String,
    /// Where the file server shows the folder.
    pub files_url: String,
    /// That folder.
    pub files_root: String,
    /// The Python that runs it.
    pub python: String,
    /// Its process.
    pub pid: u32,
    /// Its entry point.
    pub entry: String,
    /// Its database.
    pub database: String,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Reads that file.
    ///
    /// # Errors
    /// When there is none, or it says something else.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| {
            format!(
                "cannot read {}; is Ironic running? start it with: make ironic",
                path.display()
            )
        })?;
        serde_json::from_str(&text).with_context(|| format!("{} is not an endpoint file", path.display()))
    }
}

/// A client that waits for its turn.
#[derive(Debug)]
pub struct Ironic {
    http: reqwest::Client,
    endpoint: Endpoint,
    slots: Semaphore,
    requests: AtomicU64,
}

impl Ironic {
    /// Trusts the authority that the file names. Nothing is sent.
    ///
    /// # Errors
    /// When that authority cannot be read.
    pub fn new(endpoint: Endpoint) -> anyhow::Result<Self> {
        let pem = std::fs::read(&endpoint.ca).with_context(|| format!("cannot read {}", endpoint.ca))?;
        let http = reqwest::Client::builder()
            .tls_certs_only(reqwest::Certificate::from_pem_bundle(&pem)?)
            .pool_max_idle_per_host(CONNECTIONS)
            .pool_idle_timeout(Duration::from_secs(8))
            .timeout(Duration::from_secs(180))
            .no_proxy()
            .build()?;
        Ok(Self {
            http,
            endpoint,
            slots: Semaphore::new(CONNECTIONS),
            requests: AtomicU64::new(0),
        })
    }

    /// Where it is.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// How many requests were sent so far, repetitions included.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Looks at something.
    ///
    /// # Errors
    /// When Ironic refuses, or stays busy.
    pub async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.call(Method::GET, path, None).await
    }

    /// Asks for anything.
    ///
    /// # Errors
    /// When Ironic refuses, or stays busy.
    pub async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        for attempt in 1..=ATTEMPTS {
            let (status, answer) = match self.once(&method, path, body).await {
                Ok(done) => done,
                // A reset connection: the listen backlog is five.
                Err(error)
                    if attempt < ATTEMPTS && (error.is_connect() || (error.is_request() && method != Method::POST)) =>
                {
                    sleep(pause(attempt)).await;
                    continue;
                }
                Err(error) => return Err(error).with_context(|| format!("{method} {path}")),
            };
            match status {
                status if status.is_success() => return Ok(answer),
                status if is_busy(status, &answer) && attempt < ATTEMPTS => {
                    sleep(pause(attempt)).await;
                }
                status => bail!("{method} {path}: {status}: {answer}"),
            }
        }
        bail!("{method} {path}: Ironic stayed busy")
    }

    async fn once(
        &self,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Value), reqwest::Error> {
        // The semaphore is never closed, so a permit always comes.
        let _slot = self.slots.acquire().await;
        self.requests.fetch_add(1, Ordering::Relaxed);
        let Endpoint {
            url,
            username,
            password,
            ..
        } = &self.endpoint;
        let mut request = self
            .http
            .request(method.clone(), format!("{url}{path}"))
            .basic_auth(username, Some(password));
        // The inspection endpoint answers the default version only.
        if path != "/v1/continue_inspection" {
            request = request.header("X-OpenStack-Ironic-API-Version", API_VERSION);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await?;
        let status = answer.status();
        let text = answer.text().await?;
        Ok((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
    }
}

fn pause(attempt: u32) -> Duration {
    Duration::from_millis(250)
        .saturating_mul(attempt)
        .min(Duration::from_secs(2))
}

/// A locked node, a full conductor or a locked database; a name or an address that is taken stays taken.
fn is_busy(status: StatusCode, answer: &Value) -> bool {
    match status {
        StatusCode::SERVICE_UNAVAILABLE => true,
        StatusCode::CONFLICT => !answer.to_string().contains("already exists"),
        // SQLite gives up after a while where many write, and undoes what it had begun.
        StatusCode::INTERNAL_SERVER_ERROR => answer.to_string().contains("database is locked"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_passes_by_itself_is_asked_again() {
        for (status, words, again) in [
            (503, "no free conductor workers", true),
            (409, "Node n is locked by host localhost", true),
            (409, "A node with name n already exists.", false),
            (500, "(sqlite3.OperationalError) database is locked", true),
            (500, "local variable referenced before assignment", false),
            (400, "database is locked", false),
        ] {
            let answer = json!({ "error_message": { "faultstring": words } });
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(is_busy(status, &answer), again, "{status}: {words}");
        }
    }
}
