//! The way from the program to Ironic: every request but those of the change feed is written down, and struck where a
//! case says so.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use http::{Request, Response};
use metal3_ironic::wire::{Broken, Exchanged, Wire};
use metal3_sim_faults::{Fault, Plan, Rule};
use metal3_sim_ironic::{Ironic, in_words};
use tokio::sync::watch;
use tokio::time::sleep;

/// How late a late answer is: the change feed has come by before.
const LATE: Duration = Duration::from_secs(15);

/// What strikes a request to Ironic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blow {
    /// The program dies before Ironic hears of it.
    KilledBefore,
    /// The program dies when Ironic has done it.
    KilledAfter,
    /// Ironic does it, and the connection breaks.
    ReplyLost,
    /// The node is locked by somebody else.
    Locked,
    /// Ironic refuses it as one that does not fit the state.
    WrongState,
    /// Ironic fails, without effect.
    Failed,
    /// Ironic does it, and says so late.
    Late,
}

impl Blow {
    pub(crate) const ALL: [Self; 7] = [
        Self::KilledBefore,
        Self::KilledAfter,
        Self::ReplyLost,
        Self::Locked,
        Self::WrongState,
        Self::Failed,
        Self::Late,
    ];

    /// What the simulator does; nothing where the way to it does it.
    const fn fault(self) -> Option<Fault> {
        match self {
            Self::Locked => Some(Fault::Conflict),
            Self::WrongState => Some(Fault::Refused {
                code: 409,
                retry_after: None,
            }),
            Self::Failed => Some(Fault::Refused {
                code: 500,
                retry_after: None,
            }),
            Self::KilledBefore | Self::KilledAfter | Self::ReplyLost | Self::Late => None,
        }
    }
}

/// What was asked for so far.
#[derive(Debug, Default)]
pub(crate) struct Book {
    /// Every request, in order.
    pub(crate) asked: Vec<String>,
    /// How often each was carried out.
    pub(crate) done: BTreeMap<String, usize>,
    /// The request to strike, counted from 1, and how.
    pub(crate) blow: Option<(usize, Blow)>,
    pub(crate) struck: bool,
}

impl Book {
    fn ask(&mut self, what: &str) -> Option<Blow> {
        self.asked.push(what.to_owned());
        let (at, blow) = self.blow?;
        (at == self.asked.len()).then(|| {
            self.struck = true;
            blow
        })
    }
}

/// The wire under a program's client.
#[derive(Debug, Clone)]
pub(crate) struct Tap {
    ironic: Ironic,
    book: Arc<Mutex<Book>>,
    /// Counts the deaths of the program.
    deaths: watch::Sender<u64>,
}

impl Tap {
    pub(crate) fn on(ironic: Ironic) -> Self {
        Self {
            ironic,
            book: Arc::default(),
            deaths: watch::Sender::new(0),
        }
    }

    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap()
    }

    /// Changes when the program dies.
    pub(crate) fn deaths(&self) -> watch::Receiver<u64> {
        self.deaths.subscribe()
    }

    pub(crate) fn kill(&self) {
        self.deaths.send_modify(|deaths| *deaths += 1);
    }

    async fn carry(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, Broken> {
        let Some(what) = in_words(&request) else {
            return self.ironic.exchange(request).await;
        };
        let blow = self.book().ask(&what);
        if blow == Some(Blow::KilledBefore) {
            self.kill();
            return pending().await;
        }
        if let Some(fault) = blow.and_then(Blow::fault) {
            // Strikes the very next request, which is this one: nothing runs in between.
            self.ironic.suffer(Plan::none().with(Rule::at(1, fault)));
        }
        let answer = self.ironic.exchange(request).await;
        if answer.as_ref().is_ok_and(|answer| answer.status().is_success()) {
            *self.book().done.entry(what).or_default() += 1;
        }
        match blow {
            Some(Blow::KilledAfter) => {
                self.kill();
                pending().await
            }
            Some(Blow::ReplyLost) => Err(Broken("the connection broke".to_owned())),
            Some(Blow::Late) => {
                sleep(LATE).await;
                answer
            }
            _ => answer,
        }
    }
}

impl Wire for Tap {
    fn exchange(&self, request: Request<Vec<u8>>) -> Exchanged<'_> {
        Box::pin(self.carry(request))
    }
}
