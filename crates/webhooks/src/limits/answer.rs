//! The body of a response, which holds its memory until it is sent.
//!
//! A client that does not read its answer must not keep the memory from other reviews: after a while the answer is
//! dropped, and its connection ends when it reads on.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::bodies::Held;

/// The time to send an answer: shorter than a review waits for the memory of answers that are not read.
pub(super) const SEND_TIME: Duration = Duration::from_secs(3);
/// Longest frame. It is a copy, so that the connection does not keep a long part alive. The server holds one or two of each
/// request after they left the answer.
const FRAME: usize = 16 << 10;

/// What an answer uses until it is sent.
pub(super) type Uses = (OwnedSemaphorePermit, Held);

/// The rest of an answer; `None` after its time.
type Rest = Mutex<Option<Parts>>;

#[derive(Debug)]
struct Parts {
    /// In the opposite order.
    parts: Vec<Bytes>,
    _memory: OwnedSemaphorePermit,
    /// Who does not read answers sends no more requests.
    _held: Held,
}

/// The answers that are not sent yet; clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Unsent(Arc<Mutex<Vec<Pending>>>);

/// An answer with the end of its time.
type Pending = (Instant, Weak<Rest>);

impl Unsent {
    /// An answer of these parts, with its memory.
    pub(super) fn answer(&self, mut parts: Vec<Bytes>, (memory, held): Uses) -> Answer {
        let length: usize = parts.iter().map(Bytes::len).sum();
        parts.retain(|part| !part.is_empty());
        parts.reverse();
        let rest = Arc::new(Mutex::new(Some(Parts {
            parts,
            _memory: memory,
            _held: held,
        })));
        let mut unsent = self.0.lock();
        unsent.retain(|(_, rest)| rest.strong_count() > 0);
        unsent.push((Instant::now() + SEND_TIME, Arc::downgrade(&rest)));
        Answer {
            rest,
            length: u64::try_from(length).unwrap_or(u64::MAX),
        }
    }

    /// Drops the answers whose time is over, which returns their memory.
    pub(super) fn drop_overdue(&self) {
        let now = Instant::now();
        self.0.lock().retain(|(until, rest)| {
            let is_overdue = *until <= now;
            if let Some(rest) = rest.upgrade().filter(|_| is_overdue) {
                rest.lock().take();
            }
            !is_overdue
        });
    }
}

/// The parts of an answer.
#[derive(Debug)]
pub(crate) struct Answer {
    rest: Arc<Rest>,
    length: u64,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let frame = match self.rest.lock().as_mut() {
            None => Some(Err(io::ErrorKind::TimedOut.into())),
            Some(rest) => rest.parts.pop().map(|mut part| {
                if part.len() <= FRAME {
                    return Ok(part);
                }
                let frame = Bytes::copy_from_slice(&part.split_to(FRAME));
                rest.parts.push(part);
                Ok(frame)
            }),
        };
        let length = frame.as_ref().and_then(|frame| frame.as_ref().ok()).map(Bytes::len);
        let length = length.and_then(|length| u64::try_from(length).ok());
        self.length = self.length.saturating_sub(length.unwrap_or_default());
        Poll::Ready(frame.map(|frame| frame.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.length == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}
