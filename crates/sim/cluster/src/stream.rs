//! The stream of a watch: waits for writes, for the next bookmark and for the timeout.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures::future::pending;
use futures::stream::{Stream, unfold};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use metal3_sim_faults::Fault;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use crate::cluster::Cluster;
use crate::store::{Next, Watch};

/// The interval of bookmarks, about that of the real server.
const BOOKMARK_PERIOD: Duration = Duration::from_mins(1);
/// The timeout when the client sets none: the real server draws one from 30 to 60 minutes.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(45);

/// The body of an answer.
pub(crate) type Body = UnsyncBoxBody<Bytes, io::Error>;

/// The faults of one watch.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StreamFaults {
    dropped_after: Option<u32>,
    frozen_after: Option<u32>,
    duplicated: bool,
}

impl StreamFaults {
    pub(crate) fn by(fault: Option<Fault>) -> Self {
        let mut faults = Self::default();
        match fault {
            Some(Fault::WatchDropped { after }) => faults.dropped_after = Some(after),
            Some(Fault::WatchFrozen { after }) => faults.frozen_after = Some(after),
            Some(Fault::DuplicateEvents) => faults.duplicated = true,
            _ => {}
        }
        faults
    }
}

struct Streaming {
    cluster: Cluster,
    watch: Watch,
    faults: StreamFaults,
    sent: u32,
    until: Instant,
    bookmark_at: Instant,
    over: bool,
}

/// The events of a watch as the body of an answer.
pub(crate) fn events(cluster: Cluster, watch: Watch, faults: StreamFaults) -> Body {
    BodyExt::boxed_unsync(StreamBody::new(frames(cluster, watch, faults)))
}

fn frames(cluster: Cluster, watch: Watch, faults: StreamFaults) -> impl Stream<Item = io::Result<Frame<Bytes>>> {
    let now = Instant::now();
    let streaming = Streaming {
        until: now + watch.timeout.unwrap_or(DEFAULT_TIMEOUT),
        bookmark_at: now + BOOKMARK_PERIOD,
        cluster,
        watch,
        faults,
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
        if self.faults.frozen_after.is_some_and(|after| self.sent >= after) {
            return pending().await;
        }
        if self.faults.dropped_after.is_some_and(|after| self.sent >= after) {
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
        Some(Ok(if self.faults.duplicated {
            line.repeat(2).into()
        } else {
            line.into()
        }))
    }

    async fn event(&mut self) -> Option<Value> {
        loop {
            // Created before the read, so that a write in between still wakes this task.
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
