//! The sessions of all configured Ironics, and which of them is asked about a host.

use std::sync::Arc;

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_ironic::Client;
use metal3_runtime::cache::{Key, SharedCache};
use metal3_runtime::plan::Observed;
use tokio_util::sync::CancellationToken;

use super::ironic_session::{FOR_LIST, IronicSession, SessionParts};
use super::observations::Observations;
use crate::ironics::{self, Ironics, Located, Name, Names, Place, Seats, Wish, choose};

/// All of them, in the order of their names. Clones share them.
#[derive(Clone)]
pub(super) struct Sessions {
    names: Names,
    all: Arc<[IronicSession]>,
}

impl Sessions {
    /// Sessions without observations. With several, at most `at_once` hosts of each are reconciled at once.
    pub(super) fn new(ironics: &Ironics, parts: &SessionParts, at_once: usize) -> Self {
        let names = ironics.names().clone();
        let is_one = names.is_one();
        let session = |(name, client): (&Name, &Client)| {
            let of_several = (!is_one).then(|| (Arc::clone(name), Seats::new(at_once, parts.waker.clone())));
            IronicSession::new(client.clone(), parts.clone(), of_several)
        };
        Self {
            all: ironics.iter().map(session).collect(),
            names,
        }
    }

    pub(super) const fn names(&self) -> &Names {
        &self.names
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Name, &IronicSession)> {
        self.names.iter().zip(self.all.iter())
    }

    /// The session that is asked about a host. `None`: it is not known, or not configured.
    pub(super) fn of(&self, host: &BareMetalHost, located: &Located) -> Option<&IronicSession> {
        let choice = choose(&self.names, &Wish::of(host), located);
        let name = choice.asked()?;
        self.iter().find(|(one, _)| *one == name).map(|(_, session)| session)
    }

    /// A place for a reconcile of a host with its session.
    pub(super) fn take_place(&self, observed: &Observations) -> Place {
        let (key, own) = (Key::of(&*observed.host), observed.ironic.as_ref());
        self.leave_seats(&key, own);
        let has_begun = || self.all.iter().all(IronicSession::has_begun);
        let is_known = self.names.is_one()
            || ironics::recorded(&observed.host).is_some()
            || matches!(observed.located, Observed::Present(_));
        // Each of them may have its node.
        if !is_known && !has_begun() {
            return Place::None(FOR_LIST);
        }
        own.map_or(Place::Taken(None), |session| session.take_place(&key))
    }

    /// The host comes for no seat, other than one of this session.
    pub(super) fn leave_seats(&self, host: &Key, except: Option<&IronicSession>) {
        for session in self.all.iter().filter(|one| !except.is_some_and(|own| own.is(one))) {
            session.leave_seat(host);
        }
    }

    /// Releases the slot of a host, wherever it has one.
    pub(super) fn release_slot(&self, host: &Key) {
        for session in self.all.iter() {
            session.release_slot(host);
        }
    }

    /// Runs all of them until `stop`.
    pub(super) async fn run(self, hosts: SharedCache<BareMetalHost>, stop: CancellationToken) {
        let sessions = self.all.iter().map(|session| {
            let hosts = hosts.clone();
            session.clone().run(async move { hosts.synced().await }, stop.clone())
        });
        futures::future::join_all(sessions).await;
    }

    /// Waits until reconciles may begin. Where there are several Ironics, each host waits for its own instead.
    pub(super) async fn listed(self) {
        if let (true, Some(only)) = (self.names.is_one(), self.all.first()) {
            only.listed().await;
        }
    }
}
