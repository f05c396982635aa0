//! Changes, as server-sent events.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use http::{Response, StatusCode};
use metal3_api::meta::Time;
use serde::Serialize;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::headers::answer as with_headers;
use crate::changes::{Changes, document};

/// A comment after this silence: it finds browsers that are gone.
const BEAT: Duration = Duration::from_secs(15);

/// The first event.
#[derive(Serialize)]
struct Hello {
    version: u64,
    now: Time,
}

struct Follower {
    batches: Receiver<Bytes>,
    /// The time of the console, and the version before the first batch, until they are sent.
    first: Option<Bytes>,
}

/// An endless answer.
pub(super) fn answer(changes: &Arc<Changes>) -> Response<Body> {
    let (version, batches) = changes.subscribe();
    let now = changes.clock.now().into();
    let follower = Follower {
        batches,
        first: Some(document(&Hello { version, now })),
    };
    let events = stream::unfold(follower, |mut follower| async move {
        let text = follower.next().await?;
        Some((Ok::<_, std::convert::Infallible>(text), follower))
    });
    with_headers(StatusCode::OK, "text/event-stream", Body::from_stream(events))
}

impl Follower {
    /// The next event; `None` when the console ends.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(hello) = self.first.take() {
            return Some(
                [b"retry: 1000\nevent: hello\ndata: ", hello.as_ref(), b"\n\n"]
                    .concat()
                    .into(),
            );
        }
        match tokio::time::timeout(BEAT, self.batches.recv()).await {
            Err(_) => Some(Bytes::from_static(b": beat\n\n")),
            Ok(Ok(batch)) => Some([b"event: batch\ndata: ", batch.as_ref(), b"\n\n"].concat().into()),
            // It missed some, so it reads all again.
            Ok(Err(RecvError::Lagged(_))) => Some(Bytes::from_static(b"event: again\ndata: 0\n\n")),
            Ok(Err(RecvError::Closed)) => None,
        }
    }
}
