//! The stream of a watch: waits for the log to grow, for the next bookmark and for the client's time to be over.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures::future::pending;
use futures::stream::{Stream, unfold};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use metal3_sim_faults::Fault;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use crate::cluster::Cluster;
use crate::service::Body;
use crate::store::{Next, Watch};

/// How often a quiet watch says how far it has come: about as often as the real server.
const BOOKMARK_PERIOD: Duration = Duration::from_mins(1);
/// How long a watch lasts whose client names no time: the real server draws from 30 to 60 minutes.
const LONGEST: Duration = Duration::from_mins(45);

/// What is wrong with a watch.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Broken {
    dropped_after: Option<u32>,
    frozen_after: Option<u32>,
    doubled: bool,
}

impl Broken {
    pub(crate) fn by(fault: Option<Fault>) -> Self {
        let mut broken = Self::default();
        match fault {
            Some(Fault::WatchDropped { after }) => broken.dropped_after = Some(after),
            Some(Fault::WatchFrozen { after }) => broken.frozen_after = Some(after),
            Some(Fault::DuplicateEvents) => broken.doubled = true,
            _ => {}
        }
        broken
    }
}

struct Streaming {
    cluster: Cluster,
    watch: Watch,
    broken: Broken,
    sent: u32,
    until: Instant,
    bookmark_at: Instant,
    over: bool,
}

/// The events of a watch as the body of an answer.
pub(crate) fn events(cluster: Cluster, watch: Watch, broken: Broken) -> Body {
    BodyExt::boxed_unsync(StreamBody::new(frames(cluster, watch, broken)))
}

fn frames(cluster: Cluster, watch: Watch, broken: Broken) -> impl Stream<Item = io::Result<Frame<Bytes>>> {
    let now = Instant::now();
    let streaming = Streaming {
        until: now + watch.timeout.unwrap_or(LONGEST),
        bookmark_at: now + BOOKMARK_PERIOD,
        cluster,
        watch,
        broken,
        sent: 0,
        over: false,
    };
    unfold(streaming, |mut streaming| async move {
        let line = streaming.next().await?;
        Some((line.map(Frame::data), streaming))
    })
}

impl Streaming {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if self.over {
            return None;
        }
        if self.broken.frozen_after.is_some_and(|after| self.sent >= after) {
            return pending().await;
        }
        if self.broken.dropped_after.is_some_and(|after| self.sent >= after) {
            self.over = true;
            return Some(Err(io::Error::new(
                io::ErrorKind::ConnectionReset,
                "connection reset during the watch",
            )));
        }
        let event = self.event().await?;
        self.sent = self.sent.saturating_add(1);
        let mut line = event.to_string();
        line.push('\n');
        Some(Ok(if self.broken.doubled {
            line.repeat(2).into()
        } else {
            line.into()
        }))
    }

    async fn event(&mut self) -> Option<Value> {
        loop {
            // Made before the look, so that a write in between still wakes us.
            let written = self.cluster.written();
            match self.cluster.with(|state| state.store.next(&mut self.watch)) {
                Next::Event(event) => return Some(event),
                Next::Last(event) => {
                    self.over = true;
                    return Some(event);
                }
                Next::Nothing => {}
            }
            tokio::select! {
                biased;
                () = written => {}
                () = sleep_until(self.until) => return None,
                () = sleep_until(self.bookmark_at), if self.watch.bookmarks => {
                    self.bookmark_at += BOOKMARK_PERIOD;
                    return Some(self.watch.bookmark(false));
                }
            }
        }
    }
}
