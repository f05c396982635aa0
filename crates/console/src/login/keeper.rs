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

use super::cause::{Cause, is_silence, of_login};
use super::owner::{Owner, Person};
use super::{Doubt, Ended, Login, PROGRAM, Session, Source, State};
use crate::{Notice, line_of};

/// Without a doubt, the server is asked this often: a watch that is open does not end with its login.
const EACH: Duration = Duration::from_secs(60);
/// The time between two questions, however many doubts there are and however often files change: at most 12 a minute.
const DISTANCE: Duration = Duration::from_secs(5);
/// The time of an answer, with that of a program that gives the login.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often the files of the kubeconfig are compared after the end.
const LOOK: Duration = Duration::from_secs(2);
/// Gets a line for each end and each renewal.
type Announce = Arc<dyn Fn(&Notice<'_>) + Send + Sync>;

/// What the API server says about a login that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Accepted,
    /// Neither that nor the contrary.
    Unclear,
    /// It does not answer.
    None,
}

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
        let mut waiting = Vec::<Doubt>::new();
        // Of the first sign, and of the last answer.
        let (mut since, mut answered): (Time, Time) = (self.now(), self.now());
        let mut is_silent = false;
        loop {
            let mut asked = Instant::now();
            let answer = self.ask(&self.session.client).await;
            let was_silent = std::mem::replace(&mut is_silent, answer == Ok(Answer::None));
            match answer {
                // One question may be lost. What is shown is as old as the last answer.
                Ok(Answer::None) if was_silent => {
                    waiting.clear();
                    is_silent = false;
                    self.renew(answered, Cause::Silent).await;
                    asked = Instant::now();
                }
                Ok(answer) => {
                    for doubt in waiting.drain(..) {
                        // Who asked may have gone.
                        let _ = doubt.send(answer == Answer::Accepted);
                    }
                }
                Err(cause) => {
                    waiting.clear();
                    self.renew(since, cause).await;
                    asked = Instant::now();
                }
            }
            if !is_silent {
                answered = self.now();
            }
            let pause = if is_silent { DISTANCE } else { EACH };
            let doubt = timeout(pause, self.doubts.recv()).await;
            since = self.now();
            if let Ok(Some(doubt)) = doubt {
                waiting.push(doubt);
                sleep_until(asked + DISTANCE).await;
            }
            while let Ok(doubt) = self.doubts.try_recv() {
                waiting.push(doubt);
            }
        }
    }

    fn now(&self) -> Time {
        self.clock.now().into()
    }

    /// Asks who logs in. An error is the end of the login.
    async fn ask(&self, client: &Client) -> Result<Answer, Cause> {
        let reviews = Api::<SelfSubjectReview>::all(client.clone());
        let (params, question) = (PostParams::default(), SelfSubjectReview::default());
        let before = self.source.sent();
        let answer = timeout(PATIENCE, reviews.create(&params, &question)).await;
        match answer {
            Ok(Ok(review)) => self.owner.confirm(Person::of(review)).map(|()| Answer::Accepted),
            Ok(Err(error)) => match of_login(&error) {
                Some(cause) => Err(cause),
                // Not all users may ask, and older servers have no answer.
                None if matches!(&error, kube::Error::Api(status) if [403, 404, 405].contains(&status.code)) => {
                    self.owner.confirm(None).map(|()| Answer::Accepted)
                }
                None if is_silence(&error) => Ok(Answer::None),
                None => Ok(Answer::Unclear),
            },
            // The program did not return: nothing is known about the API server.
            Err(_) if before.is_some() && before == self.source.sent() => Err(Cause::Program),
            Err(_) => Ok(Answer::None),
        }
    }

    /// Tries until a login of the same user is accepted.
    async fn renew(&mut self, since: Time, mut cause: Cause) {
        self.end(cause.ended(since));
        // A login that had no answer: it is asked about again without another one. That of the session is the first one's.
        let mut kept = (cause == Cause::Silent).then(|| self.session.client.clone());
        let (mut is_of_session, mut tries) = (true, 0);
        let (mut soonest, mut due) = (Instant::now(), Instant::now() + cause.pause(tries));
        loop {
            let files = self.source.look().await;
            let is_other = files != self.seen;
            if Instant::now() < if is_other { soonest } else { due.max(soonest) } {
                sleep(LOOK).await;
                continue;
            }
            (self.seen, soonest) = (files, Instant::now() + DISTANCE);
            tries += 1;
            if is_other {
                (kept, tries) = (None, 0);
            }
            is_of_session &= kept.is_some();
            let client = match kept.clone() {
                Some(client) => Ok(client),
                None => self.connect().await,
            };
            let asked = match &client {
                Ok(client) => self.ask(client).await,
                Err(found) => Err(found.clone()),
            };
            match (asked, client) {
                (Ok(Answer::Accepted), Ok(client)) => return self.begin(client, &cause),
                // With an answer the login of the session is what it was before the silence.
                (Ok(Answer::Unclear), Ok(client)) if is_of_session => return self.begin(client, &cause),
                // The program has returned, and the API server does not answer.
                (Ok(Answer::None), Ok(client)) if matches!(cause, Cause::Program | Cause::Silent) => {
                    kept = Some(client);
                    if cause == Cause::Program {
                        (cause, tries) = (Cause::Silent, 0);
                        self.end(cause.ended(since));
                    }
                }
                (Ok(_), _) => {}
                (Err(found), _) => {
                    kept = None;
                    if found != cause {
                        self.end(found.ended(since));
                    }
                    cause = found;
                }
            }
            due = Instant::now() + cause.pause(tries);
        }
    }

    async fn connect(&self) -> Result<Client, Cause> {
        let connected = timeout(PROGRAM, self.source.connect()).await;
        Ok(connected.map_err(|_| Cause::Program)??)
    }

    fn end(&self, mut ended: Ended) {
        // What is hidden has been removed.
        ended.is_hidden |= self.login.is_hidden();
        let line = line_of(&ended.text());
        self.login.set(State::Ended(ended));
        (self.announce)(&Notice::Login(&line));
    }

    /// A new session: all is read again, because nothing is known of what changed meanwhile.
    fn begin(&mut self, client: Client, ended: &Cause) {
        // They are about a login that has ended.
        while self.doubts.try_recv().is_ok() {}
        let number = self.session.number + 1;
        self.session = Session { number, client };
        self.login.set(State::Live(self.session.clone()));
        (self.announce)(&Notice::Login(match ended {
            Cause::Silent => "The API server answers again.",
            _ => "The console is logged in again.",
        }));
    }
}

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
