//! The Ironics of a process, each with a short name. The first one serves the hosts that name none.
//!
//! `choice` decides which of them serves a host: pure, over what the host asks for and what it records. The record is an
//! annotation, written before the node is created; it goes with the host when that moves to another cluster, and admission lets
//! only those set it who may restore a status.
//!
//! differs (`host-several-ironics`): the Go manager has one Ironic.
//!
//! Invariants: requests about a host go to one Ironic, the recorded one; the record changes only while no Ironic may have a node
//! of the host; an Ironic that is not configured any more is never one without the node; a node is created only while the lists of
//! the others (`elsewhere`) show none of the host and none of its machine.

mod choice;
mod elsewhere;
mod places;
mod seats;
mod sought;

use std::fmt;
use std::sync::Arc;

use metal3_api::metal3::names::REGISTERED_IN_ANNOTATION;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_ironic::Client;

pub use choice::Located;
pub(crate) use choice::{Bar, Choice, Wish, choose};
pub use elsewhere::Elsewhere;
pub(crate) use elsewhere::{Listing, elsewhere};
pub(crate) use places::{Place, Places};
pub(crate) use seats::{Seat, Seats};
pub(crate) use sought::{Sought, keys_of};

/// The wait for another host of the same Ironic.
pub(crate) const FOR_SEAT: &str = "other hosts of its Ironic are reconciled";

/// The Ironic that a host records.
pub(crate) fn recorded(host: &BareMetalHost) -> Option<String> {
    host.annotation(REGISTERED_IN_ANNOTATION).map(str::to_owned)
}

/// The name of an Ironic, as a host names it.
pub type Name = Arc<str>;

/// The names of the configured Ironics, without repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    first: Name,
    others: Arc<[Name]>,
}

impl Names {
    /// The name of the only one.
    #[must_use]
    pub fn one(name: &str) -> Self {
        Self {
            first: Name::from(name),
            others: Arc::default(),
        }
    }

    /// The same with more.
    #[must_use]
    pub fn with<'a>(self, others: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            others: others.into_iter().map(Name::from).collect(),
            ..self
        }
    }

    /// The one that serves the hosts that name none.
    #[must_use]
    pub const fn first(&self) -> &Name {
        &self.first
    }

    /// All of them, the first one first.
    pub fn iter(&self) -> impl Iterator<Item = &Name> {
        std::iter::once(&self.first).chain(self.others.iter())
    }

    /// Whether there is only one.
    #[must_use]
    pub fn is_one(&self) -> bool {
        self.others.is_empty()
    }

    fn find(&self, name: &str) -> Option<&Name> {
        self.iter().find(|one| &***one == name)
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(|name| &**name).collect();
        f.write_str(&names.join(", "))
    }
}

/// The clients of the configured Ironics. Clones share them.
#[derive(Debug, Clone)]
pub struct Ironics {
    names: Names,
    first: Client,
    others: Arc<[Client]>,
}

/// The name of an Ironic that the configuration does not name.
pub const USUAL_NAME: &str = "ironic";

impl From<Client> for Ironics {
    fn from(client: Client) -> Self {
        Self::new((USUAL_NAME, client), Vec::new())
    }
}

impl Ironics {
    /// The first one and the others.
    #[must_use]
    pub fn new(first: (&str, Client), others: Vec<(String, Client)>) -> Self {
        Self {
            names: Names::one(first.0).with(others.iter().map(|(name, _)| name.as_str())),
            first: first.1,
            others: others.into_iter().map(|(_, client)| client).collect(),
        }
    }

    /// Their names.
    #[must_use]
    pub const fn names(&self) -> &Names {
        &self.names
    }

    /// All of them, the first one first.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, &Client)> {
        self.names
            .iter()
            .zip(std::iter::once(&self.first).chain(self.others.iter()))
    }

    /// The client of an Ironic.
    #[must_use]
    pub fn client(&self, name: &str) -> Option<&Client> {
        self.iter().find(|(one, _)| &***one == name).map(|(_, client)| client)
    }
}
