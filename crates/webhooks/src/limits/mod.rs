//! Memory and time of reviews. The port is open to every Pod of the cluster, so no caller is trusted with either.
//!
//! - A body is received within a deadline. Requests and the bytes of their [`bodies`] are limited, for all and for each
//!   address.
//! - While it arrives, a [`Scan`] computes what its parsed form takes. A body that takes too much is rejected before it
//!   is parsed, and before the rest of it is received.
//! - A review waits until its parsed form fits into the [`PARSED`] bytes of all reviews, one at a time of each address. It runs on a thread of its own,
//!   so that other requests are served meanwhile. What it asks of the API server is asked afterwards, not on the thread.
//! - An answer is sent within a deadline as well.
//!
//! Invariant: a request that waits for memory holds only its body, and a review that runs waits for no other review.

mod answer;
mod bodies;
mod scan;
mod turns;

use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

pub(crate) use answer::Answer;
use answer::{Unsent, Uses};
use bodies::{Bodies, Held};
use scan::Scan;
use turns::{Turn, Turns};

/// Bytes of the parsed forms of all reviews. One review may use them all.
const PARSED: usize = 256 << 20;
/// Bytes of the parsed form of the smallest review, which limits the number of threads to 128.
const SMALLEST: usize = 2 << 20;
/// Bytes of a question, which waits without its object: a user and names, several times.
const QUESTION: usize = 512 << 10;
/// The time for a body.
const BODY_TIME: Duration = Duration::from_secs(5);
/// The time for a request. The API server waits ten seconds by default.
const REQUEST_TIME: Duration = Duration::from_secs(9);
/// How often a review that waits for memory looks for answers that were not sent in time.
const SWEEP: Duration = Duration::from_millis(500);
/// The unit of the memory of reviews.
const UNIT: usize = 1024;

/// The size of a kind of reviews.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// Longest body.
    pub(crate) body: usize,
    /// Depth of the values that are parsed one at a time; `None` when the body is parsed at once.
    pub(crate) item_depth: Option<u32>,
    /// Copies of a parsed form that exist at the same time.
    pub(crate) copies: usize,
    /// Longest answer, as a multiple of the body.
    pub(crate) answer: usize,
}

/// Why a review does not take place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// The body is longer than this.
    TooLong(usize),
    /// The parsed form would take too much memory.
    TooLarge,
    /// The body did not arrive in time.
    Slow,
    /// The connection broke.
    Broken,
    /// Other requests use the memory.
    Busy,
    /// The review did not end in time.
    Overdue,
    /// The review panicked.
    Panicked,
}

impl Rejection {
    /// The response.
    pub(crate) fn response(self) -> (StatusCode, String) {
        match self {
            Self::TooLong(limit) => (
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("the review is longer than {limit} bytes; send fewer or smaller objects"),
            ),
            Self::TooLarge => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "the review has too many members and items; send an object with fewer of them".to_owned(),
            ),
            Self::Slow => (
                StatusCode::REQUEST_TIMEOUT,
                format!("the review did not arrive within {} seconds", BODY_TIME.as_secs()),
            ),
            Self::Broken => (
                StatusCode::BAD_REQUEST,
                "the review did not arrive completely".to_owned(),
            ),
            Self::Busy => (
                StatusCode::SERVICE_UNAVAILABLE,
                "other requests, or too many of this client, use the memory that is set apart for reviews; try again in a \
                 moment"
                    .to_owned(),
            ),
            Self::Overdue => (
                StatusCode::SERVICE_UNAVAILABLE,
                format!("the review did not end within {} seconds", REQUEST_TIME.as_secs()),
            ),
            Self::Panicked => (StatusCode::INTERNAL_SERVER_ERROR, DEFECT.to_owned()),
        }
    }
}

const DEFECT: &str = "a rule failed on this object, which is a defect of the provider; report it with the object";

/// What a review returns.
pub(crate) enum Reviewed<Q> {
    /// The parts of the answer.
    Answered(Vec<Bytes>),
    /// The answer depends on a question, of which few of an address are asked at once.
    Asks(Q),
}

/// The memory of all requests; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    bodies: Bodies,
    parsed: Arc<Semaphore>,
    unsent: Unsent,
    turns: Turns,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bodies: Bodies::default(),
            parsed: Arc::new(Semaphore::new(PARSED / UNIT)),
            unsent: Unsent::default(),
            turns: Turns::default(),
        }
    }
}

