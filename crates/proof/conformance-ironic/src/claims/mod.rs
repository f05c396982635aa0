//! The claims by topic.

pub(super) mod access;
pub(super) mod errors;
pub(super) mod feed;
pub(super) mod life;
pub(super) mod machines;
pub(super) mod media;
pub(super) mod microversion;
pub(super) mod record;
pub(super) mod restarts;
