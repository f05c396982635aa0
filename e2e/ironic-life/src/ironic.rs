//! A plain client of Ironic's REST API: JSON in, JSON out. Repeats a request while Ironic is busy.

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

/// Has rebuild with a config-drive, inventory, node history and working clean steps.
const API_VERSION: &str = "1.95";
/// Ironic keeps at most ten connections alive.
const CONNECTIONS: usize = 8;
/// A locked node (409) and a full conductor (503) are normal; this is 60 pauses of up to 2 s.
const ATTEMPTS: u32 = 60;

/// The file that `make ironic` writes.
#[derive(Deserialize)]
pub struct Endpoint {
    /// The address of the API.
    pub url: String,
    /// The certificate authority of the API's certificate.
    pub ca: String,
    /// The user name.
    pub username: String,
    /// The password.
    pub password: String,
    /// The address of the file server.
    pub files_url: String,
    /// The directory it serves.
    pub files_root: String,
    /// The Python interpreter.
    pub python: String,
    /// The process id.
    pub pid: u32,
    /// The entry point: `fast` or `stock`.
    pub entry: String,
    /// The database: `sqlite` or `mariadb`.
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
    /// When the file is missing or invalid.
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

/// A client with a limit of simultaneous requests.
#[derive(Debug)]
pub struct Ironic {
    http: reqwest::Client,
    endpoint: Endpoint,
    slots: Semaphore,
    requests: AtomicU64,
}

impl Ironic {
    /// Trusts the certificate authority of the endpoint. Sends no request.
    ///
    /// # Errors
    /// When the certificate authority cannot be read.
    pub fn new(endpoint: Endpoint) -> anyhow::Result<Self> {
        let http = client(&endpoint.ca, Duration::from_secs(180))?;
        Ok(Self {
            http,
            endpoint,
            slots: Semaphore::new(CONNECTIONS),
            requests: AtomicU64::new(0),
        })
    }

    /// The endpoint.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The number of requests sent, retries included.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Sends a GET.
    ///
    /// # Errors
    /// When Ironic rejects it, or stays busy.
    pub async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.call(Method::GET, path, None).await
    }

    /// Sends a request, and repeats it while Ironic is busy.
    ///
    /// # Errors
    /// When Ironic rejects it, or stays busy.
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

    /// Deletes the nodes whose names begin with the prefix, in any state: their machines no longer run.
    pub(crate) async fn remove_nodes(&self, prefix: &str) -> anyhow::Result<()> {
        let listed = self.get("/v1/nodes?fields=uuid,name").await?;
        for node in listed.get("nodes").and_then(Value::as_array).into_iter().flatten() {
            let field = |name: &str| node.get(name).and_then(Value::as_str).unwrap_or_default();
            if field("name").starts_with(prefix) {
                let path = format!("/v1/nodes/{}", field("uuid"));
                let maintenance = Some(&Value::Object(serde_json::Map::new()));
                self.call(Method::PUT, &format!("{path}/maintenance"), maintenance)
                    .await?;
                self.call(Method::DELETE, &path, None).await?;
            }
        }
        Ok(())
    }

    async fn once(
        &self,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Value), reqwest::Error> {
        // The semaphore is never closed.
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
        // The inspection endpoint supports the default version only.
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

/// An HTTP client that trusts only this certificate authority.
///
/// # Errors
/// When the file cannot be read or is not a PEM bundle.
pub fn client(ca: &str, timeout: Duration) -> anyhow::Result<reqwest::Client> {
    let pem = std::fs::read(ca).with_context(|| format!("cannot read {ca}"))?;
    let client = reqwest::Client::builder()
        .tls_certs_only(reqwest::Certificate::from_pem_bundle(&pem)?)
        .pool_max_idle_per_host(CONNECTIONS)
        // Ironic closes a connection that was idle for ten seconds.
        .pool_idle_timeout(Duration::from_secs(8))
        .timeout(timeout)
        .no_proxy()
        .build()?;
    Ok(client)
}

fn pause(attempt: u32) -> Duration {
    Duration::from_millis(250)
        .saturating_mul(attempt)
        .min(Duration::from_secs(2))
}

/// A locked node, a full conductor or a locked database; a duplicate name or address is a permanent conflict.
fn is_busy(status: StatusCode, answer: &Value) -> bool {
    match status {
        StatusCode::SERVICE_UNAVAILABLE => true,
        StatusCode::CONFLICT => !answer.to_string().contains("already exists"),
        // SQLite gives up after a timeout under many writers, and rolls back.
        StatusCode::INTERNAL_SERVER_ERROR => answer.to_string().contains("database is locked"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_temporary_errors_are_retried() {
        for (status, message, retried) in [
            (503, "no free conductor workers", true),
            (409, "Node n is locked by host localhost", true),
            (409, "A node with name n already exists.", false),
            (500, "(sqlite3.OperationalError) database is locked", true),
            (500, "local variable referenced before assignment", false),
            (400, "database is locked", false),
        ] {
            let answer = json!({ "error_message": { "faultstring": message } });
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(is_busy(status, &answer), retried, "{status}: {message}");
        }
    }
}
