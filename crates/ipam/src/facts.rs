//! What a decision about a pool sees.

use std::collections::BTreeMap;

use metal3_api::ipam::v1alpha1::IPPool;
use metal3_api::meta::Time;
use metal3_runtime::cache::Key;

use crate::accounts::Accounts;
use crate::claim::Named;

/// Everything that may decide what happens to a pool, its claims and its addresses.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Which pool.
    pub key: &'a Key,
    /// The pool, as the cache shows it; nothing when it is gone.
    pub pool: Option<&'a IPPool>,
    /// All else that the caches show.
    pub accounts: &'a Accounts,
    /// This process, by a name that no other process and no earlier start of it has.
    pub me: &'a str,
    /// Whether both address caches have reached a list that was taken after this version of the pool was read.
    pub listed: bool,
    /// Live reads made after this version of the pool was read.
    pub evidence: &'a Evidence,
    /// The time for what is written.
    pub now: Time,
}

/// What live reads said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Claims by kind and name.
    pub claims: BTreeMap<Named, Seen>,
    /// Address objects by kind and name: whether they exist.
    pub addresses: BTreeMap<Named, bool>,
}

/// What a live read said of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// It does not exist.
    Absent,
    /// It exists.
    Live {
        /// Which claim of that name.
        uid: String,
        /// The address object its status names.
        names: Option<String>,
    },
    /// It exists in a form that cannot be read.
    Unreadable,
}

/// Live reads that a decision needs. With their answers it is made again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reads {
    /// Whether the addresses of both kinds are to be listed, and the caches to reach that list.
    pub list: bool,
    /// Claims to get.
    pub claims: Vec<Named>,
    /// Address objects to get.
    pub addresses: Vec<Named>,
}

impl Reads {
    /// Whether nothing needs to be read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.list && self.claims.is_empty() && self.addresses.is_empty()
    }
}
