//! Who logs in.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use parking_lot::Mutex;

use super::cause::Cause;

/// A user, as the API server knows it. What it adds for one login, such as the name of a token, does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Person {
    pub(crate) user: String,
    pub(crate) uid: String,
    pub(crate) groups: BTreeSet<String>,
}

impl Person {
    /// `None`: the API server does not say who it is.
    pub(super) fn of(review: SelfSubjectReview) -> Option<Self> {
        let info = review.status?.user_info?;
        Some(Self {
            user: info.username.filter(|user| !user.is_empty())?,
            uid: info.uid.unwrap_or_default(),
            groups: info.groups.unwrap_or_default().into_iter().collect(),
        })
    }
}

/// Who logged in first, and where: only this user's logins are used.
#[derive(Debug, Default)]
pub struct Owner {
    first: Mutex<First>,
    /// Requests that had their login, so that no program kept them waiting.
    pub(super) sent: AtomicU64,
}

#[derive(Debug, Default)]
enum First {
    #[default]
    None,
    /// The server does not say who logs in.
    Unknown,
    Known {
        server: String,
        person: Person,
    },
}

impl Owner {
    /// How many requests had their login.
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Compares a login that was not used before with the first one.
    pub(super) fn admit(&self, server: &str, found: Option<Person>) -> Result<(), Cause> {
        let mut first = self.first.lock();
        match (&*first, found) {
            (First::None, None) => *first = First::Unknown,
            (First::None, Some(person)) => {
                let server = server.to_owned();
                *first = First::Known { server, person };
            }
            (First::Unknown, _) | (First::Known { .. }, None) => return Err(Cause::Unproven),
            (First::Known { server: own, .. }, Some(_)) if own != server => return Err(Cause::OtherServer),
            (First::Known { person, .. }, Some(found)) => return same(person, &found),
        }
        Ok(())
    }

    /// Compares what the server says again about the same login.
    pub(super) fn confirm(&self, found: Option<Person>) -> Result<(), Cause> {
        let mut first = self.first.lock();
        match (&*first, found) {
            (First::None, Some(person)) => {
                let server = String::new();
                *first = First::Known { server, person };
                Ok(())
            }
            (First::Known { person, .. }, Some(found)) => same(person, &found),
            // Such as a certificate that a proxy no longer passes on: the request is one without a login.
            (First::Known { .. }, None) => Err(Cause::Unproven),
            (First::None, None) | (First::Unknown, _) => Ok(()),
        }
    }
}

fn same(first: &Person, found: &Person) -> Result<(), Cause> {
    if first == found {
        return Ok(());
    }
    Err(Cause::OtherUser {
        first: first.user.clone(),
        now: found.user.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(user: &str, group: &str) -> Option<Person> {
        Some(Person {
            user: user.to_owned(),
            uid: String::new(),
            groups: BTreeSet::from([group.to_owned()]),
        })
    }

    #[test]
    fn only_logins_that_are_known_to_be_of_the_first_user_are_used() {
        let other = |now: &str| {
            Err(Cause::OtherUser {
                first: "ann".to_owned(),
                now: now.to_owned(),
            })
        };
        for (first, (server, next), result) in [
            (person("ann", "a"), ("here", person("ann", "a")), Ok(())),
            (person("ann", "a"), ("here", person("bob", "a")), other("bob")),
            (person("ann", "a"), ("here", person("ann", "b")), other("ann")),
            (
                person("ann", "a"),
                ("there", person("ann", "a")),
                Err(Cause::OtherServer),
            ),
            (person("ann", "a"), ("here", None), Err(Cause::Unproven)),
            (None, ("here", None), Err(Cause::Unproven)),
            (None, ("here", person("ann", "a")), Err(Cause::Unproven)),
        ] {
            let owner = Owner::default();
            assert_eq!(owner.admit("here", first.clone()), Ok(()));
            assert_eq!(owner.admit(server, next.clone()), result, "{first:?} {next:?}");
            assert_eq!(
                owner.admit("here", first.clone()).is_ok(),
                first.is_some(),
                "the first one stays"
            );
        }
    }

    #[test]
    fn login_that_stays_is_confirmed_as_long_as_the_server_says_what_it_said() {
        let owner = Owner::default();
        for (found, is_same) in [
            (None, true),
            (person("ann", "a"), true),
            (None, false),
            (person("bob", "a"), false),
            (person("ann", "a"), true),
        ] {
            assert_eq!(owner.confirm(found.clone()).is_ok(), is_same, "{found:?}");
        }
    }
}
