//! An API server and a source of logins, in the time of a test.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use kube::Client;
use metal3_domain::clock::SystemClock;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tower::service_fn;

use super::{Checked, Failure, Keeper, Login, Owner, Source};
use crate::Notice;

/// What the API server does with requests.
#[derive(Debug, Clone)]
pub(crate) enum Answers {
    /// Those of a user, with this name.
    Accepted(&'static str),
    /// This code.
    Code(u16),
    /// It does not answer.
    Never,
}

/// The state of the API server, and what it received.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) answers: Answers,
    /// The time of an answer.
    pub(crate) takes: Duration,
    /// The code of an answer to a patch.
    pub(crate) patched: u16,
    /// When it was asked who logs in.
    pub(crate) questions: Vec<Instant>,
    pub(crate) patches: usize,
    /// Requests of all kinds.
    pub(crate) requests: usize,
    /// What a source sees in its files.
    pub(crate) files: u64,
    /// Whether the files differ each time.
    pub(crate) is_restless: bool,
    /// Lines of the terminal about the login.
    pub(crate) lines: Vec<String>,
}

/// An API server with one host, and the files of its logins.
#[derive(Debug, Clone)]
pub(crate) struct Fake {
    door: Arc<Mutex<Door>>,
    owner: Arc<Owner>,
}

impl Fake {
    pub(crate) fn new(answers: Answers) -> Self {
        let door = Door {
            answers,
            takes: Duration::ZERO,
            patched: 200,
            questions: Vec::new(),
            patches: 0,
            requests: 0,
            files: 0,
            is_restless: false,
            lines: Vec::new(),
        };
        Self {
            door: Arc::new(Mutex::new(door)),
            owner: Arc::default(),
        }
    }

    pub(crate) fn door<T>(&self, look: impl FnOnce(&mut Door) -> T) -> T {
        look(&mut self.door.lock())
    }

    pub(crate) fn host() -> Value {
        json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "spec": { "online": true },
            "metadata": { "namespace": "default", "name": "h", "uid": "u", "resourceVersion": "1" } })
    }

    async fn answer(&self, is_question: bool, is_patch: bool) -> Response<Body> {
        let takes = self.door(|door| {
            door.requests += 1;
            if is_question {
                door.questions.push(Instant::now());
            }
            if is_patch {
                door.patches += 1;
            }
            door.takes
        });
        sleep(takes).await;
        let (answers, patched) = self.door(|door| (door.answers.clone(), door.patched));
        let (code, document) = match answers {
            Answers::Never => std::future::pending().await,
            Answers::Code(code) => (code, json!({ "kind": "Status", "status": "Failure", "code": code })),
            Answers::Accepted(user) if is_question => (
                201,
                json!({ "metadata": {}, "status": { "userInfo": { "username": user } } }),
            ),
            Answers::Accepted(_) if is_patch && patched != 200 => (
                patched,
                json!({ "kind": "Status", "status": "Failure", "code": patched }),
            ),
            Answers::Accepted(_) => (200, Self::host()),
        };
        let mut answer = Response::new(Body::from(document.to_string()));
        *answer.status_mut() = StatusCode::from_u16(code).unwrap();
        answer
    }

    /// A client whose logins are compared with the first one.
    pub(crate) fn client(&self) -> Client {
        let own = self.clone();
        let network = service_fn(move |request: Request<kube::client::Body>| {
            let is_question = request.uri().path().ends_with("/selfsubjectreviews");
            let (own, is_patch) = (own.clone(), request.method() == Method::PATCH);
            async move { Ok::<_, std::convert::Infallible>(own.answer(is_question, is_patch).await) }
        });
        Client::new(Checked::new(network, "here", Arc::clone(&self.owner)), "default")
    }

    /// A keeper that does not run yet.
    pub(crate) fn keeper(&self) -> (Arc<Login>, Keeper) {
        let own = self.clone();
        let announce = move |notice: &Notice<'_>| {
            if let Notice::Login(line) = notice {
                own.door(|door| door.lines.push((*line).to_owned()));
            }
        };
        let source: Arc<dyn Source> = Arc::new(self.clone());
        let clock = Arc::new(SystemClock::start());
        Keeper::new((source, self.client()), clock, Arc::new(announce))
    }

    /// The login of a keeper that runs as long as the tasks.
    pub(crate) fn login(&self) -> (Arc<Login>, JoinSet<()>) {
        let (login, keeper) = self.keeper();
        let mut tasks = JoinSet::new();
        tasks.spawn(keeper.run());
        (login, tasks)
    }
}

impl Source for Fake {
    fn look(&self) -> BoxFuture<'_, String> {
        let files = self.door(|door| {
            door.files += u64::from(door.is_restless);
            door.files
        });
        Box::pin(std::future::ready(files.to_string()))
    }

    fn sent(&self) -> Option<u64> {
        Some(self.owner.sent())
    }

    fn connect(&self) -> BoxFuture<'_, Result<Client, Failure>> {
        Box::pin(std::future::ready(Ok(self.client())))
    }
}
