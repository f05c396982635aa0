//! HTTP on loopback, for browsers of one person.
//!
//! - [`access`]: the printed URL, the cookie, and the names under which the console may be asked for.
//! - [`answer`]: paths. Only GET and HEAD, without a body; and [`act`]: what a page does, as a POST.
//! - [`files`]: the embedded pages. [`headers`]: what browsers may do with them.
//! - [`stream`]: changes, as server-sent events.
//!
//! Connections, the time to send a request and its size are bounded.

pub(crate) mod access;
mod act;
mod answer;
mod files;
mod headers;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::acting::Acting;
use crate::changes::Changes;
use access::Access;

/// Open connections. A browser keeps six.
const CONNECTIONS: usize = 64;
/// The length of a request's head in bytes.
const LONGEST_HEAD: usize = 16 << 10;
/// The time in which a request's head arrives.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// What answers are made of.
pub(crate) struct Pages {
    pub(crate) access: Arc<Access>,
    pub(crate) changes: Arc<Changes>,
    pub(crate) acting: Arc<Acting>,
}

/// Serves until it is dropped.
pub(crate) async fn serve(listener: TcpListener, pages: Arc<Pages>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        // Further connections wait in the queue of the system.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            // Too many open files: later there are fewer.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let pages = Arc::clone(&pages);
        connections.spawn(async move {
            let _place = place;
            let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                let pages = Arc::clone(&pages);
                let (head, body) = request.into_parts();
                async move { Ok::<_, std::convert::Infallible>(answer::answer(&pages, &head, body).await) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .max_buf_size(LONGEST_HEAD)
                .serve_connection(TokioIo::new(stream), service);
            // A broken connection is the browser's.
            drop(connection.await);
        });
    }
}