impl Limits {
    /// Receives a body and runs its review on a thread. `ask` answers its question, until the given time.
    pub(crate) async fn review<E, Q, F, A>(
        &self,
        (client, body): (Option<IpAddr>, Body),
        size: Size,
        review: F,
        ask: impl FnOnce(Q, Instant) -> A,
    ) -> Result<Result<Answer, E>, Rejection>
    where
        E: Send + 'static,
        Q: Send + 'static,
        F: FnOnce(&[u8], usize) -> Result<Reviewed<Q>, E> + Send + 'static,
        A: Future<Output = Vec<Bytes>>,
    {
        let (received, deadline) = (Instant::now() + BODY_TIME, Instant::now() + REQUEST_TIME);
        let held = self.bodies.begin(client).ok_or(Rejection::Busy)?;
        let body = timeout_at(received, receive(held, body, size)).await;
        let body = body.unwrap_or(Err(Rejection::Slow))?;
        let turn = self.turns.of(client);
        let memory = self.memory(&turn, body.parsed, deadline).await?;
        let running = tokio::task::spawn_blocking(move || run(body, memory, review));
        let (reviewed, uses) = match timeout_at(deadline, running).await {
            Ok(Ok(Some(Ok(reviewed)))) => reviewed,
            Ok(Ok(Some(Err(error)))) => return Ok(Err(error)),
            Ok(Ok(None) | Err(_)) => return Err(Rejection::Panicked),
            // The thread goes on and returns the memory at its end.
            Err(_) => return Err(Rejection::Overdue),
        };
        let parts = match reviewed {
            Reviewed::Answered(parts) => parts,
            Reviewed::Asks(question) => {
                let asking = timeout_at(deadline, turn.questions.acquire()).await;
                let _asking = asking.map_err(|_| Rejection::Busy)?;
                ask(question, deadline).await
            }
        };
        Ok(Ok(self.unsent.answer(parts, uses)))
    }

    /// Waits for the memory of a parsed form.
    async fn memory(&self, turn: &Turn, bytes: usize, deadline: Instant) -> Result<OwnedSemaphorePermit, Rejection> {
        let _turn = timeout_at(deadline, turn.memory.lock())
            .await
            .map_err(|_| Rejection::Busy)?;
        let wanted = u32::try_from(bytes.max(SMALLEST).div_ceil(UNIT)).map_err(|_| Rejection::TooLarge)?;
        let mut waiting = pin!(Arc::clone(&self.parsed).acquire_many_owned(wanted));
        loop {
            self.unsent.drop_overdue();
            tokio::select! {
                biased;
                memory = &mut waiting => return memory.map_err(|_| Rejection::Busy),
                () = sleep_until(deadline) => return Err(Rejection::Busy),
                () = sleep(SWEEP) => {}
            }
        }
    }
}

async fn receive(held: Held, mut body: Body, size: Size) -> Result<Received, Rejection> {
    let mut received = Received {
        bytes: Vec::new(),
        longest_answer: 0,
        parsed: 0,
        held,
    };
    let mut scan = Scan::new(size.item_depth);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Rejection::Broken)?.into_data() else {
            continue;
        };
        if received.bytes.len().saturating_add(data.len()) > size.body {
            return Err(Rejection::TooLong(size.body));
        }
        scan.feed(&data);
        received.append(&data)?;
        received.longest_answer = received.bytes.len().saturating_mul(size.answer);
        let parsed = scan.largest().saturating_mul(size.copies);
        received.parsed = parsed.saturating_add(received.longest_answer);
        if received.parsed > PARSED {
            return Err(Rejection::TooLarge);
        }
    }
    Ok(received)
}

/// A complete body.
#[derive(Debug)]
struct Received {
    bytes: Vec<u8>,
    longest_answer: usize,
    /// Bytes that the review may take.
    parsed: usize,
    held: Held,
}

impl Received {
    fn append(&mut self, data: &[u8]) -> Result<(), Rejection> {
        if self.bytes.len().saturating_add(data.len()) > self.bytes.capacity() {
            // In steps that double at most, so that few are needed.
            let more = data.len().max(self.bytes.len() / 2).max(UNIT);
            if !self.held.grow(more) {
                return Err(Rejection::Busy);
            }
            self.bytes.reserve_exact(more);
        }
        self.bytes.extend_from_slice(data);
        Ok(())
    }
}

/// A review with what it still needs.
type Ended<Q, E> = Result<(Reviewed<Q>, Uses), E>;

/// Runs a review; `None` when it panics. What it returns keeps the memory of its own length.
fn run<Q, E>(
    body: Received,
    mut memory: OwnedSemaphorePermit,
    review: impl FnOnce(&[u8], usize) -> Result<Reviewed<Q>, E>,
) -> Option<Ended<Q, E>> {
    // The limit of a kind without a multiple is that of memory.
    let longest = if body.longest_answer == 0 {
        PARSED
    } else {
        body.longest_answer
    };
    let reviewed = catch_unwind(AssertUnwindSafe(|| review(&body.bytes, longest))).ok()?;
    let Received { bytes, held, .. } = body;
    drop(bytes);
    let held = held.without_bytes();
    Some(reviewed.map(|reviewed| {
        let length = match &reviewed {
            Reviewed::Answered(parts) => parts.iter().map(Bytes::len).sum(),
            Reviewed::Asks(_) => QUESTION,
        };
        let excess = memory.num_permits().saturating_sub(length.div_ceil(UNIT));
        drop(memory.split(excess));
        (reviewed, (memory, held))
    }))
}

#[cfg(test)]
mod tests;
