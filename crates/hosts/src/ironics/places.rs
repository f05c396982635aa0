//! The workers of the controllers of objects about hosts (discs, subscriptions, left finalizers), apart by Ironic.

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::cache::{Key, SharedCache};
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::queue::Waker;

use super::{FOR_SEAT, Ironics, Names, Seat, Seats, Wish, choose};

/// The places of one controller.
pub(crate) struct Places {
    names: Names,
    hosts: SharedCache<BareMetalHost>,
    at_once: usize,
    /// Those of each Ironic, and of the hosts of which it is not known. None: there is one Ironic.
    seats: Vec<Seats>,
}

/// Whether an object may be reconciled now.
pub(crate) enum Place {
    /// Yes, while the seat is held. `None`: there is one Ironic.
    Taken(Option<Seat>),
    /// It is enqueued at the end of this wait.
    None(&'static str),
}

impl Places {
    /// With several Ironics, at most `at_once` objects of each are reconciled at once. `waker`: of the controller.
    pub(crate) fn new(
        ironics: &Ironics,
        hosts: &SharedCache<BareMetalHost>,
        at_once: usize,
        waker: &Waker<Key>,
    ) -> Self {
        let names = ironics.names().clone();
        let of_all = names.iter().count().saturating_add(1);
        let seats = std::iter::repeat_with(|| Seats::new(at_once, waker.clone()));
        Self {
            seats: seats.take(if names.is_one() { 0 } else { of_all }).collect(),
            hosts: hosts.clone(),
            at_once,
            names,
        }
    }

    /// The workers that serve all places.
    pub(crate) fn workers(&self) -> usize {
        self.at_once.saturating_mul(self.seats.len().max(1))
    }

    /// A place for an object about this host.
    pub(crate) fn take(&self, object: &Key, host: &Key) -> Place {
        let place = self.place_of(host);
        let mut taken = Place::Taken(None);
        for (at, seats) in self.seats.iter().enumerate() {
            if at == place {
                let seat = seats.take(object);
                taken = seat.map_or(Place::None(FOR_SEAT), |seat| Place::Taken(Some(seat)));
            } else {
                seats.leave(object);
            }
        }
        taken
    }

    /// The object comes for no place.
    pub(crate) fn leave(&self, object: &Key) {
        for seats in &self.seats {
            seats.leave(object);
        }
    }

    /// The place of the Ironic that is asked about a host; the last one while that is not known.
    fn place_of(&self, host: &Key) -> usize {
        let not_read = Observed::Unknown(UnknownReason::NotRead);
        let host = self.hosts.find(host).into_present();
        let wish = host.as_ref().map(|host| Wish::of(host));
        let choice = wish.map(|wish| choose(&self.names, &wish, &not_read));
        let asked = choice.as_ref().and_then(|choice| choice.asked());
        let known = asked.and_then(|asked| self.names.iter().position(|name| name == asked));
        known.unwrap_or_else(|| self.names.iter().count())
    }
}
