//! A wire between a client and a server that tears: after so many bytes of an answer the client's connection is reset.
//!
//! It looks at nothing and changes nothing of what it carries.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What was carried is read before the reset comes, as on a wire that is longer than this one.
const READING: Duration = Duration::from_millis(200);

/// Ends when it is dropped.
pub(super) struct Cut {
    address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Cut {
    /// In front of a server.
    pub(super) async fn before(server: SocketAddr, after: u64) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut carried = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                carried.spawn(carry(client, server, after));
            }
        });
        Ok(Self { address, _tasks: tasks })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn carry(mut client: TcpStream, server: SocketAddr, after: u64) -> io::Result<()> {
    let mut server = TcpStream::connect(server).await?;
    // Closing it is a reset then.
    client.set_zero_linger()?;
    let (mut asked, mut told) = client.split();
    let (answers, mut asks) = server.split();
    let mut answers = answers.take(after);
    tokio::select! {
        ended = tokio::io::copy(&mut asked, &mut asks) => ended?,
        ended = tokio::io::copy(&mut answers, &mut told) => ended?,
    };
    tokio::time::sleep(READING).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;

    #[tokio::test]
    async fn what_is_allowed_passes_and_then_the_connection_is_reset() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let cut = Cut::before(listener.local_addr().unwrap(), 5).await.unwrap();
        let mut client = TcpStream::connect(cut.address()).await.unwrap();
        client.write_all(b"?").await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        server.write_all(b"an answer").await.unwrap();
        let mut came = Vec::new();
        let error = client.read_to_end(&mut came).await.unwrap_err();
        assert_eq!(
            (came.as_slice(), error.kind()),
            (b"an an".as_slice(), io::ErrorKind::ConnectionReset)
        );
    }
}
