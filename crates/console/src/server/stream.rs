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
use tokio::sync::watch;

use super::headers::answer as with_headers;
use crate::changes::{Changes, document};
use crate::login::{Ended, State, Turn};

/// A comment after this silence: it finds browsers that are gone.
const BEAT: Duration = Duration::from_secs(15);

/// The first event.
#[derive(Serialize)]
struct Hello {
    version: u64,
    now: Time,
    /// The end of the login, if it has ended.
    login: Option<Ended>,
}

struct Follower {
    batches: Receiver<Bytes>,
    login: watch::Receiver<Turn>,
    /// The time of the console, and the version before the first batch, until they are sent.
    first: Option<Bytes>,
}

/// An endless answer.
pub(super) fn answer(changes: &Arc<Changes>) -> Response<Body> {
    let (version, batches) = changes.subscribe();
    let mut turns = changes.login.subscribe();
    let hello = Hello {
        version,
        now: changes.clock.now().into(),
        login: end_of(&mut turns),
    };
    let follower = Follower {
        batches,
        login: turns,
        first: Some(document(&hello)),
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
        let batch = tokio::select! {
            // An end is sent before what changed with it.
            biased;
            Ok(()) = self.login.changed() => {
                let login = document(&end_of(&mut self.login));
                return Some([b"event: login\ndata: ", login.as_ref(), b"\n\n"].concat().into());
            }
            batch = tokio::time::timeout(BEAT, self.batches.recv()) => batch,
        };
        match batch {
            Err(_) => Some(Bytes::from_static(b": beat\n\n")),
            Ok(Ok(batch)) => Some([b"event: batch\ndata: ", batch.as_ref(), b"\n\n"].concat().into()),
            // It missed some, so it reads all again.
            Ok(Err(RecvError::Lagged(_))) => Some(Bytes::from_static(b"event: again\ndata: 0\n\n")),
            Ok(Err(RecvError::Closed)) => None,
        }
    }
}

fn end_of(turns: &mut watch::Receiver<Turn>) -> Option<Ended> {
    match &turns.borrow_and_update().state {
        State::Live(_) => None,
        State::Ended(ended) => Some(ended.clone()),
    }
}
