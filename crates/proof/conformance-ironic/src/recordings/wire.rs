//! One exchange on a connection of its own, seen past any client: the bytes that came back.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use metal3_ironic::endpoint::Login as Known;
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

/// Whom to ask, and who asks.
pub(super) struct Line {
    address: SocketAddr,
    tls: Option<TlsConnector>,
    username: String,
    password: String,
}

impl Line {
    /// To a running Ironic, with its login.
    pub(super) fn to(lab: &Lab) -> anyhow::Result<Self> {
        let settings = lab.settings()?;
        let Known::Basic { username, password } = settings.login else {
            anyhow::bail!("this Ironic has no login");
        };
        let mut trusted = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(settings.trust.ca.context("no CA")?)? {
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

    /// To whatever listens there, without TLS.
    pub(super) fn plain(address: SocketAddr) -> Self {
        let (username, password) = ("admin".to_owned(), "of no use".to_owned());
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

    /// The same by another way.
    pub(super) fn at(self, address: SocketAddr) -> Self {
        Self { address, ..self }
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// A whole answer.
    pub(super) async fn ask(
        &self,
        method: &str,
        path: &str,
        version: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Vec<u8>> {
        let (came, broken) = self.listen(method, path, version, body).await?;
        ensure!(broken.is_none(), "it broke off: {broken:?}");
        Ok(came)
    }

    /// What came, and how it broke off where it did.
    pub(super) async fn listen(
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
        match self.secured().await? {
            Some(stream) => talk(stream, request.as_bytes()).await,
            None => talk(TcpStream::connect(self.address).await?, request.as_bytes()).await,
        }
    }

    /// What the other side shows of itself.
    pub(super) async fn certificate(&self) -> anyhow::Result<Vec<u8>> {
        let stream = self.secured().await?.context("no TLS")?;
        let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
        Ok(shown.first().context("no certificate")?.to_vec())
    }

    async fn secured(&self) -> anyhow::Result<Option<TlsStream<TcpStream>>> {
        let Some(tls) = &self.tls else { return Ok(None) };
        let name = ServerName::IpAddress(self.address.ip().into());
        let stream = TcpStream::connect(self.address).await?;
        Ok(Some(tls.connect(name, stream).await?))
    }
}

async fn talk<S>(stream: S, request: &[u8]) -> anyhow::Result<(Vec<u8>, Option<io::Error>)>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut from, mut to) = tokio::io::split(stream);
    let mut came = Vec::new();
    // A request that is too long is answered before it is read.
    let ask = async {
        to.write_all(request).await?;
        to.flush().await
    };
    let (asked, ended) = tokio::join!(ask, from.read_to_end(&mut came));
    if came.is_empty() {
        asked?;
    }
    // Ironic closes without a farewell of TLS: the length in its head says that the answer is whole.
    let broken = ended.err().filter(|_| !is_whole(&came));
    Ok((came, broken))
}

/// Whether a body is as long as its head says.
fn is_whole(came: &[u8]) -> bool {
    let Some(end) = came.windows(4).position(|four| four == b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(came.get(..end).unwrap_or_default()).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length = length.and_then(|length| length.trim().parse::<usize>().ok());
    length.is_some_and(|length| came.len() == end.saturating_add(4).saturating_add(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_when_its_body_is_as_long_as_its_head_says() {
        for (came, whole) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", true),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", false),
            ("HTTP/1.1 200 OK\r\n\r\n{}", false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0", false),
        ] {
            assert_eq!(is_whole(came.as_bytes()), whole, "{came}");
        }
    }
}
