//! A server whose watches are late: each event by up to two seconds, in order. Also counts writes and conflicts.

use std::io;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::unfold;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use kube::client::Body as Asked;
use metal3_faults::Random;
use metal3_simcluster::{Cluster, Door};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::TaskTracker;
use tower::Service;

use crate::account::Account;

type Body = UnsyncBoxBody<Bytes, io::Error>;

const LATEST: u64 = 2000;

#[derive(Debug, Clone)]
pub(crate) struct Late {
    door: Door,
    random: Arc<Mutex<Random>>,
    account: Account,
    tasks: TaskTracker,
}

pub(crate) fn client(cluster: &Cluster, account: &Account) -> kube::Client {
    let late = Late {
        door: cluster.door("flow"),
        random: Arc::new(Mutex::new(Random::seeded(11))),
        account: account.clone(),
        tasks: TaskTracker::new(),
    };
    kube::Client::new(late, "default")
}

impl Service<Request<Asked>> for Late {
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Asked>) -> Self::Future {
        let watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let write = request.method() != Method::GET;
        let (answer, late) = (self.door.call(request), self.clone());
        Box::pin(async move {
            if write {
                late.account.writes.fetch_add(1, Ordering::Relaxed);
            }
            let answer = answer.await?;
            if write && answer.status() == StatusCode::CONFLICT {
                late.account.conflicts.fetch_add(1, Ordering::Relaxed);
            }
            Ok(if watch {
                answer.map(|body| late.delayed(body))
            } else {
                answer
            })
        })
    }
}

impl Late {
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
                let late = Duration::from_millis(random.lock().unwrap().below(LATEST));
                if sender.send((Instant::now() + late, frame)).is_err() {
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
