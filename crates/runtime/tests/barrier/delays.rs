//! Intercepts requests between a flow and its server: delays each watch event by up to two seconds, in order; counts
//! writes and injects the faults of a plan.

use std::future::pending;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::unfold;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use kube::Client;
use kube::client::Body as RequestBody;
use metal3_sim_faults::{Call, Fault, Plan, Random};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::TaskTracker;
use tower::Service;

use crate::report::Counters;

type Body = UnsyncBoxBody<Bytes, io::Error>;

const MAX_DELAY_MS: u64 = 2000;

#[derive(Clone)]
struct Interceptor {
    server: Client,
    plan: Arc<Mutex<Plan>>,
    random: Arc<Mutex<Random>>,
    counters: Counters,
    tasks: TaskTracker,
}

pub(crate) fn client(server: Client, faults: Plan, counters: &Counters) -> Client {
    let interceptor = Interceptor {
        server,
        plan: Arc::new(Mutex::new(faults)),
        random: Arc::new(Mutex::new(Random::seeded(11))),
        counters: counters.clone(),
        tasks: TaskTracker::new(),
    };
    Client::new(interceptor, "default")
}

impl Service<Request<RequestBody>> for Interceptor {
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let interceptor = self.clone();
        Box::pin(async move {
            if request.method() == Method::GET {
                interceptor.read(request).await
            } else {
                interceptor.write(request).await
            }
        })
    }
}

impl Interceptor {
    /// A sent request reaches the server even when the caller is dropped.
    async fn send(&self, request: Request<RequestBody>) -> io::Result<Response<Body>> {
        let server = self.server.clone();
        let sent = self.counters.sent.spawn(async move { server.send(request).await });
        let answer = sent.await.map_err(io::Error::other)?.map_err(io::Error::other)?;
        Ok(answer.map(|body| body.map_err(io::Error::other).boxed_unsync()))
    }

    async fn read(&self, request: Request<RequestBody>) -> io::Result<Response<Body>> {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let answer = self.send(request).await?;
        Ok(if is_watch {
            answer.map(|body| self.delayed(body))
        } else {
            answer
        })
    }

    async fn write(&self, request: Request<RequestBody>) -> io::Result<Response<Body>> {
        self.counters.writes.fetch_add(1, Ordering::Relaxed);
        let verb = if request.method() == Method::POST {
            "create"
        } else {
            "patch"
        };
        let resource = "";
        let fault = self.plan.lock().fault_for(&Call { verb, resource });
        if fault == Some(Fault::CrashBefore) {
            return self.crash().await;
        }
        assert!(
            matches!(fault, None | Some(Fault::CrashAfter | Fault::ReplyLost)),
            "{fault:?} is not supported"
        );
        let answer = self.send(request).await?;
        if answer.status() == StatusCode::CONFLICT {
            self.counters.conflicts.fetch_add(1, Ordering::Relaxed);
        }
        match fault {
            Some(Fault::CrashAfter) => self.crash().await,
            Some(Fault::ReplyLost) => Err(io::ErrorKind::ConnectionReset.into()),
            _ => Ok(answer),
        }
    }

    /// The calling process is dropped, so the response never arrives.
    async fn crash(&self) -> io::Result<Response<Body>> {
        self.counters.crashes.send_modify(|crashes| *crashes += 1);
        pending().await
    }

    fn delayed(&self, body: Body) -> Body {
        let (sender, receiver) = mpsc::unbounded_channel();
        let random = Arc::clone(&self.random);
        self.tasks.spawn(async move {
            let mut frames = BodyStream::new(body);
            loop {
                let frame = tokio::select! {
                    () = sender.closed() => return,
                    frame = frames.next() => frame,
                };
                let Some(frame) = frame else { return };
                let interceptor = Duration::from_millis(random.lock().below(MAX_DELAY_MS));
                if sender.send((Instant::now() + interceptor, frame)).is_err() {
                    return;
                }
            }
        });
        let frames = unfold(receiver, |mut receiver| async move {
            let (due, frame) = receiver.recv().await?;
            sleep_until(due).await;
            Some((frame, receiver))
        });
        StreamBody::new(frames).boxed_unsync()
    }
}
