//! The claims, by what they are about.

pub(super) mod access;
pub(super) mod dialect;
pub(super) mod feed;
pub(super) mod life;
pub(super) mod machines;
pub(super) mod record;
pub(super) mod refusals;
pub(super) mod upheaval;
