//! Connections to allowed addresses only.
//!
//! The address that a connection goes to is the one that is compared, so a name that resolves to another address later
//! does not evade the list.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use hyper_util::rt::TokioExecutor;
use kube::Config;
use kube::client::{Body, ConfigExt as _};
use metal3_domain::allowed::Allowed;
use tower::util::BoxCloneService;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt as _};

/// Why a cluster is not connected.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is not in the list, or a proxy would hide the address.
    #[error("the API server is not at an allowed address")]
    NotAllowed,
    /// Certificates or credentials cannot be used.
    #[error(transparent)]
    Setup(#[from] kube::Error),
}

/// Resolves names, and keeps the allowed addresses.
#[derive(Clone)]
struct Resolver<R> {
    allowed: Allowed,
    names: R,
}

impl<R> Service<Name> for Resolver<R>
where
    R: Service<Name, Error = io::Error>,
    R::Response: Iterator<Item = SocketAddr>,
    R::Future: Send + 'static,
{
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.names.poll_ready(context)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (allowed, is_allowed_name) = (self.allowed.clone(), self.allowed.name(name.as_str()));
        let found = self.names.call(name);
        Box::pin(async move {
            let addresses = found.await?.filter(|one| is_allowed_name || allowed.address(one.ip()));
            let addresses: Vec<SocketAddr> = addresses.collect();
            match addresses.is_empty() {
                true => Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    ConnectError::NotAllowed,
                )),
                false => Ok(addresses.into_iter()),
            }
        })
    }
}

/// Requests to an API server.
pub(super) type Requests = BoxCloneService<Request<Body>, Response<UnsyncBoxBody<Bytes, BoxError>>, BoxError>;

/// A service that connects to allowed addresses only.
pub(super) fn restricted(config: &Config, allowed: &Allowed) -> Result<Requests, ConnectError> {
    let host = config.cluster_url.host().unwrap_or_default();
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    // An address is not resolved.
    let is_other_address = host.parse::<IpAddr>().is_ok_and(|address| !allowed.address(address));
    if is_other_address || config.proxy_url.is_some() {
        return Err(ConnectError::NotAllowed);
    }
    let mut connector = HttpConnector::new_with_resolver(Resolver {
        allowed: allowed.clone(),
        names: GaiResolver::new(),
    });
    connector.enforce_http(false);
    connector.set_connect_timeout(config.connect_timeout);
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let client: Client<_, Body> = Client::builder(TokioExecutor::new()).build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client)
        .map_response(|answer: Response<_>| answer.map(|body| body.map_err(BoxError::from).boxed_unsync()));
    Ok(service.boxed_clone())
}

/// Whether a request failed because the address is not allowed.
pub(crate) fn is_not_allowed(error: &kube::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if inner.is_some_and(|inner| inner.is::<ConnectError>()) {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tower::service_fn;

    use super::*;

    /// The user of a name server answers the first question with an allowed address and the next with another.
    #[tokio::test]
    async fn name_that_resolves_to_another_address_later_is_not_connected() {
        const ADDRESSES: [[u8; 4]; 3] = [[192, 0, 2, 7], [169, 254, 169, 254], [192, 0, 2, 8]];
        let resolved = async |entry: &'static str| {
            let asked = Arc::new(AtomicUsize::new(0));
            let names = service_fn(move |_: Name| {
                let address = ADDRESSES[asked.fetch_add(1, Ordering::Relaxed)];
                let answer = Ok::<_, io::Error>(vec![SocketAddr::from((address, 0))].into_iter());
                std::future::ready(answer)
            });
            let allowed = Allowed::parse([entry]).unwrap();
            let mut resolver = Resolver { allowed, names };
            let mut answers = Vec::new();
            for _ in ADDRESSES {
                let answer = resolver.call("api.example.org".parse().unwrap()).await;
                answers.push(answer.map(Iterator::count).map_err(|error| error.kind()));
            }
            answers
        };
        let refused = Err(io::ErrorKind::PermissionDenied);
        assert_eq!(resolved("192.0.2.0/24").await, [Ok(1), refused, Ok(1)]);
        // Who lists a name allows all its addresses.
        assert_eq!(resolved("api.example.org").await, [Ok(1), Ok(1), Ok(1)]);
    }
}
