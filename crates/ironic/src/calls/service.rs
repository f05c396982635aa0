//! The Ironic service itself.

use crate::model::page::{self, Page};
use crate::model::service::{Conductor, Driver};
use crate::request::{Call, read_with};

/// The root of the API. Needs no login; its headers contain the range of versions.
#[must_use]
pub fn root() -> Call<()> {
    read_with("reach Ironic", &[], |_| Ok(()))
}

/// The hardware types that live conductors support; none while Ironic is not ready.
#[must_use]
pub fn drivers() -> Call<Page<Driver>> {
    read_with("list drivers", &["drivers"], |body| page::decode("drivers", body))
}

/// The conductors.
#[must_use]
pub fn conductors() -> Call<Page<Conductor>> {
    read_with("list conductors", &["conductors"], |body| {
        page::decode("conductors", body)
    })
}
