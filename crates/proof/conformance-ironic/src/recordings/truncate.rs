//! A TCP proxy that resets the client's connection after a number of response bytes.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The delay before the reset, in which the client reads the forwarded bytes.
const READING: Duration = Duration::from_millis(200);

/// A running proxy, which ends on drop.
pub(super) struct TruncatingProxy {
    address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl TruncatingProxy {
    /// Starts a proxy for a server.
    pub(super) async fn start(server: SocketAddr, after: u64) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(forward(client, server, after));
            }
        });
        Ok(Self { address, _tasks: tasks })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn forward(mut client: TcpStream, server: SocketAddr, after: u64) -> io::Result<()> {
    let mut server = TcpStream::connect(server).await?;
    // Makes closing a reset.
    client.set_zero_linger()?;
    let (mut requests, mut responses) = client.split();
    let (answers, mut to_server) = server.split();
    let mut answers = answers.take(after);
    tokio::select! {
        ended = tokio::io::copy(&mut requests, &mut to_server) => ended?,
        ended = tokio::io::copy(&mut answers, &mut responses) => ended?,
    };
    tokio::time::sleep(READING).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;

    #[tokio::test]
    async fn proxy_forwards_the_limit_and_then_resets_the_connection() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let proxy = TruncatingProxy::start(listener.local_addr().unwrap(), 5).await.unwrap();
        let mut client = TcpStream::connect(proxy.address()).await.unwrap();
        client.write_all(b"?").await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        server.write_all(b"an answer").await.unwrap();
        let mut received = Vec::new();
        let error = client.read_to_end(&mut received).await.unwrap_err();
        assert_eq!(
            (received.as_slice(), error.kind()),
            (b"an an".as_slice(), io::ErrorKind::ConnectionReset)
        );
    }
}
