//! The login of the kubeconfig, which may end while pages are open, and begin again.
//!
//! - `Login`: whether it is accepted. All watches and actions use the client of its session, so that they end and go on together.
//! - `keeper`: asks the API server, connects again, and is the only one that changes the state.
//! - `cause`: which errors are about a login, and what each end means. Pure.
//! - `owner`: who logs in. Pure. `Checked`: requests with a login of another owner are not sent.
//! - `Kubeconfig`: the files that `kubectl` uses. `program`: the one that logs in, with a deadline.
//!
//! Invariants: an error of one API is not the end of a login: the API server itself is asked who logs in. Once a login has ended, one
//! task sends requests, with longer and longer pauses. A request of one session is not sent again in a later one. What one user may read is not shown once another one logs in.

mod cause;
mod checked;
#[cfg(test)]
pub(crate) mod fake;
mod keeper;
mod kubeconfig;
mod owner;
mod program;

use std::fmt;
use std::time::Duration;

use futures::future::BoxFuture;
use kube::Client;
use metal3_api::meta::Time;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot, watch};

pub use checked::Checked;
pub use kubeconfig::Kubeconfig;
pub use owner::Owner;

pub(crate) use cause::{is_of_login, is_silence};
pub(crate) use keeper::Keeper;

/// The time that a program has for a login, in which a person may type.
const PROGRAM: Duration = Duration::from_secs(300);

/// Where logins come from.
pub trait Source: fmt::Debug + Send + Sync {
    /// A text that differs once another login may be there. It causes no request and runs no program.
    fn look(&self) -> BoxFuture<'_, String>;

    /// How many requests had their login, so that only the API server kept them waiting. `None`: a login takes no time.
    fn sent(&self) -> Option<u64> {
        None
    }

    /// A client with the login as it is now, which is [`Checked`] where it can change.
    fn connect(&self) -> BoxFuture<'_, Result<Client, Failure>>;
}

/// Why there is no client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// What the kubeconfig says cannot be used, in these words.
    Unusable(String),
    /// The program that logs in has failed.
    Program,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable(why) => f.write_str(why),
            Self::Program => f.write_str("run the program that logs in for the kubeconfig"),
        }
    }
}

impl std::error::Error for Failure {}

/// A client that stays as it is.
#[derive(Clone)]
pub(crate) struct Fixed(pub(crate) Client);

impl fmt::Debug for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fixed")
    }
}

impl Source for Fixed {
    fn look(&self) -> BoxFuture<'_, String> {
        Box::pin(std::future::ready(String::new()))
    }

    fn connect(&self) -> BoxFuture<'_, Result<Client, Failure>> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }
}

/// A login that is accepted, as far as is known.
#[derive(Clone)]
pub(crate) struct Session {
    /// Grows with each login.
    pub(crate) number: u64,
    pub(crate) client: Client,
}

/// The end of a login, or of the answers of the API server, as pages get it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ended {
    /// The time of the first sign. What is shown is as old as that.
    pub(crate) since: Time,
    /// What has ended, as a head line.
    pub(crate) what: &'static str,
    pub(crate) why: String,
    /// What a person does.
    pub(crate) cure: String,
    /// Whether what was read is no longer shown: another user logs in.
    pub(crate) is_hidden: bool,
}

impl Ended {
    /// For what a viewer may do.
    pub(crate) fn text(&self) -> String {
        format!("{}: {}. {}", self.what, self.why, self.cure)
    }

    /// For an action that is not done.
    pub(crate) fn refusal(&self) -> String {
        format!("Nothing was changed. {}", self.text())
    }
}

#[derive(Clone)]
pub(crate) enum State {
    Live(Session),
    Ended(Ended),
}

/// The state, and how often it has changed.
#[derive(Clone)]
pub(crate) struct Turn {
    pub(crate) number: u64,
    pub(crate) state: State,
}

impl Turn {
    fn is_of(&self, session: u64) -> bool {
        matches!(&self.state, State::Live(live) if live.number == session)
    }
}

/// Who asks gets whether the API server accepts the login; nothing once it has ended.
type Doubt = oneshot::Sender<bool>;

/// The state of the login, for all that depends on it.
pub(crate) struct Login {
    turns: watch::Sender<Turn>,
    doubts: mpsc::UnboundedSender<Doubt>,
}

impl Login {
    /// A login with its first client, and the doubts about it.
    fn new(client: Client) -> (Self, mpsc::UnboundedReceiver<Doubt>) {
        let (doubts, received) = mpsc::unbounded_channel();
        let state = State::Live(Session { number: 1, client });
        let turns = watch::Sender::new(Turn { number: 0, state });
        (Self { turns, doubts }, received)
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Turn> {
        self.turns.subscribe()
    }

    pub(crate) fn turn(&self) -> u64 {
        self.turns.borrow().number
    }

    /// The session, or why there is none.
    pub(crate) fn session(&self) -> Result<Session, Ended> {
        match &self.turns.borrow().state {
            State::Live(session) => Ok(session.clone()),
            State::Ended(ended) => Err(ended.clone()),
        }
    }

    pub(crate) fn ended(&self) -> Option<Ended> {
        self.session().err()
    }

    /// Whether nothing that was read may be shown.
    pub(crate) fn is_hidden(&self) -> bool {
        self.ended().is_some_and(|ended| ended.is_hidden)
    }

    /// Whether this session goes on.
    pub(crate) fn is_live(&self, session: u64) -> bool {
        self.turns.borrow().is_of(session)
    }

    /// Waits until this session is over.
    pub(crate) async fn over(&self, session: u64) {
        // The sender is that of `self`, so that it is not closed.
        let _ = self.turns.subscribe().wait_for(|turn| !turn.is_of(session)).await;
    }

    /// Has the API server asked about the login of a session, and returns whether it accepts it: not once the session is over, whatever
    /// comes after it, or if that is not known.
    pub(crate) async fn check(&self, session: u64) -> bool {
        let (doubt, checked) = oneshot::channel();
        if self.doubts.send(doubt).is_err() {
            return false;
        }
        tokio::select! {
            biased;
            () = self.over(session) => false,
            accepted = checked => accepted.unwrap_or(false),
        }
    }

    /// The same without waiting for it.
    pub(crate) fn doubt(&self) {
        // Without the task nothing is asked.
        let _ = self.doubts.send(oneshot::channel().0);
    }

    fn set(&self, state: State) {
        self.turns.send_modify(|turn| {
            turn.number += 1;
            turn.state = state;
        });
    }
}
