//! The login of the kubeconfig, as it is in its files at each moment.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{AuthError, Body, ConfigExt as _};
use kube::{Client, Config};
use metal3_runtime::client::{Chosen, ClientFactory, ConfigError, load_viewer_config};
use ring::digest::{Context, SHA256};
use tower::util::BoxCloneService;
use tower::{BoxError, ServiceBuilder, ServiceExt as _, service_fn};

use super::program::{Program, Programs};
use super::{Checked, Failure, Owner, PROGRAM, Source};

/// A connection without traffic is tried after this time: a watch is silent for minutes, whether its peer is there or gone.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// It is tried again after this time, and ends after so many tries that were lost.
const AGAIN: Duration = Duration::from_secs(10);
const MOST_LOST: u32 = 3;

/// Requests with the login of a kubeconfig.
type Requests = BoxCloneService<http::Request<Body>, http::Response<axum::body::Body>, BoxError>;

/// A context of the kubeconfig. What is another one's current context later is not this one.
pub struct Kubeconfig {
    chosen: Chosen,
    requests: ClientFactory,
    owner: Arc<Owner>,
    programs: Programs,
}

impl std::fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kubeconfig")
            .field("chosen", &self.chosen)
            .finish_non_exhaustive()
    }
}

impl Kubeconfig {
    /// The chosen context, or the one that is the current one now.
    #[must_use]
    pub fn new(chosen: &Chosen, requests: ClientFactory) -> Self {
        let named = chosen.context.clone().filter(|name| !name.is_empty());
        let current = || {
            let path = chosen.kubeconfig.as_ref();
            let read = path.map_or_else(kube::config::Kubeconfig::read, kube::config::Kubeconfig::read_from);
            read.ok()?.current_context
        };
        Self {
            chosen: Chosen {
                kubeconfig: chosen.kubeconfig.clone(),
                context: named.or_else(current),
            },
            requests,
            owner: Arc::default(),
            programs: Programs::default(),
        }
    }

    /// The configuration as it is now.
    ///
    /// # Errors
    /// When there is none, or it has no such context.
    pub async fn config(&self) -> Result<Config, ConfigError> {
        load_viewer_config(&self.chosen).await
    }

    async fn open(&self) -> Result<Client, Failure> {
        let mut config = self
            .config()
            .await
            .map_err(|_| Failure::Unusable("the kubeconfig cannot be read, or no longer has the context".to_owned()))?;
        let host = config.cluster_url.host().unwrap_or_default().to_owned();
        let (owner, server) = (Arc::clone(&self.owner), server(&config));
        let program = self.programs.take(&mut config);
        if let Some(program) = &program {
            let given = program.begin(&mut config, PROGRAM).await;
            given.map_err(|_| Failure::Program)?;
        }
        // It reads files.
        let stack = tokio::task::spawn_blocking(move || stack(&config, (&server, owner))).await;
        let stack = stack.map_err(|_| Failure::Program)??;
        Ok(match program {
            Some(program) => self.requests.over(with_program(stack, program), &host),
            None => self.requests.over(stack, &host),
        })
    }
}

/// With the login that the program gives.
fn with_program(requests: Requests, program: Program) -> Requests {
    let requests = service_fn(move |mut request: http::Request<Body>| {
        let (requests, program) = (requests.clone(), program.clone());
        async move {
            if let Some(header) = program.header().await? {
                request.headers_mut().insert(AUTHORIZATION, header);
            }
            requests.oneshot(request).await
        }
    });
    requests.boxed_clone()
}

impl Source for Kubeconfig {
    fn look(&self) -> BoxFuture<'_, String> {
        Box::pin(async {
            match self.config().await {
                Ok(config) => tokio::task::spawn_blocking(move || digest(&config))
                    .await
                    .unwrap_or_default(),
                Err(error) => error.to_string(),
            }
        })
    }

    fn sent(&self) -> Option<u64> {
        Some(self.owner.sent())
    }

    fn connect(&self) -> BoxFuture<'_, Result<Client, Failure>> {
        Box::pin(self.open())
    }
}

/// The layers of the client library, with the check between the login and the network.
fn stack(config: &Config, (server, owner): (&str, Arc<Owner>)) -> Result<Requests, Failure> {
    if config.proxy_url.is_some() {
        return Err(Failure::Unusable(
            "the kubeconfig has a proxy, which this program does not use".to_owned(),
        ));
    }
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_keepalive(Some(KEEPALIVE));
    connector.set_keepalive_interval(Some(AGAIN));
    connector.set_keepalive_retries(Some(MOST_LOST));
    let auth = config.auth_layer().map_err(|error| failure(&error))?;
    let connector = config.rustls_https_connector_with_connector(connector);
    let client: HttpClient<_, Body> =
        HttpClient::builder(TokioExecutor::new()).build(connector.map_err(|error| failure(&error))?);
    let network = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .map_err(BoxError::from)
        .service(client);
    let checked = Checked::new(network, server, owner);
    let service = ServiceBuilder::new()
        .option_layer(auth)
        .layer(config.extra_headers_layer().map_err(|error| failure(&error))?)
        .service(checked);
    Ok(service.boxed_clone())
}

/// What a program prints may be a token: it is not shown.
fn failure(error: &kube::Error) -> Failure {
    match error {
        kube::Error::Auth(AuthError::ReadTokenFile(..)) => {
            Failure::Unusable("the file with the token of the kubeconfig cannot be read".to_owned())
        }
        kube::Error::Auth(_) => Failure::Program,
        _ => Failure::Unusable("the certificates of the kubeconfig cannot be used".to_owned()),
    }
}

/// What tells one API server from another.
fn server(config: &Config) -> String {
    let mut all = Context::new(&SHA256);
    for root in config.root_cert.iter().flatten() {
        all.update(root);
    }
    let name = config.tls_server_name.as_deref().unwrap_or_default();
    format!("{} {name} {}", config.cluster_url, hex(all))
}

/// A digest of all from which a login is made.
fn digest(config: &Config) -> String {
    let mut all = Context::new(&SHA256);
    let login = &config.auth_info;
    all.update(server(config).as_bytes());
    // Through a document, so that its members have an order.
    all.update(serde_json::to_value(login).unwrap_or_default().to_string().as_bytes());
    for path in [&login.token_file, &login.client_certificate, &login.client_key]
        .into_iter()
        .flatten()
    {
        all.update(&std::fs::read(path).unwrap_or_default());
    }
    hex(all)
}

fn hex(all: Context) -> String {
    let digest = all.finish();
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
