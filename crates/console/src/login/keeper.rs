//! The task that asks whether the login is accepted, and connects again after its end.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::Client;
use kube::api::{Api, PostParams};
use metal3_api::meta::Time;
use metal3_domain::clock::Clock;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::cause::{Cause, of_login};
use super::owner::{Owner, Person};
use super::{Doubt, Ended, Login, Session, Source, State};
use crate::Notice;

/// Without a doubt, the server is asked this often: a watch that is open does not end with its login.
const EACH: Duration = Duration::from_secs(60);
/// The time between two questions, however many doubts there are.
const DISTANCE: Duration = Duration::from_secs(5);
/// The time of an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often the files of the kubeconfig are compared after the end.
const LOOK: Duration = Duration::from_secs(2);
/// The time that a program has for a login, in which a person may type.
const PROGRAM: Duration = Duration::from_secs(300);

/// Gets a line for each end and each renewal.
type Announce = Arc<dyn Fn(&Notice<'_>) + Send + Sync>;

/// The task's state.
pub(crate) struct Keeper {
    login: Arc<Login>,
    doubts: UnboundedReceiver<Doubt>,
    source: Arc<dyn Source>,
    clock: Arc<dyn Clock>,
    announce: Announce,
    owner: Owner,
    session: Session,
    /// What the source had when the session began.
    seen: String,
}

impl Keeper {
    /// The login of a source with its first client.
    pub(crate) fn new(
        (source, client): (Arc<dyn Source>, Client),
        clock: Arc<dyn Clock>,
        announce: Announce,
    ) -> (Arc<Login>, Self) {
        let (login, doubts) = Login::new(client.clone());
        let login = Arc::new(login);
        let keeper = Self {
            login: Arc::clone(&login),
            doubts,
            source,
            clock,
            announce,
            owner: Owner::default(),
            session: Session { number: 1, client },
            seen: String::new(),
        };
        (login, keeper)
    }

    /// Runs until it is dropped.
    pub(crate) async fn run(mut self) {
        self.seen = self.source.look().await;
        let (mut waiting, mut since) = (Vec::<Doubt>::new(), self.clock.now().into());
        loop {
            let asked = Instant::now();
            match self.accepts(&self.session.client).await {
                Ok(is_accepted) => {
                    for doubt in waiting.drain(..) {
                        // Who asked may have gone.
                        let _ = doubt.send(is_accepted);
                    }
                }
                Err(cause) => {
                    waiting.clear();
                    self.renew(since, cause).await;
                }
            }
            let doubt = timeout(EACH, self.doubts.recv()).await;
            since = self.clock.now().into();
            if let Ok(Some(doubt)) = doubt {
                waiting.push(doubt);
                sleep_until(asked + DISTANCE).await;
            }
            while let Ok(doubt) = self.doubts.try_recv() {
                waiting.push(doubt);
            }
        }
    }

    /// Asks who logs in: whether the login is accepted, or is known to have ended.
    async fn accepts(&self, client: &Client) -> Result<bool, Cause> {
        let reviews = Api::<SelfSubjectReview>::all(client.clone());
        let (params, question) = (PostParams::default(), SelfSubjectReview::default());
        let answer = timeout(PATIENCE, reviews.create(&params, &question)).await;
        match answer {
            Ok(Ok(review)) => self.owner.confirm(Person::of(review)).map(|()| true),
            Ok(Err(error)) => match of_login(&error) {
                Some(cause) => Err(cause),
                // Not all users may ask, and older servers have no answer.
                None if matches!(&error, kube::Error::Api(status) if [403, 404, 405].contains(&status.code)) => {
                    self.owner.confirm(None).map(|()| true)
                }
                None => Ok(false),
            },
            Err(_) => Ok(false),
        }
    }

    /// Tries until a login of the same user is accepted.
    async fn renew(&mut self, since: Time, cause: Cause) {
        self.end(cause.ended(since));
        let (mut cause, mut tries) = (cause, 0);
        let mut due = Instant::now() + cause.pause(tries);
        loop {
            let now = self.source.look().await;
            if now == self.seen && Instant::now() < due {
                sleep(LOOK).await;
                continue;
            }
            tries = if now == self.seen { tries + 1 } else { 0 };
            self.seen = now;
            match self.connect().await {
                Ok(Some(client)) => return self.begin(client),
                // The server does not answer: nothing is known.
                Ok(None) => {}
                Err(found) => {
                    if found != cause {
                        self.end(found.ended(since));
                    }
                    cause = found;
                }
            }
            due = Instant::now() + cause.pause(tries);
        }
    }

    /// A client whose login is accepted; `None` if that is not known.
    async fn connect(&self) -> Result<Option<Client>, Cause> {
        let connected = timeout(PROGRAM, self.source.connect()).await;
        let client = connected.map_err(|_| Cause::Program)??;
        Ok(self.accepts(&client).await?.then_some(client))
    }

    fn end(&self, mut ended: Ended) {
        // What is hidden has been removed.
        ended.is_hidden |= self.login.is_hidden();
        let line = format!("the login has ended: {}. {}", ended.why, ended.cure);
        self.login.set(State::Ended(ended));
        (self.announce)(&Notice::Login(&line));
    }

    fn begin(&mut self, client: Client) {
        let number = self.session.number + 1;
        self.session = Session { number, client };
        self.login.set(State::Live(self.session.clone()));
        (self.announce)(&Notice::Login("logged in again"));
    }
}
