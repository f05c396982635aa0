//! How many logins one Ironic tries at once.
//!
//! Its API has few threads, and a silent BMC takes one until Ironic gives the BMC up, minutes after this program stopped waiting.

use std::time::Duration;

use metal3_domain::clock::Monotonic;
use parking_lot::Mutex;

const AT_ONCE: usize = 2;
/// Ironic has given up a silent BMC by then: five attempts, each of up to three connections of 30 s.
const GIVEN_UP: Duration = Duration::from_mins(10);

/// When each place is free again at the latest.
#[derive(Default)]
pub(super) struct LoginSeats(Mutex<Vec<Monotonic>>);

/// The place of a try.
pub(super) struct LoginSeat(Monotonic);

impl LoginSeats {
    /// A place. `None`: as many tries as permitted are under way.
    pub(super) fn take(&self, now: Monotonic) -> Option<LoginSeat> {
        let mut taken = self.0.lock();
        taken.retain(|until| *until > now);
        if taken.len() >= AT_ONCE {
            return None;
        }
        let until = now.after(GIVEN_UP);
        taken.push(until);
        Some(LoginSeat(until))
    }

    /// Ironic has responded. Without a response the place stays taken.
    pub(super) fn leave(&self, seat: &LoginSeat) {
        let mut taken = self.0.lock();
        if let Some(at) = taken.iter().position(|until| *until == seat.0) {
            taken.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_is_free_once_ironic_responded_or_has_given_up() {
        let seats = LoginSeats::default();
        let at = |seconds| Monotonic::new(Duration::from_secs(seconds));
        let first = seats.take(at(0)).unwrap();
        let silent = seats.take(at(1));
        assert!(silent.is_some() && seats.take(at(2)).is_none());
        seats.leave(&first);
        let other = seats.take(at(3)).unwrap();
        assert!(seats.take(at(600)).is_none(), "one is silent, one is under way");
        let later = seats.take(at(601));
        assert!(later.is_some() && seats.take(at(602)).is_none());
        seats.leave(&other);
        assert!(seats.take(at(603)).is_some());
    }
}
