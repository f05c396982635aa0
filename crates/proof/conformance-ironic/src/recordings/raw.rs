//! Raw HTTP exchanges: the bytes of a response.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use metal3_ironic::endpoint::{Ca, Login as ClientLogin};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use secrecy::ExposeSecret as _;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::lab::Lab;
use metal3_sim_ironic::Login;

/// An address with credentials.
pub(super) struct RawClient {
    address: SocketAddr,
    tls: Option<TlsConnector>,
    username: String,
    password: String,
}

impl RawClient {
    /// For a running Ironic, with its login.
    pub(super) fn to(lab: &Lab) -> anyhow::Result<Self> {
        let settings = lab.settings()?;
        let ClientLogin::Basic { username, password } = settings.login else {
            anyhow::bail!("this Ironic has no login");
        };
        let mut trusted = RootCertStore::empty();
        for certificate in
            CertificateDer::pem_file_iter(settings.trust.ca.as_ref().and_then(Ca::file).context("no CA")?)?
        {
            trusted.add(certificate?)?;
        }
        let config = ClientConfig::builder().with_root_certificates(trusted);
        let address = lab.url().strip_prefix("https://").context("no TLS")?;
        Ok(Self {
            address: address.trim_end_matches('/').parse()?,
            tls: Some(TlsConnector::from(Arc::new(config.with_no_client_auth()))),
            username,
            password: password.expose_secret().to_owned(),
        })
    }

    /// For a server without TLS.
    pub(super) fn plain(address: SocketAddr) -> Self {
        let (username, password) = ("admin".to_owned(), "unused".to_owned());
        Self {
            address,
            tls: None,
            username,
            password,
        }
    }

    pub(super) fn with_password(self, password: &str) -> Self {
        Self {
            password: password.to_owned(),
            ..self
        }
    }

    /// The same with another address.
    pub(super) fn at(self, address: SocketAddr) -> Self {
        Self { address, ..self }
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a request and returns the complete response.
    pub(super) async fn request(
        &self,
        method: &str,
        path: &str,
        version: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Vec<u8>> {
        let (received, error) = self.exchange_bytes(method, path, version, body).await?;
        ensure!(error.is_none(), "the response was truncated: {error:?}");
        Ok(received)
    }

    /// Sends a request and returns the received bytes and the error of a truncated response.
    pub(super) async fn exchange_bytes(
        &self,
        method: &str,
        path: &str,
        version: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<(Vec<u8>, Option<io::Error>)> {
        let body = body.map(ToString::to_string).unwrap_or_default();
        let (username, password) = (self.username.clone(), self.password.clone());
        let login = Login { username, password }.header();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: ironic\r\nAuthorization: {login}\r\nAccept: application/json\r\n\
             X-OpenStack-Ironic-API-Version: {version}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        match self.connect_tls().await? {
            Some(stream) => exchange(stream, request.as_bytes()).await,
            None => exchange(TcpStream::connect(self.address).await?, request.as_bytes()).await,
        }
    }

    /// The server certificate.
    pub(super) async fn certificate(&self) -> anyhow::Result<Vec<u8>> {
        let stream = self.connect_tls().await?.context("no TLS")?;
        let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
        Ok(shown.first().context("no certificate")?.to_vec())
    }

    async fn connect_tls(&self) -> anyhow::Result<Option<TlsStream<TcpStream>>> {
        let Some(tls) = &self.tls else { return Ok(None) };
        let name = ServerName::IpAddress(self.address.ip().into());
        let stream = TcpStream::connect(self.address).await?;
        Ok(Some(tls.connect(name, stream).await?))
    }
}

async fn exchange<S>(stream: S, request: &[u8]) -> anyhow::Result<(Vec<u8>, Option<io::Error>)>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut from, mut to) = tokio::io::split(stream);
    let mut received = Vec::new();
    // The server may respond before it reads a long request.
    let send = async {
        to.write_all(request).await?;
        to.flush().await
    };
    let (sent, ended) = tokio::join!(send, from.read_to_end(&mut received));
    if received.is_empty() {
        sent?;
    }
    // Ironic closes without a TLS close_notify: `Content-Length` shows that the response is complete.
    let error = ended.err().filter(|_| !is_complete(&received));
    Ok((received, error))
}

/// Whether a body has the length of `Content-Length`.
fn is_complete(received: &[u8]) -> bool {
    let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(received.get(..end).unwrap_or_default()).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length = length.and_then(|length| length.trim().parse::<usize>().ok());
    length.is_some_and(|length| received.len() == end.saturating_add(4).saturating_add(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_is_complete_when_its_body_has_the_content_length() {
        for (received, complete) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", true),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", false),
            ("HTTP/1.1 200 OK\r\n\r\n{}", false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0", false),
        ] {
            assert_eq!(is_complete(received.as_bytes()), complete, "{received}");
        }
    }
}
